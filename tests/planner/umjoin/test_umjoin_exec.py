"""UMJoinExec on Spark: every strategy, and the cascade, give the rows of Spark's own binary joins."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlext_planner.config import Config
from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjunction
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached
from sqlext_planner.umjoin.execute.execution import UMJoinExec
from sqlext_planner.umjoin.execute.split import UMJoinSplit, ineligible, operator_plan
from sqlext_planner.umjoin.nodes import MemberKind, UMJoin

from tests.planner.umjoin.umjoin_plans import (
    TABLES,
    bag,
    binary_joins,
    equal,
    scans,
    tagged,
    term,
    umjoin,
    write_tables,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Spark = SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.tidied]

#: Settings for the operator: few cells, one, so little memory that everything goes to disk.
SETTINGS: dict[str, dict[str, str]] = {
    "cells": {"sqlext.exchange.partitions": "4"},
    "one": {"sqlext.exchange.partitions": "1"},
    "disk": {"sqlext.exchange.partitions": "3", "sqlext.exchange.targetPartitionBytes": "1"},
    "default": {},
}


@pytest.fixture(scope="module", autouse=True)
def tables(spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Iterable[None]:
    write_tables(spark, tmp_path_factory.mktemp("umjoin_exec"))
    yield
    for name in TABLES:
        spark.catalog.dropTempView(name)


def context(spark: Spark, form: str = "cells") -> ExecutionContext:
    return ExecutionContext(spark, Config.from_mapping(SETTINGS[form]))


def operator(node: UMJoin, *, tiny: bool = False, **options: Any) -> PhysicalPlan:
    """The plan with our operator, by shared key where there is one unless a routing is asked for."""
    assert tiny or ineligible(node) is None
    options.setdefault("routing", "shared key" if UMJoinSplit.of(node).layout.shared else "hypercube")
    plan = operator_plan(node, scans(node), **options)
    assert plan.output_columns == node.output_columns
    assert any(isinstance(item, UMJoinExec) for item in plan.walk())
    return plan


def is_ours(frame: DataFrame) -> bool:
    return "MapInArrow" in str(frame._jdf.queryExecution().optimizedPlan())


Case = tuple[UMJoin, dict[str, Any]]


def check(spark: Spark, form: str, cases: Iterable[UMJoin | Case], ours: bool = True) -> None:
    """The operator's rows are those of Spark's binary joins, types included. `cases` are joins, with options of
    `operator` where they need any; one statement for all, as that costs more than the joins do."""
    found, expected = [], []
    for number, case in enumerate(cases):
        node, options = case if isinstance(case, tuple) else (case, {})
        frame = execute_cached(operator(node, **options), context(spark, form))
        plain = spark.sql(binary_joins(node))
        if node.output:
            assert [item.dataType for item in frame.schema] == [item.dataType for item in plain.schema]
        assert is_ours(frame) == ours
        found.append(tagged(frame, node, number))
        expected.append(tagged(plain, node, number))
    assert bag(found) == bag(expected)


STAR = (equal("a.i", "b.j"), equal("b.j", "c.h"))
TRIANGLE = (equal("a.i", "b.i"), equal("b.j", "c.j"), equal("c.i", "a.j"))


@pytest.mark.few(9)
@pytest.mark.parametrize("form", SETTINGS)
def test_shared_key_and_hypercube(spark: Spark, form: str) -> None:
    members: dict[str, tuple[MemberKind, Expression | None]] = {
        "d": ("left", equal("d.n", "a.i")),
        "e": ("anti", conjunction((equal("e.i", "a.i"), term("{e.id} < 3")))),
    }
    star = umjoin("a=t0 b=t1 c=t2 d=t1 e=t0", *STAR, members=members, payload="a.id b.id c.s d.s d.id")
    assert UMJoinSplit.of(star).layout.shared == (0,)
    semi: dict[str, tuple[MemberKind, Expression | None]] = {"d": ("semi", equal("c.s", "d.s"))}
    triangle = umjoin("a=t0 b=t1 c=t2 d=t1", *TRIANGLE, members=semi, payload="a.id b.id c.id")
    counted = umjoin("a=t0 b=t1 c=t2", *TRIANGLE, count=True, payload="")
    check(spark, form, [star, (star, {"routing": "hypercube"}), triangle, counted])


MEMBERS: dict[str, Expression | None] = {
    "key": equal("d.i", "a.i"),
    "keys": conjunction((equal("d.i", "b.j"), equal("c.s", "d.s"))),
    "one column twice": conjunction((equal("d.i", "a.i"), equal("d.i", "b.i"))),
    "two columns of a class": conjunction((equal("d.i", "a.i"), equal("d.j", "b.j"))),
    "nullable": equal("d.x", "a.x"),
    "own": conjunction((equal("d.i", "a.i"), term("{d.id} > 4"))),
    "more": conjunction((equal("d.i", "a.i"), term("{d.id} > {b.id}"))),
    "never": conjunction((equal("d.i", "a.i"), term("{a.id} < 0"))),
    "every": None,
}


@pytest.mark.few(9)
@pytest.mark.parametrize("kind", ["left", "semi", "anti"])
def test_every_kind_of_member(spark: Spark, kind: MemberKind) -> None:
    payload = "a.id b.id d.id" if kind == "left" else "a.id b.id"
    pairs = [(match, "t1") for match in MEMBERS.values()] + [(MEMBERS["key"], "nobody"), (None, "nobody")]
    keys = (*STAR, equal("a.s", "c.s"))
    every = [
        umjoin(
            f"a=t0 b=t1 c=t2 d={table}", *keys, members={"d": (kind, match)}, payload=payload, columns="id i j h s x"
        )
        for match, table in pairs
    ]
    counted = [replace(node, count=Column("", "many")) for node in every[::3]]
    check(spark, "one", [*every, *counted])


def test_members_of_members(spark: Spark) -> None:
    """A match may read a left input's columns; so may the condition."""
    members: dict[str, tuple[MemberKind, Expression | None]] = {
        "c": ("left", equal("c.i", "a.i")),
        "d": ("anti", conjunction((equal("d.j", "c.j"), term("{d.id} < 9")))),
        "e": ("left", equal("e.s", "a.s")),
    }
    over = (equal("a.i", "b.j"), term("coalesce({c.id}, 0) < 9"), term("{e.id} IS NULL OR {e.id} > {b.id}"))
    node = umjoin("a=t0 b=t1 c=t2 d=t0 e=t2", *over, members=members, payload="a.id c.id e.id")
    check(spark, "cells", [node, replace(node, count=Column("", "many"))])


PAIRS = [
    ("i", "j"),
    ("h", "i"),
    ("i", "m"),
    ("j", "n"),
    ("m", "n"),
    ("f", "x"),
    ("i", "x"),
    ("x", "m"),
    ("f", "n"),
    ("s", "s"),
    ("b", "b"),
    ("p", "p"),
    ("w", "w"),
    ("e", "t"),
    ("e", "u"),
    ("e", "e"),
    ("t", "t"),
]


@pytest.mark.slow
@pytest.mark.parametrize("ansi", ["true", pytest.param("false", marks=pytest.mark.slow)])
def test_types_that_compare(spark: Spark, ansi: str) -> None:
    before = spark.conf.get("spark.sql.ansi.enabled")
    assert before is not None
    cases = [
        umjoin(
            "a=t0 b=t1 c=t2",
            equal(f"a.{left}", f"b.{right}"),
            equal(f"b.{right}", f"c.{left}"),
            count=True,
            payload="c.id",
        )
        for left, right in PAIRS[: None if ansi == "true" else 9]
    ]
    numbers = equal("a.i", "b.m"), equal("b.m", "c.j"), equal("c.j", "d.n"), equal("d.n", "a.h")
    doubles = equal("a.i", "b.x"), equal("b.x", "c.m"), equal("b.x", "d.f")
    cases += [umjoin("a=t0 b=t1 c=t2 d=t0", *keys, payload="a.id b.id c.id d.id") for keys in (numbers, doubles)]
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        check(spark, "one", cases)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.parametrize(
    "keys",
    [
        # Spark compares the pairs in different types, of which one loses something.
        (equal("a.j", "b.x"), equal("b.x", "c.x"), equal("a.j", "c.i")),
        (equal("a.e", "b.t"), equal("a.e", "c.e")),
        (equal("a.t", "b.e"), equal("b.e", "c.u")),
    ],
)
def test_types_that_the_plan_refuses(keys: tuple[Compare, ...]) -> None:
    assert "no common type" in str(ineligible(umjoin("a=t0 b=t1 c=t2", *keys)))


@pytest.mark.spark_since("4.0", "collations")
def test_types_that_only_spark_knows(spark: Spark) -> None:
    """Types unknown to the plan: the real ones do not compare, so Spark joins."""
    spark.sql("SELECT cast(i AS string) AS s, i, id FROM t1").createOrReplaceTempView("texts")
    spark.sql("SELECT s COLLATE UTF8_LCASE AS s, i, id FROM t0").createOrReplaceTempView("lower")
    spark.sql("SELECT array(s) AS s, i, id FROM t0").createOrReplaceTempView("arrays")
    try:
        for tables, keys in (
            ("a=t0 b=texts", (equal("a.i", "b.s"),)),
            ("a=lower b=lower", (equal("a.s", "b.s"),)),
            ("a=arrays b=arrays", (equal("a.s", "b.s"),)),
        ):
            node = umjoin(f"{tables} c=t2", *keys, equal("b.i", "c.i"), columns="s i id", payload="a.id b.id")
            plan = operator_plan(node, scans(node), routing="hypercube")
            frame = execute_cached(plan, context(spark))
            assert not is_ours(frame)
            assert bag([tagged(frame, node, 0)]) == bag([tagged(spark.sql(binary_joins(node)), node, 0)])
    finally:
        for name in ("texts", "lower", "arrays"):
            spark.catalog.dropTempView(name)


def test_padded_texts_are_sparks(spark: Spark) -> None:
    """CHARs of two lengths are equal if the padded ones are."""
    spark.sql("CREATE TABLE chars (i INT, c CHAR(3), s CHAR(5), v CHAR(3)) USING parquet")
    try:
        spark.sql("INSERT INTO chars VALUES (1, 'a', 'a', 'a'), (2, 'b', 'c', 'b'), (3, NULL, 'c', 'c')")
        for pair, ours in ((("c", "s"), False), (("c", "v"), True)):
            keys = equal(f"a.{pair[0]}", f"b.{pair[1]}"), equal("b.i", "c.i")
            node = umjoin_of_chars(keys)
            frame = execute_cached(operator_plan(node, scans(node), routing="hypercube"), context(spark))
            assert is_ours(frame) == ours
            found = bag([tagged(frame, node, 0)])
            assert found
            assert found == bag([tagged(spark.sql(binary_joins(node)), node, 0)])
    finally:
        spark.sql("DROP TABLE chars")


def umjoin_of_chars(keys: Sequence[Expression]) -> UMJoin:
    from sqlext_planner.relational.logical_plan import Field
    from sqlext_planner.relational.nodes import Scan

    inputs = tuple(
        Scan("chars", alias, tuple(Field(Column(alias, name)) for name in ("i", "c", "s", "v"))) for alias in "abc"
    )
    return UMJoin(inputs, ("inner",) * 3, conjunction(tuple(keys)), (None,) * 3)


def test_terms_that_the_operator_does_not_test(spark: Spark) -> None:
    over = (*STAR, equal("a.s", "c.s"), term("{a.id} + {b.id} > {c.id}"), term("{b.id} <> 3"), equal("a.h", "a.i"))
    forms = ((False, "a.id b.s"), (False, ""), (True, "a.id"), (True, ""))
    check(
        spark,
        "cells",
        [umjoin("a=t0 b=t1 c=t2", *over, count=count, payload=payload) for count, payload in forms],
    )


def test_two_columns_of_an_input_in_one_class(spark: Spark) -> None:
    keys = equal("a.i", "b.j"), equal("a.m", "b.j"), equal("b.j", "c.f"), equal("b.j", "c.x")
    assert "no common type" in str(ineligible(umjoin("a=t0 b=t1 c=t2", *keys)))
    keys = equal("a.i", "b.j"), equal("a.m", "b.j"), equal("b.j", "c.h"), equal("b.j", "c.n")
    check(spark, "cells", [umjoin("a=t0 b=t1 c=t2", *keys, payload="a.id b.id c.id")])


def test_inputs_without_a_key(spark: Spark) -> None:
    """Tiny ones go to every cell, even if no column of theirs is read."""
    node = umjoin("a=t0 b=t1 c=t2 d=nobody", *STAR, payload="a.id b.id")
    assert "no column of d" in str(ineligible(node))
    pairs = itertools.product(("a=t0 b=t1 c=t2 d=t2", "a=t0 b=t1 c=t2 d=nobody"), ("a.id", "a.id d.s"))
    options = {"tiny": True}
    check(spark, "cells", [(umjoin(tables, *STAR, payload=payload), options) for tables, payload in pairs])


def test_counts_multiply_without_enumeration(spark: Spark) -> None:
    """2,000 rows of one key in each of four inputs: 1.6e13 rows."""
    from sqlext_planner.relational.logical_plan import Field
    from sqlext_planner.relational.nodes import Scan

    spark.range(2000).selectExpr("id", "1 AS k").createOrReplaceTempView("hot")
    try:
        inputs = tuple(
            Scan("hot", alias, (Field(Column(alias, "id"), "bigint"), Field(Column(alias, "k"), "int")))
            for alias in "abcd"
        )
        keys = conjunction((equal("a.k", "b.k"), equal("b.k", "c.k"), equal("c.k", "d.k")))
        node = UMJoin(inputs, ("inner",) * 4, keys, (None,) * 4, Column("", "many"), ())
        frame = execute_cached(operator(node), context(spark))
        assert sum(row[0] for row in frame.collect()) == 2000**4
    finally:
        spark.catalog.dropTempView("hot")


def test_year_month_intervals_and_odd_names(spark: Spark) -> None:
    from sqlext_planner.relational.logical_plan import Field
    from sqlext_planner.relational.nodes import Scan

    spark.sql(
        "SELECT id AS `a.``b`, make_ym_interval(i, j) AS y, make_ym_interval(0, h) AS z FROM t0"
    ).createOrReplaceTempView("odd")
    try:
        names = ("a.`b", "y", "z")
        inputs = tuple(Scan("odd", alias, tuple(Field(Column(alias, name)) for name in names)) for alias in "abc")
        keys = conjunction((Compare("=", Column("a", "y"), Column("b", "y")), equal("b.z", "c.z")))
        node = UMJoin(inputs, ("inner",) * 3, keys, (None,) * 3)
        frame = execute_cached(operator(node), context(spark))
        texts = "id AS `{0}.a.``b`, make_ym_interval(i, j) AS `{0}.y`, make_ym_interval(0, h) AS `{0}.z`"
        expected = spark.sql(
            f"SELECT * FROM (SELECT {texts.format('a')} FROM t0) JOIN (SELECT {texts.format('b')} FROM t0) "
            f"ON `a.y` = `b.y` JOIN (SELECT {texts.format('c')} FROM t0) ON `b.z` = `c.z`"
        )
        assert is_ours(frame)
        assert frame.schema == expected.schema
        shown = [f"string(`{name}`)" for name in ("a.a.``b", "a.y", "b.z", "c.a.``b")]
        # PySpark reads no year-month intervals
        assert sorted(frame.selectExpr(*shown).collect()) == sorted(expected.selectExpr(*shown).collect())
    finally:
        spark.catalog.dropTempView("odd")


def test_the_result_is_read_by_the_next_exchange(spark: Spark) -> None:
    """An operator's result is the input of another one, in one task; without counts in memory."""
    first = umjoin("a=t0 b=t1", equal("a.i", "b.i"), columns="id i s", payload="a.id a.i b.s")
    inner = operator(first)
    second = umjoin("a=t0 b=t1 c=t2", equal("a.i", "b.i"), equal("a.i", "c.i"), columns="id i s")
    core = UMJoinExec(
        inputs=(inner, scans(second)[2]),
        kinds=("inner", "inner"),
        condition=equal("a.i", "c.i"),
        matches=(None, None),
        fields=tuple(item for item in second.output if str(item.column) in ("a.id", "b.s", "c.id")),
        count=None,
        routing="shared key",
    )
    frame = execute_cached(core, context(spark))
    expected = spark.sql(binary_joins(second)).select("`a.id`", "`b.s`", "`c.id`")
    assert (
        str(frame._jdf.queryExecution().optimizedPlan()).count("MapInArrow") == 5
    )  # six, were the first result made of rows
    assert sorted(map(repr, frame.collect())) == sorted(map(repr, expected.collect()))
