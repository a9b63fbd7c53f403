"""Pages of plans: well formed, complete, linked, and never anything but text where a user's text stands."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError
from sqlext_planner.plan_format.markup import shown
from sqlext_planner.plan_format.matching import match_logical

from sqlext.catalog import DictCatalog
from sqlext.explain.pages import STAGES, places_of, render
from sqlext.run.pipeline import StagedPlan, stage
from tests.explain.plans import OVERLAP_JOIN, WINDOW_UNION, Page, measured, page_of, planned, tpch
from tests.properties import examples

LAST_JOIN = (
    "SELECT v.ts, o.price FROM views v LAST JOIN orders o ORDER BY o.ts ON v.user_id = o.user_id AND v.ts >= o.ts"
)
GAPS = "SELECT * FROM GAPS(shifts PARTITION BY k PERIOD (ts, te))"


@pytest.fixture(scope="module")
def q3() -> StagedPlan:
    return tpch(3)


@pytest.mark.parametrize("sql", [WINDOW_UNION, OVERLAP_JOIN, LAST_JOIN, GAPS, "SELECT 1", "SHOW TABLES"])
def test_pages_are_whole(sql: str) -> None:
    plan = planned(sql)
    for stages in (STAGES, ("analyzed", "optimized", "physical"), ("physical",)):
        page = Page(render(plan, stages, "html"))
        assert page.headings[0] == 1
        assert page.headings.count(1) == 1
        assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
        assert page.elements["main"] == page.elements["nav"] == 1
    assert "http" not in render(plan, STAGES, "html")


def test_a_join_in_a_subquery_has_its_picture() -> None:
    text = """SELECT id, CASE WHEN id IN (SELECT v.user_id FROM views v, orders o, alarms a WHERE v.user_id = o.user_id
        AND o.item = v.item AND a.id = v.user_id) THEN 1 END AS hit FROM shifts"""
    page = Page(page_of(planned(text)))
    assert "Join graph" in page.text
    assert "part of a text that goes to Spark" in page.text


def test_two_plans_in_one_notebook_do_not_share_ids(q3: StagedPlan) -> None:
    page = Page(q3._repr_html_() + q3._repr_html_() + planned(WINDOW_UNION)._repr_html_())
    assert page.elements["html"] == page.elements["h1"] == page.elements["h2"] == 0
    assert page.elements["style"] == 3


def test_styles_of_a_notebook_are_about_its_plans_only(q3: StagedPlan) -> None:
    style = q3._repr_html_().partition("<style>")[2].partition("</style>")[0]
    rules = [line for line in style.split("\n") if "{" in line and not line.lstrip().startswith(("@", "--"))]
    assert len(rules) > 50
    assert all(line.lstrip().startswith(".sqlext-plan") for line in rules)
    assert "transition" not in style  # nothing moves, whoever asks for it
    assert "animation" not in style


def test_the_statement_shows_what_became_an_operator(q3: StagedPlan) -> None:
    assert q3.optimized is not None
    umjoin = next(node for node in q3.optimized.walk() if node.operator_name)
    marked = [q3.sql[span.start : span.end].strip(" ,\n") for span in places_of(umjoin)]
    assert marked == ["customer", "orders", "lineitem", "c_custkey = o_custkey", "l_orderkey = o_orderkey"]
    page = page_of(q3)
    assert '<a href="#plan-op-1" id="plan-sql-1" class="mark"><span class="hit c0">customer</span><sup' in page
    assert Page(page).text.count("2 Join became UMJoin") == 1


def test_merged_windows_are_all_marked() -> None:
    page = page_of(planned(WINDOW_UNION))
    assert ">w AS (UNION orders PARTITION BY" in page
    assert ">recent AS (UNION orders PARTITION BY" in page
    assert "1 WindowUnion merged into another" in page


def test_nodes_lead_to_what_they_are_in_the_next_stage(q3: StagedPlan) -> None:
    assert q3.analyzed is not None
    assert q3.optimized is not None
    found = match_logical(q3.analyzed, q3.optimized)
    states = {(node.node_name(), found.state_before(node)) for node in q3.analyzed.walk()}
    assert ("Join", "gone") in states
    assert ("Scan", "changed") in states
    assert {node.node_name() for node in found.became.values()} == {"UMJoin"}
    assert {(n.node_name(), found.state_after(n)) for n in q3.optimized.walk()} >= {("UMJoin", "new"), ("Sort", "same")}


def test_every_rule_that_changed_the_plan_is_a_step(q3: StagedPlan) -> None:
    assert q3.trace is not None
    text = Page(page_of(q3)).text
    assert [step.rule in text for step in q3.trace.steps] == [True] * len(q3.trace.steps)
    assert "replace each group of 3 inputs or more by a UMJoin" in text  # the rule's own words
    assert page_of(q3).count('class="pair"') == len(q3.trace.steps)


def test_rivals_stand_beside_what_was_chosen() -> None:
    text = Page(page_of(planned(OVERLAP_JOIN))).text
    assert "one side goes to every task" in text
    assert "Spark compares all pairs of rows" in text
    assert "Joins all inputs at once" in Page(page_of(tpch(5))).text
    assert "not possible: the inputs form a cycle" in Page(page_of(tpch(5))).text


def test_what_was_measured_is_on_the_nodes() -> None:
    text = Page(page_of(measured())).text
    for told in (
        "90 rows in 2.25 s",
        "90 rows out",
        "100 rows moved (2.5 kB)",
        "0.50 s in 3 tasks",
        "1.5x the av",
    ):
        assert told in text
    assert "the busiest 1.50x the average" in text
    assert "7 tasks in 3 stages ran 1.50 s" in text
    assert "shuffle of 2.0 MB" in text


HOSTILE = st.one_of(
    st.text(min_size=1),
    st.sampled_from(
        [
            "</style><script>alert(1)</script>",
            "</pre></main><img src=x onerror=alert(1)>",
            '"><a href="javascript:alert(1)">x</a>',
            "--><!--",
            "]]></svg><script>",
            "&lt;b&gt;",
        ]
    ),
)


@examples(25)
@given(HOSTILE, HOSTILE, HOSTILE)
def test_hostile_names_are_text(column: str, alias: str, value: str) -> None:
    names = [name.replace("`", "``") for name in (column, alias)]
    assume(column.lower() not in ("k", "ts", "v"))
    literal = value.replace("\\", "\\\\").replace("'", "\\'")
    table = {column: "string", "k": "int", "ts": "timestamp", "v": "int"}
    sql = (
        f"SELECT `{names[0]}` AS `{names[1]}`, sum(v) OVER w AS s FROM t WHERE `{names[0]}` <> '{literal}' "
        f"WINDOW w AS (UNION u PARTITION BY `{names[0]}` ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW)"
    )
    try:
        plan = stage(sql, DictCatalog({"t": table, "u": table}), Config())
    except (SqlExtError, UnicodeEncodeError):
        assume(False)
    page = Page(page_of(plan))
    assert shown(column) in page.text
    Page(plan._repr_html_())
