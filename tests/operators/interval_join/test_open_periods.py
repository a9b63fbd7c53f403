"""Interval joins on streams with open periods: each pair in the first step in which it holds whatever ends will be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sqlext_operators.columns.empty_periods import Empty
from sqlext_operators.errors import RowError
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.stream import Progress
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.open_terms import OpenTerms
from sqlext_operators.interval_join.passes import SIDES, Side
from sqlext_operators.interval_join.processor import join_batches
from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.interval_join.spec import IntervalJoinSpec, IntervalSide, Kind
from sqlext_operators.interval_join.stream_join import IntervalStreamSpec
from sqlext_operators.interval_join.stream_sides import NEVER, OpenPeriod, StreamSide
from sqlext_operators.interval_join.sweep.kernels.events import END
from sqlext_operators.interval_join.sweep.kernels.events import START as BEGIN
from sqlext_operators.interval_join.sweep.stream import StreamEvents, SweepStream

from tests.operators.exchange.memory_chunks import MemoryChunks
from tests.operators.interval_join.interval_data import CASES, holds, name_of, named, truth
from tests.properties import examples

LAST = 1 << 40
#: Relations with pairs that are decided while a period is open.
FREE = [case for case in CASES if case[0] in ("period_overlaps", "period_contains", "iseql_start_preceding")]
#: An end that is later than all others.
FAR = 1 << 20
LONG = pa.int64()
NAMES = ("0", "1", "k", "t", "id", "p")


@dataclass(frozen=True)
class Row:
    """One row of a stream or a table: `period` is the key of its period, `time` its event time."""

    side: Side
    key: int | None
    start: int
    end: int | None
    time: int
    period: int


@dataclass(frozen=True)
class Case:
    """Rows in micro-batches, each with the watermark that is known when it comes."""

    spec: IntervalStreamSpec
    batches: tuple[tuple[int | None, tuple[Row, ...]], ...]


def columns_of(side: Side) -> pa.Schema:
    return pa.schema([(f"{side[0]}{name}", LONG) for name in NAMES])


def batch_of(side: Side, rows: Sequence[tuple[int, Row]]) -> pa.RecordBatch:
    """The rows with their numbers as ids."""
    values = [(row.start, row.end, row.key, row.time, number, row.period) for number, row in rows]
    columns = [pa.array([value[i] for value in values], LONG) for i in range(len(NAMES))]
    return pa.RecordBatch.from_arrays(columns, schema=columns_of(side))


def spec_of(
    kind: Kind,
    alternatives: tuple[tuple[Condition, ...], ...],
    opens: tuple[bool, bool],
    *,
    keys: bool = False,
    by: bool = False,
    times: tuple[str | None, str | None] = ("0", "0"),
    empty: Empty = "drop",
    batch_rows: int = 1000,
) -> IntervalStreamSpec:
    """`times` are those of sides whose periods are not open."""
    sides, streams = [], []
    for side, is_open, time in zip(SIDES, opens, times, strict=True):
        s = side[0]
        start, end = f"{s}0", f"{s}1"
        sides.append(IntervalSide((f"{s}k",) if keys else (), (start, end), ((start, end),), (f"{s}id", end)))
        if is_open:
            period = OpenPeriod(start, end, (f"{s}p",) if by else (start,), (end, f"{s}t"))
            streams.append(StreamSide(columns_of(side), f"{s}t", (start, end), period))
        else:
            streams.append(StreamSide(columns_of(side), time and f"{s}{time}", () if time is None else (f"{s}{time}",)))
    join = IntervalJoinSpec(kind, sides[0], sides[1], (False,) if keys else (), alternatives, empty)
    return IntervalStreamSpec(join, streams[0], streams[1], batch_rows=batch_rows)


def tuples(batches: Sequence[pa.RecordBatch]) -> Counter[tuple[Any, ...]]:
    return Counter(
        row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )


@dataclass
class Period:
    """What is known of a period: the number of its row, and its end if that is known."""

    number: int
    row: Row
    end: int | None
    matched: bool = False
    out: bool = False


class Twin:
    """What must come out, by brute force: a pair whose relation holds for all ends that are possible."""

    def __init__(self, spec: IntervalStreamSpec) -> None:
        self._spec, self._terms = spec, OpenTerms(spec)
        self.periods: dict[Side, list[Period]] = {"left": [], "right": []}
        self._whole: dict[Side, set[tuple[Any, ...]]] = {"left": set(), "right": set()}
        self._out: set[tuple[int, int]] = set()
        self.late = 0

    def step(
        self, rows: Sequence[tuple[int, Row]], before: int | None, watermark: int | None
    ) -> Counter[tuple[Any, ...]]:
        """The rows of a step."""
        for side in SIDES:
            own = [(number, row) for number, row in rows if row.side == side]
            if self._spec.side(side).time is not None:
                self.late += sum(before is not None and row.time < before for _, row in own)
                own = [(number, row) for number, row in own if before is None or row.time >= before]
            if self._spec.side(side).open is None:
                self.periods[side] += [Period(number, row, row.end) for number, row in own]
            else:
                self._open(side, [item for item in own if item[1].key is not None or not self._keyed], before)
        now = max((one for one in (before, watermark) if one is not None), default=-FAR)
        return self._pairs(now) + self._unmatched(now)

    @property
    def _keyed(self) -> bool:
        return bool(self._spec.join.left.keys)

    def _key(self, side: Side, row: Row) -> tuple[Any, ...]:
        period = self._spec.side(side).open
        assert period is not None
        own = row.start if period.key == (period.start,) else row.period
        return (row.key if self._keyed else None, own)

    def _open(self, side: Side, rows: Sequence[tuple[int, Row]], before: int | None) -> None:
        known = {self._key(side, one.row): one for one in self.periods[side] if one.end is None}
        for number, row in rows:
            if row.end is None and (*self._key(side, row), row.start) not in self._whole[side]:
                known[self._key(side, row)] = Period(number, row, None)
                self.periods[side].append(known[self._key(side, row)])
        for number, row in rows:
            if row.end is None:
                continue
            opened = known.pop(self._key(side, row), None)
            if opened is not None:
                opened.end = row.end
            elif before is not None and row.start < before:
                self.late += 1
            else:
                self.periods[side].append(Period(number, row, row.end))
                self._whole[side].add((*self._key(side, row), row.start))

    def _ends(self, period: Period, now: int) -> Any:
        """All ends that a period may have."""
        if period.end is None:
            return np.array([*range(now, now + 40), FAR]) if now < FAR else np.array([now, now + 1])
        moved = self._spec.join.empty == "point" and period.end == period.row.start
        return np.array([period.end + moved])

    def _decided(self, left: Period, right: Period, now: int) -> bool:
        if self._keyed and (left.row.key is None or left.row.key != right.row.key):
            return False
        ends = self._ends(left, now)[:, None], self._ends(right, now)[None, :]
        for one, end in zip((left, right), ends, strict=True):
            if not (one.row.start < end).all() or (one.end is None and one.row.start >= now):
                return False
        values = {"l0": left.row.start, "l1": ends[0], "r0": right.row.start, "r1": ends[1]}
        return any(bool(np.all(truth(conditions, **values))) for conditions in self._spec.join.alternatives)

    def _pairs(self, now: int) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for left in self.periods["left"]:
            for right in self.periods["right"]:
                pair = (left.number, right.number)
                if pair in self._out or not self._decided(left, right, now):
                    continue
                self._out.add(pair)
                if self._spec.join.pairs:
                    found[(left.number, left.end, right.number, right.end)] += 1
                if self._spec.join.kind == "semi" and not left.matched:
                    found[(left.number, left.end)] += 1
                left.matched = right.matched = True
        return found

    def _unmatched(self, now: int) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for side in SIDES:
            for one in self.periods[side] if self._spec.join.keeps(side) else ():
                if one.out or one.matched:
                    assert not (one.out and one.matched)
                    continue
                death = int(self._terms.deaths(side, batch_of(side, [(one.number, one.row)]))[0])
                if death <= now or death == -NEVER:
                    one.out = True
                    values = (one.number, one.end)
                    nothing = () if self._spec.join.kind == "anti" else (None, None)
                    found[(*values, *nothing) if side == "left" else (*nothing, *values)] += 1
        return found


def check(case: Case, *, written: bool = True) -> tuple[MemoryChunks, Twin]:
    """Raises AssertionError where a step of the stream gives other rows than the twin. With `written`, the state is
    written down and read back after each step."""
    spec, store, twin = case.spec, MemoryChunks(), Twin(case.spec)
    number, late = 0, 0
    for step, (watermark, rows) in enumerate((*case.batches, (LAST, ()))):
        numbered = list(enumerate(rows, number))
        number += len(rows)
        expected = twin.step(numbered, store.watermark, watermark)
        operator = spec.stream()
        wakes = operator.wakes_at(store)
        if not rows and (watermark is None or wakes is None or wakes > watermark):
            assert not expected, "Spark does not call it"
            continue
        blocks = []
        for tag, side in enumerate(SIDES):
            chosen = [item for item in numbered if item[1].side == side]
            if chosen:
                blocks.append(Block(0, tag, step, batch_of(side, chosen)))
        progress = Progress()
        batches = list(operator.step(store, blocks, watermark, progress))
        assert all(0 < batch.num_rows <= spec.batch_rows for batch in batches)
        assert tuples(batches) == expected, f"step {step}"
        late += progress.late
        assert late == twin.late
        if watermark is not None:
            store.watermark = max(watermark, store.watermark or watermark)
        if written:
            again = MemoryChunks(store.index(), store.data)
            again.watermark, again.next_no = store.watermark, store.next_no
            store = again
    still = sum(one.end is None for side in SIDES for one in twin.periods[side])
    if all(spec.bounds(side) is None or all(spec.bounds(side) or ()) for side in SIDES):
        assert spec.stream().rows(store) == still
        if not still:
            assert not list(store.all())
    return store, twin


@st.composite
def streams(draw: st.DrawFn, spec: IntervalStreamSpec) -> tuple[tuple[int | None, tuple[Row, ...]], ...]:
    """Periods whose opening and closing rows come around their times, in any order, some of them late or missing."""
    steps = draw(st.integers(2, 9))
    arrived: list[list[Row]] = [[] for _ in range(steps)]
    seen: set[tuple[Any, ...]] = set()
    for period in range(draw(st.integers(4, 20))):
        side: Side = draw(st.sampled_from(SIDES))
        key, start = draw(st.sampled_from([0, 0, 0, 1, None])), draw(st.integers(0, 2 * steps))
        end = start + draw(st.integers(-1, 8))
        own = spec.side(side)
        if own.open is None:
            time = {None: 0, f"{side[0]}0": start, f"{side[0]}1": end}[own.time]
            step = 0 if own.time is None else draw(st.integers(max(0, time // 2 - 1), time // 2 + 3))
            arrived[min(step, steps - 1)].append(Row(side, key, start, end, time, period))
            continue
        identity = (side, key if spec.join.left.keys else None, start)
        if identity in seen:
            continue
        seen.add(identity)
        form = draw(st.sampled_from(["both", "both", "both", "whole", "open"]))
        events = [(start, None)] if form != "whole" else []
        events += [(end, end)] if form != "open" else []
        for time, known in events:
            step = draw(st.integers(max(0, time // 2 - 1), max(0, time // 2) + 2))
            arrived[min(step, steps - 1)].append(Row(side, key, start, known, time, period))
    watermark: int | None = None
    found: list[tuple[int | None, tuple[Row, ...]]] = []
    for step in range(steps):
        found.append((watermark, tuple(draw(st.permutations(arrived[step])))))
        if draw(st.integers(0, 3)):
            watermark = max(watermark if watermark is not None else -4, 2 * step + draw(st.integers(-4, 2)))
    return tuple(found)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One relation with its parameters, or several of Allen's; one side open or both, or beside a table."""
    if draw(st.integers(0, 3)):
        relation, parameters = draw(st.sampled_from(FREE if draw(st.booleans()) else CASES))
        alternatives = (named(RELATIONS[relation].conditions(**parameters)),)
    else:
        allen = [name for name in RELATIONS if RELATIONS[name].strict]
        names = draw(st.lists(st.sampled_from(allen), min_size=2, max_size=4, unique=True))
        alternatives = tuple(named(RELATIONS[name].conditions()) for name in names)
    opens = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    kinds: dict[tuple[bool, bool], tuple[Kind, ...]] = {
        (True, False): ("inner", "semi", "right"),
        (False, True): ("inner", "semi", "left", "anti"),
    }
    kind = draw(st.sampled_from(kinds.get(opens, ("inner", "semi"))))
    time = draw(st.sampled_from(["0", "1", None] if kind in ("inner", "semi") else ["0", "1"]))
    spec = spec_of(
        kind,
        alternatives,
        opens,
        keys=draw(st.booleans()),
        by=draw(st.booleans()),
        times=(time, time),
        empty=draw(st.sampled_from(["drop", "drop", "point"])),
        batch_rows=draw(st.sampled_from([1, 3, 1000])),
    )
    return Case(spec, draw(streams(spec)))


@given(case=cases(), written=st.booleans())
@examples(150, share=8)
def test_each_step_gives_the_pairs_that_it_decides(case: Case, written: bool) -> None:
    event(case.spec.join.kind)
    check(case, written=written)


@pytest.mark.slow
@given(case=cases(), written=st.booleans())
@examples(4000)
def test_each_of_many_steps_gives_the_pairs_that_it_decides(case: Case, written: bool) -> None:
    check(case, written=written)


def events_of(side: Side, number: int, start: int, end: int) -> list[Row]:
    """The opening and the closing row of a period."""
    return [Row(side, 0, start, None, start, number), Row(side, 0, start, end, end, number)]


def steps_of(
    spec: IntervalStreamSpec, steps: Sequence[tuple[Sequence[Row], int]], store: MemoryChunks | None = None
) -> list[Counter[tuple[int, int]]]:
    """The pairs of periods that each step gives; a step is its rows and the watermark behind them."""
    store = MemoryChunks() if store is None else store
    found = []
    for number, (rows, watermark) in enumerate(steps):
        blocks = [
            Block(0, tag, number, batch_of(side, [(row.period, row) for row in rows if row.side == side]))
            for tag, side in enumerate(SIDES)
        ]
        results = tuples(list(spec.stream().step(store, blocks, watermark, Progress())))
        store.watermark = watermark
        found.append(Counter({(row[0], row[2]): count for row, count in results.items()}))
    return found


#: The event that decides a pair of a relation: the start or the end of r or s; the second one where epsilon is given.
DECIDING = {
    "allen_before": "start of s",
    "allen_after": "start of r",
    "allen_meets": "start of s",
    "allen_met_by": "start of r",
    "allen_overlaps": "end of r",
    "allen_overlapped_by": "end of s",
    "allen_starts": "end of r",
    "allen_started_by": "end of s",
    "allen_during": "end of r",
    "allen_contains": "end of s",
    "allen_finishes": "end of r",
    "allen_finished_by": "end of r",
    "allen_equals": "end of r",
    "iseql_before": "start of s",
    "iseql_after": "start of r",
    "iseql_start_preceding": "start of s",
    "iseql_start_preceded_by": "start of r",
    "iseql_end_following": ("end of s", "end of r"),
    "iseql_end_followed_by": ("end of r", "end of s"),
    "iseql_left_overlap": ("end of r", "end of s"),
    "iseql_right_overlap": ("end of s", "end of r"),
    "iseql_during": ("end of r", "end of s"),
    "iseql_reverse_during": ("end of s", "end of r"),
    "period_overlaps": "the later start",
    "period_contains": "end of s",
    "period_equals": "end of r",
    "period_precedes": "start of s",
    "period_succeeds": "start of r",
    "period_immediately_precedes": "start of s",
    "period_immediately_succeeds": "start of r",
}
_GRID = np.array([(start, end) for start in range(7) for end in range(start + 1, 8)])


@pytest.mark.few(6)
@pytest.mark.parametrize(("relation", "parameters"), CASES, ids=name_of)
def test_a_pair_comes_out_with_the_event_that_decides_it(relation: str, parameters: dict[str, float]) -> None:
    """With one event time in each step; and with whole rows when the later one comes."""
    named_event = DECIDING[relation]
    if isinstance(named_event, tuple):
        named_event = named_event[parameters["epsilon"] < float("inf")]
    conditions = (named(RELATIONS[relation].conditions(**parameters)),)
    spec = spec_of("inner", conditions, (True, True))
    r, s = _GRID[:, None, :], _GRID[None, :, :]
    found = np.argwhere(holds(relation, parameters, r[..., 0], r[..., 1], s[..., 0], s[..., 1]))
    rng = np.random.default_rng(3)
    for left, right in _GRID[rng.permutation(found)[:8]].tolist():
        a, b, c, d = *left, *right
        times = {"start of r": a, "end of r": b, "start of s": c, "end of s": d, "the later start": max(a, c)}
        rows = events_of("left", 0, a, b) + events_of("right", 1, c, d)
        steps = [([row for row in rows if row.time == time], time + 1) for time in range(9)]
        out = [time for time, pairs in enumerate(steps_of(spec, steps)) if pairs]
        assert out == [times[named_event]], (left, right)
        whole = [Row("left", 0, a, b, b, 0), Row("right", 0, c, d, d, 1)]
        for order in (whole, whole[::-1]):
            pairs = steps_of(spec, [([order[0]], -10), ([order[1]], -10), ([], LAST)])
            assert [one.total() for one in pairs] == [0, 1, 0]


@pytest.mark.few(8)
@pytest.mark.parametrize(("relation", "parameters"), CASES, ids=name_of)
def test_pairs_come_out_when_the_sweep_of_the_paper_gives_them(relation: str, parameters: dict[str, float]) -> None:
    """`SweepStream` over the same events in the order of time, and the same watermarks. If epsilon is given, a sweep
    over ends is behind the stream, and pairs come out earlier here."""
    rng = np.random.default_rng(len(relation))
    starts = {side: np.sort(rng.permutation(60)[:25]) for side in SIDES}
    ends = {side: starts[side] + rng.integers(1, 9, 25) for side in SIDES}
    conditions = (named(RELATIONS[relation].conditions(**parameters)),)
    sweep = SweepStream(relation, **parameters)
    steps, expected = [], []
    for low in range(0, 72, 3):
        rows: list[Row] = []
        given_events = {}
        for side in SIDES:
            own = [
                row
                for number, (start, end) in enumerate(zip(starts[side].tolist(), ends[side].tolist(), strict=True))
                for row in events_of(side, number, start, end)
                if low <= row.time < low + 3
            ]
            own.sort(key=lambda row: (row.time, row.end is None))
            kinds = np.array([BEGIN if row.end is None else END for row in own], np.uint8)
            values = [np.array([getattr(row, name) for row in own], np.int64) for name in ("time", "period")]
            given_events[side] = StreamEvents(values[0], kinds, values[1])
            rows += own
        pairs: Counter[tuple[int, int]] = Counter()
        for left, right in sweep.advance(given_events["left"], given_events["right"], low + 3):
            pairs.update(zip(left.tolist(), right.tolist(), strict=True))
        steps.append((rows, low + 3))
        expected.append(pairs)
    found = steps_of(spec_of("inner", conditions, (True, True)), steps)
    if parameters.get("epsilon", float("inf")) == float("inf"):
        assert found == expected
        return
    ours, theirs = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for mine, other in zip(found, expected, strict=True):
        ours.update(mine)
        theirs.update(other)
        assert theirs <= ours
    theirs.update(pair for left, right in sweep.finish() for pair in zip(left.tolist(), right.tolist(), strict=True))
    assert theirs == ours


OVERLAPS = (named(RELATIONS["period_overlaps"].conditions()),)


def run(spec: IntervalStreamSpec, *batches: Sequence[Row], watermark: int | None = None) -> Progress:
    """Steps over micro-batches under one watermark."""
    store, progress = MemoryChunks(), Progress()
    store.watermark = watermark
    for number, rows in enumerate(batches):
        blocks = [
            Block(0, tag, number, batch_of(side, [item for item in enumerate(rows) if item[1].side == side]))
            for tag, side in enumerate(SIDES)
        ]
        progress.results += sum(batch.num_rows for batch in spec.stream().step(store, blocks, watermark, progress))
    return progress


OPEN, CLOSE = events_of("left", 7, 5, 9)


@pytest.mark.parametrize("by", [False, True])
def test_rows_that_contradict_each_other_are_errors(by: bool) -> None:
    spec = spec_of("inner", OVERLAPS, (True, True), by=by)
    for batches, words in (
        ([[OPEN, OPEN]], "opened twice"),
        ([[OPEN], [OPEN]], "opened twice"),
        ([[OPEN], [CLOSE, CLOSE]], "closed twice"),
        ([[CLOSE, OPEN, CLOSE]], "closed twice"),
        ([[replace(OPEN, time=6)]], "another event time than their event, such as 6 for the period"),
        ([[replace(CLOSE, time=5)]], "such as 5 for the period \\[5, 9\\)"),
    ):
        with pytest.raises(RowError, match=words):
            run(spec, *batches)


def test_the_second_row_of_a_whole_period_adds_nothing() -> None:
    """A closing row may come before its opening row, which is then no period of its own."""
    spec = spec_of("inner", OVERLAPS, (True, True))
    other = Row("right", 0, 6, 8, 8, 1)
    assert run(spec, [CLOSE], [OPEN], [other]).results == 1
    assert run(spec, [OPEN], [CLOSE], [other]).results == 1
    assert run(spec, [CLOSE, OPEN, other]).results == 1


def test_a_closing_row_without_a_period_is_late_where_its_start_is() -> None:
    spec = spec_of("inner", OVERLAPS, (True, True))
    progress = run(spec, [CLOSE], watermark=6)
    assert (progress.rows, progress.late) == (1, 1)
    assert run(spec, [CLOSE], watermark=5).late == 0
    with pytest.raises(RowError, match="1 row older than the watermark"):
        run(replace(spec, late="fail"), [CLOSE], watermark=6)


def test_an_opening_row_without_its_key_is_an_error() -> None:
    spec = spec_of("inner", OVERLAPS, (True, False), by=True)
    with pytest.raises(RowError, match="no period key: lp is NULL"):
        run(spec, [replace(OPEN, period=None)])  # type: ignore[arg-type]


def test_open_periods_that_no_stream_has_are_no_specification() -> None:
    spec = spec_of("inner", OVERLAPS, (True, False))
    for left in (replace(spec.left, time=None), replace(spec.left, open=replace(spec.left.open, end="lt"))):  # type: ignore[type-var]
        with pytest.raises(ValueError, match="an open period is one of a stream's periods"):
            replace(spec, left=left)
    with pytest.raises(ValueError, match="rows of open periods are closed before they are decided"):
        replace(spec, join=replace(spec.join, kind="left"))


@pytest.mark.few(3)
@pytest.mark.parametrize("relation", ["period_overlaps", "period_contains", "allen_equals"])
def test_the_state_of_a_long_stream_levels_off(relation: str) -> None:
    """A hundred steps with many keys; a few periods stay open for long. All pairs are those of the whole periods."""
    rng = np.random.default_rng(5)
    spec = replace(spec_of("inner", (named(RELATIONS[relation].conditions()),), (True, True), keys=True, by=True))
    count, steps = 3_000, 60
    sides, events = {}, []
    for side in SIDES:
        start = np.sort(rng.integers(0, 100 * steps, count))
        end = start + np.where(rng.random(count) < 0.05, 1_500, rng.integers(1, 200, count))
        key = rng.integers(0, 40, count)
        columns = [start, end, key, end, np.arange(count), np.arange(count)]
        sides[side] = pa.RecordBatch.from_arrays([pa.array(one) for one in columns], schema=columns_of(side))
        times = np.concatenate([start, end])
        ends = pa.array(np.tile(end, 2), mask=np.repeat([True, False], count))
        number = np.tile(np.arange(count), 2)
        both = [np.tile(start, 2), ends, np.tile(key, 2), times, number, number]
        table = pa.RecordBatch.from_arrays([pa.array(one) for one in both], schema=columns_of(side))
        events.append(table.take(pa.array(np.argsort(times + rng.integers(0, 40, 2 * count), kind="stable"))))
    store, found, chunks, rows = MemoryChunks(), Counter[Any](), [], []
    size = -(-2 * count // steps)
    for step in range(steps):
        blocks = [Block(0, tag, step, events[tag].slice(step * size, size)) for tag in range(2)]
        watermark = min(int(np.min(block.batch.column(3).to_numpy())) for block in blocks) - 1
        for row in tuples(list(spec.stream().step(store, blocks, watermark, Progress()))).elements():
            found[(row[0], row[2])] += 1
        store.watermark = watermark
        chunks.append(len(list(store.all())))
        rows.append(spec.stream().rows(store))
        assert sum(chunk.rows for chunk in store.all() if chunk.kind % 3 == 0) <= 3 * rows[-1] + 1000
        again = MemoryChunks(store.index(), store.data)
        again.watermark, again.next_no, again._derived = store.watermark, store.next_no, store._derived
        store = again
    for row in tuples(list(spec.stream().step(store, [], LAST, Progress()))).elements():
        found[(row[0], row[2])] += 1
    assert not list(store.all())
    assert max(rows[30:]) < 3 * max(rows[10:30])
    assert max(chunks) < 400
    whole = tuples(list(join_batches(spec.join, sides["left"], sides["right"])))
    assert found == Counter({(row[0], row[2]): number for row, number in whole.items()})
