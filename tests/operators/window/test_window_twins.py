"""The window-union processor against its brute-force twin, on random sequences cut into random pieces."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.window.functions import FUNCTIONS
from sqlext_operators.window.processor import WindowUnionProcessor
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec

from tests.operators.window import reference
from tests.operators.window.twins import TWINS
from tests.operators.window.window_data import (
    ALL_CALLS,
    INT64_MAX,
    INT64_MIN,
    TYPES,
    Line,
    cut,
    frames,
    lines,
    modified,
    windows,
)
from tests.properties import examples

SETTINGS = examples(150, share=8)


def run(
    given_windows: tuple[Window, ...], rows: list[Line], places: list[int], *, ansi: bool = False, coded: bool = False
) -> pa.Table:
    """The processor's output over the rows cut at `places`; with `coded`, its strings are dictionaries."""
    columns = sorted({name for window in given_windows for call in window.calls for name in call.args})
    pieces = cut(rows, places, columns)
    if coded:
        pieces = [
            replace(piece, args={name: as_coded(array) for name, array in piece.args.items()}) for piece in pieces
        ]
    spec = WindowUnionSpec(("k",), "ts", ("id",), given_windows, ansi)
    processor = WindowUnionProcessor(spec, TYPES, pieces[0].payload.schema)
    batches = [b for i, p in enumerate(pieces) for b in processor.process(p, i == len(pieces) - 1)]
    return pa.Table.from_batches(batches, schema=processor.output_schema)


def as_coded(array: pa.Array) -> pa.Array:
    """Strings as a dictionary, with values that no row has and not in order."""
    if not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        return array
    found = pa.concat_arrays([pa.array(["zz", "", "b"]).cast(array.type), array]).dictionary_encode()
    return found.slice(3)


def expected(window: Window, call: Call, rows: list[Line]) -> list[Any]:
    """The twin's results for all FROM rows."""
    found: list[Any] = []
    constants = FUNCTIONS[call.function].complete_constants(call.constants)
    for group in dict.fromkeys(row.group for row in rows):
        sequence = [
            reference.SequenceRow(row.order, row.source, tuple(row.values[name] for name in call.args))
            for row in rows
            if row.group == group and row.source in (0, *window.sources)
        ]
        types = tuple(TYPES[name] for name in call.args)
        modes = {"openmldb": call.openmldb, "filtered": call.filtered}
        found += reference.evaluate(call.function, window.frame, sequence, types, constants, **modes)
    return found


def plain(array: pa.ChunkedArray) -> list[Any]:
    """Python values; timestamps and intervals as integers of microseconds."""
    values: list[Any] = array.cast(without_times(array.type)).to_pylist()
    return values


def without_times(dtype: pa.DataType) -> pa.DataType:
    """The type with int64 for timestamps and intervals, also in the rows of frame_rows."""
    if pa.types.is_timestamp(dtype) or pa.types.is_duration(dtype):
        return pa.int64()
    if pa.types.is_list(dtype) and pa.types.is_struct(dtype.value_type):
        return pa.list_(pa.struct([pa.field(f.name, without_times(f.type)) for f in dtype.value_type]))
    if pa.types.is_list(dtype) and without_times(dtype.value_type) != dtype.value_type:
        return pa.list_(without_times(dtype.value_type))
    return dtype


def assert_same(got: Any, want: Any, dtype: pa.DataType) -> None:
    """Exact but for floating-point sums and means, which may be off by a few units in the last place."""
    if want is None or got is None:
        assert got is want
    elif pa.types.is_floating(dtype):
        assert isinstance(got, float)
        precision = 2.0**-22 if dtype == pa.float32() else 2.0**-50
        slack = max(1e-13, getattr(want, "error", 0.0))
        assert (math.isnan(got) and math.isnan(want)) or math.isclose(got, want, rel_tol=precision, abs_tol=slack)
    elif pa.types.is_integer(dtype) or pa.types.is_timestamp(dtype):
        assert got == reference.wrap(want, dtype.bit_width)
    elif pa.types.is_list(dtype):
        assert repr(got) == repr(want)
    else:
        assert got == want


def check(given_windows: tuple[Window, ...], rows: list[Line], places: list[int]) -> None:
    """Compare every call of every window with its twin."""
    table = run(given_windows, rows, places)
    assert table.equals(run(given_windows, rows, places, coded=True)) or has_nan(table)
    assert table["id"].to_pylist() == list(range(sum(row.source == 0 for row in rows)))
    for window in given_windows:
        for call in window.calls:
            dtype = table.schema.field(call.output).type
            for got, want in zip(plain(table[call.output]), expected(window, call, rows), strict=True):
                assert_same(got, cut_to_type(want, dtype), dtype)


def has_nan(table: pa.Table) -> bool:
    """Whether a number is NaN, or may be in a list: equality would be false."""
    return any(
        pa.types.is_list(column.type) or (pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py())
        for column in table.columns
    )


def cut_to_type(want: Any, dtype: pa.DataType) -> Any:
    """NULL for a decimal beyond its type's precision."""
    if isinstance(want, Decimal) and abs(Fraction(want)) >= Fraction(10) ** (dtype.precision - dtype.scale):
        return None
    return want


@SETTINGS
@given(st.data())
def test_frames(data: st.DataObject) -> None:
    """Membership of every combination of attributes, seen through frame_rows, count and lag."""
    frame = data.draw(frames())
    sources = tuple(sorted(data.draw(st.sets(st.integers(1, 3)))))
    calls = (Call("frame_rows", ("i64",), "rows"), Call("count", (), "count"), Call("lag", ("i64",), "lag", (2,)))
    rows = data.draw(lines(["i64"]))
    check((Window(frame, sources, calls[1:2]),), rows, [*range(14)])
    check((Window(frame, sources, calls),), rows, data.draw(st.lists(st.integers(0, 14), max_size=4)))


#: (order, source) of a group with ties of every kind: NULLs, FROM rows, union rows, rows at INT64's ends.
TIES: list[tuple[int | None, int]] = [
    *[(None, 2), (None, 0), (None, 0), (INT64_MIN + 1, 0), (0, 1), (0, 0), (0, 0), (1, 0)],
    *[(2, 2), (2, 1), (2, 0), (2, 0), (2, 0), (4, 0), (INT64_MAX, 0)],
]


def every_frame() -> list[Frame]:
    """Every combination of attributes, with a few bounds of every kind."""
    found = []
    bounds = [
        (None, -2),
        (None, 0),
        (None, None),
        (-2, -1),
        (-2, 0),
        (-1, 2),
        (0, 0),
        (0, None),
        (1, 2),
        (-9, INT64_MAX),
    ]
    for unit, (start, end), maxsize in product(("rows", "range"), bounds, (None, 1, 3)):
        for flags in product((False, True), repeat=3):
            for following in (False, True) if end == 0 else (end is None or end > 0,):
                if maxsize is None or unit == "range":
                    ahead = start is not None and start > 0
                    found.append(Frame(unit, start, end, ahead, following, maxsize, *flags))
    return found


@pytest.mark.few(2)
@pytest.mark.parametrize("places", [[], [*range(len(TIES))]], ids=["whole", "row by row"])
def test_every_frame(places: list[int]) -> None:
    """Membership in every kind of frame on one sequence, all rows at once and one row a piece."""
    rows = [Line(0, order, source, {"i64": i}) for i, (order, source) in enumerate(TIES)]
    rows += [Line(1, order, source, {"i64": i}) for i, (order, source) in enumerate(TIES[5:8])]
    call = Call("frame_rows", ("i64",), "rows")
    for frame in every_frame():
        check((Window(frame, (1, 2), (call,)),), rows, places)


@SETTINGS
@given(st.data())
def test_several_windows(data: st.DataObject) -> None:
    """Windows over different sources, with any functions, share the buffer."""
    given_windows = tuple(data.draw(windows(i)) for i in range(data.draw(st.integers(1, 3))))
    columns = sorted({name for window in given_windows for call in window.calls for name in call.args})
    rows = data.draw(lines(columns))
    check(given_windows, rows, data.draw(st.lists(st.integers(0, 14), max_size=14)))


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
@examples(40)
@given(st.data())
def test_function(function: str, data: st.DataObject) -> None:
    """Each function over each type it takes, with any frame."""
    chosen = data.draw(
        st.lists(st.sampled_from([c for c in ALL_CALLS if c.function == function]), min_size=1, max_size=3)
    )
    calls = tuple(replace(data.draw(modified(c)), output=f"out{i}") for i, c in enumerate(chosen))
    rows = data.draw(lines(sorted({name for call in calls for name in call.args})))
    window = Window(data.draw(frames()), (1, 2, 3), calls)
    check((window,), rows, data.draw(st.lists(st.integers(0, 14), max_size=6)))


@SETTINGS
@given(st.data())
def test_cuts_do_not_matter(data: st.DataObject) -> None:
    """Bit-identical results for one piece, one row a piece, and anything between."""
    given_windows = tuple(data.draw(windows(i)) for i in range(data.draw(st.integers(1, 2))))
    columns = sorted({name for window in given_windows for call in window.calls for name in call.args})
    rows = data.draw(lines(columns, max_rows=20))
    whole = run(given_windows, rows, [])
    for places in ([*range(20)], data.draw(st.lists(st.integers(0, 20), max_size=5))):
        pieces = run(given_windows, rows, places)
        for name in whole.column_names:
            assert repr(plain(whole[name])) == repr(plain(pieces[name]))


@SETTINGS
@given(st.data())
def test_no_order_column(data: st.DataObject) -> None:
    """All orders equal: a running window in input order, union rows first."""
    given_windows = (data.draw(windows(0)),)
    columns = sorted({name for window in given_windows for call in window.calls for name in call.args})
    rows = data.draw(lines(columns, ordered=False))
    check(given_windows, rows, data.draw(st.lists(st.integers(0, 14), max_size=4)))


def test_every_function_has_a_twin() -> None:
    assert set(TWINS) == set(FUNCTIONS)
