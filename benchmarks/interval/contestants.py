"""Contestants of the suite `interval` in this process: from Parquet files, and kernels on tables in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness.engines import in_duckdb, in_spark
from benchmarks.harness.statements import Consumed, SessionSql, Statement, answer_of
from benchmarks.harness.suite import Answer, Case, Contestant
from benchmarks.interval.bins import BinWidth
from benchmarks.interval.kernels import kernel_checksums
from benchmarks.interval.sql import ONE_ROW, JoinText

#: Runs that bring a new session to its usual speed: kernels are compiled or loaded, and Spark's code is compiled.
_FIRST_RUNS = 5


@dataclass(frozen=True)
class JoinCase:
    """The files and the statement of a case; `kernel`: tables in memory and one thread."""

    left: Path
    right: Path
    text: JoinText
    kernel: bool = False


#: What the cases join, by the cases' names.
JoinCases = Mapping[str, JoinCase]


@dataclass
class JoinStatements:
    """What each contestant runs, with `cores` threads in DuckDB."""

    cases: JoinCases
    cores: int
    width: BinWidth
    _views: dict[Path, str] = field(default_factory=dict)

    def of(self, name: str, case: Case) -> Statement:
        """The statement of a contestant; `duckdb-range` differs from `duckdb` by a setting."""
        join = self.cases[case.name]
        text, sides = join.text, (join.left, join.right)
        rows: Consumed = "one" if text.query in ONE_ROW else "drop"
        if name.startswith("duckdb"):
            return self._duckdb(join, prefer_range_joins=name == "duckdb-range")
        if name == "ours":  # a table that is joined with itself is one view
            left, right = (self._views.setdefault(path, f"bench_periods_{len(self._views)}") for path in sides)
            return Statement(text.ours((left, right)), text.sums, rows, tables={left: join.left, right: join.right})
        tables = in_spark(join.left), in_spark(join.right)
        if name == "spark-bins":  # their width is chosen for each case before the clock starts
            return Statement(text.bins(tables, self.width.choose(*sides, text)), text.sums, rows)
        return Statement(text.plain(tables), text.sums, rows)

    def _duckdb(self, join: JoinCase, *, prefer_range_joins: bool) -> Statement:
        """The rows of a join are summed up at once: keeping them would take longer. 50M pairs: 4.4 s summed up, 9.3 s
        as Arrow batches, 18 s as a table.

        Kernel cases are on DuckDB's own tables: over Arrow tables DuckDB 1.5 does not know the number of rows and uses
        a nested loop.
        """
        text, tables = join.text, {"left_rows": join.left, "right_rows": join.right}
        sides = ("left_rows", "right_rows") if join.kernel else (in_duckdb(join.left), in_duckdb(join.right))
        return Statement(
            text.plain(sides, "duckdb"),
            text.sums,
            "one" if text.query in ONE_ROW else "drop" if text.query == "pairs" else "sum",
            tables=tables if join.kernel else {},
            settings={
                "prefer_range_joins": str(prefer_range_joins).lower(),
                "threads": "1" if join.kernel else str(self.cores),
            },
            least=text.least,
            loaded=True,
        )


@dataclass
class OursContestant(SessionSql):
    """`Session.sql` with the period predicate."""

    _is_warm: bool = False

    def prepare(self, case: Case) -> None:
        """A cold session first runs its first statement a few times."""
        super().prepare(case)
        for _ in range(0 if self._is_warm else _FIRST_RUNS):
            self.run(case)
        self._is_warm = True


@dataclass
class KernelContestant(Contestant):
    """One of our kernels: it fills two small buffers with row numbers (the ids), which are summed up batch by batch."""

    name: str
    kernel: str
    cases: JoinCases
    _left: pa.Table = None
    _right: pa.Table = None
    _answers: dict[str, Answer] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """Read the tables."""
        join = self.cases[case.name]
        self._left, self._right = (pq.read_table(path) for path in (join.left, join.right))

    def run(self, case: Case) -> None:
        """From the tables to the last pair."""
        self._sums(case, mix=False)

    def answer(self, case: Case) -> Answer:
        """Checksums from a second run that is not timed, once for a case."""
        if case.name not in self._answers:
            self._answers[case.name] = answer_of(self._sums(case, mix=True))
        return self._answers[case.name]

    def close(self) -> None:
        """Forget the tables."""
        self._left = self._right = None

    def _sums(self, case: Case, mix: bool) -> dict[str, int]:
        text = self.cases[case.name].text
        return kernel_checksums(self.kernel, text.row.name, self._left, self._right, mix=mix, **text.parameters)
