"""EMIT AFTER: what it means, and what is refused, with the place in the text."""

from __future__ import annotations

import pytest
from sqlext_planner.config import Config
from sqlext_planner.early.nodes import EarlyAggregate
from sqlext_planner.errors import SqlExtError
from sqlext_planner.plan_format import tree_text

from sqlext.catalog.dictionary import DictCatalog
from sqlext.explain.pages import explain_text
from sqlext.run.pipeline import stage
from sqlext.run.unplanned import LARGE

COLUMNS = {"k": "int", "s": "string", "ts": "timestamp", "v": "bigint", "x": "double"}
CATALOG = DictCatalog(dict.fromkeys("lrt", COLUMNS), streams="lr")
W = "window({0}.ts, '10 seconds')"
L, R = W.format("l"), W.format("r")
FROM = f"FROM l JOIN r ON l.k = r.k AND {L} = {R}"
COMPUTED = (
    "FROM (SELECT *, window(ts, '10 seconds') AS w FROM l) l JOIN (SELECT *, window(ts, '10 seconds') AS w FROM r) r "
)
EMIT = "EMIT AFTER DELAY INTERVAL '7' SECONDS"
BOUNDS = ("lower", "upper", "coverage", "reliable")


def planned(sql: str) -> tuple[tuple[str, ...], EarlyAggregate]:
    """The names of the results, and the node."""
    plan = stage(sql, CATALOG, Config()).optimized
    assert plan is not None
    (node,) = plan.collect(EarlyAggregate)
    return plan.names, node  # type: ignore[attr-defined]


FORMS = {
    "in ON": f"SELECT window.start, count(*) AS n {FROM} GROUP BY {L} {EMIT}",
    "grouped by the right one": f"SELECT window.start, count(*) AS n {FROM} GROUP BY {R} {EMIT}",
    "in WHERE": f"SELECT window.start, count(*) AS n FROM l, r WHERE l.k = r.k AND {L} = {R} GROUP BY {L} {EMIT}",
    "turned": f"SELECT {L}.start, count(1) AS n FROM l JOIN r ON r.k = l.k AND {R} = {L} GROUP BY {R} {EMIT}",
    "columns": f"SELECT l.w.start, count(*) AS n {COMPUTED} ON l.k = r.k AND l.w = r.w GROUP BY l.w {EMIT}",
    "columns, a window of the time": (
        f"SELECT window.start, count(*) AS n {COMPUTED} ON l.k = r.k AND l.w = r.w GROUP BY {L} {EMIT}"
    ),
    "USING": f"SELECT w.start, count(*) AS n {COMPUTED} USING (k, w) GROUP BY w {EMIT}",
    "alias": f"SELECT {L}.start, count(*) AS n, {L} AS win {FROM} GROUP BY win {EMIT}",
    "position": f"SELECT {L} AS start, count(*) AS n {FROM} GROUP BY 1 {EMIT}",
    "in a subquery": f"SELECT start, n FROM (SELECT window.start, count(*) AS n {FROM} GROUP BY {L} {EMIT})",
    "a common table expression": (
        f"WITH e AS (SELECT window.start, count(*) AS n {FROM} GROUP BY {L} {EMIT}) SELECT start, n FROM e"
    ),
    "lower case": f"select window.start, count(*) as n {FROM} group by {L} emit after delay 7s compensate",
}


@pytest.mark.parametrize("name", list(FORMS))
def test_a_window_join_may_be_written_in_several_ways(name: str) -> None:
    names, node = planned(FORMS[name])
    assert names[:2] == ("start", "n")
    assert [(str(a), str(b)) for a, b in zip(node.left_keys, node.right_keys, strict=True)] in (
        [("l.k", "r.k")],
        [("l_2.k", "r_2.k")],
    )
    assert (node.length, node.offset) == (10_000_000, 0)
    assert str(node.emission) == "after 7s by shrink, confidence 0.95"
    (call,) = node.calls
    assert (call.function, call.value) == ("count", None)


def test_the_results_have_bounds_and_a_phase() -> None:
    sql = (
        "SELECT window, count(*) AS n, sum(l.v), avg(r.x + 1) AS a, date_format(window.end, 'HH:mm') AS t, count(r.s) "
        f"FROM l JOIN r ON l.k = r.k AND l.s = r.s AND {L} = {R} AND l.v > 0 WHERE r.x < 5 AND l.v < 9 GROUP BY {L} "
        "EMIT AFTER DELAY INTERVAL '1 minute 500 milliseconds' COMPENSATE USING Coverage CONFIDENCE .9"
    )
    names, node = planned(sql)
    items = ("window", "n", "sum(v)", "a", "t", "count(s)")
    calls = ("n", "sum(v)", "a", "count(s)")
    assert names == (*items, *(f"{call}_{bound}" for call in calls for bound in BOUNDS), "phase")
    assert [(call.function, call.side) for call in node.calls] == [
        ("count", "left"),
        ("sum", "left"),
        ("avg", "right"),
        ("count", "right"),
    ]
    assert [field.dtype for field in node.output[3::5]] == ["bigint", "bigint", "double", "bigint"]
    assert str(node.emission) == "after 60.5s by coverage, confidence 0.9"
    text = tree_text(node, details=False)
    assert "Filter: l.v > 0 AND l.v < 9" in text
    assert "Filter: r.x < 5" in text


def test_windows_may_have_an_offset() -> None:
    shifted = [f"window({side}.ts, '1 hour', '60 minutes', '70 minutes')" for side in "lr"]
    sql = (
        f"SELECT count(*) AS n FROM l JOIN r ON l.k = r.k AND {shifted[0]} = {shifted[1]} GROUP BY {shifted[0]} {EMIT}"
    )
    _, node = planned(sql)
    assert (node.length, node.offset) == (3_600_000_000, 600_000_000)


def test_explain_says_when_rows_come_out_and_what_is_kept() -> None:
    text = explain_text(stage(FORMS["in ON"], CATALOG, Config()), ("physical",))
    assert "EarlyAggregateExec: ON l.k = r.k WINDOWS 10s of l.ts, r.ts" in text
    assert "EMIT after 7s by shrink, confidence 0.95" in text
    assert "an early row of a window is emitted when the latest event time is 7s after its start" in text
    assert "its final row when the watermark has passed its end" in text
    assert "rows and sums by key are kept until then, by one task, and what shrink has learned of final windows" in text
    assert "rows come out up to 10s after start" in text


ONE = f"SELECT window.start, {{}} AS n {FROM} GROUP BY {L} {EMIT}"
JOINED = f"SELECT count(*) AS n FROM l {{}} GROUP BY {L} {EMIT}"
TAIL = f"SELECT count(*) AS n {FROM} GROUP BY {L} {{}}"
REFUSED = {
    "MIN": (ONE.format("[[min(l.v)]]"), "estimates COUNT, SUM and AVG, and not min"),
    "a function of ours": (ONE.format("[[distinct_count(l.v)]]"), "and not distinct_count"),
    "DISTINCT": (ONE.format("[[count(DISTINCT l.v)]]"), "does not estimate count.DISTINCT"),
    "FILTER": (ONE.format("[[count(*) FILTER (WHERE l.v > 1)]]"), "with FILTER or another clause"),
    "an expression of aggregates": (ONE.format("[[sum(l.v)]] / 2"), "gives each aggregate as it is"),
    "a value of both sides": (ONE.format("sum([[l.v * r.v]])"), "this one reads both"),
    "two values": (ONE.format("[[count(l.v, l.x)]]"), "takes count of one value"),
    "a column": (ONE.format("count(*) AS m, [[l.v]]"), "'l.v' is neither the window nor in an aggregate"),
    "an unknown column": (ONE.format("count(*) AS m, [[l.nothing]]"), "not found"),
    "no aggregate": (f"SELECT window.start {FROM} GROUP BY {L} [[{EMIT}]]", "needs an aggregate"),
    "*": (f"SELECT [[*]] {FROM} GROUP BY {L} {EMIT}", "cannot be selected"),
    "two results of a name": (
        ONE.format("count(*) AS m, [[count(*) AS phase]], count(l.v)"),
        "a column 'phase' of its",
    ),
    "no keys": (JOINED.format(f"[[JOIN r ON {L} = {R}]]"), "needs equal keys"),
    "no windows": (JOINED.format("[[JOIN r ON l.k = r.k]]"), "no equal windows"),
    "other windows": (
        JOINED.format(f"JOIN r ON l.k = r.k AND [[{L} = window(r.ts, '20 seconds')]]"),
        "windows of the sides are not the same",
    ),
    "windows that overlap": (
        JOINED.format(
            "JOIN r ON l.k = r.k AND [[window(l.ts, '2 seconds', '1 second') = window(r.ts, '2 seconds', '1 second')]]"
        ),
        "do not overlap",
    ),
    "an outer join": (JOINED.format(f"[[LEFT JOIN r ON l.k = r.k AND {L} = {R}]]"), "needs an inner join"),
    "an inequality": (JOINED.format(f"JOIN r ON l.k = r.k AND {L} = {R} AND [[l.v < r.v]]"), "in another way"),
    "a table": (JOINED.format(f"JOIN [[t]] r ON l.k = r.k AND {L} = {R}"), "the right side of the join is a table"),
    "only tables": (
        f"SELECT count(*) AS n FROM [[t]] l JOIN t r ON l.k = r.k AND {L} = {R} GROUP BY {L} {EMIT}",
        "the left side of the join is a table",
    ),
    "no join": (f"SELECT count(*) AS n FROM l GROUP BY {L} [[{EMIT}]]", "needs an inner join"),
    "no GROUP BY": (f"SELECT count(*) AS n {FROM} [[{EMIT}]]", "needs GROUP BY"),
    "another key": (f"SELECT count(*) AS n {FROM} GROUP BY {L}, [[l.k]] {EMIT}", "groups by the window alone"),
    "another window": (f"SELECT count(*) AS n {FROM} GROUP BY [[window(l.ts, '1 hour')]] {EMIT}", "the window alone"),
    "HAVING": (f"SELECT count(*) AS n {FROM} GROUP BY {L} [[HAVING count(*) > 1]] {EMIT}", "combined with HAVING"),
    "ORDER BY": (f"SELECT count(*) AS n {FROM} GROUP BY {L} [[ORDER BY n]] {EMIT}", "combined with ORDER BY"),
    "LIMIT": (f"SELECT count(*) AS n {FROM} GROUP BY {L} [[LIMIT 5]] {EMIT}", "combined with LIMIT"),
    "a window of rows below": (
        "SELECT count(*) AS n FROM (SELECT *, [[sum(v) OVER (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 5s "
        f"PRECEDING AND CURRENT ROW)]] AS y FROM l) l JOIN r ON l.k = r.k AND {L} = {R} GROUP BY {L} {EMIT}",
        "over a join does not take windows of rows",
    ),
    "confidence 1": (TAIL.format(f"{EMIT} CONFIDENCE [[1]]"), "CONFIDENCE must be a number between 0 and 1, not 1"),
    "confidence 0": (TAIL.format(f"{EMIT} CONFIDENCE [[0.0]]"), "between 0 and 1"),
    "confidence -1": (TAIL.format(f"{EMIT} CONFIDENCE [[-0.5]]"), "between 0 and 1"),
    "a text": (TAIL.format(f"{EMIT} CONFIDENCE [['high']]"), "between 0 and 1"),
    "an unknown estimator": (TAIL.format(f"{EMIT} COMPENSATE USING [[shrnk]]"), "there is no estimator 'shrnk'"),
    "ksj": (TAIL.format(f"{EMIT} COMPENSATE USING [[ksj]]"), "ksj follows every row"),
    "alf": (TAIL.format(f"{EMIT} COMPENSATE USING [[alf]]"), "alf follows every row"),
    "a number": (TAIL.format("EMIT AFTER DELAY [[7]]"), "must be an interval, not '7'"),
    "months": (TAIL.format("EMIT AFTER DELAY [[INTERVAL '1' MONTH]]"), "DELAY cannot be in months"),
    "no delay": (TAIL.format("EMIT AFTER DELAY [[INTERVAL '0' SECONDS]]"), "longer than 0"),
    "nanoseconds": (TAIL.format("EMIT AFTER DELAY [[INTERVAL '0.0000001' SECONDS]]"), "whole microseconds"),
    "the time is not passed on": (
        "SELECT count(*) AS n FROM (SELECT k, window(ts, '10 seconds') AS w FROM l) l JOIN "
        f"(SELECT *, window(ts, '10 seconds') AS w FROM r) r ON l.k = r.k AND [[l.w = r.w]] GROUP BY l.w {EMIT}",
        "does not pass its time on",
    ),
    "an incomplete clause": (TAIL.format("EMIT AFTER [[INTERVAL]] '7' SECONDS"), "must be followed by DELAY"),
    "a union": (f"SELECT 1 AS n UNION ALL SELECT 2 AS n [[{EMIT}]]", "needs an inner join"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_cannot_be_estimated_is_refused_at_its_place(name: str) -> None:
    text, message = REFUSED[name]
    start, end = text.index("[["), text.index("]]") - len("[[")
    with pytest.raises(SqlExtError, match=message) as caught:
        stage(text.replace("[[", "").replace("]]", ""), CATALOG, Config(), lenient=True)
    assert caught.value.span is not None
    assert (caught.value.span.start, caught.value.span.end) == (start, end), caught.value
    assert caught.value.help


def test_a_long_text_and_a_view_may_hold_it() -> None:
    long = FORMS["in ON"].replace("count(*) AS n", f"count(*) AS n, '{'x' * LARGE}' AS x", 1)
    for sql in (long, f"CREATE TEMPORARY VIEW e AS {FORMS['in ON']}"):
        plan = stage(sql, CATALOG, Config(), lenient=True)
        assert plan.extensions == ("EarlyAggregateExec",)
        assert not plan.passthrough


@pytest.mark.parametrize(
    "sql",
    ["SELECT emit FROM l emit", "SELECT l.k AS emit, v AS after FROM l JOIN r emit ON l.k = emit.k", "SELECT 1 emit"],
)
def test_emit_is_a_name_anywhere_else(sql: str) -> None:
    assert not stage(
        sql, DictCatalog({"l": {"k": "int", "v": "int", "emit": "int"}, "r": {"k": "int"}}), Config()
    ).statement.uses_extension
