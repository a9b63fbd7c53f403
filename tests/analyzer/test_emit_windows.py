"""EMIT AFTER over windows of rows: what it means, and what is refused, with the place in the text."""

from __future__ import annotations

import pytest
from sqlext_planner.config import Config
from sqlext_planner.early.nodes import EarlyWindows
from sqlext_planner.errors import SqlExtError
from sqlext_planner.window.nodes import WindowUnion

from sqlext.catalog.dictionary import DictCatalog
from sqlext.explain.pages import explain_text
from sqlext.run.pipeline import stage

COLUMNS = {"k": "int", "s": "string", "ts": "timestamp", "v": "bigint", "x": "double"}
CATALOG = DictCatalog(dict.fromkeys("lrt", COLUMNS), streams="lr")
W = "WINDOW w AS (UNION r PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 10s PRECEDING AND CURRENT ROW)"
EMIT = "EMIT AFTER DELAY INTERVAL '2' SECONDS"
BOUNDS = ("lower", "upper", "coverage", "reliable")


def planned(sql: str, config: Config | None = None) -> tuple[tuple[str, ...], EarlyWindows]:
    """The names of the results, and the node."""
    plan = stage(sql, CATALOG, config or Config()).optimized
    assert plan is not None
    (node,) = plan.collect(EarlyWindows)
    return plan.names, node  # type: ignore[attr-defined]


def test_the_results_have_bounds_and_a_phase() -> None:
    sql = f"SELECT *, v + 1 AS more, COUNT(*) OVER w AS n, (sum(v) OVER w) AS t, avg(x) OVER w FROM l {W} {EMIT}"
    names, node = planned(sql)
    items = (*COLUMNS, "more", "n", "t", "avg(x) OVER w")
    assert names == (*items, *(f"{call}_{bound}" for call in items[-3:] for bound in BOUNDS), "phase")
    assert str(node.emission) == "after 2s by shrink, confidence 0.95"
    (window,) = node.child.windows  # type: ignore[attr-defined]
    assert [call.function for call in window.calls] == ["count", "sum", "avg"]


def test_windows_of_the_same_keys_are_one_operator_whatever_the_setting_of_late_rows() -> None:
    sql = (
        "SELECT count(*) OVER w AS n, count(*) OVER w AS again, sum(v) OVER u AS s FROM l "
        f"{W}, u AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND 1s FOLLOWING) "
        "EMIT AFTER DELAY 0s COMPENSATE USING coverage CONFIDENCE 0.8"
    )
    for late in ("drop", "rows"):
        names, node = planned(sql, Config(stream_late=late))
        assert names[:3] == ("n", "again", "s")
        assert names.count("phase") == 1
        assert str(node.emission) == "after 0s by coverage, confidence 0.8"
        assert isinstance(node.child, WindowUnion)
        assert len(node.child.windows) == 2
        assert node.child.phase is None


def test_nobody_computes_what_nobody_reads() -> None:
    inner = f"SELECT k, ts, count(*) OVER w AS n, sum(v) OVER w AS s, x FROM l {W} {EMIT}"
    _, node = planned(f"SELECT k, n_upper FROM ({inner}) WHERE phase = 'early'")
    assert [str(call) for call in node.calls] == ["n"]
    assert [str(column) for column in node.child.output_columns] == ["l.k", "n"]


def test_explain_says_when_rows_come_out_and_what_is_kept() -> None:
    text = explain_text(stage(f"SELECT ts, count(*) OVER w AS n FROM l {W} {EMIT}", CATALOG, Config()), ("physical",))
    assert "EarlyWindowsExec: UNION 1 sources PARTITION BY l.k ORDER BY l.ts" in text
    assert "EMIT after 2s by shrink, confidence 0.95" in text
    assert "an early row is emitted when the latest event time is l.ts + 2s, estimated by shrink" in text
    assert "its final row is emitted when l.ts < watermark; rows are kept for 10s" in text
    assert "a record of it is kept until then, and what shrink has learned of final rows for good" in text


CALL = f"SELECT ts, {{}} FROM l {W} {EMIT}"
FRAME = f"SELECT count(*) OVER w AS n FROM l WINDOW [[w AS {{}}]] {EMIT}"
TAIL = f"SELECT count(*) OVER w AS n FROM l {W} {{}}"
REFUSED = {
    "MIN": (CALL.format("[[min(v)]] OVER w AS n"), "estimates COUNT, SUM and AVG, and not min"),
    "a function of ours": (CALL.format("[[count_where(v, x > 1)]] OVER w AS n"), "and not count_where"),
    "FILTER": (CALL.format("[[count(*) FILTER (WHERE v > 1)]] OVER w AS n"), "with FILTER or another clause"),
    "DISTINCT": (CALL.format("[[count(DISTINCT v)]] OVER w AS n"), "does not estimate count.DISTINCT"),
    "an expression": (CALL.format("1 + [[sum(v) OVER w]] AS n"), "gives each aggregate as it is"),
    "an aggregate in an argument": (CALL.format("[[sum(v - avg(v))]] OVER w AS n"), "aggregates over aggregates"),
    "a name that is added": (CALL.format("[[v AS phase]], count(*) OVER w AS n"), "a column 'phase' of its own"),
    "ROWS": (
        FRAME.format("(PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW EXCLUDE CURRENT_ROW)"),
        "windows that count rows .ROWS",
    ),
    "Spark's windows": (
        f"SELECT [[count(*) OVER (PARTITION BY k ORDER BY ts)]] AS n FROM l {EMIT}",
        "this one is Spark's",
    ),
    "two orders": (
        f"SELECT count(*) OVER w AS n, sum(v) OVER u AS s FROM l {W}, [[u AS (PARTITION BY s ORDER BY ts ROWS_RANGE "
        f"BETWEEN 1s PRECEDING AND CURRENT ROW)]] {EMIT}",
        "need the same PARTITION BY and ORDER BY",
    ),
    "a table": (f"SELECT count(*) OVER w AS n FROM [[t]] {W} {EMIT}", "FROM is a table"),
    "a table in UNION": (
        f"SELECT count(*) OVER w AS n FROM l {W.replace('UNION r', 'UNION [[t]]')} {EMIT}",
        "this UNION source is a table",
    ),
    "GROUP BY": (f"SELECT count(*) OVER w AS n FROM l [[GROUP BY k]] {W} {EMIT}", "combined with GROUP BY"),
    "LIMIT": (TAIL.format(f"[[LIMIT 5]] {EMIT}"), "combined with LIMIT"),
    "svi": (TAIL.format(f"{EMIT} COMPENSATE USING [[svi]]"), "svi is about window joins"),
    "alf": (TAIL.format(f"{EMIT} COMPENSATE USING [[alf]]"), "alf is about window joins"),
    "unknown": (TAIL.format(f"{EMIT} COMPENSATE USING [[shrnk]]"), "there is no estimator 'shrnk'"),
    "below 0": (TAIL.format("EMIT AFTER DELAY [[INTERVAL '-1' SECOND]]"), "must not be below 0"),
    "a column that is not there": (CALL.format("[[nothing]], count(*) OVER w AS n"), "not found"),
    "UNBOUNDED FOLLOWING": (
        FRAME.format("(PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1s PRECEDING AND UNBOUNDED FOLLOWING)"),
        "never complete",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_refusals_have_a_place(name: str) -> None:
    text, message = REFUSED[name]
    start, end = text.index("[["), text.index("]]") - len("[[")
    with pytest.raises(SqlExtError, match=message) as caught:
        stage(text.replace("[[", "").replace("]]", ""), CATALOG, Config())
    assert caught.value.span is not None
    assert (caught.value.span.start, caught.value.span.end) == (start, end), caught.value.span
    assert caught.value.help
