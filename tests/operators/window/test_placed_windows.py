"""Windows whose keys are in several partitions: the same rows as in one partition."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.columns.keys import hash_keys
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.placed import COPY, PlacedRouter, PlacedRows
from sqlext_operators.exchange.placement import KeyPlace, Placement
from sqlext_operators.exchange.scatter import ScatterSpec, scatter
from sqlext_operators.window.functions import FUNCTIONS
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.reach import time_reach
from sqlext_operators.window.spec import Call, Frame, Window

from tests.operators.exchange.placements import placements
from tests.operators.exchange.test_collected_operators import blocks_of, whole, window_spec
from tests.operators.window.window_data import frames
from tests.properties import examples

SCHEMA = pa.schema([("k", pa.int32()), ("ts", pa.int64()), ("v", pa.int64())])
KEYS = [None, 0, 1, 2]
times = st.integers(-4, 4)
rows_of_inputs = st.lists(
    st.lists(st.tuples(st.sampled_from(KEYS), st.none() | times, st.none() | st.integers(-9, 9)), max_size=16),
    min_size=1,
    max_size=3,
)


def batch_of(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(SCHEMA)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def placed_blocks(
    inputs: Sequence[Sequence[tuple[Any, ...]]], routers: Sequence[PlacedRouter], partitions: int
) -> dict[int, list[Block]]:
    found: dict[int, list[Block]] = defaultdict(list)
    for tag, (rows, router) in enumerate(zip(inputs, routers, strict=True)):
        parts = [batch_of(rows[start : start + 3]) for start in range(0, len(rows), 3)]
        spec = ScatterSpec(tag, ("k", "ts", "v"), router, partitions, 32)
        for block in blocks_of(scatter(spec, 0, parts)):
            found[block.pid].append(block)
    return found


def routers_of(spec: WindowOperatorSpec, placement: Placement, inputs: int, *, shows: bool) -> list[PlacedRouter]:
    rows = PlacedRows(placement, time_reach(spec.window) or (0, 0))
    part = "both" if shows else "owned"
    return [PlacedRouter(("k",), "ts", rows, part if tag == 0 else "copies") for tag in range(inputs)]


@given(rows_of_inputs, frames(), st.sampled_from([1, 300, 1 << 20]), st.booleans(), st.data())
@examples(300, share=8)
def test_a_placement_changes_no_row(
    inputs: list[list[tuple[Any, ...]]], frame: Frame, memory: int, one_task: bool, data: st.DataObject
) -> None:
    spec = window_spec(frame, len(inputs) - 1, memory)
    cuts = None if time_reach(spec.window) is None else times
    placement = data.draw(placements([pa.array(KEYS, pa.int32())], cuts))
    shows = not frame.instance_not_in_window or data.draw(st.booleans())
    routers = routers_of(spec, placement, len(inputs), shows=shows)
    blocks = placed_blocks(inputs, routers, placement.partitions)
    expected = whole(
        spec, [block for found in placed_blocks(inputs, KEYED[: len(inputs)], 1).values() for block in found]
    )
    if one_task:
        together = data.draw(st.permutations([block for found in blocks.values() for block in found]))
        assert whole(spec, together) == expected
    else:
        assert sum((whole(spec, found) for found in blocks.values()), Counter()) == expected


KEYED = [PlacedRouter(("k",), None, PlacedRows(Placement(1, ((0,),))), "owned")] * 3


def test_rows_in_the_window_of_a_row_at_each_end() -> None:
    """A key cut at 0: rows at both closed ends of the reach are copied, rows beyond them are not."""
    frame = Frame("range", -3, 2, end_following=True)
    spec = window_spec(frame, 1, 1 << 20)
    key = int(hash_keys([pa.array([1], pa.int32())])[0])
    placement = Placement(2, ((0,),), (KeyPlace(key, (0, 1), (0,)),))
    union = [(1, time, time) for time in range(-6, 7)]
    blocks = placed_blocks([[], union], routers_of(spec, placement, 2, shows=True), 2)
    found = {pid: [t for b in some for t in b.batch.column("ts").to_pylist()] for pid, some in blocks.items()}
    assert found == {0: list(range(-6, 2)), 1: list(range(-3, 7))}


def test_a_copy_is_marked_and_rows_are_where_they_were_before() -> None:
    placement = Placement(3, ((0, 1, 2),))
    rows = [(key, time, value) for key in (1, 2) for time in range(50) for value in range(2)]
    router = PlacedRouter(("k",), None, PlacedRows(placement), "both")
    owned = Counter[tuple[int, ...]]()
    first, second = (placed_blocks([some], [router], 3) for some in (rows, rows[::-1]))
    for pid in range(3):
        assert sum(block.batch.num_rows for block in first[pid]) == len(rows)
        mine = _owned(first[pid])
        assert mine == _owned(second[pid])
        assert len(rows) // 5 < sum(mine.values()) < len(rows) // 2
        owned += mine
    assert owned == Counter(rows)


def _owned(blocks: Sequence[Block]) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for block in blocks:
        for row in block.batch.to_pylist():
            if not row[COPY]:
                found[row["k"], row["ts"], row["v"]] += 1
    return found


def test_every_function_over_copies() -> None:
    """Copies are candidates: a window over FROM alone, split by row."""
    calls = tuple(Call(name, ("v",), name) for name in ("sum", "min", "max", "count", "distinct_count", "first_value"))
    assert all(call.function in FUNCTIONS for call in calls)
    base = window_spec(Frame("rows", -2, 0), 0, 1 << 20)
    window = replace(base.window, windows=(Window(Frame("rows", -2, 0), (), calls),))
    spec = replace(base, window=window)
    rows = [(1, int(t), int(v)) for t, v in np.random.default_rng(1).integers(0, 9, (200, 2))]
    placement = Placement(4, ((0, 1, 2, 3),))
    blocks = placed_blocks([rows], routers_of(spec, placement, 1, shows=True), 4)
    expected = whole(spec, placed_blocks([rows], KEYED[:1], 1)[0])
    assert sum((whole(spec, found) for found in blocks.values()), Counter()) == expected
