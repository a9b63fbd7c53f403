"""Runs cases: the statement in Spark with its settings, the oracle's in DuckDB, and tells what differs."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
from sqlext_planner.errors import SqlExtError

from sqlext import Session

from .compare import difference, rows_of
from .data import DataSet, create_views, random_data
from .generator import Generator, Statement
from .settings import random_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Statements over one data set.
BLOCK = 40

#: Refusals that the manual names and that a random statement may meet.
ALLOWED = (r"the hint (UMJOIN|SWEEP)",)


@dataclass(frozen=True)
class Case:
    """One statement, told by (seed, number)."""

    seed: int
    number: int
    statement: Statement
    ours: dict[str, str]
    spark: dict[str, str]
    #: what the command line needs beside (seed, number)
    options: str = ""


@dataclass(frozen=True)
class Outcome:
    """`kind` is ok, refused, wrong, error (of ours) or oracle (DuckDB's text fails: a mistake of the generator)."""

    kind: str
    detail: str = ""
    rows: int = 0
    seconds: float = 0.0


def data_of(seed: int, number: int, scale: float = 1.0) -> DataSet:
    return random_data(random.Random(f"data {seed} {number // BLOCK}"), scale)


def case_of(
    seed: int, number: int, data: DataSet, only: str | None = None, switches: frozenset[str] = frozenset()
) -> Case:
    rng = random.Random(f"case {seed} {number}")
    ours, spark = random_settings(rng, parser="settings" in switches)
    generator = Generator(rng, data, ours.get("sqlext.interval.empty", "drop"), only, switches)
    options = (f" --only {only}" if only else "") + (f" --with {','.join(sorted(switches))}" if switches else "")
    return Case(seed, number, generator.statement(), ours, spark, options)


class Checker:
    """Holds the data set of the last case in Spark and in DuckDB."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.block: tuple[int, int, float] | None = None
        self.data: DataSet | None = None
        self.duck = duckdb.connect()
        self.duck.execute("SET TimeZone = 'UTC'; SET threads = 1")
        self.duck.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")

    def close(self) -> None:
        self._drop()
        self.duck.close()

    def load(self, seed: int, number: int, scale: float = 1.0) -> DataSet:
        """The data set of a case, made when it is another one than before."""
        block = (seed, number // BLOCK, scale)
        if block != self.block or self.data is None:
            self._drop()
            self.data = data_of(seed, number, scale)
            for name, rows in create_views(self.spark, self.data, self.folder).items():
                self.duck.register("arrow_rows", rows)
                self.duck.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM arrow_rows")
                self.duck.unregister("arrow_rows")
            self.block = block
        return self.data

    def _drop(self) -> None:
        for table in self.data.tables if self.data else ():
            self.spark.catalog.uncacheTable(table.name)
            self.spark.catalog.dropTempView(table.name)
        self.data = None

    def run(
        self,
        seed: int,
        number: int,
        *,
        only: str | None = None,
        switches: frozenset[str] = frozenset(),
        scale: float = 1.0,
    ) -> tuple[Case, Outcome]:
        # the statement is drawn over the whole data, so that a smaller scale keeps it
        whole = self.load(seed, number) if scale == 1.0 else data_of(seed, number)
        case = case_of(seed, number, whole, only, switches)
        if scale != 1.0:
            self.load(seed, number, scale)
        started = time.perf_counter()
        outcome = self.check(case)
        return case, Outcome(outcome.kind, outcome.detail, outcome.rows, time.perf_counter() - started)

    def check(self, case: Case) -> Outcome:
        statement = case.statement
        try:
            expected = rows_of(_arrow(self.duck.execute(statement.duck)))
        except duckdb.Error as error:
            return Outcome("oracle", str(error))
        before = {key: self.spark.conf.get(key) for key in case.spark}
        try:
            for key, value in case.spark.items():
                self.spark.conf.set(key, value)
            return self._compare(case, expected)
        except SqlExtError as error:
            text = str(error)
            return Outcome("refused" if any(re.search(p, text) for p in ALLOWED) else "error", text)
        except Exception as error:  # whatever else goes wrong is what we look for
            return Outcome("error", f"{type(error).__name__}: {error}")
        finally:
            for name, _ in statement.views:
                self.spark.catalog.dropTempView(name)
            for key, value in before.items():
                if value is not None:
                    self.spark.conf.set(key, value)

    def _compare(self, case: Case, expected: Sequence[tuple[Any, ...]]) -> Outcome:
        statement = case.statement
        session = Session(self.spark, config=case.ours)
        for name, query in statement.views:
            session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query}")
        frame = session.sql(statement.sql, args=statement.args or None)
        if tuple(frame.columns) != statement.names:
            return Outcome("wrong", f"columns {frame.columns} instead of {list(statement.names)}")
        types = [field.dataType.simpleString() for field in frame.schema]
        other = [
            f"{name}: {got} instead of {want}"
            for name, got, want in zip(statement.names, types, statement.types, strict=True)
            if want is not None and got != want
        ]
        if other:
            return Outcome("wrong", "types: " + ", ".join(other))
        got = rows_of(frame.toArrow())
        found = difference(got, expected, ordered=statement.ordered)
        if found is not None:
            found = difference(got, self._second_opinion(statement), ordered=statement.ordered)
        return Outcome("wrong" if found else "ok", found or "", len(expected))

    def _second_opinion(self, statement: Statement) -> Sequence[tuple[Any, ...]]:
        """The oracle's rows without a rule of DuckDB's (1.5) that loses rows of a correlated EXISTS with ``<`` and
        ``<>``; Spark has them."""
        self.duck.execute("SET disabled_optimizers = 'deliminator'")
        try:
            return rows_of(_arrow(self.duck.execute(statement.duck)))
        finally:
            self.duck.execute("RESET disabled_optimizers")


def _arrow(result: Any) -> Any:
    return result.to_arrow_table() if hasattr(result, "to_arrow_table") else result.fetch_arrow_table()


def shown(case: Case, outcome: Outcome, data: DataSet | None = None) -> str:
    """A reproduction in text: how to run it again, settings, statement, the oracle's, what differs."""
    statement = case.statement
    lines = [
        f"=== {case.seed}:{case.number} {outcome.kind} ({statement.feature}) ===",
        f"replay: python -m tests.differential --case {case.seed}:{case.number}{case.options}",
        f"settings: {case.ours}",
        f"spark: {case.spark}",
        *(f"view {name}: {query}" for name, query in statement.views),
        f"args: {statement.args}",
        f"statement: {statement.sql}",
        f"oracle: {statement.duck}",
        outcome.detail,
    ]
    if data is not None:
        named = [t for t in data.tables if re.search(rf"\b{t.name}\b", statement.duck)]
        for table in named:
            lines += [f"{table.name} ({table.storage}, {table.rows.num_rows} rows):"]
            lines += [f"  {row}" for row in table.rows.to_pylist()]
    return "\n".join(lines) + "\n"
