"""The window functions: one table, from which everything else is derived."""

from sqlext_operators.window.functions.definition import CallSite, Evaluation, Parameter, WindowFunction
from sqlext_operators.window.functions.table import FUNCTIONS, lookup
from sqlext_operators.window.functions.types import FunctionTypeError, check_filter

__all__ = [
    "FUNCTIONS",
    "CallSite",
    "Evaluation",
    "FunctionTypeError",
    "Parameter",
    "WindowFunction",
    "check_filter",
    "lookup",
]
