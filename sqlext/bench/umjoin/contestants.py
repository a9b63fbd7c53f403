"""Contestants of the suite `umjoin`: the same text through `Session.sql`, `spark.sql` and DuckDB; their answers."""

from __future__ import annotations

import math
import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pyarrow as pa
from pyspark.sql import DataFrame
from sqlext_planner.catalog import Catalog

from sqlext.bench.harness.engines import Engines
from sqlext.bench.harness.suite import Answer, Case, Number
from sqlext.bench.interval.contestants import answer_of
from sqlext.bench.umjoin.sql import COUNT, FAN_OUT

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from sqlext import Session


#: How often a new Spark session runs a small join for each contestant on it, before any other statement.
FIRST_RUNS = 5

#: Rows of an Arrow batch in which DuckDB returns a large result: its own default.
BATCH_ROWS = 1_000_000


@dataclass(frozen=True)
class QueryCase:
    """A statement on tables, which are Parquet files by their names.

    A result of few rows is fetched as an Arrow table. One of many rows goes to a sink that drops it, and `checks` are
    the aggregates over it that are compared, by their names; `n` is the number of rows. `settings` apply to Spark for
    all its contestants.
    """

    sql: str
    tables: Mapping[str, Path]
    checks: Mapping[str, str] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


#: The cases' statements by the names of the cases.
QueryCases = Mapping[str, QueryCase]


@dataclass
class SparkTables:
    """The one Session of the contestants on Spark, and the tables behind its views. `warm_up` are tables a, b, c and d
    (umjoin_data.py) of a few rows."""

    engines: Engines
    warm_up: Mapping[str, Path]
    _session: Session | None = None
    _current: Mapping[str, Path] = field(default_factory=dict)

    def session(self) -> Session:
        """The Session; a new one first runs a join a few times, with plain Spark and with ours."""
        if self._session is None:
            from sqlext import Session

            self._session = Session(self.engines.spark())
            self.use(self.warm_up)
            plain = FAN_OUT["chain"].format(items=COUNT)
            asked = FAN_OUT["chain"].format(items=f"/*+ UMJOIN */ {COUNT}")
            for _ in range(FIRST_RUNS):
                self._session.sql(asked).toArrow()
                self.engines.spark().sql(plain).toArrow()
        return self._session

    def use(self, tables: Mapping[str, Path]) -> None:
        """Make these the views of the session."""
        session = self.session()
        if self._current != tables:
            for name, path in tables.items():
                session.register(name, path)
            self._current = tables


@dataclass
class SparkContestant(ABC):
    """A way to run a statement on Spark. Large results go to Spark's `noop` sink; they are checked in a second run that
    is not timed, once for each case."""

    name: str
    cases: QueryCases
    tables: SparkTables
    on_close: Callable[[], None]
    _rows: pa.Table | None = None
    _answers: dict[str, Answer] = field(default_factory=dict)

    @abstractmethod
    def query(self, sql: str) -> DataFrame:
        """The statement as a DataFrame."""

    def prepare(self, case: Case) -> None:
        """Start Spark, with the settings of the case, and register its tables."""
        query = self.cases[case.name]
        self.tables.use(query.tables)
        self.tables.engines.configured(query.settings)

    def run(self, case: Case) -> None:
        """Plan and run it to the last row."""
        query = self.cases[case.name]
        frame = self.query(query.sql)
        if query.checks is None:
            self._rows = frame.toArrow()
        else:
            frame.write.format("noop").mode("overwrite").save()

    def answer(self, case: Case) -> Answer:
        """The answer from the rows that the last run fetched; else from the aggregates."""
        query = self.cases[case.name]
        if query.checks is None:
            assert self._rows is not None
            return answer_of_table(self._rows)
        if case.name not in self._answers:
            row = self.query(query.sql).selectExpr(*_items(query.checks)).collect()[0]
            self._answers[case.name] = answer_of(row.asDict())
        return self._answers[case.name]

    def interrupt(self) -> None:
        """Cancel the running jobs."""
        self.tables.engines.cancel_spark()

    def close(self) -> None:
        """Give the engines back."""
        self.on_close()


class OursContestant(SparkContestant):
    """`Session.sql`."""

    def query(self, sql: str) -> DataFrame:
        return self.tables.session().sql(sql)


class PlainContestant(SparkContestant):
    """`spark.sql`."""

    def query(self, sql: str) -> DataFrame:
        return self.tables.engines.spark().sql(sql)


@dataclass
class DuckContestant:
    """DuckDB. It returns large results as Arrow batches that are dropped, the least that a program can do with them."""

    name: str
    cases: QueryCases
    engines: Engines
    on_close: Callable[[], None]
    _current: Mapping[str, Path] = field(default_factory=dict)
    _rows: pa.Table | None = None
    _answers: dict[str, Answer] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """Start DuckDB, and create views of the case's tables."""
        tables = self.cases[case.name].tables
        if self._current != tables:
            for name, path in tables.items():
                source = str(path).replace("'", "''")
                self._connection.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet('{source}')")
            self._current = tables

    def run(self, case: Case) -> None:
        """Compute and return every row."""
        query = self.cases[case.name]
        result = self._connection.execute(query.sql)
        if query.checks is None:
            self._rows = result.to_arrow_table()
        else:
            for _ in result.to_arrow_reader(BATCH_ROWS):
                pass

    def answer(self, case: Case) -> Answer:
        """The answer from the rows that the last run fetched; else from the aggregates, once for each case."""
        query = self.cases[case.name]
        if query.checks is None:
            assert self._rows is not None
            return answer_of_table(self._rows)
        if case.name not in self._answers:
            cursor = self._connection.execute(f"SELECT {', '.join(_items(query.checks))} FROM ({query.sql})")
            names = [column[0] for column in cursor.description or ()]
            self._answers[case.name] = answer_of(dict(zip(names, cursor.fetchone() or (), strict=True)))
        return self._answers[case.name]

    def interrupt(self) -> None:
        """Interrupt the running statement."""
        self.engines.interrupt_duckdb()

    def close(self) -> None:
        """Give the engines back."""
        self.on_close()

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return self.engines.duckdb()


@dataclass
class PlanningContestant:
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
        from sqlext_planner.config import Config

        from sqlext.run.pipeline import stage

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

    def interrupt(self) -> None:
        """Nothing: it takes a few seconds."""

    def close(self) -> None:
        """Nothing to give back."""


def _items(checks: Mapping[str, str]) -> list[str]:
    """The items of a select list."""
    return [f"{sql} AS {name}" for name, sql in checks.items()]


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
