"""Contestants over the same rows in another storage: what a table of the catalog, partition folders, Spark's own scan,
a table of a lakehouse or object storage cost beside plain files. They are `ours`, and native Spark where our own scan
reads nothing (`LAKES`)."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
from sqlext_planner.errors import AnalysisError
from sqlext_planner.spark.file_systems import send_file

from benchmarks.harness.checks import at_most
from benchmarks.harness.engines import Engines
from benchmarks.harness.options import Options, Workplace, check, option
from benchmarks.harness.results import Report
from benchmarks.harness.statements import SessionSql, SparkSql, Statement
from benchmarks.harness.suite import Case, Check
from benchmarks.points import ROW_GROUP

#: What `--storage` may name. The first is what `ours` reads in any case.
STORAGES = {
    "files": "plain Parquet files, registered",
    "spark-scan": "the same files, read by Spark's scan and not by ArrowScan",
    "catalog": "a table of Spark's catalog over the same files",
    "partitioned": "a registered folder of eight partition folders with the same rows",
    "delta": "a Delta table with the same rows, for a --packages that has Delta",
    "iceberg": "an Iceberg table with the same rows, for a --packages that has Iceberg",
    "s3": "the same files in the folder of --bucket",
}
#: Those that are Spark's to read, whoever computes.
LAKES = ("delta", "iceberg", "s3")
HELP = "Ours over the same rows elsewhere too: " + "; ".join(f"{name}: {what}" for name, what in STORAGES.items()) + "."

#: The catalog of Iceberg's tables.
_CATALOG = "ice"
_PARTITIONS = 8
#: How many times as long as over plain files a scan may take.
_MOST = 2.0


def given(text: str, _: str = "") -> list[str]:
    """`a, b` -> ["a", "b"], and nothing of an empty text."""
    return [item for item in map(str.strip, text.split(",")) if item]


@dataclass(frozen=True, kw_only=True)
class StorageOptions(Options):
    """Which storages, and what Spark needs for those that are not local files."""

    storage: Sequence[str] = option(("files",), HELP)
    packages: Sequence[str] = option((), "Packages for Spark (spark.jars.packages); several with commas.", read=given)
    conf: Sequence[str] = option((), "More settings of Spark, NAME=VALUE; several with commas.", read=given)
    bucket: str = option("", "Folder for storage `s3`, as s3a://BUCKET/FOLDER; files stay there.")


def storage_place(options: StorageOptions, engines: Engines | None) -> Workplace:
    """The folder and the engines of a suite, whose Spark starts with what the storages need.

    Raises AnalysisError for an unknown storage, for `s3` without a bucket, and for a setting without a value.
    """
    check("storage", options.storage, STORAGES)
    if "s3" in options.storage and not options.bucket:
        raise AnalysisError("storage 's3' needs --bucket", condition="command-line", help="name s3a://BUCKET/FOLDER")
    place = Workplace(options, engines)
    settings = place.engines.spark_conf
    if options.packages:
        settings["spark.jars.packages"] = ",".join(options.packages)
    if "iceberg" in options.storage:
        settings[f"spark.sql.catalog.{_CATALOG}"] = "org.apache.iceberg.spark.SparkCatalog"
        settings[f"spark.sql.catalog.{_CATALOG}.type"] = "hadoop"
        settings[f"spark.sql.catalog.{_CATALOG}.warehouse"] = str((place.root / "iceberg").absolute())
    for item in options.conf:
        name, sign, value = item.partition("=")
        if not sign:
            raise AnalysisError(f"--conf {item}: no value", condition="command-line", help="write NAME=VALUE")
        settings[name] = value
    return place


@dataclass
class StoredSpark(SparkSql):
    """`spark.sql` over the tables of a statement in another storage; what has to be written goes below `root`."""

    storage: str = "files"
    root: Path = field(default_factory=Path)
    bucket: str = ""
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
            case "delta":
                folder = self.root / self.storage / path.parent.name / path.stem
                if not folder.exists():
                    session.spark.read.parquet(str(path)).write.format("delta").save(str(folder))
                session.spark.read.format("delta").load(str(folder)).createOrReplaceTempView(name)
            case "iceberg":
                table = f"{_CATALOG}.db.{path.parent.name}_{path.stem}".replace("-", "_")
                if not session.spark.catalog.tableExists(table):
                    session.spark.sql(f"CREATE TABLE {table} USING iceberg AS SELECT * FROM parquet.`{path}`")
                session.spark.table(table).createOrReplaceTempView(name)
            case "s3":
                uri = f"{self.bucket.rstrip('/')}/{path.parent.name}/{path.name}"
                send_file(session.spark, path, uri)
                session.register(name, uri)
            case _:
                session.register(name, path)

    def close(self) -> None:
        """Drop the tables of the catalog."""
        for name in self._made if self.storage == "catalog" else ():
            self.engines.spark().sql(f"DROP TABLE IF EXISTS {name}")
        self._made.clear()


@dataclass
class StoredSql(StoredSpark, SessionSql):
    """The same with `Session.sql`."""


def storage_names(storages: Sequence[str], contestants: Sequence[str] = ()) -> list[str]:
    """The contestants for `--storage`, besides those over plain files."""
    ours = [f"ours-{storage}" for storage in STORAGES if storage in storages and storage != "files"]
    natives = [f"spark-{storage}" for storage in LAKES if storage in storages] if "spark" in contestants else []
    return [*ours, *natives]


def stored_contestant(
    name: str, engines: Engines, statement: Callable[[Case], Statement], root: Path, bucket: str = ""
) -> StoredSpark:
    """The contestant of a name of `storage_names`, given a statement over names of tables."""
    who, _, storage = name.partition("-")
    kind = StoredSql if who == "ours" else StoredSpark
    elsewhere = partial(_elsewhere, statement, f"{who}_{storage}".replace("-", "_"))
    return kind(name, engines, elsewhere, storage=storage, root=root, bucket=bucket)


def _elsewhere(statement: Callable[[Case], Statement], suffix: str, case: Case) -> Statement:
    """The statement with other names for its tables: `ours` keeps its views."""
    asked = statement(case)
    sql, tables = asked.sql, {}
    for name, path in asked.tables.items():
        sql = re.sub(rf"\b{name}\b", f"{name}_{suffix}", sql)
        tables[f"{name}_{suffix}"] = path
    return replace(asked, sql=sql, tables=tables)


def storage_checks(report: Report) -> Iterator[Check]:
    """No storage of local Parquet files takes more than twice the time of plain files; where Spark reads, ours is as
    fast as native Spark."""
    for result in report.cases:
        ours = result.seconds(report.ours)
        for storage in LAKES:
            mine, native = (result.seconds(f"{who}-{storage}") for who in ("ours", "spark"))
            if mine is not None and native is not None:
                yield at_most(
                    f"{storage} at most as long as native Spark over it, {result.case.name}", mine / native, 1
                )
        for storage in (name for name in STORAGES if name not in LAKES):
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
