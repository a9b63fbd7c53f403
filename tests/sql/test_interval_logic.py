"""Logic over period predicates in ON and WHERE: the rows of plain Spark over the formulas of docs/reference/periods.md,
written by hand, while the pairs are found by windows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import AnalysisError
from sqlext_planner.spark.versions import spark_version

from sqlext import Session

from .intervals import TYPES, random_periods
from .test_interval_joins import ours, sweeping, union

#: word -> formula over [a, b) and [c, d)
WORDS = {
    "OVERLAPS": "{a} < {d} AND {c} < {b}",
    "MEETS": "{b} = {c}",
    "MET BY": "{d} = {a}",
    "PRECEDES": "{b} <= {c}",
    "SUCCEEDS": "{d} <= {a}",
    "CONTAINS": "{a} <= {c} AND {d} <= {b}",
    "STARTS": "{a} = {c} AND {b} < {d}",
    "DURING": "{c} <= {a} AND {b} <= {d}",
}
CONDITIONS = [
    "[MEETS] OR [MET BY]",
    "[OVERLAPS] OR [MEETS] OR [MET BY]",
    "NOT ([PRECEDES] OR [SUCCEEDS])",
    "NOT [OVERLAPS] AND NOT [PRECEDES]",
    "[OVERLAPS] IS TRUE",
    "[OVERLAPS] = true",
    "coalesce([OVERLAPS], false) AND r.k = s.k",
    "NOT coalesce(NOT [OVERLAPS], true)",
    "[OVERLAPS] AND NOT [CONTAINS] AND NOT [STARTS]",
    "[STARTS] OR [PRECEDES] OR r.v = 1 AND false",
    "NOT ([DURING] OR [PRECEDES]) AND r.k2 = s.k2",
]


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[None]:
    rng = random.Random(23)
    for name, count in (("logic_r", 40), ("logic_s", 50)):
        spark.createDataFrame(random_periods(rng, count)).createOrReplaceTempView(name)
    yield
    for name in ("logic_r", "logic_s"):
        spark.catalog.dropTempView(name)


def written(condition: str, kind: str) -> tuple[str, str]:
    """The condition in our words and in Spark's."""
    names = {"a": f"r.{kind}_ts", "b": f"r.{kind}_te", "c": f"s.{kind}_ts", "d": f"s.{kind}_te"}
    our, plain = condition, condition
    for word, formula in WORDS.items():
        our = our.replace(
            f"[{word}]", f"(PERIOD({names['a']}, {names['b']}) {word} PERIOD({names['c']}, {names['d']}))"
        )
        nulls = " OR ".join(f"{end} IS NULL" for end in names.values())
        valid = "{a} < {b} AND {c} < {d}".format_map(names)
        text = f"(CASE WHEN {nulls} THEN NULL ELSE {valid} AND {formula.format_map(names)} END)"
        plain = plain.replace(f"[{word}]", text)
    return our, plain


@pytest.mark.slow
@pytest.mark.parametrize("form", ["auto", pytest.param("exchange", marks=pytest.mark.slow)])
def test_sets_of_relations(form: str, spark: SparkSession, tables: None) -> None:
    texts: list[tuple[str, str]] = []
    for number, condition in enumerate(CONDITIONS):
        pair = written(condition, str(TYPES[number % len(TYPES)]))
        kind = ("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")[number % 6]
        right = "r.v" if kind in ("LEFT SEMI", "LEFT ANTI") else "s.id"
        head = f"SELECT r.id AS a, {right} AS b FROM logic_r r {kind} JOIN logic_s s ON "
        texts.append((head + pair[0], head + pair[1]))
    session = sweeping(spark, form)
    mine, plain = (union([pair[side] for pair in texts]) for side in (0, 1))
    plan = session.plan(mine)
    assert plan.physical is not None
    joins = [node for node in plan.physical.walk() if type(node).__name__ == "IntervalJoinExec"]
    assert len(joins) == len(texts)
    assert ours(session, mine) == sorted((tuple(row) for row in spark.sql(plain).collect()), key=repr)


BLOCKS = [
    "SELECT id, x FROM ({}) d LATERAL VIEW explode(array(1, 2)) g AS x",
    "WITH d AS ({}) SELECT id, x FROM d LATERAL VIEW explode(array(1, 2)) g AS x",
    "SELECT id, y FROM (WITH d AS ({}) SELECT * FROM d DISTRIBUTE BY id SORT BY y) ORDER BY id, y",
    "SELECT * FROM ({}) PIVOT (count(y) FOR y IN (1, 2, 3))",
    "SELECT * FROM ({}) UNPIVOT (v FOR n IN (id, y))",
    "SELECT id, y FROM ({}) TABLESAMPLE (100 PERCENT)",
    "SELECT d.id, t.z FROM ({}) d, LATERAL (SELECT d.y + 1 AS z) t",
    "SELECT inline(array(struct(id, y))) FROM ({}) d",
    "SELECT st.* FROM (SELECT struct(id, y) AS st FROM ({})) d",
    "SELECT posexplode(array(id, y)) FROM ({}) d",
    "SELECT stack(2, id, y) FROM ({}) d",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3), d AS ({}) "
    "SELECT d.id, n.i FROM d JOIN n ON d.y = n.i",
]


#: The join is in the block itself.
OWN_BLOCKS = [
    "SELECT /*+ SWEEP */ r.id, s.id + x, k2 FROM logic_r r JOIN (SELECT * EXCEPT (k2) FROM logic_s) s ON {} "
    "LATERAL VIEW explode(array(1)) g AS x",
    "SELECT r.id, s.valid.ts, posexplode(array(s.v)) FROM logic_r r LEFT JOIN logic_s s ON {} WHERE r.id > 3",
    "SELECT r.*, s.id AS n FROM logic_r r, logic_s s WHERE {} DISTRIBUTE BY n SORT BY r.id, s.id",
    "SELECT r.k, count(*) AS n, max(z) FROM logic_r r FULL JOIN logic_s s ON {} "
    "LATERAL VIEW explode(array(r.v, s.v)) g AS z GROUP BY r.k HAVING count(*) > 1 ORDER BY r.k",
]


@pytest.mark.parametrize("share", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_blocks_that_are_sparks_over_planned_inputs(share: int, spark: SparkSession, tables: None) -> None:
    """Derived tables and CTEs of a block that has no node of ours are planned on their own."""
    join = "SELECT r.id, s.id AS y FROM logic_r r JOIN logic_s s ON "
    our, plain = written("[OVERLAPS]", "stamp")
    session = Session(spark)
    for block in BLOCKS[::share]:
        text = block.format(join + our)
        plan = session.plan(text)
        assert plan.physical is not None
        assert [node for node in plan.physical.walk() if type(node).__name__ == "IntervalJoinExec"], block
        want = sorted((tuple(row) for row in spark.sql(block.format(join + plain)).collect()), key=repr)
        assert ours(session, text) == want, block
    for block in OWN_BLOCKS[:: min(share, 3)]:
        if spark_version() < (4, 0):
            block = block.replace("* EXCEPT (k2)", "id, k, v, stamp_ts, stamp_te").replace(" ORDER BY r.k", "")
        text = block.format(our)
        plan = session.plan(text)
        assert plan.physical is not None
        assert [node for node in plan.physical.walk() if type(node).__name__ == "IntervalJoinExec"], block
        theirs = spark.sql(block.format(plain).replace("/*+ SWEEP */", ""))
        frame = session.sql(text)
        assert frame.schema.simpleString() == theirs.schema.simpleString()
        assert ours(session, text) == sorted((tuple(row) for row in theirs.collect()), key=repr), block
    written_out = session.plan(f"SELECT * FROM logic_r r JOIN logic_s s ON {our} LATERAL VIEW explode(array(1)) g AS x")
    assert "LATERAL VIEW is left to Spark, and so are the period predicates in this block" in str(written_out)
    closed = BLOCKS[0].format(join + our.replace("stamp", "date").replace("PERIOD", "PERIOD CLOSED"))
    shifted = join + written("[OVERLAPS]", "date")[1].replace("_te", "_te + 1")
    assert ours(session, closed) == sorted(map(tuple, spark.sql(BLOCKS[0].format(shifted)).collect()), key=repr)


@pytest.mark.parametrize(
    ("item", "view", "words", "place"),
    [
        ("nosuch", "array(1)", "`nosuch` cannot be resolved", "nosuch"),
        ("explode(5)", "array(1)", "data type mismatch", "explode(5)"),
        ("r.id", "array(nosuch(1))", "nosuch", "nosuch(1)"),
    ],
)
def test_what_spark_refuses_of_a_block_is_told_at_its_place(
    session: Session, tables: None, item: str, view: str, words: str, place: str
) -> None:
    our, _ = written("[OVERLAPS]", "stamp")
    text = f"SELECT {item} FROM logic_r r JOIN logic_s s ON {our} LATERAL VIEW explode({view}) g AS x"
    with pytest.raises(AnalysisError, match=words) as caught:
        session.sql(text)
    span = caught.value.span
    assert span is not None
    assert text[span.start : span.end] == place
