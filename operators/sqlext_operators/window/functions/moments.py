"""The rows of correlations, regressions and higher moments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from sqlext_operators.window.functions import types
from sqlext_operators.window.functions.definition import Evaluation, Parameter, TypeRule, WindowFunction
from sqlext_operators.window.functions.types import FunctionTypeError

_X, _Y = Parameter("x"), Parameter("y")

_DOC = (
    "Rows in which x or y is NULL do not count. It is accurate even if the values are far from zero, and whatever has "
    "left the window."
)


def _two_numbers(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """double for two numbers."""
    for place, dtype in enumerate(dtypes):
        try:
            types.measured(name, [dtype])
        except FunctionTypeError as error:
            raise FunctionTypeError(error.message, error.help, place) from None
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
    return WindowFunction(name, parameters, rule, evaluation, f"{doc} {_DOC}", of_spark=True)


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
        (
            "skewness",
            False,
            "Skewness: the mean third power of the distance from the mean, in units of",
        ),
        (
            "kurtosis",
            True,
            "Excess kurtosis: the mean fourth power of the distance from the mean, less 3, in units of",
        ),
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


ROWS: tuple[WindowFunction, ...] = tuple(_rows())
