"""Contestants of the suite `features`: FEBench's scripts through `Session.sql`, plain Spark SQL, and the floor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from benchmarks.features_floor import idle_operators
from benchmarks.features_values import sql_file
from benchmarks.harness.engines import Engines
from benchmarks.harness.suite import Answer, Case, Contestant, Number

if TYPE_CHECKING:
    from sqlext import Session

#: For all contestants. OpenMLDB has no ANSI mode: a share of nothing is NULL there, not an error.
SHARED_SETTINGS = {"spark.sql.ansi.enabled": "false"}
SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"
ASOF_JOIN = "spark.sql.join.asofJoin.enabled"

#: The Parquet files of a script: its tables by name.
Tables = Mapping[str, Path]


def script(name: str) -> tuple[str, ...]:
    """The statements of a file in `benchmarks/sql/features`, e.g. `Q0` or `spark_Q0`."""
    return tuple(part.strip() for part in sql_file(name).split(";\n") if part.strip())


@dataclass
class FeatureContestant(Contestant):
    """Runs one script for a case on Spark: every column of every row goes to Spark's `noop` sink.

    `prefix` names the file (prefix + the case's script); `of_scripts` are settings for one script,
    `settings` those of this contestant. The answer is
    computed in a second run that is not timed, once for each case: otherwise more than a hundred aggregates would be
    measured with the features.
    """

    name: str
    prefix: str
    tables: Mapping[str, Tables]
    engines: Engines
    of_scripts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    _answers: dict[str, Answer] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """Settings, the script's tables as views, and every statement before the query."""
        name = str(case.parameters["script"])
        spark = self.engines.configured({**SHARED_SETTINGS, **self.of_scripts.get(name, {}), **self.settings})
        for table, path in self.tables[name].items():
            spark.read.parquet(str(path)).createOrReplaceTempView(table)
        for statement in script(self.prefix + name)[:-1]:
            spark.sql(statement)

    def run(self, case: Case) -> None:
        self.query(case).write.format("noop").mode("overwrite").save()

    def answer(self, case: Case) -> Answer | None:
        if case.name not in self._answers:
            self._answers[case.name] = answer_of(self.query(case))
        return self._answers[case.name]

    def interrupt(self) -> None:
        self.engines.cancel_spark()

    def query(self, case: Case) -> DataFrame:
        """All columns of all rows, as c0, c1, ...; after `prepare`."""
        text = script(self.prefix + str(case.parameters["script"]))[-1]
        result = self._run_sql(text)
        # Some of FEBench's columns have the same name, which no sink accepts.
        return result.toDF(*(f"c{place}" for place in range(len(result.columns))))

    def _run_sql(self, text: str) -> DataFrame:
        return self.engines.spark().sql(text)


@dataclass
class OursContestant(FeatureContestant):
    """The script itself, through `Session.sql`."""

    _session: Session | None = None

    def _run_sql(self, text: str) -> DataFrame:
        if self._session is None:
            from sqlext import Session

            spark = self.engines.spark()
            zone = "spark.sql.session.timeZone"  # that of the other contestants, not OpenMLDB's
            self._session = Session(spark, compat="openmldb", config={zone: str(spark.conf.get(zone))})
        return self._session.sql(text)


@dataclass
class FloorContestant(OursContestant):
    """The script's plan with operators that compute nothing: the same rows in, as many columns out, no answer."""

    def answer(self, case: Case) -> None:
        return None

    def _run_sql(self, text: str) -> DataFrame:
        with idle_operators():
            return super()._run_sql(text)


def answer_of(frame: DataFrame) -> Answer:
    """Checksums of each column c0, c1, ...; c0 identifies the row.

    For numbers with a fraction: the sum, with each value times a weight that depends on its row, and the count; for
    all others: the sum of hashes of value and row. So swapped values are detected.
    """
    weight = "(1 + pmod(hash(c0), 97))"
    sums = {"n": "count(*)"}
    for name, kind in frame.dtypes:
        if kind in ("double", "float"):
            sums[name] = f"coalesce(sum({name} * {weight}), 0D)"
            sums[f"{name}_n"] = f"count({name})"
        else:  # an integer hashes the same whatever its width
            value = f"CAST({name} AS BIGINT)" if kind in ("tinyint", "smallint", "int") else name
            sums[name] = f"sum(CAST(hash({value}, c0) AS BIGINT))"
    row: dict[str, Number] = frame.selectExpr(*(f"{sql} AS {name}" for name, sql in sums.items())).collect()[0].asDict()
    return Answer(int(row.pop("n")), row)
