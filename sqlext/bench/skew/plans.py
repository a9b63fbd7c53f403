"""Plans of the suite `skew-tasks`: those that a query would get, their tasks over tables in memory, and some tasks that
are timed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sqlext_planner.config import Config
from sqlext_planner.window.execution import WindowUnionExec
from sqlext_planner.window.tasks import WindowTasks

from sqlext.bench.skew.contestants import OURS, OURS_SQL
from sqlext.bench.skew.cost import MeasuredTask
from sqlext.bench.skew.counts import KeyedTimes, PartitionCounts
from sqlext.bench.skew.suite import skew_case, skew_files
from sqlext.catalog import FileCatalog
from sqlext.run.pipeline import stage

#: Rows of each table, keys, skew, half of the interval in seconds, partitioner and partitions of the tasks that are
#: timed: few and many rows, results and pairs a row.
TIMED = (
    (50_000, 50, 0.5, 10, "hash", 2),
    (200_000, 50, 0.5, 10, "hash", 2),
    (100_000, 1, 0.5, 10, "hash", 2),
    (100_000, 1, 0.5, 120, "time_range", 3),
    (200_000, 5, 0.35, 60, "key", 3),
    (100_000, 50, 0.2, 30, "broadcast", 8),
    (100_000, 50, 0.2, 60, "fragment", 6),
)
#: Each of them is timed so often; the shortest time counts. And no more partitions of a plan than this.
_TIMES, _TIMED_PARTITIONS = 3, 3


def keyed_times(tables: Sequence[pa.Table], seconds: int) -> KeyedTimes:
    """Keys and times of both tables, in microseconds."""
    keys = [table["k"].to_numpy() for table in tables]
    times = [table["ts"].cast(pa.int64()).to_numpy() for table in tables]
    return KeyedTimes((keys[0], keys[1]), (times[0], times[1]), seconds * 1_000_000)


class _Catalog(FileCatalog):
    """The tables of a folder on a cluster of so many cores."""

    def __init__(self, folder: Path, cores: int) -> None:
        super().__init__(folder)
        self._cores = cores

    def cores(self) -> int:
        return self._cores


def planned_tasks(
    folder: Path, tables: Sequence[pa.Table], seconds: int, partitioner: str, partitions: int
) -> tuple[WindowUnionExec, WindowTasks]:
    """The window's node as the product plans it over the files of a folder, a.parquet and b.parquet, and its tasks over
    the same rows, `tables`."""
    settings = {
        "sqlext.exchange.partitions": str(partitions),
        "sqlext.exchange.partitioner": "auto" if partitioner == OURS else partitioner,
    }
    config = Config.from_mapping(settings)
    plan = stage(OURS_SQL.format(seconds=seconds), _Catalog(folder, partitions), config).physical
    assert plan is not None
    node = next(node for node in plan.walk() if isinstance(node, WindowUnionExec))
    return node, WindowTasks.of(node, tables, partitions, config)


def measured_tasks(root: Path) -> list[MeasuredTask]:
    """The operator's seconds for the tasks of TIMED, on tables below `root`."""
    found: list[MeasuredTask] = []
    for rows, keys, skew, seconds, partitioner, partitions in TIMED:
        case = skew_case(0, keys, skew, seconds)
        paths = skew_files(root / "costs", rows, case)
        tables = [pq.read_table(path) for path in paths]
        _, tasks = planned_tasks(paths[0].parent, tables, seconds, partitioner, partitions)
        counts = PartitionCounts.of(keyed_times(tables, seconds), (tasks.sent(0), tasks.sent(1)), partitions)
        full = np.flatnonzero(counts.owned).tolist()[:_TIMED_PARTITIONS]
        for pid in full:
            if not found:
                tasks.seconds(pid)  # compiles the kernels
            least = min(tasks.seconds(pid) for _ in range(_TIMES))
            task = f"{case.name}, {partitioner}, partition {pid} of {partitions}"
            received, owned, pairs = (int(values[pid]) for values in (counts.received, counts.owned, counts.pairs))
            found.append(MeasuredTask(task, received, owned, pairs, least))
    return found
