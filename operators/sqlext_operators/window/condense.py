"""Rows of a stretch of time condensed to a few for each key, which give the same results in every window that holds all
of the stretch (docs/streams.md: incremental aggregation).

A call is split into partial calls over columns of their own, `count(x)` into a sum of ones, `avg(x)` into a sum and a
count. The sums, minima and maxima of a stretch are one row of these columns; `distinct_count` needs a row for each
value. Condensed rows are condensed again with others, and go through the window's evaluators like any other row, so
nothing here subtracts, and late rows cannot spoil anything: only stretches below the watermark are condensed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.codes import dense_codes, order_codes
from sqlext_operators.columns.flat import fixed_width, take, to_array, truth, valid_mask
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.kernels.sequence_sort import first_rows
from sqlext_operators.window.evaluators.distinct import zero_filled
from sqlext_operators.window.evaluators.sums import interval_mean, mean, sum_overflow
from sqlext_operators.window.functions.definition import CallSite
from sqlext_operators.window.functions.table import call_site
from sqlext_operators.window.kernels.sums import add_doubles, add_integers, least_rows
from sqlext_operators.window.spec import Call

Form = Literal["count", "integer", "low", "high", "double", "decimal", "min", "max", "distinct"]

#: The function that computes a form over its column.
_FUNCTIONS: Mapping[Form, str] = {
    "count": "sum",
    "integer": "sum",
    "low": "sum",
    "high": "sum",
    "double": "sum",
    "decimal": "sum",
    "min": "min",
    "max": "max",
    "distinct": "distinct_count",
}
#: Sums of decimals up to this precision fit into 38 digits.
_SUMMED_DIGITS = 18


@dataclass(frozen=True)
class PartialCall:
    """One partial call: a form over the values of a column (None: over rows) where a condition is true."""

    form: Form
    arg: str | None
    where: str | None

    @property
    def column(self) -> str:
        """The name of its column."""
        return f"__{self.form} {self.arg or '*'}{f' where {self.where}' if self.where else ''}"

    @property
    def call(self) -> Call:
        """The call over its column; no overflow is possible but where the form says so."""
        return Call(_FUNCTIONS[self.form], (self.column,), self.column)

    def dtype(self, schema: pa.Schema) -> pa.DataType:
        """The type of its column over inputs of a schema."""
        if self.form in ("count", "integer", "low", "high"):
            return pa.int64()
        if self.form == "double":
            return pa.float64()
        kind = schema.field(self.arg).type
        return pa.decimal128(38, kind.scale) if self.form == "decimal" else kind

    def values(self, columns: Callable[[str], pa.Array], rows: int) -> pa.Array:
        """Its column for ordinary rows."""
        array = None if self.arg is None else columns(self.arg)
        usable = None if array is None else valid_mask(array)
        if self.where is not None:
            chosen = truth(columns(self.where))
            usable = chosen if usable is None else chosen & usable
        if self.form == "count":
            return to_array(np.ones(rows, np.int64), usable, pa.int64())
        assert array is not None
        if self.form == "distinct":
            return zero_filled(array)
        if self.form in ("integer", "low", "high"):
            values = fixed_width(array).astype(np.int64, copy=False)
            values = values & 0xFFFFFFFF if self.form == "low" else values >> 32 if self.form == "high" else values
            return to_array(values, usable, pa.int64())
        if self.form == "double":
            return to_array(fixed_width(array).astype(np.float64, copy=False), usable, pa.float64())
        if self.form == "decimal":
            array = array.cast(pa.decimal128(38, array.type.scale))
        return array if self.where is None or usable is None else take(array, np.where(usable, np.arange(rows), -1))


@dataclass(frozen=True)
class SplitCall:
    """A call as partial calls, and how their results become its own."""

    partials: tuple[PartialCall, ...]
    finish: Callable[[Sequence[pa.Array]], pa.Array]


def split_call(call: Call, types: Mapping[str, pa.DataType], *, ansi: bool) -> SplitCall | None:
    """The call as partial calls over columns of these types; None for a call that has none."""
    base, _, suffix = call.function.partition("_where")
    args = list(call.args)
    conditions = [args.pop() for has in (call.filtered, call.function.endswith("_where")) if has]
    if len(conditions) > 1 or (conditions and call.function == "distinct_count"):
        return None
    where = conditions[0] if conditions else None
    if suffix or len(args) > 1 or call.constants:
        return None
    arg = args[0] if args else None
    site = call_site(call, tuple(types[name] for name in call.args), unbounded=False, ansi=ansi)
    if base == "count":
        return SplitCall((PartialCall("count", arg, where),), lambda partials: partials[0].fill_null(0))
    if arg is None:
        return None
    if base in ("min", "max") or call.function == "distinct_count":
        form: Form = "distinct" if base == "distinct_count" else "min" if base == "min" else "max"
        return SplitCall((PartialCall(form, arg, where),), lambda partials: partials[0])
    if base == "sum":
        return _split_sum(site, arg, where)
    return _split_average(site, arg, where) if base == "avg" else None


def _split_sum(site: CallSite, arg: str, where: str | None) -> SplitCall | None:
    dtype, result = site.types[0], site.result_type
    if pa.types.is_decimal(dtype):
        if dtype.precision > _SUMMED_DIGITS:
            return None
        return SplitCall((PartialCall("decimal", arg, where),), lambda partials: partials[0].cast(result))
    if pa.types.is_floating(dtype):
        return SplitCall((PartialCall("double", arg, where),), lambda partials: _double_sum(partials[0], result))
    if dtype.bit_width == 64 and (site.ansi or pa.types.is_duration(dtype)):
        halves = (PartialCall("low", arg, where), PartialCall("high", arg, where))
        return SplitCall(halves, lambda partials: _checked_sum(partials, site))
    return SplitCall((PartialCall("integer", arg, where),), lambda partials: _integer_sum(partials[0], site))


def _split_average(site: CallSite, arg: str, where: str | None) -> SplitCall | None:
    dtype, count = site.types[0], PartialCall("count", arg, where)
    if pa.types.is_decimal(dtype):
        return None
    if pa.types.is_floating(dtype):
        return SplitCall(
            (PartialCall("double", arg, where), count),
            lambda partials: mean(_filled(partials[0]), _filled(partials[1])),
        )
    halves = (PartialCall("low", arg, where), PartialCall("high", arg, where), count)
    if pa.types.is_duration(dtype):
        return SplitCall(halves, lambda partials: interval_mean(*_halves(partials), _filled(partials[2]), dtype))
    return SplitCall(halves, _integer_mean)


def _filled(array: pa.Array) -> npt.NDArray[Any]:
    return np.asarray(array.fill_null(0).to_numpy(zero_copy_only=False))


def _double_sum(total: pa.Array, result: pa.DataType) -> pa.Array:
    if result == pa.float64():
        return total
    with np.errstate(over="ignore"):
        return to_array(_filled(total).astype(np.float32), valid_mask(total), result)


def _integer_sum(total: pa.Array, site: CallSite) -> pa.Array:
    dtype, values = site.result_type, _filled(total)
    narrow = values.astype(f"int{dtype.bit_width}")
    if site.ansi and (narrow != values).any():
        raise sum_overflow(site)
    return to_array(narrow, valid_mask(total), dtype)


def _halves(partials: Sequence[pa.Array]) -> tuple[Int64s, Int64s]:
    """(low, high) of exact sums, 0 <= low < 2**32."""
    low, high = _filled(partials[0]), _filled(partials[1])
    return low & 0xFFFFFFFF, high + (low >> 32)


def _checked_sum(partials: Sequence[pa.Array], site: CallSite) -> pa.Array:
    low, high = _halves(partials)
    if ((high >> 31) != (high >> 63)).any():
        raise sum_overflow(site)
    return to_array((high << 32) | low, valid_mask(partials[0]), site.result_type)


def _integer_mean(partials: Sequence[pa.Array]) -> pa.Array:
    low, high = _halves(partials)
    return mean(high.astype(np.float64) * 2.0**32 + low, _filled(partials[2]))


# Condensing


#: Rows beyond one for each group: (groups, the column that they are about, its values).
FurtherRows = list[tuple[Int64s, pa.Array, pa.Array]]


def condensed(batch: pa.RecordBatch, keys: Sequence[str], partials: Sequence[PartialCall]) -> pa.RecordBatch:
    """The rows of a batch of the columns `keys` and those of `partials`, in sequence order, as few rows as possible."""
    names = [*keys, *(partial.column for partial in partials)]
    if batch.num_rows == 0:
        return batch.select(names)
    group = KeyCodes(max(1, len(keys))).encode([batch.column(name) for name in keys])
    if not keys:
        group = np.zeros(batch.num_rows, np.int64)
    count = int(group.max()) + 1
    firsts = np.empty(count, np.int64)
    first_rows(group, firsts)
    rest: FurtherRows = []
    columns = [_condensed(batch.column(partial.column), partial.form, group, count, rest) for partial in partials]
    places = np.concatenate([np.arange(count), *(codes for codes, _, _ in rest)])
    found = [batch.column(name).take(pa.array(firsts[places])) for name in keys]
    for partial, column in zip(partials, columns, strict=True):
        more = [values if owner is column else _neutral(partial, column, codes) for codes, owner, values in rest]
        found.append(pa.concat_arrays([column, *more]) if more else column)
    return pa.RecordBatch.from_arrays(found, names=names)


def _neutral(partial: PartialCall, column: pa.Array, codes: Int64s) -> pa.Array:
    """Values that change nothing: NULL, or for distinct values one that the group has."""
    return column.take(pa.array(codes)) if partial.form == "distinct" else pa.nulls(len(codes), column.type)


def _condensed(column: pa.Array, form: Form, group: Int64s, groups: int, rest: FurtherRows) -> pa.Array:
    """One value for each group; more are added to `rest`."""
    if form in ("min", "max"):
        return _extreme(column, group, groups, largest=form == "max")
    if form == "distinct":
        return _distinct(column, group, rest)
    if form == "decimal":
        return _decimal_sums(column, group)
    usable: Bools = _usable(column)
    counts = np.zeros(groups, np.int64)
    if form == "double":
        return _double_sums(column, group, usable, counts, rest)
    totals = np.zeros(groups, np.int64)
    add_integers(group, fixed_width(column), usable, totals, counts)
    return to_array(totals, counts > 0, column.type)


def _usable(column: pa.Array) -> Bools:
    mask = valid_mask(column)
    return np.ones(len(column), np.bool_) if mask is None else mask


def _extreme(column: pa.Array, group: Int64s, groups: int, *, largest: bool) -> pa.Array:
    codes = order_codes(column)
    rows = np.full(groups, -1, np.int64)
    least_rows(group, ~codes if largest else codes, _usable(column), rows)
    return column.take(pa.array(rows, mask=rows < 0))  # a copy: it is kept longer than the column


def _distinct(column: pa.Array, group: Int64s, rest: FurtherRows) -> pa.Array:
    codes, values = dense_codes(column)
    _, places = np.unique(group * values + codes, return_index=True)
    owners = group[places]
    is_first = np.ones(len(owners), np.bool_)
    np.not_equal(owners[1:], owners[:-1], out=is_first[1:])
    first = column.take(pa.array(places[is_first]))
    more = places[~is_first]
    if len(more):
        rest.append((owners[~is_first], first, column.take(pa.array(more))))
    return first


def _double_sums(column: pa.Array, group: Int64s, usable: Bools, counts: Int64s, rest: FurtherRows) -> pa.Array:
    """The sums, and their rounding errors as further rows."""
    totals, errors = np.zeros((2, len(counts)))
    with np.errstate(all="ignore"):
        add_doubles(group, fixed_width(column), usable, totals, errors, counts)
    sums = to_array(totals, counts > 0, column.type)
    more = np.flatnonzero(np.isfinite(errors) & (errors != 0))
    if len(more):
        rest.append((more, sums, pa.array(errors[more])))
    return sums


def _decimal_sums(column: pa.Array, group: Int64s) -> pa.Array:
    table = pa.table({"group": group, "value": column}).group_by("group", use_threads=False)
    found = table.aggregate([("value", "sum")]).sort_by("group")
    return found.column("value_sum").combine_chunks().cast(column.type)
