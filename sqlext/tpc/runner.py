"""Runs queries of a benchmark through a Session and, to check them, through plain Spark on the same tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlext_planner.spark.versions import arrow_table

from sqlext.embedded import is_ending
from sqlext.tpc.benchmark import Benchmark
from sqlext.tpc.compare import difference, reference, same_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from sqlext.session import Session

#: Called with the number of a query and its current step.
Progressed = Callable[[int, str], None]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one query.

    query          its number
    verdict        "ran" (not checked), "same" (a right answer, by Spark), "differs", "failed"
    rows           of our answer; None if it failed
    seconds        from the text to the rows in this process; None if it failed
    spark_seconds  the same for plain Spark; None if it did not run, or failed
    detail         what differs, or the error; else empty
    """

    query: int
    verdict: str
    rows: int | None = None
    seconds: float | None = None
    spark_seconds: float | None = None
    detail: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.verdict in ("ran", "same")


@dataclass(frozen=True)
class QueryAnswer:
    """The rows of a query, its columns with Spark's types, and the seconds it took."""

    rows: pa.Table
    columns: tuple[tuple[str, str], ...]
    seconds: float


def open_session(tables: Mapping[str, Path], settings: Mapping[str, str]) -> Session:
    """A Session on an embedded Spark with the tables as views, and Spark warmed up by reading each of them."""
    from sqlext.session import Session

    session = Session(config={"spark.driver.maxResultSize": "0", **settings})
    for name, path in tables.items():
        session.register(name, path)
        session.spark.table(name).count()
    return session


def run(
    session: Session, benchmark: Benchmark, numbers: Sequence[int], progressed: Progressed, *, check: bool
) -> Iterator[Outcome]:
    """Run the queries one after the other. With `check` plain Spark runs each too; which of the two goes first
    alternates, because the second one finds warm files and compiled code."""
    for place, number in enumerate(numbers):
        sql = benchmark.query(number)
        if check:
            yield _checked(session, number, sql, progressed, spark_first=place % 2 == 1)
            continue
        progressed(number, "running")
        ours = _attempt(session.sql, sql)
        if isinstance(ours, str):
            yield Outcome(number, "failed", detail=ours)
        else:
            yield Outcome(number, "ran", ours.rows.num_rows, ours.seconds)


def _checked(session: Session, number: int, sql: str, progressed: Progressed, *, spark_first: bool) -> Outcome:
    answers: dict[str, QueryAnswer | str] = {}
    for name in ("Spark", "ours") if spark_first else ("ours", "Spark"):
        progressed(number, f"running, {name}")
        answers[name] = _attempt(session.sql if name == "ours" else session.spark.sql, sql)
    ours, theirs = answers["ours"], answers["Spark"]
    spark_seconds = None if isinstance(theirs, str) else theirs.seconds
    if isinstance(ours, str):
        return Outcome(number, "failed", spark_seconds=spark_seconds, detail=ours)
    if isinstance(theirs, str):
        detail = f"plain Spark: {theirs}"
        return Outcome(number, "failed", ours.rows.num_rows, ours.seconds, detail=detail)
    progressed(number, "comparing")
    detail = compare_answers(session.spark, sql, ours, theirs)
    verdict = "differs" if detail else "same"
    return Outcome(number, verdict, ours.rows.num_rows, ours.seconds, spark_seconds, detail)


def compare_answers(spark: SparkSession, sql: str, ours: QueryAnswer, theirs: QueryAnswer) -> str:
    """Why our answer is not one that Spark could have given; empty if it is.

    Spark's own answer is enough if it is the same, or if it has all rows and all keys; else Spark runs the query
    without its LIMIT, with its keys.
    """
    if ours.columns != theirs.columns:
        return _schema_difference(ours.columns, theirs.columns)
    if same_rows(ours.rows, theirs.rows):
        return ""
    asked = reference(sql, [name for name, _ in theirs.columns])
    is_whole = asked.limit is None or theirs.rows.num_rows < asked.limit
    every = theirs.rows if asked.is_query and is_whole else arrow_table(spark.sql(asked.sql))
    return difference(ours.rows, every, asked.keys, asked.limit)


def answer(frame: DataFrame, begin: float | None = None) -> QueryAnswer:
    """The rows of a DataFrame; `begin` is when its text was given (`time.perf_counter`)."""
    begin = time.perf_counter() if begin is None else begin
    rows = arrow_table(frame)
    seconds = time.perf_counter() - begin
    columns = tuple((field.name, field.dataType.simpleString()) for field in frame.schema.fields)
    return QueryAnswer(rows, columns, seconds)


def _attempt(sql: Callable[[str], DataFrame], text: str) -> QueryAnswer | str:
    """The answer, or the error in one line: one query's failure does not end the run, and the end of Spark does."""
    begin = time.perf_counter()
    try:
        return answer(sql(text), begin)
    except Exception as error:
        if is_ending():
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {lines[0] if lines else ''}"


def _schema_difference(ours: Sequence[tuple[str, str]], theirs: Sequence[tuple[str, str]]) -> str:
    if len(ours) != len(theirs):
        return f"{len(ours)} columns instead of {len(theirs)}"
    own, other = next((own, other) for own, other in zip(ours, theirs, strict=True) if own != other)
    return f"column {' '.join(own)} instead of {' '.join(other)}"
