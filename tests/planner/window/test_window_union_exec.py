"""WindowUnionExec on Spark: rows against brute force, payload of every type, types refused, where inputs are read."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, ConfigurationError, Span, SqlExtError, UnsupportedError
from sqlext_planner.expressions.nodes import Column, Expression, Literal, NamedExpr, SparkExpr
from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.nodes import Project, Scan, SubqueryAlias
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached
from sqlext_planner.relational.spark_exec import SparkExec, by_spark
from sqlext_planner.window.execution import WindowUnionExec
from sqlext_planner.window.nodes import CURRENT_ROW, Bound, WindowCall, WindowFrame, WindowGroup, WindowUnion

from tests.spark_versions.older import known_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Spark = SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.tidied]

_numbers = itertools.count()
TS = Column("a", "ts")
RUNNING = WindowFrame("range", Bound("preceding", None), CURRENT_ROW)


def scan(frame: DataFrame, relation: str) -> SparkExec:
    """A table behind a temporary view."""
    name = f"exchange_test_{next(_numbers)}"
    frame.createOrReplaceTempView(name)
    fields = tuple(Field(Column(relation, item.name), item.dataType.simpleString()) for item in frame.schema)
    return SparkExec(Scan(name, relation, fields))


def union_of(
    source: SparkExec,
    unions: Sequence[SparkExec],
    calls: Sequence[WindowCall],
    *,
    keys: Sequence[Expression] = (Column("a", "k"),),
    order: Expression = TS,
    frame: WindowFrame = RUNNING,
    payload: tuple[Column, ...] | None = None,
) -> WindowUnionExec:
    group = WindowGroup("w", frame, tuple(range(len(unions))), tuple(calls))
    logical = [replace(plan.node, span=Span(100 + i, 101 + i)) for i, plan in enumerate(unions)]
    node = WindowUnion(tuple(keys), order, (group,), source.node, tuple(logical), payload)
    return WindowUnionExec(node, (source, *unions))


def call(function: str, *args: Expression, name: str = "x") -> WindowCall:
    return WindowCall(function, args, (), Column("", name), span=Span(50, 60))


def rows(spark: Spark, node: WindowUnionExec, **settings: str) -> list[tuple[Any, ...]]:
    config = Config.from_mapping({f"sqlext.exchange.{key}": value for key, value in settings.items()})
    return [tuple(row) for row in execute_cached(node, ExecutionContext(spark, config)).collect()]


def brute_force(source: list[Any], unions: list[list[Any]], width: int) -> list[tuple[Any, ...]]:
    """sum(v) over a closed range of `width` up to the current row; (k, ts, v, sum): docs/reference/windows.md,
    section 3."""
    result = []
    for i, (k, ts, v) in enumerate(source):
        members = [
            row[2]
            for j, row in enumerate(source)
            if row[0] == k and ts - width <= row[1] <= ts and (row[1] < ts or j <= i)
        ]
        members += [row[2] for union in unions for row in union if row[0] == k and ts - width <= row[1] <= ts]
        present = [value for value in members if value is not None]
        result.append((k, ts, v, sum(present) if present else None))
    return result


def table(seed: int, count: int) -> list[tuple[str | None, int, int | None]]:
    random_ = random.Random(seed)
    return [
        (random_.choice(["a", "b", "", None]), random_.randint(-20, 20), random_.choice([None, 1, 2, 3]))
        for _ in range(count)
    ]


def key(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((value is not None, value) for value in row)


SCHEMA = "k string, ts bigint, v bigint"
FIVE = WindowFrame("range", Bound("preceding", 5), CURRENT_ROW)


@pytest.mark.few(3)
@pytest.mark.parametrize("counts", [(40, 60, 10), (40, 0, 0), (0, 20, 1), (1, 1, 1)])
@pytest.mark.parametrize("settings", [{}, {"partitions": "3", "targetPartitionBytes": "1", "maxPieceRows": "7"}])
def test_rows_agree_with_brute_force(spark: Spark, counts: tuple[int, ...], settings: dict[str, str]) -> None:
    tables = [table(seed, count) for seed, count in enumerate(counts)]
    frames = [spark.createDataFrame(rows, SCHEMA).coalesce(1) for rows in tables]
    source, *unions = [scan(frame, name) for frame, name in zip(frames, "abc", strict=True)]
    node = union_of(source, unions, [call("sum", Column("a", "v"))], frame=FIVE)
    expected = brute_force(tables[0], tables[1:], 5)
    assert sorted(rows(spark, node, **settings), key=key) == sorted(expected, key=key)


@pytest.mark.parametrize("arrow_scan", ["auto", "true", "false"])
def test_parquet_inputs_give_the_same_rows_whoever_reads_them(spark: Spark, arrow_scan: str, tmp_path: Path) -> None:
    tables = [table(seed, 50) for seed in (7, 8)]
    plans = []
    for rows_, name in zip(tables, "ab", strict=True):
        path = str(tmp_path / f"part of {name}")  # a blank in the path: Spark lists it percent-encoded
        spark.createDataFrame(rows_, SCHEMA).coalesce(1).write.parquet(path)
        plans.append(scan(spark.read.parquet(path), name))
    node = union_of(plans[0], plans[1:], [call("sum", Column("a", "v"))], frame=FIVE)
    frame = execute_cached(node, ExecutionContext(spark, Config(arrow_scan=arrow_scan)))
    ranges = frame._jdf.queryExecution().optimizedPlan().toString().count("Range (")  # the numbers of our tasks
    assert ranges == (0 if arrow_scan == "false" else 2)
    assert sorted(map(tuple, frame.collect()), key=key) == sorted(brute_force(tables[0], tables[1:], 5), key=key)


def test_expressions_are_computed_by_spark_before_the_exchange(spark: Spark) -> None:
    source = scan(spark.createDataFrame([(1, 10, 2), (3, 11, 5)], "k int, ts int, v int"), "a")
    other = scan(spark.createDataFrame([(5, 9, 7)], "K int, TS int, V int"), "b")
    doubled = SparkExpr((Column("a", "v"), " * 2"))
    odd = SparkExpr((Column("a", "k"), " % 2"))
    node = union_of(source, [other], [call("sum", doubled), call("count", name="n")], keys=(odd,))
    assert sorted(rows(spark, node)) == [(1, 10, 2, 18, 2), (3, 11, 5, 28, 3)]


def test_payload_may_leave_columns_out_and_be_empty(spark: Spark) -> None:
    source = scan(spark.createDataFrame([(1, 10, 2), (1, 11, 5)], "k int, ts int, v int"), "a")
    node = union_of(source, [], [call("sum", Column("a", "v"))], payload=(Column("a", "ts"),))
    assert sorted(rows(spark, node)) == [(10, 2), (11, 7)]
    node = union_of(source, [], [call("sum", Column("a", "v"))], payload=())
    assert sorted(rows(spark, node)) == [(2,), (7,)]


PAYLOAD = """
    cast(1.5 as decimal(10, 2)) dec, map('a', 1, 'b', null) m, array(1, null) arr,
    cast(array() as array<int>) empty_array,
    named_struct('x', 1, 'y', array(named_struct('z', 'q'))) deep, X'00ff' bin, interval '1 02:03:04' day to second iv,
    parse_json('{"a": [1, null]}') var, timestamp_ntz'2020-01-01 00:00:00.000001' ntz,
    timestamp'1500-01-01 00:00:00' old, date'0001-01-01' day, cast('ab' as char(4)) ch, cast('ab' as varchar(4)) vch,
    1Y tiny, 1S small, float('nan') f, double('-0.0') d, true flag, cast(null as void) nothing, '' empty,
    cast(null as string) no_text, time'10:11:12.000001' clock
"""


@pytest.mark.few(2)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai"])
@pytest.mark.parametrize("settings", [{}, {"partitions": "2", "targetPartitionBytes": "1", "maxPieceRows": "1"}])
def test_every_type_passes_through(spark: Spark, zone: str, settings: dict[str, str]) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.sql(f"select id % 2 k, id ts, {known_types(PAYLOAD)} from range(5)")
        other = spark.sql(f"select id % 2 k, id ts, {known_types(PAYLOAD)} from range(3)")
        node = union_of(scan(frame, "a"), [scan(other, "b")], [call("count")])
        result = execute_cached(
            node,
            ExecutionContext(spark, Config.from_mapping({f"sqlext.exchange.{k}": v for k, v in settings.items()})),
        )
        kinds = [(item.name.removeprefix("a."), item.dataType) for item in result.schema][:-1]
        assert kinds == [(item.name, item.dataType) for item in frame.schema]
        shown = result.selectExpr("to_json(struct(*)) j").orderBy("j").collect()
        wanted = frame.toDF(*[f"a.{name}" for name in frame.columns]).selectExpr("to_json(struct(*)) j").orderBy("j")
        assert [row.j.rsplit(',"x":', 1)[0] + "}" for row in shown] == [row.j for row in wanted.collect()]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "literal",
    [
        "true",
        "1Y",
        "1S",
        "1",
        "1L",
        "'x'",
        "date'2020-01-01'",
        "timestamp'2020-01-01 00:00:00'",
        "1.5",
        "X'00'",
        "null",
    ],
)
def test_key_types(spark: Spark, literal: str) -> None:
    frame = spark.sql(f"select {literal} k, id ts from range(3)")
    node = union_of(scan(frame, "a"), [scan(frame, "b")], [call("count")])
    assert sorted(row[-1] for row in rows(spark, node, partitions="4")) == [2, 4, 6]


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_a_timestamp_frame_counts_microseconds(spark: Spark, kind: str) -> None:
    times = ("00", "01", "01.000001")
    frame = spark.createDataFrame([(1, f"2020-01-01 00:00:{time}") for time in times], "k int, t string")
    second = WindowFrame("range", Bound("preceding", 1, "s"), CURRENT_ROW)
    node = union_of(scan(frame.selectExpr("k", f"cast(t as {kind}) ts"), "a"), [], [call("count")], frame=second)
    assert [row[-1] for row in sorted(rows(spark, node))] == [1, 2, 2]


def test_a_literal_of_a_union_takes_the_type_of_from(spark: Spark) -> None:
    source = scan(spark.sql("select 1L k, 10L ts, 1.5D v, date'2020-01-01' d"), "a")
    base = scan(spark.sql("select 1L k, 9L ts"), "t")

    def filled(value: str, day: str) -> PhysicalPlan:
        names = ("k", "ts", "v", "d")
        values = (Column("t", "k"), Column("t", "ts"), Literal(value), Literal(day))
        items = tuple(NamedExpr(v, Column("", n)) for v, n in zip(values, names, strict=True))
        inner = by_spark(lambda child: Project(items, child), base)
        return by_spark(lambda child: SubqueryAlias("b", names, child), inner)

    node = union_of(source, [filled("0.25", "NULL")], [call("sum", Column("a", "v"))])
    assert [row[-1] for row in rows(spark, node)] == [1.75]
    with pytest.raises(AnalysisError, match="where FROM has d date"):
        rows(spark, union_of(source, [filled("0.25", "'2020-01-01'")], [call("count")]))


def refused(spark: Spark, node: WindowUnionExec) -> SqlExtError:
    with pytest.raises(SqlExtError) as caught:
        execute_cached(node, ExecutionContext(spark))
    assert caught.value.help
    return caught.value


def test_union_columns_must_be_those_of_from(spark: Spark) -> None:
    source = scan(spark.sql("select 1 k, 10 ts"), "a")
    for other in ("select 1L k, 10 ts", "select 1 k, 10 time", "select 10 ts, 1 k"):
        error = refused(spark, union_of(source, [scan(spark.sql(other), "b")], [call("count")]))
        assert isinstance(error, AnalysisError)
        assert error.span == Span(100, 101)


@pytest.mark.parametrize("kind", ["double", "float", "array<int>", "map<int,int>", "struct<a:int>"])
def test_refused_key_types(spark: Spark, kind: str) -> None:
    source = scan(spark.sql(f"select cast(null as {kind}) k, 1 ts"), "a")
    error = refused(spark, union_of(source, [], [call("count")], keys=(Column("a", "k", span=Span(3, 4)),)))
    assert isinstance(error, AnalysisError)
    assert error.span == Span(3, 4)


@pytest.mark.parametrize("kind", ["double", "string", "boolean", "decimal(5,0)"])
def test_refused_order_types(spark: Spark, kind: str) -> None:
    source = scan(spark.sql(f"select 1 k, cast(null as {kind}) ts"), "a")
    error = refused(spark, union_of(source, [], [call("count")], order=Column("a", "ts", span=Span(3, 4))))
    assert isinstance(error, AnalysisError)
    assert error.span == Span(3, 4)


def test_refused_argument_types_point_at_the_call(spark: Spark) -> None:
    source = scan(spark.sql("select 1 k, 1 ts, 'x' v"), "a")
    error = refused(spark, union_of(source, [], [call("sum", Column("a", "v"))]))
    assert isinstance(error, AnalysisError)
    assert error.span == Span(50, 60)


def test_columns_that_cannot_travel_are_named(spark: Spark) -> None:
    source = scan(spark.sql("select 1 k, 1 ts, array(interval 1 month) span"), "a")
    error = refused(spark, union_of(source, [], [call("count")]))
    assert isinstance(error, UnsupportedError)
    assert "span" in error.message
    node = union_of(source, [], [call("count")], payload=(Column("a", "k"),))
    assert rows(spark, node) == [(1, 1)]


def test_a_worker_without_the_package_is_one_clear_error(spark: Spark, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlext_planner.spark import workers

    class Missing:
        """Unpickles like an entry point of a package that the worker lacks."""

        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return __import__, ("sqlext_operators_of_another_version",)

    entry: Any = Missing()
    # a statement's own run may be the first to meet such a worker
    with pytest.raises(ConfigurationError, match="cannot load what the task needs"):
        spark.range(1).mapInArrow(workers.worker_function(entry), "x int").collect()
    monkeypatch.setattr("sqlext_operators.exchange.scatter.probe", entry)
    monkeypatch.setattr(workers, "_CHECKED", set())
    with pytest.raises(ConfigurationError) as caught:
        workers.check_workers(spark)
    assert "No module named 'sqlext_operators_of_another_version'" in caught.value.message
    assert "Traceback" not in str(caught.value)
    assert caught.value.help is not None
    assert "addPyFile" in caught.value.help
