"""The errors of what cannot be answered for one row."""

from __future__ import annotations

import re

from sqlext_planner.errors import Span, SqlExtError, UnsupportedError
from sqlext_planner.relational.logical_plan import LogicalPlan


def refused(
    message: str,
    span: Span | None,
    help: str = "deploy a query with windows, LAST JOINs and projections over one request table",
) -> SqlExtError:
    """The error of a statement that cannot be deployed."""
    return UnsupportedError(message, condition="not-servable", span=span, help=help)


def words(plan: LogicalPlan) -> str:
    """What a user calls a node."""
    name = plan.operator_name
    return name if name is not None else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(plan).__name__)
