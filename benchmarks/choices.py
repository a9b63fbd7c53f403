"""Suite `choices`: random joins whose statistics are wrong by up to a factor, ours against each strategy by force.

What planning chooses rests on rows and values that files or ANALYZE TABLE told, which may be of another day. The suite
measures the regret: how much longer the choice of wrong statistics takes than the best strategy for the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.harness.data import stored
from benchmarks.harness.engines import Engines
from benchmarks.harness.options import Options, Told, Workplace, option, untold
from benchmarks.harness.results import Report
from benchmarks.harness.statements import SessionSql, Statement
from benchmarks.harness.suite import Case, Check, Suite

#: The most times as long as the best strategy that a choice may take.
MOST_REGRET = 3.0
#: Rows that the largest binary join and the result of a statement may have: what Spark makes in seconds.
_MOST_STEP, _MOST_RESULT = 2e8, 3e6
_STRATEGY = "sqlext.umjoin.strategy"
#: The strategies by force, by kind of statement; a strategy that is not possible is the cascade.
FORCED = {
    "multi-way": {name: {_STRATEGY: name} for name in ("cascade", "operator", "factorised")},
    "interval": {
        "cascade": {"sqlext.intervalJoin.strategy": "spark"},
        "operator": {"sqlext.intervalJoin.strategy": "exchange"},
    },
}


@dataclass(frozen=True)
class ChoicesOptions(Options):
    """The command line options."""

    statements: int = option(200, "Random statements.", min=1)
    factor: float = option(1000.0, "By how much statistics are wrong at most, both ways.", min=1.0)
    seed: int = option(1, "What the random statements are drawn with.", min=0)


@dataclass(frozen=True)
class Drawn:
    """A random statement: its kind, the rows of its tables, the values of their key columns, its text with ``{0}``,
    ``{1}``, ... for the tables, what their statistics are multiplied by, and whether its result is one row."""

    number: int
    kind: str
    rows: tuple[int, ...]
    values: tuple[dict[str, int], ...]
    text: str
    lies: tuple[float, ...]
    is_one_row: bool

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables' names."""
        return tuple(f"choices_{self.number}_{place}" for place in range(len(self.rows)))

    @cached_property
    def sql(self) -> str:
        """The statement."""
        return self.text.format(*self.tables)

    @property
    def is_parquet(self) -> bool:
        """Whether the tables are Parquet files, which have statistics of their own, or CSV."""
        return self.number // 4 % 2 == 0

    @property
    def title(self) -> str:
        """Rows and lies, for the report."""
        sizes = ", ".join(f"{rows:,} (x{lie:.2g})" for rows, lie in zip(self.rows, self.lies, strict=True))
        return f"{self.number}: {self.kind}, {'Parquet' if self.is_parquet else 'CSV'}, {sizes}"


def drawn(number: int, seed: int, factor: float) -> Drawn:
    """The statement with a number."""
    random = np.random.default_rng([seed, number])
    lies = tuple(float(factor ** random.uniform(-1, 1)) for _ in range(5))
    return _interval(number, random, lies) if number % 4 == 3 else _multiway(number, random, lies)


def _log_uniform(random: np.random.Generator, least: float, most: float) -> int:
    return round(math.exp(random.uniform(math.log(least), math.log(most))))


def _multiway(number: int, random: np.random.Generator, lies: tuple[float, ...]) -> Drawn:
    while True:
        count = int(random.integers(3, 5))
        shape = random.choice(["chain", "star", "shared key", "cycle"])
        rows = tuple(_log_uniform(random, 1e3, 4e5) for _ in range(count))
        terms, values = _shaped(shape, count, random, rows)
        steps = _steps(rows, values)
        if max(steps) <= _MOST_STEP and steps[-1] <= _MOST_RESULT * (10 if number % 2 else 1):
            break
    is_one_row = bool(number % 2)
    items = "count(*) AS n, sum(t0.v) AS v" if is_one_row else f"t0.v AS v, t{count - 1}.v AS w"
    tables = ", ".join(f"{{{place}}} t{place}" for place in range(count))
    text = f"SELECT {items} FROM {tables} WHERE {' AND '.join(terms)}"
    return Drawn(number, "multi-way", rows, values, text, lies[:count], is_one_row)


def _shaped(
    shape: str, count: int, random: np.random.Generator, rows: Sequence[int]
) -> tuple[list[str], tuple[dict[str, int], ...]]:
    """The terms that join the tables, and how many values the key columns have."""
    if shape == "shared key":
        pairs = [(place - 1, place, "k0") for place in range(1, count)]
    elif shape == "star":
        pairs = [(0, place, f"k{place}") for place in range(1, count)]
    else:
        pairs = [(place - 1, place, f"k{place}") for place in range(1, count)]
        pairs += [(count - 1, 0, f"k{count}")] if shape == "cycle" else []
    keys = {key: _log_uniform(random, 30, 2 * max(rows)) for _, _, key in pairs}
    values: tuple[dict[str, int], ...] = tuple({} for _ in range(count))
    for left, right, key in pairs:
        values[left][key] = values[right][key] = keys[key]
    return [f"t{left}.{key} = t{right}.{key}" for left, right, key in pairs], values


def _steps(rows: Sequence[int], values: Sequence[dict[str, int]]) -> list[float]:
    """The rows that are expected after each binary join from left to right, and of the tables."""
    total, bound, steps = float(rows[0]), set(values[0]), [float(max(rows))]
    for count, keys in zip(rows[1:], values[1:], strict=True):
        total *= count / math.prod(number for key, number in keys.items() if key in bound)
        bound |= set(keys)
        steps.append(total)
    return steps


def _interval(number: int, random: np.random.Generator, lies: tuple[float, ...]) -> Drawn:
    """A plain band between two tables, with or without a key: what may be left to Spark."""
    while True:
        rows = tuple(_log_uniform(random, 300, 6e4) for _ in range(2))
        keys = _log_uniform(random, 1, 50)
        if rows[0] * rows[1] <= 2e9:
            break
    equal = "t0.k0 = t1.k0 AND " if number % 8 == 3 else ""
    text = f"SELECT t0.v AS v, t1.v AS w FROM {{0}} t0 JOIN {{1}} t1 ON {equal}t1.ts >= t0.ts AND t1.ts < t0.ts + 20"
    return Drawn(
        number, "interval", rows, ({"k0": keys, "ts": 60_000}, {"k0": keys, "ts": 60_000}), text, lies[:2], False
    )


def _table(item: Drawn, place: int) -> pa.Table:
    random = np.random.default_rng([7, item.number, place])
    rows = item.rows[place]
    # The range of dense values tells how many there are; of sparse ones only samples tell.
    apart = 1 if item.number % 3 == 0 else 7919
    keys = {key: random.integers(0, number, rows) * apart for key, number in item.values[place].items() if key != "ts"}
    times = {"ts": random.integers(0, item.values[place]["ts"], rows)} if "ts" in item.values[place] else {}
    return pa.table({**keys, **times, "v": random.integers(0, 1000, rows)})


def _csv(folder: Path, name: str, make: Callable[[], pa.Table]) -> Path:
    path = folder / f"{name}.csv"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        csv.write_csv(make(), path)
    return path


@dataclass
class LyingSql(SessionSql):
    """`Session.sql` over tables of Spark's catalog whose statistics are wrong."""

    made: set[str] = field(default_factory=set)

    def prepare(self, case: Case) -> None:
        """The settings of the case, and its tables."""
        asked = self.statement(case)
        self.engines.configured(asked.settings)
        for (name, path), lie in zip(asked.tables.items(), str(case.parameters["lies"]).split(), strict=True):
            if name not in self.made:
                self.made.add(name)
                analyzed_table(self.engines.spark(), name, path)
                lied(self.engines.spark(), name, float(lie))


def analyzed_table(spark: SparkSession, name: str, path: Path) -> None:
    """A table of a file, with statistics of all columns."""
    names = csv.open_csv(path).schema.names if path.suffix == ".csv" else pq.read_schema(path).names
    columns = ", ".join(f"{column} BIGINT" for column in names)
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE {name} ({columns}) USING {path.suffix[1:]} OPTIONS (header true) LOCATION '{path}'")
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS")


def lied(spark: SparkSession, name: str, factor: float) -> None:
    """Multiply what ANALYZE TABLE stored of a table, its bytes, rows and numbers of values, as if its files were others
    then."""
    java: Any = spark._jvm
    spark_catalog, internal = java.org.apache.spark.sql.catalyst.catalog, spark._jsparkSession.sessionState().catalog()
    table = java.org.apache.spark.sql.catalyst.TableIdentifier(name)
    told = internal.getTableMetadata(table).stats().get()

    def column(number: Any) -> Any:
        """Statistics of a column with so many values, made of texts: Py4J takes no BigInt."""
        texts = java.java.util.HashMap()
        for key, value in (("distinctCount", max(1, round(int(number) * factor))), ("version", 2)):
            texts.put(f"c.{key}", str(value))
        every = java.org.apache.spark.api.python.PythonUtils.toScalaMap(texts)
        return spark_catalog.CatalogColumnStat.fromMap(name, "c", every).get()

    columns = java.java.util.HashMap()
    for key in spark.table(name).columns:
        columns.put(key, column(told.colStats().apply(key).distinctCount().get()))
    arguments = java.java.util.ArrayList()
    size = column(told.sizeInBytes()).distinctCount()
    arguments.addAll(java.scala.jdk.javaapi.CollectionConverters.asJava(size.toList()))
    arguments.add(column(told.rowCount().get()).distinctCount())
    arguments.add(java.org.apache.spark.api.python.PythonUtils.toScalaMap(columns))
    made = told.getClass().getConstructors()[0].newInstance(arguments.toArray())
    internal.alterTableStats(table, java.scala.Some(made))


def choices_suite(options: ChoicesOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; its data are written at once, the engines start with the first run."""
    place = Workplace(options, engines)
    items = {n: drawn(n, options.seed, options.factor) for n in range(options.statements)}
    files: dict[str, Path] = {}
    for item in items.values():
        report(f"statement {item.number}")
        for number, name in enumerate(item.tables):
            folder = place.root / f"choices-{options.seed}"
            make = partial(_table, item, number)
            files[name] = (
                stored(folder / f"{name}.parquet", make, 100_000) if item.is_parquet else _csv(folder, name, make)
            )

    def statement(name: str, case: Case) -> Statement:
        item = items[int(case.parameters["number"])]
        settings = {} if name == "ours" else FORCED[item.kind].get(name, {})
        sums = {"n": "count(*)", "v": "sum(v)", "w": "sum(w)"}
        tables = {table: files[table] for table in item.tables}
        return Statement(item.sql, sums, rows="one" if item.is_one_row else "sum", tables=tables, settings=settings)

    cases = tuple(
        Case(
            item.title,
            float(number),
            {"number": number, "lies": " ".join(f"{lie:.6g}" for lie in item.lies), "sql": item.sql},
            contestants=("ours", *FORCED[item.kind]),
        )
        for number, item in items.items()
    )
    made: set[str] = set()
    names = ("ours", *FORCED["multi-way"])
    contestants = [LyingSql(name, place.engines, partial(statement, name), made=made) for name in names]
    return Suite(
        name="choices",
        title="Choices of wrong statistics",
        parameters=options.shown("statements", "factor", "seed", "cores", "memory"),
        cases=cases,
        contestants=tuple(contestants),
        ours="ours",
        x_label="statement",
        close=place.close,
        checks=(_bounded_regret,),
    )


def _bounded_regret(report: Report) -> list[Check]:
    """No choice takes more than MOST_REGRET times as long as the best strategy."""
    regrets = []
    for result in report.cases:
        ours = result.seconds(report.ours)
        forced = [seconds for name in FORCED["multi-way"] if (seconds := result.seconds(name)) is not None]
        if ours is not None and forced:
            regrets.append((ours / min(forced), result.case.name))
    if not regrets:
        return []
    regrets.sort(reverse=True)
    above = sum(regret > MOST_REGRET for regret, _ in regrets)
    worst = "; ".join(f"{regret:.2f} ({name})" for regret, name in regrets[:3])
    return [Check(f"at most {MOST_REGRET:g} times the best strategy", above == 0, f"{above} above; the worst: {worst}")]
