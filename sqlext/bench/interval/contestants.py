"""Contestants of the suite `interval` on Spark and DuckDB, end to end from Parquet files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from sqlext.bench.harness.engines import Engines
from sqlext.bench.harness.suite import Answer, Case, Number
from sqlext.bench.interval.bins import BinWidth
from sqlext.bench.interval.sql import ONE_ROW, JoinText, Tables

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class JoinCase:
    """The files and the statement of a case."""

    left: Path
    right: Path
    text: JoinText

    def tables(self, form: str) -> Tables:
        """Both files as written in a FROM clause: `form` with the path in place of its braces."""
        return form.format(self.left), form.format(self.right)


#: Runs that bring a new session to its usual speed: kernels are compiled or loaded, and Spark's code is compiled.
_FIRST_RUNS = 5

#: What the cases join, by the cases' names.
JoinCases = Mapping[str, JoinCase]


@dataclass
class SparkContestant(ABC):
    """A statement on Spark. Rows go to Spark's `noop` sink; the one row of a count or of sums is fetched.

    The checksums of rows are computed in a second run that is not timed, once for each case.
    """

    name: str
    cases: JoinCases
    engines: Engines
    on_close: Callable[[], None]
    _row: Mapping[str, Any] = field(default_factory=dict)
    _answers: dict[str, Answer] = field(default_factory=dict)

    @abstractmethod
    def query(self, join: JoinCase) -> DataFrame:
        """The case's statement as a DataFrame."""

    def prepare(self, case: Case) -> None:
        """Start Spark."""
        self.engines.spark()

    def run(self, case: Case) -> None:
        """Run it to the last row."""
        join = self.cases[case.name]
        frame = self.query(join)
        if join.text.query in ONE_ROW:
            self._row = frame.collect()[0].asDict()
        else:
            frame.write.format("noop").mode("overwrite").save()

    def answer(self, case: Case) -> Answer:
        """The row of the last run; else rows and checksums."""
        text = self.cases[case.name].text
        if text.query in ONE_ROW:
            return answer_of(self._row)
        if case.name not in self._answers:
            self.query(self.cases[case.name]).createOrReplaceTempView("interval_rows")
            row = self.engines.spark().sql(text.checks("SELECT * FROM interval_rows")).collect()[0]
            self._answers[case.name] = answer_of(row.asDict())
        return self._answers[case.name]

    def interrupt(self) -> None:
        """Cancel the running jobs."""
        self.engines.cancel_spark()

    def close(self) -> None:
        """Give the engines back."""
        self.on_close()


@dataclass
class OursContestant(SparkContestant):
    """`Session.sql` with the period predicate, on tables registered by path."""

    _session: Any = None
    _names: dict[Path, str] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """Start Spark; a cold session first runs its first statement a few times."""
        super().prepare(case)
        if self._session is None:
            for _ in range(_FIRST_RUNS):
                self.run(case)

    def query(self, join: JoinCase) -> DataFrame:
        if self._session is None:
            from sqlext import Session

            self._session = Session(self.engines.spark())
        for path in (join.left, join.right):
            if path not in self._names:
                self._names[path] = f"bench_periods_{len(self._names)}"
                self._session.register(self._names[path], path)
        result: DataFrame = self._session.sql(join.text.ours((self._names[join.left], self._names[join.right])))
        return result


@dataclass
class PlainContestant(SparkContestant):
    """The inequalities through `spark.sql`: a nested loop, or a hash join on the key with a filter."""

    def query(self, join: JoinCase) -> DataFrame:
        return self.engines.spark().sql(join.text.plain(join.tables("parquet.`{}`")))


@dataclass
class BinsContestant(SparkContestant):
    """Hand-written bins through `spark.sql`; their width is chosen for each case before the clock starts."""

    width: BinWidth = field(default_factory=BinWidth)

    def prepare(self, case: Case) -> None:
        super().prepare(case)
        join = self.cases[case.name]
        self.width.choose(join.left, join.right, join.text)

    def query(self, join: JoinCase) -> DataFrame:
        width = self.width.choose(join.left, join.right, join.text)
        return self.engines.spark().sql(join.text.bins(join.tables("parquet.`{}`"), width))


@dataclass
class DuckContestant:
    """The inequalities in DuckDB. The rows of a join are summed up at once: keeping them would take longer.

    50M pairs: 4.4 s summed up, 9.3 s as Arrow batches, 18 s as a table.
    """

    name: str
    cases: JoinCases
    engines: Engines
    on_close: Callable[[], None]
    range_joins: bool = False
    _row: Mapping[str, Any] = field(default_factory=dict)
    _answers: dict[str, Answer] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """Set DuckDB up for this contestant."""
        self._connection.execute(f"SET prefer_range_joins = {str(self.range_joins).lower()}")
        self._connection.execute(f"SET threads = {self.engines.cores}")

    def run(self, case: Case) -> None:
        """Compute every row."""
        text = self.cases[case.name].text
        self._row = self._one_row(text.consumed(self._statement(case)))

    def answer(self, case: Case) -> Answer:
        """The number of the last run; checksums from a second run that is not timed, once for each case."""
        text = self.cases[case.name].text
        if text.query != "pairs":
            return answer_of(self._row)
        if case.name not in self._answers:
            self._answers[case.name] = answer_of(self._one_row(text.checks(self._statement(case))))
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

    def _statement(self, case: Case) -> str:
        join = self.cases[case.name]
        return join.text.plain(join.tables("read_parquet('{}')"), "duckdb")

    def _one_row(self, statement: str) -> Mapping[str, Any]:
        cursor = self._connection.execute(statement)
        names = [column[0] for column in cursor.description or ()]
        return dict(zip(names, cursor.fetchone() or (), strict=True))


def answer_of(row: Mapping[str, Any]) -> Answer:
    """A row of n and checksums; a sum over no rows is 0."""
    values: dict[str, Number] = {name: int(value or 0) for name, value in row.items()}
    return Answer(int(values.pop("n")), values)
