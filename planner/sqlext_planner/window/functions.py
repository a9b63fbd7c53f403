"""The table of window functions, for the layers above: names, parameters, result types.

Importing it loads neither numba nor Spark; the kernels are loaded where they run.
"""

from sqlext_operators.window.functions import (
    FUNCTIONS,
    FunctionTypeError,
    Parameter,
    WindowFunction,
    check_filter,
    lookup,
)

__all__ = ["FUNCTIONS", "FunctionTypeError", "Parameter", "WindowFunction", "check_filter", "lookup"]
