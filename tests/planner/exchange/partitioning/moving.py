"""Streams whose keys get other places all the time: what Spark does around their operators, with kills anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from sqlext_operators.columns.keys import hash_keys
from sqlext_operators.exchange.blocks import Block, decode
from sqlext_operators.exchange.placement import KeyPlace, Placement
from sqlext_operators.exchange.scatter import KeyRouter, ScatterSpec
from sqlext_operators.exchange.stream import Progress, StreamSpec
from sqlext_operators.exchange.stream_placement import BucketReport, Epoch, PlacedScatter, StreamPlacement
from sqlext_planner.exchange.partitioning.adaptive import AdaptiveReplanner
from sqlext_planner.exchange.partitioning.replanner import Replanned, Replanner
from sqlext_planner.exchange.partitioning.stream_placing import PlacedInputs

from tests.operators.exchange.memory_chunks import MemoryChunks

BUCKETS = 3
PIDS = (4, 0, 7)

#: The blocks of a micro-batch, and the watermark that is known when it comes.
Step = tuple[int | None, Sequence[Block]]
Told = Callable[[Iterable[pa.RecordBatch]], Counter[Any]]


class Restless(Replanner):
    """Announces the next of some placements whenever it may."""

    def __init__(self, spec: Replanned, placements: Sequence[Placement], where: StreamPlacement | None = None) -> None:
        super().__init__(spec, where)
        self._placements = placements

    def _announced(self) -> StreamPlacement | None:
        number = self.where.number + 1
        placement = self._placements[number % len(self._placements)]
        return StreamPlacement(number, (*self.where.epochs, Epoch(placement, None)))


class RestlessAuto(Restless, AdaptiveReplanner):
    """The same from the hash of the keys on."""


class Buckets:
    """What Spark does: brings blocks to buckets, keeps their state, calls those with rows or a timer."""

    def __init__(self, spec: StreamSpec, inputs: PlacedInputs, told: Told) -> None:
        self._operator, self._inputs, self._told = spec.stream(), inputs, told
        self._stores = {pid: MemoryChunks() for pid in PIDS}
        self.progress = Progress()
        self.found: Counter[Any] = Counter()
        self.changes = 0

    def step(
        self, number: int, blocks: Sequence[Block], watermark: int | None, where: StreamPlacement, *, kept: bool
    ) -> list[BucketReport]:
        """A micro-batch; not `kept`, it is killed before its state is written."""
        new: dict[int, list[Block]] = {}
        for block in blocks:
            for wire in self._sent(block, number, where):
                for one in decode(wire):
                    new.setdefault(one.pid, []).append(one)
        reports = []
        for pid, store in self._stores.items():
            wakes = self._operator.wakes_at(store)
            if pid not in new and (wakes is None or watermark is None or wakes > watermark):
                continue
            again = MemoryChunks(store.index(), store.data)
            again.watermark, again.next_no = store.watermark, store.next_no
            report = self._called(pid, again, new.get(pid, []), watermark, kept=kept)
            if kept:
                self._stores[pid] = again
                reports += [] if report is None else [report]
        return reports

    def _sent(self, block: Block, number: int, where: StreamPlacement) -> Iterable[pa.RecordBatch]:
        names = tuple(block.batch.schema.names)
        router = self._inputs.routers(StreamPlacement.first(where.epochs[0].placement))[block.tag]
        spec, text = ScatterSpec(block.tag, names, router, BUCKETS, pids=PIDS), where.to_text()
        if self._inputs.placing.adapts and where.number == 0:
            spec, text = replace(spec, router=KeyRouter(router.keys)), None
        return PlacedScatter(spec, router).scatter(text, number, [block.batch])

    def _called(
        self, pid: int, store: MemoryChunks, new: list[Block], watermark: int | None, *, kept: bool
    ) -> BucketReport | None:
        placed = {block.placed for block in new}
        assert len(placed) <= 1
        progress = self.progress if kept else Progress()
        found = self._told(self._operator.step(store, new, watermark, progress))
        if kept:
            self.found += found
        if watermark is not None:
            store.watermark = max(watermark, store.watermark or watermark)
        if self._inputs.counted is None:
            return None
        counted, expiry = self._inputs.counted.of(new), self._operator.expiry(store)
        report = BucketReport(pid, next(iter(placed), None), store.watermark, expiry.owned, expiry.copied, *counted)
        assert BucketReport.of_text(report.to_text()) == report
        return report

    @property
    def rows_left(self) -> int:
        return sum(chunk.rows for store in self._stores.values() for chunk in store.all())


def moved(
    spec: StreamSpec,
    inputs: PlacedInputs,
    told: Told,
    steps: Sequence[Step],
    places: list[Placement],
    data: st.DataObject | None,
) -> Buckets:
    """The buckets after some micro-batches, some of which are killed and done again, with other places at times.
    Without `data` none is, and what a micro-batch reports is heard at once."""

    def drawn(most: int, label: str) -> int:
        return most if data is None else data.draw(st.integers(0, most), label)

    buckets = Buckets(spec, inputs, told)
    replanned = Replanned(inputs.placing.partitioner, inputs.placing.demand, PIDS)
    restless = RestlessAuto if replanned.adapts else Restless
    replanner = restless(replanned, places)
    late: list[list[BucketReport]] = []
    for number, (watermark, blocks) in enumerate(steps):
        if drawn(3, "in peace") == 0:
            buckets.step(number, blocks, watermark, replanner.where, kept=False)
            if drawn(1, "heard"):
                for reports in late:
                    replanner.observe(reports)
            replanner = restless(replanned, places, replanner.where)
            late = []
        late.append(buckets.step(number, blocks, watermark, replanner.where, kept=True))
        # what a micro-batch reports may be heard when the next one is on its way
        while len(late) > 1 - drawn(1, "at once"):
            replanner.observe(late.pop(0))
    buckets.changes = replanner.where.number
    return buckets


def everywhere() -> Iterator[Placement]:
    """All keys in one bucket, for each bucket."""
    for bucket in range(BUCKETS):
        yield Placement(BUCKETS, ((bucket,),))


@st.composite
def placements(draw: st.DrawFn, kind: pa.DataType) -> Placement:
    """Any teams of eight hash slots, and of some of the keys 0, 1, 2 and NULL."""
    team = st.lists(st.integers(0, BUCKETS - 1), min_size=1, max_size=BUCKETS, unique=True).map(tuple)
    hashes = hash_keys([pa.array([0, 1, 2, None], kind)]).tolist()
    chosen = sorted(draw(st.sets(st.sampled_from(hashes))))
    keys = tuple(KeyPlace(key, draw(team)) for key in chosen)
    return Placement(BUCKETS, tuple(draw(team) for _ in range(8)), keys)
