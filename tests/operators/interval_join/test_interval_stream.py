"""The interval join on streams gives what the batch operator gives, each row in the step that decides it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from sqlext_operators.errors import RowError
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.chunks import MemoryChunks
from sqlext_operators.exchange.stream import Progress
from sqlext_operators.interval_join import reference, stream_rows
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.processor import join_batches
from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.interval_join.spec import Empty, EmptyPeriodError, IntervalJoinSpec, IntervalSide, Kind
from sqlext_operators.interval_join.stream import SIDES, IntervalStreamSpec, StreamSide
from sqlext_operators.interval_join.stream_rows import NEVER, StreamRows

from tests.operators.interval_join.interval_data import CASES, holds, name_of, named

LAST = 1 << 40
LONG = pa.int64()
KINDS: tuple[Kind, ...] = ("inner", "left", "right", "full", "semi", "anti")
#: Which column of a side has the watermark: its start, its end, or one that nothing compares.
TIMES = ("0", "1", "t")
QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much]


@dataclass(frozen=True)
class Row:
    """One row; `time` is that of a side whose watermark is on a column of its own."""

    side: Side
    key: int | None
    start: int | None
    end: int | None
    time: int | None


@dataclass(frozen=True)
class Case:
    """Rows in micro-batches, each with the watermark that is known when it comes; what a table has is in the first."""

    spec: IntervalStreamSpec
    batches: tuple[tuple[int | None, tuple[Row, ...]], ...]


def columns_of(side: Side) -> pa.Schema:
    names = (f"{side[0]}{name}" for name in ("0", "1", "k", "t", "id"))
    return pa.schema([(name, LONG) for name in names])


def batch_of(side: Side, rows: Sequence[tuple[int, Row]]) -> pa.RecordBatch:
    """The rows with their numbers as ids."""
    values = [(row.start, row.end, row.key, row.time, number) for number, row in rows]
    schema = columns_of(side)
    return pa.RecordBatch.from_arrays(
        [pa.array([value[i] for value in values], LONG) for i in range(len(schema))], schema=schema
    )


def spec_of(
    kind: Kind,
    alternatives: tuple[tuple[Condition, ...], ...],
    times: tuple[str | None, str | None],
    *,
    keys: bool = False,
    null_safe: bool = False,
    empty: Empty = "drop",
    batch_rows: int = 3,
) -> IntervalStreamSpec:
    sides = [
        IntervalSide(
            (f"{name}k",) if keys else (), (f"{name}0", f"{name}1"), ((f"{name}0", f"{name}1"),), (f"{name}id",)
        )
        for name in "lr"
    ]
    join = IntervalJoinSpec(kind, sides[0], sides[1], (null_safe,) if keys else (), alternatives, empty)
    streams = []
    for side, time in zip(SIDES, times, strict=True):
        name = None if time is None else f"{side[0]}{time}"
        streams.append(StreamSide(columns_of(side), name, () if name is None or time == "t" else (name,)))
    return IntervalStreamSpec(join, streams[0], streams[1], batch_rows=batch_rows)


def values_of(row: Row, side: Side, number: int) -> dict[str, int | None]:
    values = {"0": row.start, "1": row.end, "k": row.key, "t": row.time, "id": number}
    return {f"{side[0]}{name}": value for name, value in values.items()}


def tuples(batches: Sequence[pa.RecordBatch]) -> Counter[tuple[Any, ...]]:
    return Counter(
        row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )


class Twin:
    """What must come out in each step, by brute force over all rows that were in time."""

    def __init__(self, spec: IntervalStreamSpec) -> None:
        self._spec = spec
        self._rows: dict[Side, list[tuple[int, dict[str, Any], int, int]]] = {"left": [], "right": []}

    def arrive(self, step: int, side: Side, number: int, row: Row) -> None:
        """A row that is in time."""
        bounds, schema = self._spec.bounds(side), columns_of(side)
        values = values_of(row, side, number)
        rows = StreamRows(self._spec.join, side, pa.RecordBatch.from_pylist([values], schema=schema))
        death = -NEVER if bounds is None else int(rows.deaths(bounds)[0])
        self._rows[side].append((step, values, number, death))

    def expected(self, watermarks: Sequence[int | None]) -> list[Counter[tuple[Any, ...]]]:
        """The rows of each step."""
        join = self._spec.join
        found: list[Counter[tuple[Any, ...]]] = [Counter() for _ in watermarks]
        first: dict[int, int] = {}
        for left_step, left, left_id, _ in self._rows["left"]:
            one = reference._prepared(join.left, left, join.empty)
            for right_step, right, right_id, _ in self._rows["right"]:
                if reference.matches(join, one, reference._prepared(join.right, right, join.empty)):
                    step = max(left_step, right_step)
                    if join.pairs:
                        found[step][(left_id, right_id)] += 1
                    for number in (left_id, right_id):
                        first[number] = min(step, first.get(number, step))
        for side in SIDES:
            for arrival, _, number, death in self._rows[side]:
                if join.kind == "semi" and side == "left" and number in first:
                    found[first[number]][(number,)] += 1
                if join.keeps(side) and number not in first:
                    out = (number,) if join.kind == "anti" else (number, None) if side == "left" else (None, number)
                    for step in range(arrival, len(watermarks)):
                        watermark = watermarks[step]
                        if death == -NEVER or (watermark is not None and watermark >= death):
                            found[step][out] += 1
                            break
        return found


def check(case: Case, *, written: bool = True) -> MemoryChunks:
    """Raises AssertionError where a step of the stream gives other rows than the twin. With `written`, the state is
    written down and read back after each step."""
    spec, store, twin = case.spec, MemoryChunks(), Twin(case.spec)
    watermarks: list[int | None] = []
    results, number = [], 0
    for watermark, rows in (*case.batches, (LAST, ())):
        operator = spec.stream()
        wakes = operator.wakes_at(store)
        watermarks.append(watermark)
        results.append(Counter())
        if not rows and (watermark is None or wakes is None or wakes > watermark):
            continue  # Spark does not call it
        progress, late = Progress(), 0
        blocks = []
        for tag, side in enumerate(SIDES):
            chosen = [(number + n, row) for n, row in enumerate(rows) if row.side == side]
            time = spec.side(side).time
            for own, row in chosen:
                value = None if time is None else values_of(row, side, own)[time]
                if time is None or (value is not None and (store.watermark is None or value >= store.watermark)):
                    twin.arrive(len(watermarks) - 1, side, own, row)
                else:
                    late += 1
            if chosen:
                blocks.append(Block(0, tag, number, batch_of(side, chosen)))
        number += len(rows)
        batches = list(operator.step(store, blocks, watermark, progress))
        assert all(0 < batch.num_rows <= spec.batch_rows for batch in batches)
        results[-1] = tuples(batches)
        assert progress.results == results[-1].total()
        assert progress.late + progress.timeless == late
        if watermark is not None:
            store.watermark = max(watermark, store.watermark or watermark)
        if written:
            again = MemoryChunks(store.index(), store.data)
            again.watermark, again.next_no = store.watermark, store.next_no
            store = again
    assert results == twin.expected(watermarks)
    for side in SIDES:
        bounds = spec.bounds(side)
        if bounds is None or all(bounds):
            assert not spec.stream()._state(side, store).rows(), "rows are kept that nothing can match any more"
    if all(spec.bounds(side) is None or all(spec.bounds(side) or ()) for side in SIDES):
        assert not list(store.all())
    return store


@st.composite
def batches_of(
    draw: st.DrawFn, spec: IntervalStreamSpec, span: int = 12
) -> tuple[tuple[int | None, tuple[Row, ...]], ...]:
    """Rows of both sides around a watermark that moves, some of them late, some with NULLs or empty periods."""
    start = st.integers(-4, span)
    row = st.builds(
        lambda side, key, at, length, other, broken: Row(
            side,
            key,
            None if broken == 1 else at,
            None if broken == 2 else at + length,
            None if broken == 3 else at + other,
        ),
        st.sampled_from(SIDES),
        st.sampled_from([0, 1, None]),
        start,
        st.integers(-1, 6),
        st.integers(-2, 2),
        st.sampled_from([0] * 12 + [1, 2, 3]),
    )
    found: list[tuple[int | None, tuple[Row, ...]]] = []
    table = next((side for side in SIDES if spec.side(side).time is None), None)
    if table is not None:
        found.append((None, tuple(replace(item, side=table) for item in draw(st.lists(row, max_size=8)))))
    watermark: int | None = None
    for n in range(draw(st.integers(1, 8))):
        shift = 3 * n
        rows = [
            Row(
                item.side,
                item.key,
                None if item.start is None else item.start + shift,
                None if item.end is None else item.end + shift,
                None if item.time is None else item.time + shift,
            )
            for item in draw(st.lists(row, max_size=6))
            if item.side != table
        ]
        found.append((watermark, tuple(rows)))
        if draw(st.integers(0, 3)):
            watermark = max(watermark if watermark is not None else -4, shift + draw(st.integers(-4, 4)))
    return tuple(found)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One relation with its parameters, or several of Allen's, of any kind, with or without keys and a table."""
    if draw(st.booleans()):
        relation, parameters = draw(st.sampled_from(CASES))
        alternatives = (named(RELATIONS[relation].conditions(**parameters)),)
    else:
        allen = [name for name in RELATIONS if RELATIONS[name].strict]
        names = draw(st.lists(st.sampled_from(allen), min_size=2, max_size=4, unique=True))
        alternatives = tuple(named(RELATIONS[name].conditions()) for name in names)
    kind = draw(st.sampled_from(KINDS))
    times: tuple[str | None, str | None] = draw(st.sampled_from(TIMES)), draw(st.sampled_from(TIMES))
    if draw(st.integers(0, 3)) == 0:
        times = (None, times[1]) if kind in ("right", "semi") or draw(st.booleans()) else (times[0], None)
        sides = {"left": ("right",), "right": ("left",), "anti": ("right",)}
        table = "left" if times[0] is None else "right"
        if kind == "full" or table not in sides.get(kind, SIDES):
            kind = "inner"
    spec = spec_of(
        kind,
        alternatives,
        times,
        keys=draw(st.booleans()),
        null_safe=draw(st.booleans()),
        empty=draw(st.sampled_from(["drop", "point"])),
        batch_rows=draw(st.sampled_from([1, 3, 1000])),
    )
    return Case(spec, draw(batches_of(spec)))


@given(case=cases(), written=st.booleans())
@settings(max_examples=300, suppress_health_check=QUIET, deadline=None)
def test_each_step_gives_what_it_decides(case: Case, written: bool) -> None:
    event(case.spec.join.kind)
    check(case, written=written)


@pytest.mark.slow
@given(case=cases(), written=st.booleans())
@settings(max_examples=3000, suppress_health_check=QUIET, deadline=None)
def test_each_of_many_steps_gives_what_it_decides(case: Case, written: bool) -> None:
    check(case, written=written)
