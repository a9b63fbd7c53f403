"""A window over streams whose keys get other places gives what the batch operator gives, also after a kill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from sqlext_operators.exchange.blocks import Block, decode
from sqlext_operators.exchange.chunks import MemoryChunks
from sqlext_operators.exchange.key_counts import BucketReport, CountedInputs
from sqlext_operators.exchange.placement import KeyPlace, Placement
from sqlext_operators.exchange.scatter import ScatterSpec
from sqlext_operators.exchange.stream import Progress
from sqlext_operators.exchange.stream_placement import Epoch, PlacedScatter, StreamPlacement, StreamRouter
from sqlext_operators.window.reach import time_reach
from sqlext_operators.window.spec import Call, Frame, Window
from sqlext_operators.window.stream import WindowStreamSpec
from sqlext_planner.exchange.partitioning.demand import Demand
from sqlext_planner.exchange.partitioning.replanner import Replanned, Replanner

from tests.operators.window.test_window_stream import LAST, Case, Row, blocks_of, in_batch, results, spec_of
from tests.operators.window.window_data import ALL_CALLS, COLUMNS

BUCKETS = 3
PIDS = (4, 0, 7)


class Restless(Replanner):
    """Announces the next of some placements whenever it may."""

    def __init__(self, spec: Replanned, placements: Sequence[Placement], where: StreamPlacement | None = None) -> None:
        super().__init__(spec, where)
        self._placements = placements

    def _announced(self) -> StreamPlacement | None:
        number = self.where.number + 1
        placement = self._placements[number % len(self._placements)]
        return StreamPlacement(number, (*self.where.epochs, Epoch(placement, None)), self.where.floor)


class Buckets:
    """What Spark does: brings blocks to buckets, keeps their state, calls those with rows or a timer."""

    def __init__(self, case: Case, spec: Replanned, *, copied: bool) -> None:
        self._case, self._copied = case, copied
        self._operator = WindowStreamSpec(case.spec, condense_from=1000, copies=copied).stream()
        self._stores = {pid: MemoryChunks() for pid in spec.pids}
        self.progress = Progress()
        self.found: Counter[str] = Counter()

    def step(
        self, number: int, rows: Sequence[Row], first: int, watermark: int | None, where: StreamPlacement, *, kept: bool
    ) -> list[BucketReport]:
        """A micro-batch; not `kept`, it is killed before its state is written."""
        new: dict[int, list[Block]] = {}
        for block in blocks_of(self._case.columns, rows, self._case.spec.inputs, first):
            for wire in self._sent(block, number, where):
                for one in decode(wire):
                    new.setdefault(one.pid, []).append(one)
        reports = []
        for pid, store in self._stores.items():
            wakes = self._operator.wakes_at(store)
            asleep = wakes is None or watermark is None or wakes > watermark
            if asleep and pid not in new and watermark != LAST:
                continue
            again = MemoryChunks(store.index(), store.data)
            again.watermark, again.next_no = store.watermark, store.next_no
            report = self._called(pid, again, new.get(pid, []), watermark, kept=kept)
            if kept:
                self._stores[pid] = again
                reports.append(report)
        return reports

    def _sent(self, block: Block, number: int, where: StreamPlacement) -> Iterable[pa.RecordBatch]:
        names = tuple(block.batch.schema.names)
        copied = self._copied or block.tag > 0
        router = StreamRouter(("k",), "ts", StreamPlacement.first(where.epochs[0].placement), copied)
        spec = ScatterSpec(block.tag, names, router, BUCKETS, pids=PIDS)
        return PlacedScatter(spec, router).scatter(where.to_text(), number, [block.batch])

    def _called(
        self, pid: int, store: MemoryChunks, new: list[Block], watermark: int | None, *, kept: bool
    ) -> BucketReport:
        placed = {block.placed for block in new if block.placed is not None}
        assert len(placed) <= 1
        store.floor = next((item.floor for item in placed), None)
        progress = self.progress if kept else Progress()
        found = results(self._operator.step(store, new, watermark, progress))
        if kept:
            self.found += found
        if watermark is not None:
            store.watermark = max(watermark, store.watermark or watermark)
        latest = max((chunk.high for chunk in store.all()), default=None)
        counted = CountedInputs(("k",), self._case.spec.inputs).of(new)
        number = next((item.number for item in placed), None)
        report = BucketReport(pid, number, store.watermark, latest, *counted)
        assert BucketReport.of_text(report.to_text()) == report
        return report

    @property
    def rows_left(self) -> int:
        return sum(chunk.rows for store in self._stores.values() for chunk in store.all())


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    """Any teams of eight hash slots, and of some of the keys."""
    from sqlext_operators.columns.keys import hash_keys

    team = st.lists(st.integers(0, BUCKETS - 1), min_size=1, max_size=BUCKETS, unique=True).map(tuple)
    hashes = hash_keys([pa.array([0, 1, 2, None], pa.int32())]).tolist()
    chosen = sorted(draw(st.sets(st.sampled_from(hashes))))
    keys = tuple(KeyPlace(key, draw(team)) for key in chosen)
    return Placement(BUCKETS, tuple(draw(team) for _ in range(8)), keys)


@st.composite
def bounded_windows(draw: st.DrawFn, number: int) -> Window:
    """A window with a start and an end in time."""
    end = draw(st.integers(-2, 3))
    frame = Frame(
        "range",
        draw(st.integers(-8, min(end, 0))),
        end,
        end_following=end > 0,
        maxsize=draw(st.none() | st.integers(1, 3)),
        exclude_current_row=draw(st.booleans()),
        exclude_current_time=draw(st.booleans()),
        instance_not_in_window=draw(st.booleans()),
    )
    sources = tuple(sorted(draw(st.sets(st.integers(1, 3)))))
    chosen = draw(st.lists(st.sampled_from([c for c in ALL_CALLS if c.function != "lag"]), min_size=1, max_size=2))
    return Window(
        frame, sources, tuple(Call(c.function, c.args, f"w{number}_{i}", c.constants) for i, c in enumerate(chosen))
    )


@st.composite
def moving_cases(draw: st.DrawFn) -> Case:
    """Streams with so many micro-batches that keys move more than once; a few keys, many ties."""
    found = [draw(bounded_windows(n)) for n in range(draw(st.integers(1, 2)))]
    columns = tuple(dict.fromkeys(name for window in found for call in window.calls for name in call.args))
    value = st.tuples(*(COLUMNS[name][1] | st.none() for name in columns))
    pace, delay = draw(st.integers(1, 6)), draw(st.integers(0, 6))
    batches: list[tuple[int | None, tuple[Row, ...]]] = []
    for n in range(draw(st.integers(4, 16))):
        watermark = pace * n - delay if n else None
        low = 0 if watermark is None else watermark
        row = st.builds(Row, st.integers(0, 3), st.none() | st.integers(0, 2), st.integers(low, pace * n + 2), value)
        batches.append((watermark, tuple(draw(st.lists(row, max_size=6)))))
    return Case(spec_of(found, 4), columns, tuple(batches))


QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much]


@given(case=moving_cases(), places=st.lists(placements(), min_size=1, max_size=4), data=st.data())
@settings(max_examples=150, suppress_health_check=QUIET, deadline=None)
def test_streams_whose_keys_move_equal_batch(case: Case, places: list[Placement], data: st.DataObject) -> None:
    check(case, places, data)


@pytest.mark.slow
@given(case=moving_cases(), places=st.lists(placements(), min_size=1, max_size=4), data=st.data())
@settings(max_examples=2000, suppress_health_check=QUIET, deadline=None)
def test_thousands_of_streams_whose_keys_move_equal_batch(
    case: Case, places: list[Placement], data: st.DataObject
) -> None:
    check(case, places, data)


def check(case: Case, places: list[Placement], data: st.DataObject) -> None:
    """Raises AssertionError where the stream differs from the batch, with kills anywhere."""
    reach = time_reach(case.spec.window)
    assert reach is not None
    shows = any(not window.frame.instance_not_in_window for window in case.spec.window.windows)
    spec = Replanned("fragment", Demand(reach, owned_copies=shows), PIDS)
    buckets = Buckets(case, spec, copied=shows or data.draw(st.booleans(), "copied"))
    replanner = Restless(spec, places)
    first = 0
    for number, (watermark, rows) in enumerate((*case.batches, (LAST, ()))):
        if data.draw(st.integers(0, 3), "killed") == 0:
            buckets.step(number, rows, first, watermark, replanner.where, kept=False)
            replanner = Restless(spec, places, replanner.where)
        replanner.observe(buckets.step(number, rows, first, watermark, replanner.where, kept=True))
        first += len(rows)
    event(f"{replanner.where.number} changes")
    assert buckets.found == in_batch(case)
    assert buckets.progress.rows == first
    assert buckets.progress.late == buckets.progress.timeless == 0
    assert not buckets.rows_left
