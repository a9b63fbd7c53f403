"""The sqlglot dialect: what it parses, what it writes back, and that its words stay free."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from sqlext.syntax.dialect import SqlExt
from sqlext.syntax.nodes import Duration, FrameSpec, LastJoinClause, UnionWindow
from sqlext.syntax.spans import span_of

WINDOWS = [
    "(UNION t2 PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)",
    "(UNION db.t2, (SELECT * FROM t3) AS d PARTITION BY k, j ORDER BY ts ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)",
    "(PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 3d OPEN PRECEDING AND 0s OPEN PRECEDING)",
    "(PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND 5ms FOLLOWING MAXSIZE 10)",
    "(PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 30m PRECEDING AND 2h FOLLOWING MAXSIZE 10 EXCLUDE CURRENT_TIME)",
    "(PARTITION BY k ROWS BETWEEN 3 PRECEDING AND CURRENT ROW EXCLUDE CURRENT_ROW EXCLUDE CURRENT_TIME)",
    "(UNION t2 PARTITION BY k ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW)",
    "(PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10' SECONDS PRECEDING AND CURRENT ROW)",
    "(PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES)",
    "(PARTITION BY k ORDER BY ts ROWS_RANGE 3 PRECEDING)",
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("sql", ["SELECT SUM(v) OVER {} FROM t", "SELECT SUM(v) OVER w FROM t WINDOW w AS {}"])
def test_round_trip(sql: str, window: str) -> None:
    text = sql.format(window)
    tree = sqlglot.parse_one(text, read=SqlExt)
    assert tree.sql(SqlExt) == text
    assert sqlglot.parse_one(tree.sql(SqlExt), read=SqlExt) == tree


def test_round_trip_of_several_windows() -> None:
    text = (
        f"SELECT COUNT(*) OVER a, MIN(x) OVER {WINDOWS[2]}, LAG(x, 1) OVER b FROM t WINDOW a AS {WINDOWS[0]}, b AS (a)"
    )
    assert sqlglot.parse_one(text, read=SqlExt).sql(SqlExt) in (text, text.replace("AS (a)", "AS a"))


LAST_JOINS = [
    "SELECT * FROM a LAST JOIN b ORDER BY b.ts ON a.k = b.k",
    "SELECT * FROM a LAST JOIN b AS c ORDER BY c.ts DESC ON a.k = c.k AND a.ts >= c.ts",
    "SELECT * FROM a LAST JOIN b ON a.k = b.k LAST JOIN c ON a.k = c.k LEFT JOIN d ON d.k = c.k LAST JOIN e ON TRUE",
    "SELECT * FROM a LAST JOIN (SELECT * FROM b WHERE v > 1) AS c ORDER BY c.ts + 1 ON a.k = c.k WHERE a.v > 1",
    "SELECT * FROM a LAST JOIN (b LAST JOIN c ON b.k = c.k) ON a.k = b.k",
    "SELECT * FROM a LAST JOIN db.b ON a.k = b.k ORDER BY a.v LIMIT 3",
    "SELECT * FROM (a LAST JOIN b ON a.k = b.k) JOIN c ON a.k = c.k",
    "SELECT * FROM a CROSS JOIN b LAST JOIN c ON a.k = c.k",
    "SELECT last, last.last, LAST(last) FROM last LAST JOIN b AS last ORDER BY last.last ON last.k = last.j",
    "SELECT * FROM a LAST JOIN b USING (k)",
]


@pytest.mark.parametrize("text", LAST_JOINS)
def test_round_trip_of_last_join(text: str) -> None:
    tree = sqlglot.parse_one(text, read=SqlExt)
    assert tree.sql(SqlExt) == text
    assert sqlglot.parse_one(tree.sql(SqlExt, pretty=True), read=SqlExt) == tree
    for join in tree.find_all(LastJoinClause):
        span = span_of(join)
        assert text[span.start :].startswith("LAST JOIN")
        assert join.kind == "LAST"


def test_the_place_of_a_last_join_ends_with_its_condition() -> None:
    text = "SELECT * FROM a last  join b x order by x.ts on a.k = x.k and a.v > 1 where a.v < 9"
    join = sqlglot.parse_one(text, read=SqlExt).find(LastJoinClause)
    assert join is not None
    assert join.alias_or_name == "x"
    span, order = span_of(join), span_of(join.args["order"].expressions[0])
    assert text[span.start : span.end] == "last  join b x order by x.ts on a.k = x.k and a.v > 1"
    assert text[order.start : order.end] == "x.ts"


def test_last_stays_an_alias_where_no_join_follows() -> None:
    for text in ("SELECT * FROM t AS last JOIN u ON last.k = u.k", "SELECT last.k FROM t AS last, u AS last2"):
        assert sqlglot.parse_one(text, read=SqlExt) == sqlglot.parse_one(text, read="spark")
    tree = sqlglot.parse_one("SELECT last.k FROM t last, u", read=SqlExt)
    assert tree.args["from_"].this.alias == "last"


@pytest.mark.parametrize("unit", ["ms", "s", "m", "h", "d", "MS", "S", "M", "H", "D"])
@pytest.mark.parametrize("amount", [0, 7, 100])
def test_durations_in_any_case(unit: str, amount: int) -> None:
    frame = f"ROWS_RANGE BETWEEN {amount}{unit} PRECEDING AND CURRENT ROW"
    text = f"SELECT SUM(v) OVER (PARTITION BY k ORDER BY ts {frame}) FROM t"
    bound = sqlglot.parse_one(text, read=SqlExt).find(Duration)
    assert bound is not None
    assert (bound.name, bound.args["unit"].name) == (str(amount), unit.lower())
    span = span_of(bound)
    assert text[span.start : span.end] == f"{amount}{unit}"


def test_what_spark_can_say_keeps_sqlglots_nodes() -> None:
    tree = sqlglot.parse_one(
        "SELECT SUM(v) OVER (PARTITION BY k ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", read=SqlExt
    )
    assert type(tree.find(exp.Window)) is exp.Window
    assert type(tree.find(exp.WindowSpec)) is exp.WindowSpec


def test_extended_windows_have_nodes_of_their_own() -> None:
    tree = sqlglot.parse_one(f"SELECT SUM(v) OVER {WINDOWS[0]} FROM t", read=SqlExt)
    assert isinstance(tree.find(exp.Window), UnionWindow)
    assert isinstance(tree.find(exp.WindowSpec), FrameSpec)


NAMES = [
    "union_",
    "maxsize",
    "open",
    "rows_range",
    "exclude",
    "current_row",
    "instance_not_in_window",
    "period",
    "groups",
    "last",
]


@pytest.mark.parametrize("name", NAMES)
def test_words_stay_free(name: str) -> None:
    text = (
        f"SELECT {name}, t.{name} AS {name}, SUM({name}) OVER (PARTITION BY {name} ORDER BY {name}) FROM {name} AS t "
        f"WHERE {name} > 1 GROUP BY {name} ORDER BY {name}"
    )
    assert sqlglot.parse_one(text, read=SqlExt) == sqlglot.parse_one(text, read="spark")


@pytest.mark.parametrize("name", ["open", "maxsize", "rows_range", "exclude"])
def test_words_name_windows_and_keys(name: str) -> None:
    text = (
        f"SELECT SUM({name}) OVER {name} FROM t WINDOW {name} AS (UNION {name} PARTITION BY {name} ORDER BY {name} "
        "ROWS_RANGE BETWEEN 10s OPEN PRECEDING AND CURRENT ROW MAXSIZE 3)"
    )
    assert sqlglot.parse_one(text, read=SqlExt).sql(SqlExt) == text


def test_number_suffixes_keep_sparks_meaning_elsewhere() -> None:
    text = "SELECT 10S, 3D, 5L, 1.5F FROM t WHERE x > 10S"
    assert sqlglot.parse_one(text, read=SqlExt) == sqlglot.parse_one(text, read="spark")


def test_found_by_name_when_installed() -> None:
    assert Dialect.get("sqlext") is SqlExt


def test_union_source_may_have_an_alias_without_as() -> None:
    tree = sqlglot.parse_one(
        "SELECT SUM(v) OVER (UNION (SELECT * FROM u) d ROWS_RANGE BETWEEN 1s PRECEDING AND CURRENT ROW) FROM t",
        read=SqlExt,
    )
    window = tree.find(UnionWindow)
    assert window is not None
    assert window.args["union"][0].alias == "d"
    assert window.args["spec"].args["kind"] == "ROWS_RANGE"


def test_compiled_sqlglot_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib
    import importlib.util

    import sqlglot.parser
    from sqlext_planner.errors import ConfigurationError

    monkeypatch.setattr(sqlglot.parser, "__file__", "/x/sqlglot/parser.cpython-311.so")
    spec = importlib.util.find_spec("sqlext.syntax.dialect")
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ConfigurationError, match="compiled form") as caught:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert "pip" in (caught.value.help or "")
