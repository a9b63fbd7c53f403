"""Contestants that run a statement for each case: on Spark, through our Session, and in DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import DataFrame

from benchmarks.harness.engines import Engines, in_duckdb
from benchmarks.harness.suite import Answer, Case, Contestant

Consumed = Literal["sum", "drop", "one", "fetch"]

#: Rows of an Arrow batch in which DuckDB returns a large result: its own default.
_BATCH_ROWS = 1_000_000


@dataclass(frozen=True)
class Statement:
    """What a contestant runs for a case, and what becomes of the rows.

    `sums` are aggregates over the rows by their names, the first is the number of rows. `rows` says what is timed:

    - sum: the statement and its sums, which are the answer.
    - drop: the statement alone, whose rows go to a sink that drops them. Its sums come from a second run that is not
      timed, once for each case. DuckDB has no such sink: it returns the rows as Arrow batches, or computes the sums
      `least` where that is faster.
    - one: the statement, whose one row is the answer, as if it were sums.
    - fetch: the statement; `answer` makes the answer of its Arrow table.

    `tables` are Parquet files (or folders of them) by the names that the statement has for them; DuckDB reads them into
    memory first if they are `loaded`. `settings` are the engine's, for this case.
    """

    sql: str
    sums: Mapping[str, str] = field(default_factory=dict)
    rows: Consumed = "sum"
    tables: Mapping[str, Path] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    answer: Callable[[Any], Answer] | None = None
    least: Mapping[str, str] | None = None
    loaded: bool = False


@dataclass
class StatementContestant(Contestant):
    """Runs the statement of each case on one engine."""

    name: str
    engines: Engines
    statement: Callable[[Case], Statement]
    _last: Any = None
    _answers: dict[str, Answer] = field(default_factory=dict)

    def run(self, case: Case) -> float | None:
        """Plan it and compute all that is timed."""
        self._last = self.timed(self.statement(case))
        return None

    def answer(self, case: Case) -> Answer:
        asked = self.statement(case)
        if asked.rows == "fetch":
            assert asked.answer is not None
            return asked.answer(self._last)
        if asked.rows != "drop":
            return answer_of(self._last)
        if case.name not in self._answers:
            self._answers[case.name] = answer_of(self.summed(asked))
        return self._answers[case.name]

    def timed(self, asked: Statement) -> Any:
        """The row or the table that the run gives, if it gives one."""
        raise NotImplementedError

    def summed(self, asked: Statement) -> Mapping[str, Any]:
        """The sums over its rows."""
        raise NotImplementedError


@dataclass
class SparkSql(StatementContestant):
    """`spark.sql`. `warm_up` is called before each preparation."""

    warm_up: Callable[[], None] = lambda: None

    def prepare(self, case: Case) -> None:
        """The settings of the case, and its tables as views."""
        self.warm_up()
        asked = self.statement(case)
        self.engines.configured(asked.settings)
        for name, path in asked.tables.items():
            self.engines.view(name, path)

    def frame(self, asked: Statement) -> DataFrame:
        """The statement as a DataFrame."""
        return self.engines.spark().sql(asked.sql)

    def timed(self, asked: Statement) -> Any:
        if asked.rows == "sum":
            return self.summed(asked)
        frame = self.frame(asked)
        match asked.rows:
            case "drop":
                frame.write.format("noop").mode("overwrite").save()
            case "one":
                return frame.collect()[0].asDict()
            case "fetch":
                return frame.toArrow()
        return None

    def summed(self, asked: Statement) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.frame(asked).selectExpr(*_items(asked.sums, "`")).collect()[0].asDict()
        return found

    def interrupt(self) -> None:
        self.engines.cancel_spark()


@dataclass
class SessionSql(SparkSql):
    """`Session.sql`."""

    def frame(self, asked: Statement) -> DataFrame:
        return self.engines.session().sql(asked.sql)


@dataclass
class DuckSql(StatementContestant):
    """DuckDB in this process."""

    _tables: Mapping[str, Path] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """The settings of the case, and its tables."""
        asked, duck = self.statement(case), self.engines.duckdb()
        for name, value in asked.settings.items():
            duck.execute(f"SET {name} = {value}")
        if self._tables != asked.tables:
            kind = "TEMP TABLE" if asked.loaded else "VIEW"
            for name, path in asked.tables.items():
                duck.execute(f"CREATE OR REPLACE {kind} {name} AS SELECT * FROM {in_duckdb(path)}")
            self._tables = asked.tables

    def timed(self, asked: Statement) -> Any:
        if asked.rows == "one":
            return self._row(asked.sql)
        if asked.rows == "sum" or asked.least is not None:
            return self._row(over(asked.sql, asked.least or asked.sums))
        result = self.engines.duckdb().execute(asked.sql)
        if asked.rows == "fetch":
            return result.to_arrow_table()
        for _ in result.to_arrow_reader(_BATCH_ROWS):
            pass
        return None

    def summed(self, asked: Statement) -> Mapping[str, Any]:
        return self._row(over(asked.sql, asked.sums))

    def _row(self, sql: str) -> Mapping[str, Any]:
        cursor = self.engines.duckdb().execute(sql)
        names = [column[0] for column in cursor.description or ()]
        return dict(zip(names, cursor.fetchone() or (), strict=True))

    def interrupt(self) -> None:
        self.engines.interrupt_duckdb()


def answer_of(row: Mapping[str, Any]) -> Answer:
    """The answer of a row of sums, the number of rows first: a sum over no rows is 0. Engines return integers, decimals
    or floats; only floats are not exact."""
    rows, *sums = ((name, value if isinstance(value, float) else int(value or 0)) for name, value in row.items())
    return Answer(int(rows[1]), dict(sums))


def over(sql: str, sums: Mapping[str, str]) -> str:
    """The sums over the rows of a statement."""
    return f"SELECT {', '.join(_items(sums, chr(34)))} FROM ({sql}) AS found"


def _items(sums: Mapping[str, str], quote: str) -> list[str]:
    """The items of a select list."""
    return [f"{sql} AS {quote}{name}{quote}" for name, sql in sums.items()]
