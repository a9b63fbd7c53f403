"""Group aggregates against the window functions' brute-force twins, on random rows cut into random pieces."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.sequences.sequence import Piece
from sqlext_operators.window.functions import FUNCTIONS
from sqlext_operators.window.operator import GroupAggregateProcessor, GroupAggregateSpec, empty_group
from sqlext_operators.window.spec import Call

from tests.operators.window.test_window_twins import assert_same, cut_to_type, plain
from tests.operators.window.twins import TWINS, View
from tests.operators.window.window_data import ALL_CALLS, TYPES, Line, cut, lines
from tests.properties import examples

SETTINGS = examples(150)
GROUPED = sorted(name for name, function in FUNCTIONS.items() if not (function.needs_order or function.internal))


def run(calls: tuple[Call, ...], rows: list[Line], places: list[int], *, every_row: bool) -> pa.Table:
    """The processor's output over the rows cut at `places`; the payload is each row's number."""
    columns = sorted({name for call in calls for name in call.args})
    processor = GroupAggregateProcessor(
        GroupAggregateSpec(calls, every_row=every_row), TYPES, pa.schema([("id", pa.int64())])
    )
    pieces = cut(rows, places, columns)
    batches = [b for i, p in enumerate(pieces) for b in processor.process(p, i == len(pieces) - 1)]
    return pa.Table.from_batches(batches, schema=processor.output_schema)


def expected(call: Call, rows: list[Line]) -> list[Any]:
    """The twin's result for every group."""
    types = tuple(TYPES[name] for name in call.args)
    constants = FUNCTIONS[call.function].complete_constants(call.constants)
    found = []
    for _, group in groupby(rows, key=lambda row: row.group):
        values = [tuple(row.values[name] for name in call.args) for row in group]
        found.append(TWINS[call.function](View(values, values, types, constants, call.openmldb)))
    return found


@st.composite
def calls_and_rows(draw: st.DrawFn, function: str | None = None) -> tuple[tuple[Call, ...], list[Line], list[int]]:
    """Some calls, rows of source 0 in group order, and places to cut them."""
    possible = [call for call in ALL_CALLS if call.function in ((function,) if function else GROUPED)]
    chosen = draw(st.lists(st.sampled_from(possible), min_size=1, max_size=3))
    calls = tuple(replace(c, output=f"out{i}") for i, c in enumerate(chosen))
    names = sorted({name for call in calls for name in call.args})
    rows = [Line(r.group, 0, 0, r.values) for r in draw(lines(names, ordered=False))]
    return calls, rows, draw(st.lists(st.integers(0, 14), max_size=6))


@pytest.mark.parametrize("function", GROUPED)
@examples(40, share=8)
@given(st.data())
def test_one_row_a_group(function: str, data: st.DataObject) -> None:
    calls, rows, places = data.draw(calls_and_rows(function))
    table = run(calls, rows, places, every_row=False)
    ends = [i for i, row in enumerate(rows) if i + 1 == len(rows) or rows[i + 1].group != row.group]
    assert table["id"].to_pylist() == ends
    for call in calls:
        dtype = table.schema.field(call.output).type
        for got, want in zip(plain(table[call.output]), expected(call, rows), strict=True):
            assert_same(got, cut_to_type(want, dtype), dtype)


@SETTINGS
@given(calls_and_rows())
def test_every_row(drawn: tuple[tuple[Call, ...], list[Line], list[int]]) -> None:
    """All rows in order; the last one of each group has what one row a group would have."""
    calls, rows, places = drawn
    table = run(calls, rows, places, every_row=True)
    groups = run(calls, rows, [], every_row=False)
    assert table["id"].to_pylist() == list(range(len(rows)))
    ends = groups["id"].to_pylist()
    for call in calls:
        whole, single = plain(table[call.output]), plain(groups[call.output])
        assert repr([whole[i] for i in ends]) == repr(single)
        assert all(value is None for i, value in enumerate(whole) if i not in ends)


@pytest.mark.few(4)
@pytest.mark.parametrize("function", GROUPED)
def test_no_rows(function: str) -> None:
    """What a group without rows gives, as the twin says for an empty frame."""
    for call in (call for call in ALL_CALLS if call.function == function):
        types = tuple(TYPES[name] for name in call.args)
        constants = FUNCTIONS[function].complete_constants(call.constants)
        batch = empty_group(GroupAggregateSpec((call,)), {name: TYPES[name] for name in call.args})
        assert batch.num_rows == 1
        assert batch.column(0)[0].as_py() == TWINS[function](View([], [], types, constants))


def test_large_groups_keep_nothing() -> None:
    """A group of a million rows in pieces, and groups of one row."""
    calls = (Call("sum", ("x",), "s"), Call("distinct_count", ("x",), "d"), Call("count", (), "n"))
    processor = GroupAggregateProcessor(GroupAggregateSpec(calls), {"x": pa.int64()}, pa.schema([("k", pa.int64())]))
    found = []
    for start in range(0, 1_000_000, 250_000):
        values = np.arange(start, start + 250_000)
        group = np.where(values < 999_990, 0, values)
        piece = Piece(
            group,
            np.zeros(len(group), np.int64),
            np.zeros(len(group), np.uint8),
            {"x": pa.array(values % 1000)},
            pa.RecordBatch.from_pydict({"k": pa.array(group)}),
        )
        for batch in processor.process(piece, start == 750_000):
            found += batch.to_pylist()
    whole = np.arange(999_990) % 1000
    assert found[0] == {"k": 0, "s": int(whole.sum()), "d": 1000, "n": 999_990}
    assert found[1:] == [{"k": k, "s": k % 1000, "d": 1, "n": 1} for k in range(999_990, 1_000_000)]
