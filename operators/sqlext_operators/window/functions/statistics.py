"""The rows of statistics: stddev, variance, median, entropy, ew_avg, drawdown, nth_value_where."""

from __future__ import annotations

from sqlext_operators.window.functions import types
from sqlext_operators.window.functions.definition import Evaluation, Parameter, WindowFunction

_VALUE = Parameter("x")

_MOMENT_DOC = (
    "A double, accurate whatever the values' offset and what has left the window; NaN if an infinity or NaN is among "
    "the values."
)
_SAMPLE_DOC = f"{_MOMENT_DOC} NULL for fewer than two values."
_POPULATION_DOC = f"{_MOMENT_DOC} NULL when no value is left."

ROWS: tuple[WindowFunction, ...] = (
    WindowFunction(
        "stddev",
        (_VALUE,),
        types.measured,
        Evaluation("folds", "stddev"),
        f"Standard deviation of a sample: the squared distances from the mean are divided by n - 1. {_SAMPLE_DOC}",
        aliases=("std", "stddev_samp"),
    ),
    WindowFunction(
        "stddev_pop",
        (_VALUE,),
        types.measured,
        Evaluation("folds", "stddev_pop"),
        f"Standard deviation of a population: the squared distances are divided by n. {_POPULATION_DOC}",
    ),
    WindowFunction(
        "var_samp",
        (_VALUE,),
        types.measured,
        Evaluation("folds", "var_samp"),
        f"Variance of a sample, the square of stddev. {_SAMPLE_DOC}",
        aliases=("variance",),
    ),
    WindowFunction(
        "var_pop",
        (_VALUE,),
        types.measured,
        Evaluation("folds", "var_pop"),
        f"Variance of a population, the square of stddev_pop. {_POPULATION_DOC}",
    ),
    WindowFunction(
        "median",
        (_VALUE,),
        types.measured,
        Evaluation("medians", "median"),
        "Middle value as a double; the mean of the two middle ones if there is an even number (OpenMLDB's sum of two "
        "large ints overflows, here it does not). NaN is the largest number. NULL when no value is left.",
    ),
    WindowFunction(
        "entropy",
        (_VALUE,),
        types.spread,
        Evaluation("frequencies", "entropy"),
        "Shannon entropy of the values' frequencies in bits (log2), a double; 0 for one distinct value. NaNs are one "
        "value, -0.0 and 0.0 are one value. NULL when no value is left.",
    ),
    WindowFunction(
        "nth_value_where",
        (_VALUE, Parameter("n", "integer"), Parameter("condition", "condition")),
        types.first_argument,
        Evaluation("nth_where", "nth_value_where"),
        "Value of the n-th row for which the condition is true (NULL is false): n > 0 counts from the oldest row, "
        "n < 0 from the newest. A row with a NULL value counts. NULL for n = 0 and when there are fewer such rows.",
        needs_order=True,
    ),
    WindowFunction(
        "ew_avg",
        (_VALUE, Parameter("alpha", "number", minimum=0, maximum=1, nullable=True)),
        types.measured,
        Evaluation("folds", "ew_avg"),
        "Exponentially weighted mean as a double: the i-th newest value that is not NULL, from 0, has the weight "
        "(1 - alpha)^i. A NULL alpha is 0, the plain mean; 1 gives the newest value. NULL when no value is left.",
        needs_order=True,
    ),
    WindowFunction(
        "drawdown",
        (_VALUE,),
        types.measured,
        Evaluation("folds", "drawdown"),
        "Largest fall from a value to a later one as a share of the former, a double from 0 (it never falls) to 1. "
        "Negative values are left out. NULL when no value is left, NaN if one is NaN.",
        needs_order=True,
    ),
)
