"""Early answers behind Spark's interface, without a JVM: rows through the scatter, timers, attempts that fail."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row
from sqlext_operators.early.partials import PairCall, TotalsSpec, Tumbling
from sqlext_operators.early.stream import BOUNDS, EarlySpec
from sqlext_operators.early.windows import EstimatedAggregate
from sqlext_operators.exchange.chunks import ChunkCache, decoded
from sqlext_operators.exchange.scatter import KeyRouter, ScatterSpec, scatter_reduced
from sqlext_operators.exchange.stateful import FIGURES, StatefulOperator, StatefulSpec

#: Spark's own, from 4.2 on.
TwsTester = pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="needs Spark 4.2").TwsTester

SECOND = 1_000_000
PIDS, BATCHES, ROWS = (3, 5), 40, 30
SIDE = TotalsSpec(Tumbling(10 * SECOND), 2, (True,))
CALLS = (PairCall(EstimatedAggregate.COUNT, 0, None, True, "n"), PairCall(EstimatedAggregate.AVG, 1, 0, True, "a"))


def spec_of() -> EarlySpec:
    fields = [("start", pa.timestamp("us", "UTC")), ("end", pa.timestamp("us", "UTC")), ("phase", pa.string())]
    for call, kind in zip(CALLS, (pa.int64(), pa.float64()), strict=True):
        kinds = (kind, pa.float64(), pa.float64(), pa.float64(), pa.bool_())
        names = (call.name, *(f"{call.name}_{name}" for name in BOUNDS))
        fields += zip(names, kinds, strict=True)
    return EarlySpec((SIDE, SIDE), CALLS, 7 * SECOND, "shrink", 0.95, pa.schema(fields))


def arriving(seed: int) -> list[list[list[tuple[int, str, int, int]]]]:
    """Rows (key, key, time, value) of both sides by micro-batch, of two seconds each, up to four seconds late."""
    rng = random.Random(seed)
    batches: list[list[list[tuple[int, str, int, int]]]] = [[[], []] for _ in range(BATCHES + 3)]
    for side in range(2):
        for _ in range(BATCHES * ROWS):
            time = rng.random() * BATCHES * 2
            row = (rng.randrange(3), rng.choice("xy"), int(time * SECOND), rng.randrange(9))
            batches[int((time + 4 * rng.random()) / 2)][side].append(row)
    return batches


def wire(sides: list[list[tuple[int, str, int, int]]]) -> list[Row]:
    """As two tasks of each side send the rows."""
    found = []
    for tag, rows in enumerate(sides):
        spec = ScatterSpec(tag, SIDE.columns, KeyRouter(()), len(PIDS), pids=PIDS)
        for task in range(2):
            columns: dict[str, Any] = {
                "c0": pa.array([row[2] for row in rows[task::2]], pa.timestamp("us", "UTC")),
                "c1": pa.array([row[0] for row in rows[task::2]], pa.int32()),
                "c2": pa.array([row[1] for row in rows[task::2]], pa.string()),
                "c3": pa.array([row[3] for row in rows[task::2]], pa.int64()),
            }
            for batch in scatter_reduced(spec, SIDE, task, [pa.RecordBatch.from_pydict(columns)]):
                found += [Row(pid=row["pid"], tag=row["tag"], block=row["block"]) for row in batch.to_pylist()]
    return found


class Task:
    """The processor of one bucket, in a worker that may be a new one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.start()
        self.state = self._now()

    def start(self) -> None:
        operator: Any = StatefulOperator(StatefulSpec(spec_of(), {}), ChunkCache(self.folder))
        self.tester = TwsTester(operator, timeMode="EventTime", eventTimeExtractor=lambda row: 1 << 60)

    def _now(self) -> Any:
        handle = self.tester.handle
        return copy.deepcopy((handle.value_states["meta"].state, handle.map_states["chunks"].state, handle._timers))

    def step(self, pid: int, watermark: int, rows: list[Row]) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """One micro-batch from the committed state."""
        handle = self.tester.handle
        meta, chunks, timers = copy.deepcopy(self.state)
        handle.value_states["meta"].state, handle.map_states["chunks"].state, handle._timers = meta, chunks, timers
        self.tester._currentWatermarkMs = watermark
        handle.setWatermark(watermark)
        found: list[dict[str, Any]] = []
        figures = dict.fromkeys(FIGURES, 0)
        given = [row for row in rows if row["pid"] == pid]
        for answer in [*(self.tester.test(pid, given) if given else []), *self.tester._handleExpiredTimers()]:
            columns = answer.asDict()
            figures = {name: figures[name] + columns[name] for name in FIGURES}
            if columns["block"] is not None:
                found += decoded(pa.py_buffer(columns["block"])).to_pylist()
        return found, figures

    def commit(self) -> None:
        self.state = self._now()


def run(folder: Path, seed: int, *, disturbed: bool) -> tuple[list[dict[str, Any]], int]:
    """The results, and how many rows were read."""
    folder.mkdir()
    tasks = {pid: Task(folder) for pid in PIDS}
    found: list[dict[str, Any]] = []
    chaos, read, clock = random.Random(seed), 0, [0, 0]
    batches = arriving(seed)
    batches.append([[], []])
    for sides in batches:
        rows, watermark = wire(sides), max(0, min(clock) // 1000 - 5_000)
        if not any(sides):
            watermark = 10**9
        for pid, task in tasks.items():
            while disturbed and chaos.random() < 0.5:
                task.step(pid, watermark, rows)
                if chaos.random() < 0.5:
                    task.start()
            new, figures = task.step(pid, watermark, rows)
            task.commit()
            found += new
            read += figures["rows_in"]
        clock = [max([time, *(row[2] for row in rows)]) for time, rows in zip(clock, sides, strict=True)]
    return found, read


def test_windows_come_early_and_final_and_failed_attempts_change_no_row(tmp_path: Path) -> None:
    found, read = run(tmp_path / "alone", 0, disturbed=False)
    assert read == 2 * BATCHES * ROWS
    found = sorted(found, key=lambda row: (row["start"], row["phase"]))
    assert [row["phase"] for row in found] == ["early", "final"] * 8
    rows = [[row for batch in arriving(0) for row in batch[side]] for side in range(2)]
    for row in (row for row in found if row["phase"] == "final"):
        start = int(row["start"].timestamp()) * SECOND
        left, right = ([one for one in side if 0 <= one[2] - start < 10 * SECOND] for side in rows)
        values = [b[3] for a in left for b in right if a[:2] == b[:2]]
        assert (row["n"], row["a"]) == (len(values), sum(values) / len(values))
    for early, final in zip(found[::2], found[1::2], strict=True):
        assert early["start"] == final["start"]
        assert early["n_lower"] <= early["n"] <= early["n_upper"]
    reliable = [row["n_reliable"] for row in found[::2]]
    assert not any(reliable[:5])  # it takes five final windows
    assert any(reliable[5:])
    again, read = run(tmp_path / "disturbed", 0, disturbed=True)
    assert sorted(again, key=lambda row: (row["start"], row["phase"])) == found
    assert read == 2 * BATCHES * ROWS
