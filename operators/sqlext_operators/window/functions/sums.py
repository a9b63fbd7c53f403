"""The rows of sums, means and products beside the basic ones: Spark's try_sum and try_avg, and product."""

from __future__ import annotations

from sqlext_operators.window.functions import types
from sqlext_operators.window.functions.definition import Evaluation, Parameter, WindowFunction

_VALUE = Parameter("x")


ROWS: tuple[WindowFunction, ...] = (
    WindowFunction(
        "try_sum",
        (_VALUE,),
        types.summed,
        Evaluation("sums", "tried_sum"),
        "Sum of the values, of the type of sum, NULL where it does not fit (never an error). NULL if no value is left.",
        of_spark=True,
    ),
    WindowFunction(
        "try_avg",
        (_VALUE,),
        types.averaged,
        Evaluation("sums", "tried_average"),
        "Mean of the values like avg, NULL where a decimal does not fit its type (never an error). NULL if no value is "
        "left.",
        of_spark=True,
    ),
    WindowFunction(
        "product",
        (_VALUE,),
        types.measured,
        Evaluation("moments", "Product"),
        "Product of the values as a double. Only the result can overflow, no product of a part of the values can. NULL "
        "if no value is left.",
    ),
)
