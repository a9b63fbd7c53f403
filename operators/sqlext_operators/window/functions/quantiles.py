"""The rows of percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from sqlext_operators.window.functions import types
from sqlext_operators.window.functions.definition import Evaluation, Parameter, WindowFunction
from sqlext_operators.window.functions.types import FunctionTypeError, sql_name
from sqlext_operators.window.spec import Scalar

_VALUE = Parameter("x")
_PLACE = Parameter("p", "number", minimum=0, maximum=1)
_PLACES = Parameter("p", "number", minimum=0, maximum=1, variadic=True)
_DESCENDING = Parameter("descending", "boolean")
_FREQUENCY = Parameter("frequency")
_ACCURACY = Parameter("accuracy", "integer", optional=True, minimum=1, maximum=2**31 - 1, default=10000)


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


_INTERNAL_DOC = "What the analyzer makes of percentiles WITHIN GROUP, and of arrays of percentages."

ROWS: tuple[WindowFunction, ...] = (
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
    WindowFunction(
        "percentiles",
        (_VALUE, _PLACES),
        _percentiles,
        _evaluation("continuous", several=True),
        _INTERNAL_DOC,
        internal=True,
    ),
    WindowFunction(
        "percentiles_frequency",
        (_VALUE, _FREQUENCY, _PLACES),
        _percentiles,
        _evaluation("continuous", several=True),
        _INTERNAL_DOC,
        internal=True,
    ),
    WindowFunction(
        "approx_percentiles_accuracy",
        (_VALUE, replace(_ACCURACY, optional=False), _PLACES),
        _all_nearest,
        _evaluation("plain", several=True, first=1),
        _INTERNAL_DOC,
        internal=True,
    ),
    WindowFunction(
        "approx_percentiles",
        (_VALUE, _PLACES),
        _all_nearest,
        _evaluation("plain", several=True),
        _INTERNAL_DOC,
        internal=True,
    ),
    *(
        WindowFunction(
            f"percentile_{name}" + ("s" if several else ""),
            (_VALUE, _DESCENDING, _PLACES if several else _PLACE),
            _percentiles if several else _percentile,
            _evaluation(form, several=several, directed=True, first=1),
            _INTERNAL_DOC,
            internal=True,
        )
        for name, form in (("cont", "continuous"), ("disc", "discrete"))
        for several in (False, True)
    ),
)
