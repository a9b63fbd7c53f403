"""The interval join on streams gives what the batch operator gives, each row in the step that decides it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sqlext_operators.columns.empty_periods import Empty, EmptyPeriodError
from sqlext_operators.errors import RowError
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.stream import Progress
from sqlext_operators.interval_join import stream_sides
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.passes import SIDES, Side, other_side
from sqlext_operators.interval_join.processor import join_batches
from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.interval_join.spec import IntervalJoinSpec, IntervalSide, Kind
from sqlext_operators.interval_join.stream_join import IntervalStreamSpec
from sqlext_operators.interval_join.stream_sides import NEVER, StreamRows, StreamSide

from tests.operators.exchange.memory_chunks import MemoryChunks
from tests.operators.interval_join import reference
from tests.operators.interval_join.interval_data import CASES, holds, name_of, named
from tests.properties import examples

LAST = 1 << 40
LONG = pa.int64()
KINDS: tuple[Kind, ...] = ("inner", "left", "right", "full", "semi", "anti")
#: Which column of a side has the watermark: its start, its end, or one that nothing compares.
TIMES = ("0", "1", "t")


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
    known: dict[int, dict[str, int | None]] = {}
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
        known |= {number + n: values_of(row, row.side, number + n) for n, row in enumerate(rows)}
        number += len(rows)
        before, batches = store.watermark, list(operator.step(store, blocks, watermark, progress))
        assert all(0 < batch.num_rows <= spec.batch_rows for batch in batches)
        results[-1] = tuples(batches)
        assert progress.late + progress.timeless == late
        check_delays(spec, batches, known, blocks, before)
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


def check_delays(
    spec: IntervalStreamSpec,
    batches: Sequence[pa.RecordBatch],
    known: Mapping[int, Mapping[str, int | None]],
    new: Sequence[Block],
    before: int | None,
) -> None:
    """Raises AssertionError for a result that is older than the watermark of the step before, or than all new rows that
    are in time, by more than the specification says."""
    names = [spec.side(side).time for side in SIDES]
    times = [time for block in new if (name := names[block.tag]) for time in block.batch.column(name).to_pylist()]
    if before is None:
        return
    floor = min([before, *(time for time in times if time is not None and time >= before)])
    for side, name in zip(SIDES, names, strict=True):
        delay = spec.delay(side)
        if name is None or delay is None:
            continue
        for batch in (batch for batch in batches if f"{side[0]}id" in batch.schema.names):
            own = [known[one][name] for one in batch.column(f"{side[0]}id").to_pylist() if one is not None]
            assert all(time is not None and time >= floor - delay for time in own)


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
@examples(300, share=8)
def test_each_step_gives_what_it_decides(case: Case, written: bool) -> None:
    event(case.spec.join.kind)
    check(case, written=written)


def test_a_point_is_decided_one_unit_after_its_end() -> None:
    finishes = (Condition("l0", "<", "r1"), Condition("l1", ">=", "r1"), Condition("l1", "<=", "r1"))
    spec = spec_of("left", (finishes,), ("1", "1"), empty="point")
    first, second = Row("left", 0, 2, 2, 2), Row("left", 0, 6, 6, 6)
    check(Case(spec, ((None, (first,)), (3, (second,)))))
    assert spec.delay("left") == 1


@pytest.mark.slow
@given(case=cases(), written=st.booleans())
@examples(3000)
def test_each_of_many_steps_gives_what_it_decides(case: Case, written: bool) -> None:
    check(case, written=written)


@given(case=cases(), written=st.booleans())
@examples(60)
def test_equal_hashes_are_not_equal_keys(case: Case, written: bool) -> None:
    real = stream_sides.row_hashes
    try:
        stream_sides.row_hashes = lambda rows, keys: real(rows, keys) & np.uint64(1)  # type: ignore[assignment]
        check(case, written=written)
    finally:
        stream_sides.row_hashes = real


#: Periods of the other side that a row may meet, in quarters, so that strict bounds show; and where they end.
_EDGE = 30
_STARTS = np.arange(-20, _EDGE, 0.25)
_ENDS = np.arange(-20, _EDGE + 1, 0.25)
_OTHERS = np.array([(start, end) for start in _STARTS for end in _ENDS if end > start])
OURS = Row("left", 1, 2, 7, None)


def last_match(relation: str, parameters: dict[str, float], side: Side, time: str) -> float | None:
    """The greatest time, start or end, of a period that OURS, on `side`, can match; None if there is no bound."""
    assert OURS.start is not None
    assert OURS.end is not None
    ours: tuple[Any, Any] = (OURS.start, OURS.end)
    theirs: tuple[npt.NDArray[Any], npt.NDArray[Any]] = (_OTHERS[:, 0], _OTHERS[:, 1])
    found = holds(relation, parameters, *(ours + theirs if side == "left" else theirs + ours))
    last = float(theirs[int(time)][found].max())
    return None if last >= _EDGE - 1 else last


@pytest.mark.few
@pytest.mark.parametrize("time", ["0", "1"])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("relation", "parameters"), CASES, ids=name_of)
def test_a_row_without_a_match_comes_out_when_the_watermark_has_passed_its_last_match(
    relation: str, parameters: dict[str, float], side: Side, time: str
) -> None:
    """That step decides it: in the step before, a match could still come."""
    kind: Kind = "anti" if side == "left" else "right"
    spec = spec_of(kind, (named(RELATIONS[relation].conditions(**parameters)),), (time, time))
    row = replace(OURS, side=side)
    last = last_match(relation, parameters, side, time)
    if last is None:
        assert not all(spec.bounds(side) or ())
        store = MemoryChunks()
        blocks = [Block(0, SIDES.index(side), 0, batch_of(side, [(0, row)]))]
        assert not list(spec.stream().step(store, blocks, LAST, Progress()))
        assert spec.stream().wakes_at(store) is None
        assert spec.stream().rows(store) == 1
        return
    store, out = MemoryChunks(), []
    for watermark in range(-20, _EDGE):
        new = [Block(0, SIDES.index(side), 0, batch_of(side, [(0, row)]))] if watermark == -20 else []
        wakes = spec.stream().wakes_at(store)
        rows = list(spec.stream().step(store, new, watermark, Progress()))
        store.watermark = watermark
        if rows:
            assert new or wakes == watermark
            out.append(watermark)
    assert len(out) == 1
    assert last < out[0]
    assert last >= out[0] - 1
    assert not list(store.all())


@pytest.mark.few
@pytest.mark.parametrize("first", SIDES)
@pytest.mark.parametrize(("relation", "parameters"), CASES, ids=name_of)
def test_a_pair_comes_out_with_the_later_of_its_rows(relation: str, parameters: dict[str, float], first: Side) -> None:
    found = holds(relation, parameters, OURS.start, OURS.end, _OTHERS[:, 0], _OTHERS[:, 1])
    whole = (_OTHERS.round() == _OTHERS).all(axis=1)
    start, end = _OTHERS[found & whole][0].astype(int).tolist()
    rows = {"left": OURS, "right": replace(OURS, side="right", start=start, end=end)}
    conditions = (named(RELATIONS[relation].conditions(**parameters)),)
    second = other_side(first)
    for kind, out in (("inner", (0, 1)), ("full", (0, 1)), ("semi", (0,))):
        stream = spec_of(kind, conditions, ("0", "0")).stream()  # type: ignore[arg-type]
        store = MemoryChunks()
        for side, expected in ((first, []), (second, [out])):
            blocks = [Block(0, SIDES.index(side), 0, batch_of(side, [(SIDES.index(side), rows[side])]))]
            assert list(tuples(list(stream.step(store, blocks, -100, Progress())))) == expected
            store.watermark = -100
        assert not list(stream.step(store, [], LAST, Progress()))


OVERLAPS = (named(RELATIONS["period_overlaps"].conditions()),)


@pytest.mark.parametrize("relation", ["allen_finishes", "iseql_before", "period_contains"])
def test_the_sides_of_a_self_join_have_equal_chunks(relation: str) -> None:
    """What is prepared of one side is not taken for the other one's."""
    spec = spec_of("inner", (named(RELATIONS[relation].conditions()),), ("1", "1"), keys=True, batch_rows=1000)
    rng = np.random.default_rng(2)
    start = rng.integers(0, 20, 40)
    columns = [start, start + rng.integers(1, 9, 40), rng.integers(0, 2, 40), start, np.arange(40)]
    arrays = [pa.array(values) for values in columns]
    sides = [pa.RecordBatch.from_arrays(arrays, schema=columns_of(side)) for side in SIDES]
    store, found = MemoryChunks(), Counter[Any]()
    store.watermark = -5
    for step in range(4):
        blocks = [Block(0, tag, step, sides[tag].slice(10 * step, 10)) for tag in range(2)]
        found += tuples(list(spec.stream().step(store, blocks, -5, Progress())))
    assert found == tuples(list(join_batches(spec.join, *sides)))


def test_late_rows_change_nothing_and_are_counted() -> None:
    spec = spec_of("full", OVERLAPS, ("0", "0"), batch_rows=10)
    store, progress = MemoryChunks(), Progress()
    left = batch_of("left", [(0, Row("left", 1, 5, 50, None)), (1, Row("left", 1, 30, 40, None))])
    assert not list(spec.stream().step(store, [Block(0, 0, 0, left)], 10, progress))
    store.watermark = 10
    rows = [Row("right", 1, 9, 20, None), Row("right", 1, 10, 20, None), Row("right", 1, None, 20, None)]
    right = Block(0, 1, 0, batch_of("right", list(enumerate(rows, 2))))
    assert tuples(list(spec.stream().step(store, [right], 10, progress))) == Counter([(0, 3)])
    assert (progress.rows, progress.late, progress.timeless) == (5, 1, 1)
    with pytest.raises(RowError, match="1 row older than the watermark and 1 row without a time"):
        list(replace(spec, late="fail").stream().step(store, [right], 10, Progress()))


def test_an_empty_period_is_an_error_where_the_statement_says_so() -> None:
    spec = spec_of("left", OVERLAPS, ("0", "0"), empty="error")
    block = Block(0, 0, 0, batch_of("left", [(0, Row("left", 1, 5, 5, None))]))
    with pytest.raises(EmptyPeriodError, match="1 of 1 rows have an empty or reversed period"):
        list(spec.stream().step(MemoryChunks(), [block], None, Progress()))


def test_joins_that_are_never_decided_are_no_specification() -> None:
    for kind, times, words in (
        ("count", ("0", "0"), "does not count"),
        ("left", (None, "0"), "never decided"),
        ("full", ("0", None), "never decided"),
        ("inner", (None, None), "has a stream"),
    ):
        with pytest.raises(ValueError, match=words):
            spec_of(kind, OVERLAPS, times)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "steps"), [("full", 50), *(pytest.param(kind, 120, marks=pytest.mark.slow) for kind in KINDS)]
)
def test_the_state_of_a_long_stream_levels_off(kind: Kind, steps: int) -> None:
    """Rows live for 20 steps, a few of them for 300: chunks, runs and ids of matched rows stay few."""
    rng = np.random.default_rng(7)
    spec = spec_of(kind, OVERLAPS, ("0", "0"), keys=True, batch_rows=100_000)
    store, sizes, found, rows_of_side = MemoryChunks(), [], Counter[Any](), {}
    for n in range(steps):
        blocks = []
        for tag, side in enumerate(SIDES):
            start = np.sort(rng.integers(100 * n, 100 * n + 100, 150))
            length = np.where(rng.random(150) < 0.02, 30_000, rng.integers(1, 2_000, 150))
            columns = [start, start + length, rng.integers(0, 30, 150), start, np.arange(150) + 300 * n + 150 * tag]
            batch = pa.RecordBatch.from_arrays([pa.array(values) for values in columns], schema=columns_of(side))
            rows_of_side.setdefault(side, []).append(batch)
            blocks.append(Block(0, tag, 0, batch))
        watermark = 100 * n - 50
        found += tuples(list(spec.stream().step(store, blocks, watermark, Progress())))
        store.watermark = watermark
        chunks = list(store.all())
        live = spec.stream().rows(store)
        sizes.append(live)
        assert sum(chunk.rows for chunk in chunks if chunk.kind in (1, 4)) <= 2 * live
        assert all(len(spec.stream()._state(side, store).runs()) <= 8 for side in SIDES)
        assert len(chunks) < 900
        again = MemoryChunks(store.index(), store.data)
        again.watermark, again.next_no = store.watermark, store.next_no
        again._derived = store._derived
        store = again
    found += tuples(list(spec.stream().step(store, [], LAST, Progress())))
    assert not list(store.all())
    # 2% live for ever, the others a tenth of the stream
    assert sizes[-1] < steps * 300 * 0.02 + 300 * 20
    sides = [pa.Table.from_batches(rows_of_side[side]).combine_chunks().to_batches()[0] for side in SIDES]
    assert found == tuples(list(join_batches(spec.join, *sides)))
