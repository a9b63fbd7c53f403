"""LastJoinExec on Spark: every strategy gives the rows of brute force, DuckDB and Spark's own as-of join."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from sqlext_operators.last_join.spec import JoinComparison, LastJoinSpec, Operator, RightSide
from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.expressions.nodes import Column, Compare, Expression, SparkExpr, conjunction
from sqlext_planner.last_join.execution import LastJoinExec
from sqlext_planner.last_join.nodes import LastJoin, LastMatch
from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.nodes import Scan
from sqlext_planner.relational.physical_plan import ExecutionContext, execute_cached
from sqlext_planner.strategies import plan_physical

from tests.operators.last_join import reference
from tests.spark_versions.older import known_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    Spark = SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.tidied]

_numbers = itertools.count()
SCHEMA = "id int, k string, j bigint, ts bigint, x double"
#: Settings for a strategy each, and one with so little memory that everything goes to disk.
FORMS = [
    {"lastJoin.strategy": "exchange"},
    {"lastJoin.strategy": "exchange", "exchange.partitions": "3", "exchange.targetPartitionBytes": "1"},
    {"lastJoin.strategy": "reduce"},
    {"lastJoin.strategy": "pairs"},
    {},
]


def scan(frame: DataFrame, relation: str) -> Scan:
    """A table behind a temporary view."""
    name = f"last_join_test_{next(_numbers)}"
    frame.createOrReplaceTempView(name)
    return Scan(
        name, relation, tuple(Field(Column(relation, item.name), item.dataType.simpleString()) for item in frame.schema)
    )


def column(name: str) -> Column:
    return Column(*name.split("."))


def compare(text: str) -> Compare:
    left, op, right = text.split()
    return Compare(op, column(left), column(right))


def match_of(
    *conditions: str,
    keys: Sequence[str] = ("a.k = b.k",),
    order: str = "b.ts",
    descending: bool = False,
    more: Sequence[Expression] = (),
) -> LastMatch:
    equal = [compare(text) for text in keys]
    return LastMatch(
        tuple(item.left for item in equal),
        tuple(item.right for item in equal),
        tuple(item.op == "<=>" for item in equal),
        conjunction([*map(compare, conditions), *more]),
        tuple(map(column, order.split())),
        tuple(descending for _ in order.split()),
        span=Span(10, 20),
    )


def physical(left: Scan, rights: Sequence[Scan], matches: Sequence[LastMatch], **settings: str) -> LastJoinExec:
    config = Config.from_mapping({f"sqlext.{key}": value for key, value in settings.items()})
    node = plan_physical(LastJoin(left, tuple(rights), tuple(matches)), config)
    assert isinstance(node, LastJoinExec)
    return node


def rows_of(spark: Spark, node: LastJoinExec, **settings: str) -> list[tuple[Any, ...]]:
    config = Config.from_mapping({f"sqlext.{key}": value for key, value in settings.items()})
    return [tuple(row) for row in execute_cached(node, ExecutionContext(spark, config)).collect()]


def run(spark: Spark, node: LastJoinExec, **settings: str) -> list[str]:
    return ordered(rows_of(spark, node, **settings))


def ordered(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    """The rows as a bag, in which NaN is equal to itself."""
    return sorted(map(repr, rows))


def table(seed: int, count: int) -> list[tuple[Any, ...]]:
    random_ = random.Random(seed)
    return [
        (
            number,
            random_.choice(["a", "b", "", None]),
            random_.choice([1, 2, None]),
            random_.choice([None, *range(-4, 5)]),
            random_.choice([None, 0.0, -0.0, 1.5, float("nan"), float("-inf")]),
        )
        for number in range(count)
    ]


def twin(match: LastMatch, left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    names = [item.split()[0] for item in SCHEMA.split(", ")]
    terms = (match.residual.children or ()) if match.residual is not None else ()
    compared = [match.residual] if isinstance(match.residual, Compare) else list(terms)
    comparisons = tuple(
        JoinComparison(term.left.name, _operator(term.op), term.right.name)
        for term in compared
        if isinstance(term, Compare) and isinstance(term.left, Column) and isinstance(term.right, Column)
    )
    order = tuple(key.name for key in match.order_by if isinstance(key, Column))
    right_keys = tuple(key.name for key in match.right_keys if isinstance(key, Column))
    side = RightSide(right_keys, match.null_safe, tuple(names), order, match.descending, comparisons)
    keys = tuple(key.name for key in match.left_keys if isinstance(key, Column))
    rows = [[dict(zip(names, row, strict=True)) for row in rows] for rows in (left, right)]
    return reference.last_join(LastJoinSpec(keys, tuple(names), (side,)), rows[0], [rows[1]])


def _operator(text: str) -> Operator:
    known: dict[str, Operator] = {"=": "=", "<=>": "<=>", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
    return known[text]


MATCHES = [
    match_of(),
    match_of(descending=True),
    match_of(order=""),
    match_of(keys=("a.k <=> b.k", "a.j = b.j")),
    match_of(keys=("a.x = b.x",)),
    match_of("a.ts >= b.ts"),
    match_of("a.ts < b.ts"),
    match_of("a.ts <= b.ts", descending=True),
    match_of("a.ts > b.ts", "a.x <> b.x", keys=("a.j <=> b.j",)),
    match_of("a.x < b.x", order=""),
    match_of("a.ts >= b.ts", keys=()),
    match_of("a.x >= b.x", order="b.x b.k b.ts"),
    match_of(order="b.k b.x", descending=True),
]


@pytest.mark.few(9)
@pytest.mark.parametrize("settings", FORMS, ids=lambda settings: "-".join(settings.values()) or "auto")
def test_every_form_agrees_with_brute_force(spark: Spark, settings: dict[str, str]) -> None:
    left, right = table(1, 40), table(2, 60)
    sources = [
        scan(spark.createDataFrame(rows, SCHEMA).coalesce(1), name) for rows, name in ((left, "a"), (right, "b"))
    ]
    for match in MATCHES:
        node = physical(sources[0], sources[1:], [match], **settings)
        assert run(spark, node, **settings) == ordered(twin(match, left, right)), match


@pytest.mark.few
@pytest.mark.parametrize("counts", [(0, 5), (5, 0), (0, 0)])
@pytest.mark.parametrize("settings", FORMS[:4], ids=lambda settings: "-".join(settings.values()))
def test_empty_sides(spark: Spark, counts: tuple[int, int], settings: dict[str, str]) -> None:
    left, right = table(1, counts[0]), table(2, counts[1])
    sources = [scan(spark.createDataFrame(rows, SCHEMA), name) for rows, name in ((left, "a"), (right, "b"))]
    for match in (match_of(), match_of(keys=(), order="")):
        node = physical(sources[0], sources[1:], [match], **settings)
        assert run(spark, node, **settings) == ordered(twin(match, left, right))


def test_conditions_that_only_spark_evaluates_make_pairs(spark: Spark) -> None:
    left, right = table(3, 30), table(4, 30)
    sources = [
        scan(spark.createDataFrame(rows, SCHEMA).coalesce(1), name) for rows, name in ((left, "a"), (right, "b"))
    ]
    near = SparkExpr(("abs(", column("a.ts"), " - ", column("b.ts"), ") <= 1"))
    node = physical(sources[0], sources[1:], [match_of(more=[near])])
    assert node.strategies == ("pairs",)
    assert "only Spark can evaluate abs(a.ts - b.ts) <= 1" in node.why
    expected = []
    for row in left:
        best: tuple[Any, ...] = (None,) * 5
        for other in right:
            known = None not in (row[1], row[3], other[3])
            if (
                known
                and row[1] == other[1]
                and abs(row[3] - other[3]) <= 1
                and (best[3] is None or other[3] >= best[3])
            ):
                best = other
        expected.append((*row, *best))
    assert run(spark, node) == ordered(expected)


def test_conditions_over_one_side(spark: Spark) -> None:
    left, right = table(5, 30), table(6, 30)
    sources = [
        scan(spark.createDataFrame(rows, SCHEMA).coalesce(1), name) for rows, name in ((left, "a"), (right, "b"))
    ]
    of_left = SparkExpr((column("a.ts"), " % 2 = 0"))
    of_right = SparkExpr((column("b.x"), " > 0 OR ", column("b.x"), " IS NULL"))
    match = match_of(more=[of_left, of_right])
    kept = [row for row in right if row[4] is None or row[4] != row[4] or row[4] > 0]
    found = twin(match_of(), [row for row in left if row[3] is not None and row[3] % 2 == 0], kept)
    missed = [(*row, *(None,) * 5) for row in left if row[3] is None or row[3] % 2]
    for settings in FORMS:
        node = physical(sources[0], sources[1:], [match], **settings)
        assert run(spark, node, **settings) == ordered([*found, *missed]), settings


def test_several_right_sides_of_different_forms(spark: Spark) -> None:
    tables = [table(seed, 25) for seed in (7, 8, 9, 10)]
    left, *rights = (
        scan(spark.createDataFrame(rows, SCHEMA).coalesce(1), name) for rows, name in zip(tables, "abcd", strict=True)
    )
    near = SparkExpr(("abs(", column("a.ts"), " - ", column("c.ts"), ") < 0"))
    matches = [
        match_of("a.ts >= b.ts"),
        match_of(keys=("a.k = c.k",), order="c.ts", more=[near]),
        match_of(keys=("a.k <=> d.k",), order="d.ts", descending=True),
    ]
    node = physical(left, rights, matches)
    assert node.strategies == ("exchange", "pairs", "exchange")
    first = {row[0]: row[5:] for row in twin(matches[0], tables[0], tables[1])}
    last = {row[0]: row[5:] for row in twin(matches[2], tables[0], tables[3])}
    expected = [(*row, *first[row[0]], *(None,) * 5, *last[row[0]]) for row in tables[0]]
    assert run(spark, node) == ordered(expected)


@pytest.mark.spark_since("4.3", "Spark's own as-of join")
@pytest.mark.few(2)
@pytest.mark.parametrize("operator", [">=", ">", "<=", "<"])
def test_as_of_joins_of_duckdb_and_spark_agree(spark: Spark, operator: str) -> None:
    """Unique (k, ts) for DuckDB, and no NULL ts (its as-of join gives such left rows a match); Spark's takes ties too,
    ordered by a second field."""
    left, right = (
        [row for row in table(11, 80) if row[3] is not None],
        [row for row in table(12, 80) if row[3] is not None],
    )
    unique = list({(row[1], row[3]): row for row in right}.values())
    descending = operator.startswith("<")
    source = scan(spark.createDataFrame(left, SCHEMA).coalesce(1), "a")
    match = match_of(f"a.ts {operator} b.ts", descending=descending)
    with duckdb.connect() as duck:
        for name, rows in (("a", left), ("b", unique)):
            duck.execute(f"CREATE TABLE {name} (id int, k text, j bigint, ts bigint, x double)")
            duck.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", rows)
        asof = duck.execute(
            f"SELECT a.id, b.id FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts {operator} b.ts"
        ).fetchall()
    node = physical(source, [scan(spark.createDataFrame(unique, SCHEMA).coalesce(1), "b")], [match])
    assert ordered((row[0], row[5]) for row in rows_of(spark, node)) == ordered(asof)

    other = spark.createDataFrame(right, SCHEMA).coalesce(1)
    node = physical(source, [scan(other, "b")], [match])
    place, beyond = ("-p", "-9999999999L") if descending else ("p", "9999999999L")
    strict = beyond if len(operator) == 2 else ("9999999999L" if descending else "-9999999999L")
    other.selectExpr("*", "monotonically_increasing_id() p").createOrReplaceTempView("last_join_asof_b")
    spark.conf.set("spark.sql.join.asofJoin.enabled", "true")
    try:
        native = spark.sql(
            f"SELECT a.id, b.id FROM {source.table} a LEFT ASOF JOIN (SELECT *, {place} o FROM last_join_asof_b) b "
            f"MATCH_CONDITION ((a.ts, {strict}) {operator[0]}= (b.ts, b.o)) ON a.k = b.k"
        )
    finally:
        spark.conf.unset("spark.sql.join.asofJoin.enabled")
    assert ordered((row[0], row[5]) for row in rows_of(spark, node)) == ordered(map(tuple, native.collect()))


TYPE_PAIRS = [
    ("int", "bigint"),
    ("tinyint", "decimal(5,2)"),
    ("decimal(10,2)", "decimal(38,4)"),
    ("float", "double"),
    ("date", "timestamp"),
    ("date", "timestamp_ntz"),
    ("timestamp", "timestamp_ntz"),
    ("int", "string"),
    ("bigint", "double"),
    ("binary", "binary"),
    ("interval day to second", "interval day to second"),
    ("interval year to month", "interval year to month"),
    ("interval year", "interval month"),
    ("void", "int"),
    ("struct<a:int>", "struct<a:int>"),
    pytest.param(
        "string collate UTF8_LCASE",
        "string collate UTF8_LCASE",
        marks=pytest.mark.spark_since("4.0", "collations"),
    ),
    ("string", "binary"),
]
VALUES = {
    "binary": "cast(cast(id as string) as binary)",
    "date": "date_add(date'2020-01-01', cast(id as int))",
    "timestamp": "timestamp'2020-01-01 00:00:00' + make_dt_interval(cast(id as int))",
    "timestamp_ntz": "timestamp_ntz'2020-01-01 00:00:00' + make_dt_interval(cast(id as int))",
    "interval day to second": "make_dt_interval(cast(id as int))",
    "interval year to month": "make_ym_interval(0, cast(id as int))",
    "interval year": "cast(make_ym_interval(cast(id / 12 as int), 0) as interval year)",
    "interval month": "cast(make_ym_interval(0, cast(id as int)) as interval month)",
    "struct<a:int>": "named_struct('a', cast(id as int))",
    "string collate UTF8_LCASE": "collate(if(id % 2 = 0, 'a', 'A'), 'UTF8_LCASE')",
    "void": "null",
}


@pytest.mark.few(3)
@pytest.mark.parametrize(("left", "right"), TYPE_PAIRS)
def test_key_and_comparison_types_compare_as_in_spark(spark: Spark, left: str, right: str) -> None:
    frames = [
        spark.range(-3, 15).coalesce(1).selectExpr("id", f"{VALUES.get(kind, f'cast(id as {kind})')} v")
        for kind in (left, right)
    ]
    sources = [scan(frame, name) for frame, name in zip(frames, "ab", strict=True)]
    conditions = [
        match_of(keys=("a.v = b.v",), order="b.id"),
        match_of("a.v > b.v", keys=("a.id <=> b.id",), order=""),
    ]
    for match in conditions:
        strategies = [{"lastJoin.strategy": name} for name in ("exchange", "reduce", "pairs")]
        nodes = [physical(sources[0], sources[1:], [match], **strategy) for strategy in strategies]
        frames = [execute_cached(node, ExecutionContext(spark)).select("`a.id`", "`b.id`") for node in nodes]
        results = [ordered(map(tuple, frame.collect())) for frame in frames]
        assert results[0] == results[1] == results[2], match


EVERY_TYPE = """
    cast(1.5 as decimal(30, 2)) dec, map('a', 1, 'b', null) m, array(1, null) arr, X'00ff' bin, true flag, '' empty,
    named_struct('x', 1, 'y', array(named_struct('z', 'q'))) deep, interval '1 02:03:04' day to second iv,
    timestamp_ntz'2020-01-01 00:00:00.000001' ntz, timestamp'1500-01-01 00:00:00' old, date'0001-01-01' day, 1Y tiny,
    cast(null as void) nothing, interval '3' month months, double('-0.0') d, time'10:11:12.000001' clock
"""


@pytest.mark.few(2)
@pytest.mark.parametrize("extra", ["parse_json('{\"a\": [1, null]}') var", "array(interval 1 month) span"])
@pytest.mark.parametrize("settings", FORMS[:4], ids=lambda settings: "-".join(settings.values()))
def test_every_type_passes_through(spark: Spark, settings: dict[str, str], extra: str) -> None:
    """Also types that cannot go to Python (a list of months): Spark joins such a side."""
    items = known_types(f"{EVERY_TYPE}, {extra}")
    left = spark.sql(f"select id k, id ts, {items} from range(4)")
    right = spark.sql(f"select id % 2 k, id ts, {items} from range(6)")
    node = physical(scan(left, "a"), [scan(right, "b")], [match_of()], **settings)
    config = Config.from_mapping({f"sqlext.{key}": value for key, value in settings.items()})
    result = execute_cached(node, ExecutionContext(spark, config))
    assert [item.dataType for item in result.schema] == [item.dataType for f in (left, right) for item in f.schema]
    sides = [frame.toDF(*[f"{name}.{item}" for item in frame.columns]) for frame, name in ((left, "a"), (right, "b"))]
    last = sides[1].filter("`b.ts` in (4, 5)").withColumn("same", sides[1]["`b.k`"])
    wanted = sides[0].join(last, sides[0]["`a.k`"] == last.same, "left_outer").drop("same")
    texts = [frame.selectExpr("to_json(struct(*)) j").collect() for frame in (result, wanted)]
    assert sorted(row.j for row in texts[0]) == sorted(row.j for row in texts[1])


ORDERED = [
    "double",
    "float",
    "string",
    "date",
    "boolean",
    "decimal(5,0)",
    "decimal(38,4)",
    "binary",
    "timestamp",
    "int",
]


@pytest.mark.few(5)
@pytest.mark.parametrize("kind", [*ORDERED, "interval day to second", "interval year to month"])
def test_orders_of_every_type_are_those_of_spark(spark: Spark, kind: str) -> None:
    """One key and two, with ties and NULLs; the right side's values are in no order."""
    value = f"if(id % 5 = 0, null, {VALUES.get(kind, f'cast(id as {kind})').replace('id', 'id * 7 % 11')})"
    frames = [spark.range(start, 30).coalesce(1).selectExpr("id", f"{value} v") for start in (-3, 0)]
    sources = [scan(frame, name) for frame, name in zip(frames, "ab", strict=True)]
    for match in (
        match_of("a.v >= b.v", keys=(), order="b.v"),
        match_of("a.v < b.v", "b.id <> a.id", keys=(), order="b.v b.id", descending=True),
        match_of(keys=(), order="b.v"),
    ):
        nodes = [physical(sources[0], sources[1:], [match], **FORMS[place]) for place in (0, 3)]
        frames = [execute_cached(node, ExecutionContext(spark)).select("`a.id`", "`b.id`") for node in nodes]
        results = [ordered(map(tuple, frame.collect())) for frame in frames]
        assert results[0] == results[1], match


REFUSED = ["array<int>", "struct<a:int>", "void"]
COLLATED = pytest.param("string collate UTF8_LCASE", marks=pytest.mark.spark_since("4.0", "collations"))


@pytest.mark.parametrize("kind", [*REFUSED, COLLATED])
def test_refused_order_types(spark: Spark, kind: str) -> None:
    left, right = spark.sql("select 1 k"), spark.sql(f"select 1 k, cast(null as {kind}) ts")
    for settings in FORMS[2:]:
        node = physical(scan(left, "a"), [scan(right, "b")], [match_of()], **settings)
        with pytest.raises(AnalysisError, match="a LAST JOIN cannot be ordered by") as caught:
            run(spark, node)
        assert caught.value.span == Span(10, 20)
        assert caught.value.help


def test_what_spark_refuses_points_into_the_statement(spark: Spark) -> None:
    left, right = spark.sql("select 1 k, map(1, 2) m"), spark.sql("select 1 k, map(1, 2) m, 1 ts")
    node = physical(scan(left, "a"), [scan(right, "b")], [match_of(keys=("a.m = b.m",))])
    with pytest.raises(AnalysisError) as caught:
        run(spark, node)
    assert caught.value.span == Span(10, 20)
    unknown = SparkExpr(("no_such_function(", column("a.k"), ")"), span=Span(3, 4))
    node = physical(scan(left, "a"), [scan(right, "b")], [match_of(more=[Compare("<", unknown, column("b.ts"))])])
    with pytest.raises(AnalysisError, match="no_such_function") as caught:
        run(spark, node)
    assert caught.value.span == Span(3, 4)
