"""Blocks that go to Spark as text: what in them is planned on its own, and what the text then says."""

from __future__ import annotations

import pytest
from sqlext_planner.batches import BATCHES
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError, UnsupportedError
from sqlext_planner.interval_join.nodes import IntervalJoin
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.nodes import SparkRelation

from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.run.pipeline import stage
from sqlext.syntax.parser import parse

_COLUMNS = {"s": "bigint", "e": "bigint", "x": "bigint", "d": "date"}
ON = "PERIOD(a.s, a.e) OVERLAPS PERIOD(b.s, b.e)"
JOIN = f"SELECT a.x, b.s AS y FROM a JOIN b ON {ON}"


class Answering(DictCatalog):
    """A catalog that knows the columns of every query, and keeps the texts it was asked about."""

    def __init__(self) -> None:
        super().__init__({"a": _COLUMNS, "b": _COLUMNS})
        self.asked: list[str] = []

    def query_columns(self, sql: str) -> list[tuple[str, str]]:
        self.asked.append(sql)
        return [("x", "bigint"), ("y", "bigint")]


def block(sql: str) -> tuple[SparkRelation, str]:
    """The block's node after all rules, and the last text that Spark was asked about."""
    catalog = Answering()
    plan = RuleExecutor(BATCHES).optimize(analyze(parse(sql), catalog)).final
    (node,) = (node for node in plan.walk() if isinstance(node, SparkRelation))
    return node, catalog.asked[-1]


STAND_IN = "SELECT CAST(NULL AS bigint) AS `x`, CAST(NULL AS bigint) AS `y` WHERE false"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x, y FROM ({}) q LATERAL VIEW explode(array(1)) g AS z",
        "WITH q AS ({}) SELECT x, y FROM q LATERAL VIEW explode(array(1)) g AS z",
        "SELECT * FROM ({}) PIVOT (count(y) FOR y IN (1))",
        "SELECT x, y FROM ({}) q TABLESAMPLE (50 PERCENT)",
        "SELECT x, y FROM a JOIN ({}) q ON a.x = q.x SORT BY y",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n), q AS ({}) SELECT x, y FROM q JOIN n ON i = x",
        "SELECT * FROM (SELECT x, y FROM ({}) q CLUSTER BY x) WHERE x > 1",
    ],
)
def test_derived_tables_and_ctes_are_inputs(text: str) -> None:
    node, asked = block(text.format(JOIN))
    whole = node.sql.replace("SELECT * FROM __sqlext_input_0", "{}")
    assert whole in (text, text[len("SELECT * FROM (") : -len(") WHERE x > 1")])
    assert asked == whole.format(STAND_IN)
    assert [name for name, _ in node.input_names] == ["__sqlext_input_0"]
    assert len(node.collect(IntervalJoin)) == 1
    assert not node.because


def test_ctes_around_the_block_are_inputs() -> None:
    sql = (
        f"WITH q AS ({JOIN}), r AS (SELECT x, y FROM q), p(x, y) AS (SELECT 1, 2) "
        "SELECT x, y FROM (SELECT r.x, r.y FROM r, p SORT BY x)"
    )
    node, asked = block(sql)
    expected = "WITH q AS ({}), r AS (SELECT x, y FROM q), p(x, y) AS (SELECT 1, 2) SELECT r.x, r.y FROM r, p SORT BY x"
    assert node.sql == expected.format("SELECT * FROM __sqlext_input_0")
    assert asked == expected.format(STAND_IN)


def test_several_inputs_and_windows() -> None:
    window = "sum(x) OVER (PARTITION BY x ORDER BY s ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)"
    node, _ = block(f"SELECT q.x, r.y FROM ({JOIN}) q JOIN (SELECT x, {window} AS y FROM a) r ON q.x = r.x SORT BY y")
    expected = "SELECT q.x, r.y FROM (SELECT * FROM __sqlext_input_0) q JOIN (SELECT * FROM __sqlext_input_1) r ON"
    assert node.sql.startswith(expected) or node.sql.startswith(
        expected.replace("input_0", "input_2").replace("input_1", "input_0").replace("input_2", "input_1")
    )
    assert len(node.inputs) == 2


def test_types_of_inputs_are_known_to_the_block() -> None:
    """`PERIOD CLOSED` and period_length need them."""
    node, _ = block(
        "SELECT period_length(q.s, q.e) AS x, PERIOD CLOSED (q.s, q.e) CONTAINS 3 AS y "
        f"FROM (SELECT a.s, a.e FROM a JOIN b ON {ON}) q SORT BY x"
    )
    assert "`s` < " not in node.sql
    assert len(node.inputs) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"SELECT a.x, e + g.z AS y FROM a JOIN (SELECT s, e AS f, x AS v FROM b) b ON {ON.replace('b.e', 'b.f')} "
            "LATERAL VIEW explode(array(v)) g AS z WHERE f > 3 SORT BY v, z",
            "SELECT a.x, `a`.e + g.z AS y FROM ({}) LATERAL VIEW explode(array(`b`.v)) g AS z  SORT BY `b`.v, z",
        ),
        (
            f"WITH q AS (SELECT * FROM b) SELECT q.*, a.d AS n FROM a, q WHERE {ON.replace('b.', 'q.')} CLUSTER BY a.d",
            " SELECT q.*, a.d AS n FROM ({})  CLUSTER BY a.d",
        ),
    ],
)
def test_from_of_the_block_itself_is_an_input(text: str, expected: str) -> None:
    node, asked = block(text)
    assert node.sql == expected.format("SELECT * FROM __sqlext_input_0")
    assert asked.startswith(expected[:20])
    assert "CAST(NULL AS struct<" in asked
    assert len(node.collect(IntervalJoin)) == 1
    assert not node.because


@pytest.mark.parametrize(
    "text",
    [
        "SELECT *, b.x AS y FROM a JOIN b ON {} LATERAL VIEW explode(array(1)) g AS z",
        "SELECT a.x, b.x AS y FROM a JOIN b ON {} WHERE a.x IN (SELECT 1) SORT BY y",
        "SELECT a.s AS e, b.x AS y FROM a LEFT SEMI JOIN b ON {} SORT BY e",
        "SELECT a.x, z AS y FROM a, b LATERAL VIEW explode(array(1)) g AS z WHERE {} AND z > 1",
    ],
)
def test_predicates_of_the_block_itself_are_written_out(text: str) -> None:
    """Where the rest of the block cannot stay as it is."""
    node, _ = block(text.format(ON))
    assert node.because.endswith("is left to Spark")
    assert not node.inputs


def test_mistakes_in_an_input_have_their_place() -> None:
    sql = f"SELECT x, y FROM ({JOIN.replace('a.e', 'a.ee')}) q SORT BY x"
    with pytest.raises(SqlExtError) as caught:
        block(sql)
    span = caught.value.span
    assert span is not None
    assert sql[span.start : span.end] == "a.ee"


@pytest.mark.parametrize("hint", ["SWEEP", "UMJOIN", "PARTITIONER(key)"])
def test_hints_of_the_block_cannot_be_followed(hint: str) -> None:
    with pytest.raises(UnsupportedError, match="cannot be followed: SORT BY is left to Spark") as caught:
        block(f"SELECT /*+ {hint} */ *, b.x AS y FROM a JOIN b ON {ON} SORT BY x")
    assert caught.value.condition == "hint-not-followed"
    assert caught.value.of_hint
    with pytest.raises(UnsupportedError, match="cannot be followed"):
        block(f"SELECT /*+ {hint} */ a.x, b.x AS y FROM a JOIN b ON a.s < b.e SORT BY x")


def test_hints_of_inputs_and_refusals_are_followed() -> None:
    block(f"SELECT x, y FROM ({JOIN.replace('SELECT', 'SELECT /*+ SWEEP */')}) q SORT BY x")
    block(f"SELECT /*+ SWEEP */ a.x, b.x AS y FROM a JOIN b ON {ON} SORT BY b.x")
    block(f"SELECT /*+ NO_SWEEP */ a.x, b.x AS y FROM a JOIN b ON {ON} SORT BY x")


def test_joins_below_others_are_marked() -> None:
    """Under a LAST JOIN, and under the projection of a FULL JOIN with USING."""
    catalog = DictCatalog(dict.fromkeys("abc", _COLUMNS))
    for from_ in (f"a JOIN b ON {ON} LAST JOIN c ORDER BY c.s ON c.x = a.x", f"a FULL JOIN c USING (x) JOIN b ON {ON}"):
        joins = analyze(parse(f"SELECT /*+ NO_SWEEP */ a.s AS n FROM {from_}"), catalog).collect(Join)
        assert joins
        assert all(node.sweep is False for node in joins)


@pytest.mark.parametrize("hint", ["SWEEP", "UMJOIN"])
def test_hints_on_joins_without_a_join_are_errors(hint: str) -> None:
    catalog = DictCatalog({"a": _COLUMNS, "b": _COLUMNS})
    for text in ("SELECT /*+ {} */ x FROM a", "SELECT /*+ {} */ x FROM (SELECT a.x FROM a, b) q", "SELECT /*+ {} */ 1"):
        with pytest.raises(UnsupportedError, match="cannot be followed: this SELECT joins nothing"):
            analyze(parse(text.format(hint)), catalog)
    analyze(parse(f"SELECT /*+ {hint} */ a.x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE {ON})"), catalog)


@pytest.mark.parametrize(
    ("condition", "is_join"),
    [
        ("EXISTS ({})", True),
        ("NOT EXISTS ({})", True),
        ("a.x IN ({})", True),
        ("a.x NOT IN ({})", True),
        ("EXISTS ({}) OR a.x = 3", False),
        ("CASE WHEN a.x > 1 THEN EXISTS ({}) END", False),
    ],
)
def test_hints_in_a_subquery_are_for_the_join_that_it_becomes(condition: str, is_join: bool) -> None:
    catalog = DictCatalog({"a": _COLUMNS, "b": _COLUMNS})
    text = f"SELECT a.x FROM a WHERE {condition.format(f'SELECT /*+ SWEEP */ b.x FROM b WHERE {ON}')}"
    if is_join:
        assert stage(text, catalog, Config(), lenient=True).extensions == ("IntervalJoinExec",)
    else:
        with pytest.raises(UnsupportedError, match="no join can be made of this subquery") as caught:
            stage(text, catalog, Config(), lenient=True)
        assert caught.value.span is not None
        assert text[caught.value.span.start : caught.value.span.end] == "SWEEP"
    with pytest.raises(UnsupportedError, match="the hint UMJOIN cannot be followed: this SELECT joins nothing"):
        stage(text.replace("SWEEP", "UMJOIN"), catalog, Config(), lenient=True)
