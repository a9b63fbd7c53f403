"""Contestants that are `ours` over the same rows in another storage: what a table of the catalog, partition folders, or
Spark's own scan cost beside plain files."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.harness.checks import at_most
from benchmarks.harness.engines import Engines
from benchmarks.harness.options import check
from benchmarks.harness.results import Report
from benchmarks.harness.statements import SessionSql, Statement
from benchmarks.harness.suite import Case, Check
from benchmarks.points import ROW_GROUP

#: What `--storage` may name. The first is what `ours` reads in any case.
STORAGES = {
    "files": "plain Parquet files, registered",
    "spark-scan": "the same files, read by Spark's scan and not by ArrowScan",
    "catalog": "a table of Spark's catalog over the same files",
    "partitioned": "a registered folder of eight partition folders with the same rows",
}
HELP = "Ours over the same rows elsewhere too: " + "; ".join(f"{name}: {what}" for name, what in STORAGES.items()) + "."

_PARTITIONS = 8
#: How many times as long as over plain files a scan may take.
_MOST = 2.0


@dataclass
class StoredSql(SessionSql):
    """`Session.sql` over the tables of a statement in another storage; what has to be written goes below `root`."""

    storage: str = "files"
    root: Path = field(default_factory=Path)
    _made: set[str] = field(default_factory=set)

    def prepare(self, case: Case) -> None:
        """The settings, and those tables that are missing."""
        asked = self.statement(case)
        scan = {"sqlext.exchange.arrowScan": "false"} if self.storage == "spark-scan" else {}
        self.engines.configured({**asked.settings, **scan})
        for name, path in asked.tables.items():
            if name not in self._made:
                self._make(name, path)
                self._made.add(name)

    def _make(self, name: str, path: Path) -> None:
        session = self.engines.session()
        match self.storage:
            case "catalog":
                folder = linked(path, self.root / self.storage)
                session.spark.sql(f"DROP TABLE IF EXISTS {name}")
                session.spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{folder}'")
            case "partitioned":
                session.register(name, partitioned(path, self.root / self.storage))
            case _:
                session.register(name, path)

    def close(self) -> None:
        """Drop the tables of the catalog."""
        for name in self._made if self.storage == "catalog" else ():
            self.engines.spark().sql(f"DROP TABLE IF EXISTS {name}")
        self._made.clear()


def storage_names(storages: Sequence[str]) -> list[str]:
    """The contestants for `--storage`, besides `ours` itself. Raises AnalysisError for an unknown storage."""
    check("storage", storages, STORAGES)
    return [f"ours-{storage}" for storage in STORAGES if storage in storages and storage != "files"]


def stored_contestant(name: str, engines: Engines, ours: Callable[[Case], Statement], root: Path) -> StoredSql:
    """The contestant of a name of `storage_names`, given the statement of `ours` over plain files."""
    storage = name.removeprefix("ours-")
    return StoredSql(name, engines, partial(_elsewhere, ours, storage.replace("-", "_")), storage=storage, root=root)


def _elsewhere(ours: Callable[[Case], Statement], suffix: str, case: Case) -> Statement:
    """The statement with other names for its tables: `ours` keeps its views."""
    asked = ours(case)
    sql, tables = asked.sql, {}
    for name, path in asked.tables.items():
        sql = re.sub(rf"\b{name}\b", f"{name}_{suffix}", sql)
        tables[f"{name}_{suffix}"] = path
    return replace(asked, sql=sql, tables=tables)


def storage_checks(report: Report) -> Iterator[Check]:
    """No storage takes more than twice the time of plain files."""
    for result in report.cases:
        ours = result.seconds(report.ours)
        for storage in STORAGES:
            seconds = result.seconds(f"ours-{storage}")
            if ours is not None and seconds is not None:
                yield at_most(f"{storage} at most {_MOST:g}x plain files, {result.case.name}", seconds / ours, _MOST)


def linked(file: Path, root: Path) -> Path:
    """A folder that holds only this file, by a link to the same bytes."""
    folder = root / file.parent.name / file.stem
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / file.name).exists():
        os.link(file, folder / file.name)
    return folder


def partitioned(file: Path, root: Path) -> Path:
    """The rows of a file in partition folders `part=0`, `part=1`, ..., in their order; written only if missing."""
    folder = root / file.parent.name / file.stem
    if not folder.exists():
        table, making = pq.read_table(file), folder.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        for number in range(_PARTITIONS):
            start, stop = (table.num_rows * edge // _PARTITIONS for edge in (number, number + 1))
            (making / f"part={number}").mkdir(parents=True)
            rows = table.slice(start, stop - start)
            pq.write_table(rows, making / f"part={number}" / "rows.parquet", row_group_size=ROW_GROUP)
        making.rename(folder)
    return folder
