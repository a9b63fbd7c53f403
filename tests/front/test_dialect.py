"""The sqlglot dialect: what it parses, what it writes back, and that its words stay free."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from sqlext.dialect import SqlExt
from sqlext.spans import span_of
from sqlext.window_nodes import Duration, FrameSpec, UnionWindow

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
    assert sqlglot.parse_one(text, read=SqlExt).sql(SqlExt) == text


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
    spec = importlib.util.find_spec("sqlext.dialect")
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ConfigurationError, match="compiled form") as caught:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert "pip" in (caught.value.help or "")
