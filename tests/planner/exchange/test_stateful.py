"""The stateful operator behind Spark's interface, without a JVM: state, cache, timers, refusals."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import Row
from sqlext_operators.errors import TaskError
from sqlext_operators.exchange.blocks import Block, WireBatch
from sqlext_operators.exchange.chunks import ChunkCache, decoded
from sqlext_operators.exchange.stateful import FIGURES, StatefulOperator, StatefulSpec
from sqlext_operators.exchange.stream_placement import CountedInputs
from sqlext_operators.sequences.sequence import SequenceSpec
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec
from sqlext_operators.window.stream import WindowStreamSpec
from sqlext_planner.spark.buckets import bucket_ids, murmur3

#: Spark's own, from 4.2 on.
TwsTester = pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="needs Spark 4.2").TwsTester

SECOND = 1_000_000
START = 1_700_000_000
CALLS = (
    Call("sum", ("v",), "s"),
    Call("count", (), "n"),
    Call("max", ("v",), "m"),
    Call("distinct_count", ("v",), "d"),
)


def spec_of(seconds: int, *, rows: int = 0) -> WindowOperatorSpec:
    """Windows over FROM and one union; `rows`: another one that counts rows."""
    windows = [Window(Frame("range", -seconds * SECOND, 0), (1,), CALLS)]
    windows += [Window(Frame("rows", -rows, 0), (1,), (Call("sum", ("v",), "r"),))] if rows else []
    sequence = SequenceSpec(("k",), "ts", ("v",), ("id", "k", "ts"))
    return WindowOperatorSpec(sequence, WindowUnionSpec(("k",), "ts", ("id", "k", "ts"), tuple(windows)), 2)


class Arrivals:
    """Rows of two inputs in micro-batches, out of order within 5 seconds."""

    def __init__(self, batches: int, rows: int, *, seconds: float = 10, keys: int = 50, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.blocks: list[list[Block]] = []
        self.watermarks = [0]
        seen = 0
        for number in range(batches):
            times = START + (number + rng.random(rows)) * seconds - rng.random(rows) * 5
            self.blocks.append([self._block(rng, tag, times[tag::2], number * rows, keys) for tag in (0, 1)])
            seen = max(seen, int(times.max() * 1000))
            self.watermarks.append(seen - 5000)

    def _block(self, rng: np.random.Generator, tag: int, times: Any, first: int, keys: int) -> Block:
        count = len(times)
        columns = {
            "id": pa.array(first * 2 + tag + 2 * np.arange(count)),
            "k": pa.array(rng.integers(0, keys, count), pa.int32()),
            "ts": pa.array((times * 1000).astype(np.int64), pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
            "v": pa.array(rng.integers(-9, 9, count)),
        }
        return Block(7, tag, first, pa.RecordBatch.from_pydict(columns))

    @property
    def bytes(self) -> int:
        return sum(block.batch.nbytes for blocks in self.blocks for block in blocks)


def rows_of(blocks: Sequence[Block]) -> list[Row]:
    """The blocks as Spark hands them over."""
    wire = WireBatch()
    for block in blocks:
        wire.add(block)
    return [Row(**row) for row in wire.finish().to_pylist()]


class Run:
    """A query whose worker may change; its state lives on in the tester."""

    def __init__(self, spec: StatefulSpec, cache: ChunkCache) -> None:
        self.tester = TwsTester(
            StatefulOperator(spec, cache),  # type: ignore[arg-type]
            timeMode="eventtime",
            eventTimeExtractor=lambda row: 1 << 50,
        )
        self.found: Counter[str] = Counter()
        self.figures: list[dict[str, int]] = []

    def step(self, blocks: Sequence[Block], watermark_ms: int) -> None:
        self.take(self.tester.setWatermark(watermark_ms) if watermark_ms else [])
        self.take(self.tester.test(7, rows_of(blocks)))

    def take(self, rows: Sequence[Any]) -> None:
        for row in (row.asDict(True) for row in rows):
            if row["block"] is not None:
                self.found.update(map(str, decoded(pa.py_buffer(row["block"])).to_pylist()))
            self.figures.append({name: row[name] for name in FIGURES})

    def worker(self, spec: StatefulSpec, cache: ChunkCache) -> None:
        """Go on in another worker."""
        self.tester.processor = StatefulOperator(spec, cache)  # type: ignore[assignment]
        self.tester.processor.init(self.tester.handle)


def in_batch(spec: WindowOperatorSpec, arrivals: Arrivals) -> Counter[str]:
    """The batch operator over all rows in the order of arrival."""
    found: Counter[str] = Counter()
    with spec.operator() as operator:
        for blocks in arrivals.blocks:
            for block in blocks:
                operator.push(block)
        for batch in operator.finish():
            found.update(map(str, batch.to_pylist()))
    return found


def stateful(operator: WindowOperatorSpec, condense_from: int = 20_000, **fingerprint: str) -> StatefulSpec:
    return StatefulSpec(WindowStreamSpec(operator, condense_from=condense_from), {"query": "q", **fingerprint})


def far_later(arrivals: Arrivals) -> int:
    return arrivals.watermarks[-1] + 10**7


@pytest.fixture
def caches(tmp_path: Path) -> list[ChunkCache]:
    """A cache with files, one of another worker with the same files, one that keeps nothing."""
    return [ChunkCache(tmp_path / "chunks"), ChunkCache(tmp_path / "chunks"), ChunkCache(None, limit=0)]


@pytest.mark.few(3)
@pytest.mark.parametrize("seconds", [1, 30, 300])
@pytest.mark.parametrize("condense_from", [0, 10**9])
def test_equals_batch(caches: list[ChunkCache], seconds: int, condense_from: int) -> None:
    arrivals, operator = Arrivals(12, 400), spec_of(seconds, rows=3)
    run = Run(stateful(operator, condense_from), caches[0])
    for blocks, watermark in zip(arrivals.blocks, arrivals.watermarks, strict=False):
        run.step(blocks, watermark)
    run.step([], far_later(arrivals))
    assert run.found == in_batch(operator, arrivals)
    assert sum(figures["late_rows"] for figures in run.figures) == 0


def test_a_steady_stream_reads_nothing_and_writes_each_row_once(caches: list[ChunkCache]) -> None:
    """The issue's gates: bytes read at most a tenth of the new bytes, bytes written at most 1.5 times."""
    arrivals, operator = Arrivals(30, 20_000, keys=500), spec_of(60)
    run = Run(stateful(operator), caches[0])
    for blocks, watermark in zip(arrivals.blocks, arrivals.watermarks, strict=False):
        run.step(blocks, watermark)
    steady = run.figures[len(run.figures) // 2 :]
    new = arrivals.bytes / len(arrivals.blocks) * len([figures for figures in steady if figures["rows_in"]])
    assert sum(figures["read_bytes"] for figures in steady) <= new / 10
    assert sum(figures["written_bytes"] for figures in steady) <= 1.5 * new


@pytest.mark.parametrize("files", [True, False])
def test_another_worker_reads_what_it_lacks_and_is_right(caches: list[ChunkCache], tmp_path: Path, files: bool) -> None:
    arrivals, operator = Arrivals(12, 400), spec_of(30, rows=3)
    spec = stateful(operator, 0)
    run = Run(spec, caches[0])
    for number, (blocks, watermark) in enumerate(zip(arrivals.blocks, arrivals.watermarks, strict=False)):
        if number % 3 == 2:
            if not files:
                shutil.rmtree(tmp_path / "chunks")
            before = len(run.figures)
            run.worker(spec, ChunkCache(tmp_path / "chunks"))
            run.step(blocks, watermark)
            read = sum(figures["read_bytes"] for figures in run.figures[before:])
            assert (read == 0) is files
        else:
            run.step(blocks, watermark)
    run.step([], far_later(arrivals))
    assert run.found == in_batch(operator, arrivals)


@pytest.mark.parametrize("damage", [b"", b"garbage", b"x" * 10_000])
def test_damaged_files_cost_a_read_and_nothing_else(tmp_path: Path, damage: bytes) -> None:
    arrivals, operator = Arrivals(10, 400), spec_of(30)
    spec = stateful(operator, 0)
    run = Run(spec, ChunkCache(tmp_path / "chunks"))
    for number, (blocks, watermark) in enumerate(zip(arrivals.blocks, arrivals.watermarks, strict=False)):
        if number == 6:
            for path in (tmp_path / "chunks").iterdir():
                path.unlink()
                path.write_bytes(damage)
            run.worker(spec, ChunkCache(tmp_path / "chunks"))
        run.step(blocks, watermark)
    run.step([], far_later(arrivals))
    assert run.found == in_batch(operator, arrivals)


def test_a_cache_that_cannot_write_keeps_nothing_and_is_right(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    arrivals, operator = Arrivals(6, 300), spec_of(30)
    run = Run(stateful(operator), ChunkCache(tmp_path / "file" / "chunks", limit=0))
    for blocks, watermark in zip(arrivals.blocks, arrivals.watermarks, strict=False):
        run.step(blocks, watermark)
    run.step([], far_later(arrivals))
    assert run.found == in_batch(operator, arrivals)


def test_state_and_files_go_when_no_window_reaches_them(tmp_path: Path) -> None:
    arrivals, operator = Arrivals(8, 300), spec_of(10)
    run = Run(stateful(operator, 0), ChunkCache(tmp_path / "chunks"))
    for blocks, watermark in zip(arrivals.blocks, arrivals.watermarks, strict=False):
        run.step(blocks, watermark)
    run.step([], far_later(arrivals))
    assert run.figures[-1]["state_rows"] == run.figures[-1]["state_chunks"] == 0
    assert not run.tester.peekMapState("chunks", 7)
    assert not list((tmp_path / "chunks").iterdir())


def test_a_lost_chunk_is_told(caches: list[ChunkCache]) -> None:
    arrivals, spec = Arrivals(3, 100), stateful(spec_of(30))
    run = Run(spec, caches[2])
    run.step(arrivals.blocks[0], 0)
    run.tester.updateMapState("chunks", 7, {})
    with pytest.raises(TaskError, match="lacks chunk 0"):
        run.step(arrivals.blocks[1], far_later(arrivals))


def test_a_changed_query_is_refused_with_what_has_changed(caches: list[ChunkCache]) -> None:
    arrivals = Arrivals(2, 100)
    run = Run(stateful(spec_of(30), windows="60s"), caches[0])
    run.step(arrivals.blocks[0], 0)
    run.worker(stateful(spec_of(30), windows="90s"), caches[0])
    with pytest.raises(TaskError, match="belongs to another query: windows was 60s, and is 90s") as caught:
        run.step(arrivals.blocks[1], 0)
    assert "new checkpoint location" in str(caught.value.help)


def test_a_state_whose_keys_have_moved_is_refused_by_hash(caches: list[ChunkCache]) -> None:
    """Blocks of the first change have a number, those by hash none: a stream that goes on by hash may be one that
    `auto` has never changed, or one whose places were lost."""
    arrivals, by_hash = Arrivals(4, 100), stateful(spec_of(30))
    adaptive = replace(by_hash, counted=CountedInputs((("k",), ("k",))))
    run = Run(adaptive, caches[0])
    run.step(arrivals.blocks[0], 0)
    for spec in (by_hash, adaptive):
        run.worker(spec, caches[0])
        run.step(arrivals.blocks[1], 0)
    run.step([replace(block, placed=1) for block in arrivals.blocks[2]], 0)
    with pytest.raises(TaskError, match="places of number 0, and its state has those of number 1"):
        run.step(arrivals.blocks[3], 0)
    run.worker(by_hash, caches[0])
    with pytest.raises(
        TaskError, match=r"sqlext\.exchange\.partitioner = auto has given keys of the checkpoint"
    ) as caught:
        run.step(arrivals.blocks[3], 0)
    assert caught.value.condition == "checkpoint-mismatch"


def test_a_state_of_another_format_is_refused(caches: list[ChunkCache]) -> None:
    arrivals = Arrivals(2, 100)
    run = Run(stateful(spec_of(30)), caches[0])
    run.step(arrivals.blocks[0], 0)
    meta = run.tester.peekValueState("meta", 7)
    assert meta is not None
    run.tester.updateValueState("meta", 7, (99, *meta[1:]))
    with pytest.raises(TaskError, match="format 99"):
        run.step(arrivals.blocks[1], 0)


def test_a_damaged_list_of_chunks_is_told_and_not_read(caches: list[ChunkCache]) -> None:
    """A flipped byte anywhere in the list, and another value in what stands beside it."""
    arrivals, spec = Arrivals(2, 100), stateful(spec_of(30))
    run = Run(spec, caches[0])
    run.step(arrivals.blocks[0], 0)
    run.step([], arrivals.watermarks[1])
    meta = run.tester.peekValueState("meta", 7)
    assert meta is not None
    listed = bytes(meta[-1])
    flipped = [listed[:n] + bytes([listed[n] ^ 1]) + listed[n + 1 :] for n in range(0, len(listed), 23)]
    damaged = [*((*meta[:-1], one) for one in (*flipped, listed[:40], b"")), (*meta[:3], 5, *meta[4:])]
    damaged.append((*meta[:4], meta[4] + 1, *meta[5:]))
    for one in damaged:
        run.tester.updateValueState("meta", 7, one)
        with pytest.raises(TaskError, match="list of the stream's chunks") as caught:
            run.step(arrivals.blocks[1], 0)
        assert caught.value.condition == "stream-state-damaged"


def test_a_list_without_a_digest_goes_on(caches: list[ChunkCache]) -> None:
    """As the version before wrote it."""
    arrivals, operator = Arrivals(4, 100), spec_of(30)
    run = Run(stateful(operator), caches[0])
    for number, (blocks, watermark) in enumerate(zip(arrivals.blocks, arrivals.watermarks, strict=False)):
        run.step(blocks, watermark)
        meta = run.tester.peekValueState("meta", 7)
        assert meta is not None
        assert meta[0] == 3
        if number == 1:
            run.tester.updateValueState("meta", 7, (2, *meta[1:-1], bytes(meta[-1])[32:]))
    run.step([], far_later(arrivals))
    assert run.found == in_batch(operator, arrivals)


def test_late_rows_are_counted_or_fail(caches: list[ChunkCache]) -> None:
    arrivals, operator = Arrivals(3, 100), spec_of(30)
    for fails in (False, True):
        spec = replace(stateful(operator), stream=WindowStreamSpec(operator, late="fail" if fails else "drop"))
        run = Run(spec, caches[0])
        run.step(arrivals.blocks[0], 0)
        run.step([], far_later(arrivals))
        if fails:
            with pytest.raises(TaskError, match="older than the watermark"):
                run.step(arrivals.blocks[1], far_later(arrivals) + 1)
        else:
            run.step(arrivals.blocks[1], far_later(arrivals) + 1)
            assert run.figures[-1]["late_rows"] == 100


@pytest.mark.parametrize(("buckets", "partitions"), [(1, 1), (2, 2), (8, 8), (200, 200), (7, 3), (3, 7), (32, 8)])
def test_buckets_are_spread_evenly(buckets: int, partitions: int) -> None:
    found = bucket_ids(buckets, partitions)
    assert len(set(found)) == buckets
    placed = Counter(murmur3(pid) % partitions for pid in found)
    assert max(placed.values()) == -(-buckets // partitions)


def test_the_hash_is_sparks() -> None:
    assert murmur3(1) == -559580957
    assert murmur3(0) == 933211791
