"""The executor's checks: each kind of broken rule is caught and named; sharing survives; planning is quick."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from sqlext_planner.batches import BATCHES
from sqlext_planner.errors import AnalysisError, InternalError
from sqlext_planner.optimizer.executor import ONCE, Batch, PlanNumbers, Rule, RuleExecutor, rule
from sqlext_planner.optimizer.rules import merge_filters
from sqlext_planner.plan_format import tree_text
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Limit, Scan, SetOperation, SubqueryAlias

from tests.planner.plans import col, compare, output, project, scan, window_union


def run(plan: LogicalPlan, *rules: Rule, rounds: int = ONCE, strict: bool = True) -> LogicalPlan:
    return RuleExecutor((Batch("test", rounds, rules),), strict).optimize(plan).final


PLAN = Filter(compare("a.k", ">", 1), scan("a"))


def test_no_change_keeps_the_object() -> None:
    assert run(PLAN, merge_filters) is PLAN


def test_an_equal_copy_is_a_bug() -> None:
    @rule(order="bottom_up")
    def copies(node: LogicalPlan) -> LogicalPlan | None:
        return replace(node) if isinstance(node, Filter) else None

    with pytest.raises(InternalError, match="rule copies returned an equal copy"):
        run(PLAN, copies)


def test_returning_the_node_itself_is_a_bug() -> None:
    @rule(order="top_down")
    def echoes(node: LogicalPlan) -> LogicalPlan | None:
        return node

    with pytest.raises(InternalError, match="rule echoes failed: it returned the node"):
        run(PLAN, echoes)


def test_a_changed_schema_is_a_bug() -> None:
    @rule(order="bottom_up")
    def loses_columns(node: LogicalPlan) -> LogicalPlan | None:
        if isinstance(node, Scan) and len(node.fields) > 1:
            return replace(node, fields=node.fields[:1])
        return None

    with pytest.raises(InternalError, match="rule loses_columns changed the result's columns"):
        run(PLAN, loses_columns)


def test_changed_result_names_are_a_bug() -> None:
    @rule(order="root")
    def renames(node: LogicalPlan) -> LogicalPlan | None:
        return replace(node, names=("x", "y", "z"))

    with pytest.raises(InternalError, match="rule renames changed the result's columns"):
        run(output(PLAN), renames)


def test_an_unresolved_column_is_a_bug() -> None:
    @rule(order="bottom_up")
    def forgets_a_column(node: LogicalPlan) -> LogicalPlan | None:
        if isinstance(node, Scan) and len(node.fields) == 3:
            return replace(node, fields=node.fields[1:])
        return None

    with pytest.raises(InternalError, match=r"rule forgets_a_column left Filter: a\.k > 1 reading a\.k"):
        run(project(PLAN, "a.v"), forgets_a_column)


def test_two_rules_that_undo_each_other_are_a_bug() -> None:
    @rule(order="root")
    def one_to_two(node: LogicalPlan) -> LogicalPlan | None:
        return replace(node, count=2) if isinstance(node, Limit) and node.count == 1 else None

    @rule(order="root")
    def two_to_one(node: LogicalPlan) -> LogicalPlan | None:
        return replace(node, count=1) if isinstance(node, Limit) and node.count == 2 else None

    with pytest.raises(InternalError, match="rules one_to_two and two_to_one cycle"):
        run(Limit(1, 0, scan("a")), one_to_two, two_to_one, rounds=10)


@rule(order="root")
def counts_up(node: LogicalPlan) -> LogicalPlan | None:
    return replace(node, count=node.count + 1) if isinstance(node, Limit) and node.count is not None else None


def test_a_batch_that_never_rests_is_a_bug_under_pytest() -> None:
    plan = Limit(1, 0, scan("a"))
    with pytest.raises(InternalError, match="does not come to rest in 3 rounds: rule counts_up"):
        run(plan, counts_up, rounds=3)
    assert run(plan, counts_up, rounds=3, strict=False) == Limit(4, 0, scan("a"))


def test_a_once_batch_must_be_idempotent_under_pytest() -> None:
    with pytest.raises(InternalError, match="batch test is not idempotent: rule counts_up"):
        run(Limit(1, 0, scan("a")), counts_up)


def test_strict_is_the_default_under_pytest() -> None:
    assert RuleExecutor(()).strict


def test_a_failing_rule_is_named_and_user_errors_pass() -> None:
    @rule(order="bottom_up")
    def divides(node: LogicalPlan) -> LogicalPlan | None:
        raise ZeroDivisionError("by zero")

    @rule(order="bottom_up")
    def refuses(node: LogicalPlan) -> LogicalPlan | None:
        raise AnalysisError("not like this", condition="wrong-type")

    with pytest.raises(InternalError, match="rule divides failed: by zero"):
        run(PLAN, divides)
    with pytest.raises(AnalysisError, match="not like this"):
        run(PLAN, refuses)


def test_the_trace_holds_every_change() -> None:
    plan = Filter(compare("a.v", "<", 9), PLAN)
    trace = RuleExecutor((Batch("Normalize", 5, (merge_filters,)),), True).optimize(plan)
    assert trace.initial is plan
    assert trace.rules == ("merge_filters",)
    assert [step.batch for step in trace.steps] == ["Normalize"]
    assert trace.steps[-1].after is trace.final
    assert trace.steps[0].seconds >= 0


def test_a_shared_node_is_rewritten_once_and_stays_shared() -> None:
    shared = Filter(compare("a.v", "<", 9), PLAN)
    both = Join(
        SubqueryAlias("x", ("k", "ts", "v"), shared), SubqueryAlias("y", ("k", "ts", "v"), shared), "cross", None
    )
    new = run(both, merge_filters)
    assert isinstance(new, Join)
    assert new.left.children[0] is new.right.children[0]
    assert new.left.children[0].label() == "Filter: a.k > 1 AND a.v < 9"


def test_a_shared_node_is_not_taken_apart_for_one_parent() -> None:
    """Filters stop above a CTE that is used twice, so that it is computed once."""
    shared = window_union(scan("a"), (scan("b"),))
    names = ("k", "ts", "v", "s")
    aliases = [SubqueryAlias(name, names, shared) for name in ("x", "y")]
    plan = output(
        SetOperation(
            "union",
            True,
            tuple(col(f"u.{name}") for name in names),
            Filter(compare("x.k", "=", 1), aliases[0]),
            Filter(compare("y.k", "=", 2), aliases[1]),
        )
    )
    final = RuleExecutor(BATCHES, strict=True).optimize(plan).final
    left, right = final.children[0].children
    assert tree_text(left, details=False).splitlines()[:2] == ["SubqueryAlias: x", "  Filter: a.k = 1"]
    assert left.children[0].children[0] is right.children[0].children[0]


def test_numbers_of_equal_plans_are_equal() -> None:
    numbers = PlanNumbers()
    assert numbers.number(PLAN) == numbers.number(Filter(compare("a.k", ">", 1), scan("a")))
    assert numbers.number(PLAN) != numbers.number(Filter(compare("a.k", ">", 2), scan("a")))


def test_a_deep_dag_is_planned_in_time() -> None:
    """40 levels of a CTE used twice are 2^40 paths; every pass must look at a node once."""
    plan: LogicalPlan = scan("a", "k bigint")
    for level in range(40):
        sides = [SubqueryAlias(f"{side}{level}", ("k",), plan) for side in "xy"]
        plan = SetOperation("union", True, (col(f"u{level}.k"),), *sides)
    started = time.perf_counter()
    RuleExecutor(BATCHES, strict=True).optimize(output(plan))
    assert time.perf_counter() - started < 2


def test_a_rule_sees_only_what_it_looks_for_and_nothing_twice() -> None:
    seen: list[str] = []

    @rule(order="bottom_up", on=(Filter, Limit))
    def watching(node: LogicalPlan) -> LogicalPlan | None:
        seen.append(node.label())
        return None

    once = [True]

    @rule(order="root")
    def changing(root: LogicalPlan) -> LogicalPlan | None:
        return replace(root, child=Limit(9, 0, root.children[0])) if once and once.pop() else None

    below = Filter(compare("a.k", ">", 1), Limit(5, 0, scan("a")))
    plan = output(Join(below, Filter(compare("b.k", ">", 2), scan("b")), "cross", None))
    run(plan, watching, changing, rounds=5, strict=False)
    assert seen == ["Filter: a.k > 1", "Limit: 9"]
