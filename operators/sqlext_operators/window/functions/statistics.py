"""The rows of statistics: stddev, variance, median, entropy, ew_avg, drawdown, nth_value_where; percentiles;
correlations, regressions and higher moments.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from sqlext_operators.window.functions import types
from sqlext_operators.window.functions.definition import Evaluation, Parameter, WindowFunction
from sqlext_operators.window.functions.types import FunctionTypeError, TypeRule, sql_name
from sqlext_operators.window.spec import Scalar

_VALUE = Parameter("x")
_PLACE = Parameter("p", "number", minimum=0, maximum=1)
_PLACES = Parameter("p", "number", minimum=0, maximum=1, variadic=True)
_DESCENDING = Parameter("descending", "boolean")
_FREQUENCY = Parameter("frequency")
_ACCURACY = Parameter("accuracy", "integer", optional=True, minimum=1, maximum=2**31 - 1, default=10000)
_X, _Y = Parameter("x"), Parameter("y")

_MOMENT_DOC = (
    "The result is a double. It is accurate even if the values are far from zero, and whatever has left the window. "
    "NaN if one of the values is infinite or NaN."
)
_SAMPLE_DOC = f"{_MOMENT_DOC} NULL for fewer than two values."
_POPULATION_DOC = f"{_MOMENT_DOC} NULL if no value is left."
_PAIRS_DOC = (
    "Rows in which x or y is NULL do not count. It is accurate even if the values are far from zero, and whatever has "
    "left the window."
)


def _deviation(name: str, doc: str, *aliases: str) -> WindowFunction:
    """`name` begins with what it is, a standard deviation or a variance, and ends with what it is of."""
    options: dict[str, Scalar] = {"sample": not name.endswith("_pop"), "root": name.startswith("stddev")}
    evaluation = Evaluation("folds", "Deviation", options)
    return WindowFunction(name, (_VALUE,), types.measured, evaluation, doc, aliases=aliases)


STATISTICS: tuple[WindowFunction, ...] = (
    _deviation(
        "stddev",
        "Standard deviation of a sample: the sum of the squared distances from the mean is divided by n - 1. "
        f"{_SAMPLE_DOC}",
        "std",
        "stddev_samp",
    ),
    _deviation(
        "stddev_pop",
        f"Standard deviation of a population: the sum of the squared distances is divided by n. {_POPULATION_DOC}",
    ),
    _deviation("var_samp", f"Variance of a sample, the square of stddev. {_SAMPLE_DOC}", "variance"),
    _deviation("var_pop", f"Variance of a population, the square of stddev_pop. {_POPULATION_DOC}"),
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
        Evaluation("positions", "NthWhere"),
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


def _percentile(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """double for a number, and an integer that says how often it counts."""
    if len(dtypes) > 1 and not pa.types.is_signed_integer(dtypes[1]):
        help = "a frequency is an integer; cast it, for example to bigint"
        raise FunctionTypeError(f"{name}() does not take {sql_name(dtypes[1])} as frequency", help, 1)
    return types.measured(name, dtypes[:1])


def _percentiles(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """array<double> for what `_percentile` takes."""
    return types.listed(_percentile(name, dtypes))


def _nearest(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """The input's type: numbers, dates and timestamps."""
    dtype = dtypes[0]
    is_time = pa.types.is_date32(dtype) or pa.types.is_timestamp(dtype) or pa.types.is_duration(dtype)
    if not is_time:
        types.measured(name, dtypes)
    return dtype


def _all_nearest(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """An array of the input's type."""
    return types.listed(_nearest(name, dtypes))


def _evaluation(form: str, *, several: bool = False, directed: bool = False, first: int = 0) -> Evaluation:
    options: dict[str, Scalar] = {"form": form, "several": several, "directed": directed, "first": first}
    return Evaluation("quantiles", "Percentiles", options)


def _made_percentile(
    name: str, parameters: tuple[Parameter, ...], rule: TypeRule, evaluation: Evaluation
) -> WindowFunction:
    doc = "What the analyzer makes of percentiles WITHIN GROUP, and of arrays of percentages."
    return WindowFunction(name, parameters, rule, evaluation, doc, internal=True)


QUANTILES: tuple[WindowFunction, ...] = (
    WindowFunction(
        "percentile",
        (_VALUE, _PLACE, Parameter("frequency", optional=True)),
        _percentile,
        _evaluation("continuous"),
        "The value below which the share p (0 to 1, a literal) of the values is, as a double: between two values it "
        "is interpolated. With a frequency, an integer, each row counts that often (NULL and 0: not at all; a "
        "negative one is an error). With array(p1, p2, ...) for p it is an array<double> with a value for each. "
        "Also percentile_cont(p) WITHIN GROUP (ORDER BY x [DESC]), and percentile_disc, the first value at which at "
        "least the share p is passed, without interpolation. NaN is the largest number. NULL if no value is left.",
        of_spark=True,
        several="percentiles",
    ),
    WindowFunction(
        "percentile_approx",
        (_VALUE, _PLACE, _ACCURACY),
        _nearest,
        _evaluation("plain"),
        "The smallest value at which at least the share p (0 to 1, a literal) of the values is passed, of their own "
        "type. Spark's may be off by 1 / accuracy of the number of values; this one is exact, so it is never "
        "further off, and accuracy has no effect. With array(p1, p2, ...) for p it is an array with a value for "
        "each. NaN is the largest number. NULL if no value is left.",
        spark_names=("approx_percentile",),
        of_spark=True,
        several="approx_percentiles",
    ),
    _made_percentile("percentiles", (_VALUE, _PLACES), _percentiles, _evaluation("continuous", several=True)),
    _made_percentile(
        "percentiles_frequency", (_VALUE, _FREQUENCY, _PLACES), _percentiles, _evaluation("continuous", several=True)
    ),
    _made_percentile(
        "approx_percentiles_accuracy",
        (_VALUE, replace(_ACCURACY, optional=False), _PLACES),
        _all_nearest,
        _evaluation("plain", several=True, first=1),
    ),
    _made_percentile("approx_percentiles", (_VALUE, _PLACES), _all_nearest, _evaluation("plain", several=True)),
    *(
        _made_percentile(
            f"percentile_{name}" + ("s" if several else ""),
            (_VALUE, _DESCENDING, _PLACES if several else _PLACE),
            _percentiles if several else _percentile,
            _evaluation(form, several=several, directed=True, first=1),
        )
        for name, form in (("cont", "continuous"), ("disc", "discrete"))
        for several in (False, True)
    ),
)


def _two_numbers(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """double for two numbers."""
    types.for_each(types.measured, name, dtypes)
    return pa.float64()


def _counted(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """bigint for two numbers."""
    _two_numbers(name, dtypes)
    return pa.int64()


def _mean_of(place: int) -> TypeRule:
    """The type of a mean of one of two numbers."""

    def rule(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
        _two_numbers(name, dtypes)
        return types.averaged(name, [dtypes[place]])

    return rule


def _pair(name: str, statistic: str, doc: str, *, rule: TypeRule = _two_numbers) -> WindowFunction:
    parameters = (_Y, _X) if name.startswith("regr_") else (_X, _Y)
    evaluation = Evaluation("moments", "Pairs", {"statistic": statistic})
    return WindowFunction(name, parameters, rule, evaluation, f"{doc} {_PAIRS_DOC}", of_spark=True)


def _rows() -> Iterator[WindowFunction]:
    none = "NULL if no row is left."
    equal = "NULL if no row is left or if all x are equal."
    yield _pair("covar_pop", "covar_pop", f"Covariance of a population: divided by the number of rows n. {none}")
    yield _pair("covar_samp", "covar_samp", "Covariance of a sample: divided by n - 1. NULL for fewer than two rows.")
    yield _pair(
        "corr",
        "corr",
        "Pearson's correlation of x and y. NULL for fewer than two rows, or if all x or all y are equal.",
    )
    yield _pair("regr_count", "count", "Number of rows with both values; 0 for an empty window.", rule=_counted)
    for name, place in (("regr_avgx", 1), ("regr_avgy", 0)):
        yield WindowFunction(
            name,
            (_Y, _X),
            _mean_of(place),
            Evaluation("moments", "pair_mean", {"place": place}),
            f"Mean of {name[-1]} over the rows with both values, as avg gives it. {none}",
            of_spark=True,
        )
    yield _pair("regr_sxx", "sxx", f"Sum of the squared distances of x from its mean. {none}")
    yield _pair("regr_syy", "syy", f"Sum of the squared distances of y from its mean. {none}")
    yield _pair("regr_sxy", "sxy", f"Sum of the products of the distances of x and y from their means. {none}")
    yield _pair("regr_slope", "slope", f"Slope of the line through the points (x, y) by least squares. {equal}")
    yield _pair("regr_intercept", "intercept", f"Where the line of regr_slope meets x = 0. {equal}")
    yield _pair("regr_r2", "r2", f"Square of the correlation of x and y; 1 if all y are equal. {equal}")
    for name, fourth, what in (
        ("skewness", False, "Skewness: the mean third power of the distance from the mean, in units of"),
        ("kurtosis", True, "Excess kurtosis: the mean fourth power of the distance from the mean, less 3, in units of"),
    ):
        yield WindowFunction(
            name,
            (_X,),
            types.measured,
            Evaluation("moments", "HigherMoments", {"fourth": fourth}),
            f"{what} stddev_pop, a double. NULL if no value is left or if all values are equal, NaN if one is infinite "
            "or NaN.",
            of_spark=True,
        )


MOMENTS: tuple[WindowFunction, ...] = tuple(_rows())
