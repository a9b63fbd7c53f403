"""Contestants of the kernel cases: tables in memory, one thread, every pair consumed in the process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlext_planner.interval_join.kernels import kernel_checksums

from sqlext.bench.harness.engines import Engines
from sqlext.bench.harness.suite import Answer, Case
from sqlext.bench.interval.contestants import JoinCases, answer_of
from sqlext.bench.interval.sql import JoinText

if TYPE_CHECKING:
    import duckdb


@dataclass
class KernelContestant:
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

    def interrupt(self) -> None:
        """Does nothing: compiled code runs to its end."""

    def close(self) -> None:
        """Forget the tables."""
        self._left = self._right = None

    def _sums(self, case: Case, mix: bool) -> dict[str, int]:
        text = self.cases[case.name].text
        return kernel_checksums(self.kernel, text.row.name, self._left, self._right, mix=mix, **text.parameters)


@dataclass
class DuckKernelContestant:
    """DuckDB on its own in-memory tables, without keeping the pairs.

    Over Arrow tables DuckDB 1.5 does not know the number of rows and uses a nested loop.
    """

    name: str
    cases: JoinCases
    engines: Engines
    on_close: Callable[[], None]
    _answers: dict[str, Answer] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """Load the tables and use one thread."""
        join = self.cases[case.name]
        self._connection.execute("SET prefer_range_joins = false")
        self._connection.execute("SET threads = 1")
        for name, path in (("left_rows", join.left), ("right_rows", join.right)):
            self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM read_parquet('{path}')")

    def run(self, case: Case) -> None:
        """Compute and sum up all pairs."""
        self._one_row(case, JoinText.consumed)

    def answer(self, case: Case) -> Answer:
        """Checksums from a second run that is not timed, once for a case."""
        if case.name not in self._answers:
            self._answers[case.name] = answer_of(self._one_row(case, JoinText.checks))
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

    def _one_row(self, case: Case, form: Callable[[JoinText, str], str]) -> Mapping[str, Any]:
        text = self.cases[case.name].text
        cursor = self._connection.execute(form(text, text.plain(("left_rows", "right_rows"), "duckdb")))
        names = [column[0] for column in cursor.description or ()]
        return dict(zip(names, cursor.fetchone() or (), strict=True))
