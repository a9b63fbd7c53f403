"""What is the suite `umjoin`'s own of its contestants: warm sessions, planning alone, answers of small results."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
from sqlext_planner.catalog import Catalog
from sqlext_planner.config import Config

from benchmarks.harness.engines import Engines
from benchmarks.harness.suite import Answer, Case, Contestant, Number
from benchmarks.umjoin.sql import COUNT, FAN_OUT
from sqlext.run.pipeline import stage

#: How often a new Spark session runs a small join for each contestant on it, before any other statement.
FIRST_RUNS = 5


@dataclass
class WarmUp:
    """Runs a join of a few rows a few times with plain Spark and with ours, in a new Spark session. `tables` are a, b,
    c and d (data.py)."""

    engines: Engines
    tables: Mapping[str, Path]
    _is_done: bool = False

    def __call__(self) -> None:
        """Do it unless it is done."""
        if self._is_done:
            return
        self._is_done = True
        for name, path in self.tables.items():
            self.engines.view(name, path)
        for _ in range(FIRST_RUNS):
            self.engines.session().sql(FAN_OUT["chain"].format(items=f"/*+ UMJOIN */ {COUNT}")).toArrow()
            self.engines.spark().sql(FAN_OUT["chain"].format(items=COUNT)).toArrow()


@dataclass
class PlanningContestant(Contestant):
    """From texts to physical plans in this process, without Spark. A run's time is the median over the texts."""

    name: str
    texts: tuple[str, ...]
    catalogs: Mapping[str, Callable[[], Catalog]]
    _catalog: Catalog | None = None
    _planned: int = 0

    def prepare(self, case: Case) -> None:
        """Open the catalog of the case."""
        self._catalog = self.catalogs[case.name]()

    def run(self, case: Case) -> float:
        """Plan every text as `Session.sql` does; seconds of the median one."""
        assert self._catalog is not None
        seconds = []
        self._planned = 0
        for text in self.texts:
            start = time.perf_counter()
            plan = stage(text, self._catalog, Config(), lenient=True)
            seconds.append(time.perf_counter() - start)
            self._planned += plan.physical is not None
        return statistics.median(seconds)

    def answer(self, case: Case) -> Answer:
        """The number of texts that have a plan; the others would be Spark's alone."""
        return Answer(self._planned, {})


def answer_of_table(table: pa.Table) -> Answer:
    """The answer of a small result. Columns count by position: engines name some of them differently.

    Whole numbers, texts, dates and NULLs are compared exactly, row by row with a hash of the row, whole numbers also by
    their sum. Other numbers (Spark has decimals where DuckDB has doubles) are summed up, each times a weight from 1 to
    2 that comes from the row's hash. One row with a column `n` counts as n rows: it is a COUNT(*).
    """
    exact = [place for place, kind in enumerate(table.schema.types) if _is_exact(kind)]
    columns = [column.to_pylist() for column in table.columns]
    hashes = [_hash(columns, exact, row) for row in range(table.num_rows)]
    sums: dict[str, Number] = {"rows": sum(hashes)}
    for place, kind in enumerate(table.schema.types):
        name, values = f"c{place}", columns[place]
        if place not in exact:
            pairs = zip(values, hashes, strict=True)
            sums[name] = math.fsum(float(value) * (1 + row % 97 / 97) for value, row in pairs if value is not None)
        elif not (pa.types.is_string(kind) or pa.types.is_date(kind)):
            sums[name] = int(sum(value for value in values if value is not None))
    counted = table.num_rows == 1 and table.schema.names[0] == "n"
    return Answer(int(columns[0][0]) if counted else table.num_rows, sums)


def _is_exact(kind: pa.DataType) -> bool:
    """Whether all engines have the same value: not a float, and not a decimal with a fraction."""
    if pa.types.is_decimal(kind):
        return bool(kind.scale == 0)
    return not pa.types.is_floating(kind)


def _hash(columns: Sequence[Sequence[Any]], exact: Sequence[int], row: int) -> int:
    """A hash of a row's exact values and of the positions of its NULLs."""
    cells = [str(columns[place][row]) for place in exact]
    holes = [str(place) for place, column in enumerate(columns) if column[row] is None]
    return crc32("|".join([*cells, "", *holes]).encode())
