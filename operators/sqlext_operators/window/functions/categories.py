"""The rows of aggregates by category."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from sqlext_operators.window.functions.definition import Evaluation, Parameter, TypeRule, WindowFunction
from sqlext_operators.window.functions.types import FunctionTypeError, is_number, sql_name

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
    "sum": "Integers wrap around at their type's width (under ANSI an overflow is an error); sums of float and double "
    "are exact and rounded once, to x's type. ",
    "avg": "The mean is the exact sum, rounded to double and divided by the count. ",
    "min": "NaN is the largest number. ",
    "max": "NaN is the largest number. ",
}
_TEXT = (
    "Integers are written plain, float, double and means with six decimals (`%f`), dates as 2020-05-29, timestamps "
    "as 2020-05-29 15:56:30 in the session's time zone without fractions of a second. '' when no row is left. Never "
    "cut (OpenMLDB stops at 4096 bytes)."
)
_TOP = "n < 0 stands for all, 0 gives ''"


def _category(name: str, types: Sequence[pa.DataType]) -> None:
    dtype = types[1]
    is_date = dtype == pa.date32() or pa.types.is_timestamp(dtype)
    if not (pa.types.is_signed_integer(dtype) or is_date or dtype in (pa.string(), pa.large_string())):
        raise FunctionTypeError(
            f"{name}() does not take {sql_name(dtype)} as category",
            "categories are integers, dates, timestamps or strings; cast it, for example to string",
            1,
        )


def _any_by_category(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """string, for any value."""
    _category(name, types)
    return pa.string()


def _number_by_category(name: str, types: Sequence[pa.DataType]) -> pa.DataType:
    """string, for integers, float and double."""
    if not is_number(types[0]):
        help = "it takes integers, float and double; cast the argument, for example to double"
        raise FunctionTypeError(f"{name}() does not take {sql_name(types[0])}", help, 0)
    _category(name, types)
    return pa.string()


def _rows() -> Iterator[WindowFunction]:
    for name, what in _WHAT.items():
        rule: TypeRule = _any_by_category if name == "count" else _number_by_category
        keys, top_keys, top_values = (
            Evaluation("categories", "categories", (name, order)) for order in ("keys", "top_keys", "top_values")
        )
        each = f"{what} of each category, as `key:value,key:value`"
        rest = f"Rows where x or cate is NULL are left out. {_FORM[name]}{_TEXT}"
        where = "of the rows where the condition is true (NULL is false)"
        yield WindowFunction(f"{name}_cate", (_VALUE, _CATEGORY), rule, keys, f"{each}, keys ascending. {rest}")
        yield WindowFunction(
            f"{name}_cate_where",
            (_VALUE, _CONDITION, _CATEGORY),
            rule,
            keys,
            f"{each}, keys ascending, {where}. {rest}",
        )
        yield WindowFunction(
            f"top_n_key_{name}_cate_where",
            (_VALUE, _CONDITION, _CATEGORY, _N),
            rule,
            top_keys,
            f"{each}, for the n largest keys, descending ({_TOP}), {where}. {rest}",
        )
        yield WindowFunction(
            f"top_n_value_{name}_cate_where",
            (_VALUE, _CONDITION, _CATEGORY, _N),
            rule,
            top_values,
            f"{each}, for the n largest values, descending, of equal ones the larger key first ({_TOP}), {where}. "
            f"{rest}",
        )
    for order, chosen in (("key", "n largest keys, descending"), ("value", "n largest shares, descending")):
        yield WindowFunction(
            f"top_n_{order}_ratio_cate",
            (_VALUE, _CONDITION, _CATEGORY, _N),
            _any_by_category,
            Evaluation("categories", "categories", ("ratio", f"top_{order}s")),
            "Share of the rows where the condition is true among all rows of each category, as `key:share,key:share`, "
            f"for the {chosen} ({_TOP}). Rows where x or cate is NULL are left out; a NULL condition is false. {_TEXT}",
        )


ROWS: tuple[WindowFunction, ...] = tuple(_rows())
