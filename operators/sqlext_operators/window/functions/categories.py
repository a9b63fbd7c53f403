"""The rows of aggregates by category."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from sqlext_operators.window.functions.definition import Evaluation, Parameter, WindowFunction
from sqlext_operators.window.functions.types import FunctionTypeError, TypeRule, is_number, refused, sql_name

_VALUE = Parameter("x")
_CONDITION = Parameter("condition", "condition")
_CATEGORY = Parameter("cate")
_N = Parameter("n", "integer")

_WHAT = {
    "count": "Number of non-NULL values",
    "sum": "Sum of the values",
    "avg": "Mean of the values",
    "min": "Smallest value",
    "max": "Largest value",
}
_FORM = {
    "count": "",
    "sum": "A sum of integers is a bigint, which wraps on overflow (an error under ANSI); a sum of float or "
    'double is a double, exact and rounded once. With compat="openmldb" sums keep the type of x. ',
    "avg": "The mean is the exact sum, rounded to double and divided by the count. ",
    "min": "NaN is the largest number. ",
    "max": "NaN is the largest number. ",
}
_TEXT = (
    "Integers are written as they are; float, double and means with six decimals (`%f`); dates as 2020-05-29; "
    "timestamps as 2020-05-29 15:56:30 in the session's time zone, without fractions of a second. '' if no row is "
    "left. The text is never cut off (OpenMLDB stops at 4096 bytes)."
)
_TOP = "all of them if n < 0, '' if n = 0"
_WHERE = "over the rows where the condition is true (NULL counts as false)"


def _category(name: str, types: Sequence[pa.DataType]) -> None:
    dtype = types[1]
    is_date = dtype == pa.date32() or pa.types.is_timestamp(dtype)
    if not (pa.types.is_signed_integer(dtype) or is_date or dtype in (pa.string(), pa.large_string())):
        raise FunctionTypeError(
            f"{name}() does not take {sql_name(dtype)} as category",
            "a category is an integer, date, timestamp or string; cast it, for example to string",
            1,
        )


def _any_by_category(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """string, for any value."""
    _category(name, types)
    return pa.string()


def _number_by_category(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """string, for integers, float and double."""
    if not is_number(types[0]):
        raise refused(name, types[0], "it takes integers, float and double; cast the argument, for example to double")
    _category(name, types)
    return pa.string()


def _rows() -> Iterator[WindowFunction]:
    for name, what in _WHAT.items():
        rule: TypeRule = _any_by_category if name == "count" else _number_by_category
        keys, top_keys, top_values = (
            Evaluation("categories", "CategoryTexts", {"aggregate": name, "order": order})
            for order in ("keys", "top_keys", "top_values")
        )
        each, pairs = f"{what} of each category", "as `key:value,key:value`"
        rest = f"Rows where x or cate is NULL are left out. {_FORM[name]}{_TEXT}"
        yield WindowFunction(
            f"{name}_cate", (_VALUE, _CATEGORY), rule, keys, f"{each}, {pairs}, in ascending order of the keys. {rest}"
        )
        yield WindowFunction(
            f"{name}_cate_where",
            (_VALUE, _CONDITION, _CATEGORY),
            rule,
            keys,
            f"{each}, {_WHERE}, {pairs}, in ascending order of the keys. {rest}",
        )
        yield WindowFunction(
            f"top_n_key_{name}_cate_where",
            (_VALUE, _CONDITION, _CATEGORY, _N),
            rule,
            top_keys,
            f"{each}, {_WHERE}, {pairs}, for the n largest keys in descending order ({_TOP}). {rest}",
        )
        yield WindowFunction(
            f"top_n_value_{name}_cate_where",
            (_VALUE, _CONDITION, _CATEGORY, _N),
            rule,
            top_values,
            f"{each}, {_WHERE}, {pairs}, for the n largest values in descending order ({_TOP}). Of equal values the "
            f"one with the larger key comes first. {rest}",
        )
    for order, chosen in (("key", "keys"), ("value", "shares")):
        yield WindowFunction(
            f"top_n_{order}_ratio_cate",
            (_VALUE, _CONDITION, _CATEGORY, _N),
            _any_by_category,
            Evaluation("categories", "CategoryTexts", {"aggregate": "ratio", "order": f"top_{order}s"}),
            "Share of the rows where the condition is true among all rows of each category, as `key:share,key:share`, "
            f"for the n largest {chosen} in descending order ({_TOP}). Rows where x or cate is NULL are left out; a "
            f"NULL condition counts as false. {_TEXT}",
        )


CATEGORIES: tuple[WindowFunction, ...] = tuple(_rows())
