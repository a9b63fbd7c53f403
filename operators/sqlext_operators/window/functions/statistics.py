"""The rows of statistics: stddev, variance, median, entropy, ew_avg, drawdown, nth_value_where."""

from __future__ import annotations

from sqlext_operators.window.functions import types
from sqlext_operators.window.functions.definition import Evaluation, Parameter, WindowFunction

_VALUE = Parameter("x")

_MOMENT_DOC = (
    "The result is a double. It is accurate even if the values are far from zero, and whatever has left the window. "
    "NaN if one of the values is infinite or NaN."
)
_SAMPLE_DOC = f"{_MOMENT_DOC} NULL for fewer than two values."
_POPULATION_DOC = f"{_MOMENT_DOC} NULL if no value is left."

ROWS: tuple[WindowFunction, ...] = (
    WindowFunction(
        "stddev",
        (_VALUE,),
        types.measured,
        Evaluation("folds", "Deviation", {"sample": True, "root": True}),
        "Standard deviation of a sample: the sum of the squared distances from the mean is divided by n - 1. "
        f"{_SAMPLE_DOC}",
        aliases=("std", "stddev_samp"),
    ),
    WindowFunction(
        "stddev_pop",
        (_VALUE,),
        types.measured,
        Evaluation("folds", "Deviation", {"sample": False, "root": True}),
        f"Standard deviation of a population: the sum of the squared distances is divided by n. {_POPULATION_DOC}",
    ),
    WindowFunction(
        "var_samp",
        (_VALUE,),
        types.measured,
        Evaluation("folds", "Deviation", {"sample": True, "root": False}),
        f"Variance of a sample, the square of stddev. {_SAMPLE_DOC}",
        aliases=("variance",),
    ),
    WindowFunction(
        "var_pop",
        (_VALUE,),
        types.measured,
        Evaluation("folds", "Deviation", {"sample": False, "root": False}),
        f"Variance of a population, the square of stddev_pop. {_POPULATION_DOC}",
    ),
    WindowFunction(
        "median",
        (_VALUE,),
        types.measured,
        Evaluation("quantiles", "Median"),
        "Middle value as a double; for an even number of values, the mean of the two in the middle (OpenMLDB's sum of "
        "two large ints overflows, here it does not). NaN is the largest number. NULL if no value is left.",
    ),
    WindowFunction(
        "entropy",
        (_VALUE,),
        types.spread,
        Evaluation("frequencies", "Entropy"),
        "Shannon entropy of the values' frequencies in bits (log2), a double; 0 for one distinct value. All NaNs "
        "count as one value, and so do -0.0 and 0.0. NULL if no value is left.",
    ),
    WindowFunction(
        "nth_value_where",
        (_VALUE, Parameter("n", "integer"), Parameter("condition", "condition")),
        types.first_argument,
        Evaluation("nth_where", "NthWhere"),
        "Value of the n-th row for which the condition is true (NULL counts as false): n > 0 counts from the oldest "
        "row, n < 0 from the newest. A row with a NULL value counts too. NULL if n = 0 or if there are fewer such "
        "rows.",
        needs_order=True,
    ),
    WindowFunction(
        "ew_avg",
        (_VALUE, Parameter("alpha", "number", minimum=0, maximum=1, nullable=True)),
        types.measured,
        Evaluation("folds", "ew_avg"),
        "Exponentially weighted mean as a double: the i-th newest non-NULL value, counted from 0, has the weight "
        "(1 - alpha)^i. A NULL alpha counts as 0 and gives the plain mean; alpha = 1 gives the newest value. NULL if "
        "no value is left.",
        needs_order=True,
    ),
    WindowFunction(
        "drawdown",
        (_VALUE,),
        types.measured,
        Evaluation("folds", "Drawdown"),
        "Largest fall from a value to a later one, as a share of the earlier value: a double from 0 (it never falls) "
        "to 1. Negative values are left out. NULL if no value is left, NaN if a value is NaN.",
        needs_order=True,
    ),
)
