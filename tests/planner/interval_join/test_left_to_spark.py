"""Statements with a period predicate whose rows Spark compares: EXPLAIN says why. And the hint SWEEP is an order."""

from __future__ import annotations

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.plan_format import tree_text
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.nodes import Filter
from sqlext_planner.relational.spark_exec import SparkExec

from sqlext.catalog import DictCatalog
from sqlext.run.pipeline import StagedPlan, stage

_COLUMNS = {"s": "bigint", "e": "bigint", "x": "bigint", "f": "double", "g": "double"}
TABLES = {"a": _COLUMNS, "b": _COLUMNS, "c": _COLUMNS}
P, Q = "PERIOD(a.s, a.e)", "PERIOD(b.s, b.e)"
ALL = "Spark compares all pairs of rows: "


def planned(sql: str, *, lenient: bool = False, **settings: str) -> StagedPlan:
    return stage(sql, DictCatalog(TABLES), Config(**settings), lenient=lenient)  # type: ignore[arg-type]


def reasons(plan: StagedPlan) -> list[str]:
    """The reasons of the joins and filters that Spark computes."""
    assert plan.physical is not None
    nodes = (
        node for node in plan.physical.walk() if isinstance(node, SparkExec) and isinstance(node.node, Join | Filter)
    )
    return [node.why for node in nodes if node.why]


#: statement -> the reason. Whoever makes one of these fast takes it out.
LEFT: dict[str, str] = {
    f"SELECT /*+ NO_SWEEP */ a.x FROM a JOIN b ON {P} OVERLAPS {Q}": ALL + "the hint NO_SWEEP asks for it",
    f"SELECT /*+ NO_SWEEP */ a.x FROM a JOIN b ON a.x = b.x AND {P} OVERLAPS {Q}": "Spark joins on the equal keys and "
    "tests the rest: the hint NO_SWEEP asks for it",
    f"SELECT a.x FROM a JOIN b ON ({P} OVERLAPS {Q}) IS NOT FALSE": ALL + "no window over the ends finds the pairs for "
    "which '(PERIOD(a.s, a.e) OVERLAPS PERIOD(b.s, b.e)) IS NOT FALSE' holds",
    "SELECT a.x FROM a JOIN b ON PERIOD(a.s, b.e) OVERLAPS PERIOD(b.s, a.e)": ALL + "PERIOD(a.s, b.e) has ends of both",
    "SELECT a.x FROM a, b WHERE PERIOD(a.s, b.e) CONTAINS a.x": ALL + "PERIOD(a.s, b.e) has ends of both sides",
    f"SELECT a.x FROM a JOIN b ON NOT {P} CONTAINS b.x": ALL + "no window over the ends finds the pairs",
    f"SELECT a.x FROM a JOIN b ON CASE WHEN {P} OVERLAPS {Q} THEN true END": ALL + "no window over the ends",
    f"SELECT a.x FROM a JOIN b ON ({P} OVERLAPS {Q}) = (a.x > b.x)": ALL + "no window over the ends",
    "SELECT a.x FROM a JOIN b ON period_intersect(a.s, a.e, b.s, b.e) IS NULL": ALL + "no window over the ends",
    "SELECT a.x FROM a JOIN b ON period_intersect(a.s, a.e, b.s, b.e).start > 3": ALL + "no window over the ends",
    f"SELECT a.x FROM a, b WHERE {P} OVERLAPS {Q} OR rand() < 0.5": ALL + "'PERIOD(a.s, a.e) OVERLAPS PERIOD(b.s, b.e) "
    "OR rand() < 0.5' has to be computed where it stands",
}


@pytest.mark.parametrize("sql", LEFT)
def test_every_nested_loop_has_its_reason(sql: str) -> None:
    plan = planned(sql)
    (found,) = reasons(plan)
    assert found.startswith(LEFT[sql])
    assert plan.physical is not None
    assert found in tree_text(plan.physical)


def test_settings_may_leave_it_to_spark() -> None:
    (found,) = reasons(planned(f"SELECT a.x FROM a JOIN b ON NOT {P} OVERLAPS {Q}", interval_empty="point"))
    assert found.startswith(ALL + "'PERIOD(a.s, a.e) ALLEN BEFORE OR ")
    (found,) = reasons(planned(f"SELECT a.x FROM a JOIN b ON {P} OVERLAPS {Q}", interval_join_strategy="spark"))
    assert "as the setting says" in found


def test_joins_by_windows_have_no_such_reason() -> None:
    assert reasons(planned(f"SELECT a.x FROM a JOIN b ON {P} OVERLAPS {Q} WHERE a.x > b.x")) == []
    assert reasons(planned(f"SELECT a.x FROM a JOIN b ON {P} MEETS {Q}")) == []  # an equality join
    assert reasons(planned("SELECT a.x FROM a JOIN b ON a.x + b.x > 3")) == []  # no period


@pytest.mark.parametrize(
    "on",
    [
        f"({P} OVERLAPS {Q}) IS NOT FALSE",
        "a.s + b.s < a.e - b.e",
        "abs(a.s - b.s) < 3",
        "coalesce(a.s < b.e, true) AND a.x = b.x",
        f"{P} OVERLAPS {Q} = (a.x > b.x)",
    ],
)
def test_sweep_that_cannot_be_followed_is_an_error(on: str) -> None:
    for lenient in (False, True):
        with pytest.raises(UnsupportedError, match="the hint SWEEP cannot be followed: Spark") as caught:
            planned(f"SELECT /*+ SWEEP */ a.x FROM a JOIN b ON {on}", lenient=lenient)
        assert caught.value.condition == "hint-not-followed"
        assert caught.value.span is not None


def test_sweep_asks_nothing_of_other_joins() -> None:
    ons = ("a.x = b.x", "a.x = b.x AND a.s <> b.s", f"{P} OVERLAPS {Q}", "a.s < b.e")
    for on in ons:
        planned(f"SELECT /*+ SWEEP */ a.x FROM a JOIN b ON {on} JOIN c ON c.x = a.x")
