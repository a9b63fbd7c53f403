"""Statements of the extension from Python: builders that write its SQL text, and run it as `Session.sql` does."""

from sqlext.builders.expressions import Amount, Expr, PeriodLike, Value
from sqlext.builders.queries import Conditions, JoinKind, Query
from sqlext.builders.text import Source
from sqlext.builders.windows import Bound, Window

__all__ = ["Amount", "Bound", "Conditions", "Expr", "JoinKind", "PeriodLike", "Query", "Source", "Value", "Window"]
