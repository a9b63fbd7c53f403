"""What golden files cannot reach: plans that the analyzer does not make, and properties of the rules' helpers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sqlext_planner.batches import BATCHES
from sqlext_planner.expressions.nodes import SparkExpr, is_generator, is_movable
from sqlext_planner.optimizer.executor import RuleExecutor, apply_rule
from sqlext_planner.optimizer.rules import merge_projects, prune_columns, push_filter
from sqlext_planner.plan_format import tree_text
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project, Scan, SetOperation, SparkRelation
from sqlext_planner.relational.plan_patterns import same_query
from sqlext_planner.window.nodes import CURRENT_ROW, Bound, WindowFrame, WindowUnion
from sqlext_planner.window.rules import merge_window_unions

from tests.planner.plans import (
    Filter,
    SubqueryAlias,
    col,
    compare,
    named,
    opaque,
    output,
    project,
    scan,
    window_union,
    written,
)

LISTS = st.lists(st.sampled_from("bcde"), max_size=5)


@given(LISTS, LISTS)
def test_merged_sources_keep_both_orders(inner: list[str], outer: list[str]) -> None:
    """Each group finds its own sources, in its own order, in the merged list; which is as short as can be."""
    first = window_union(scan("a"), tuple(scan(name) for name in inner), call="s1", name="w1")
    second = window_union(first, tuple(scan(name, alias=f"{name}_2") for name in outer), call="s2", name="w2")
    merged = merge_window_unions(second)
    assert isinstance(merged, WindowUnion)
    names = [union.table for union in merged.unions if isinstance(union, Scan)]
    for window, wanted in zip(merged.windows, (inner, outer), strict=True):
        assert [names[i] for i in window.sources] == wanted
        assert list(window.sources) == sorted(set(window.sources))
    assert len(names) == len(inner) + len(outer) - longest_common(inner, outer)


def longest_common(left: list[str], right: list[str]) -> int:
    if not left or not right:
        return 0
    if left[0] == right[0]:
        return 1 + longest_common(left[1:], right[1:])
    return max(longest_common(left[1:], right), longest_common(left, right[1:]))


def test_windows_do_not_merge_if_one_reads_the_other() -> None:
    first = window_union(scan("a"), call="s1")
    assert merge_window_unions(window_union(first, argument="s1", call="s2")) is None
    assert merge_window_unions(window_union(first, call="s2", order="s1")) is None
    assert merge_window_unions(window_union(first, call="s2", order=None)) is None


def test_windows_merge_whatever_the_order_of_the_keys() -> None:
    keys = (col("a.k"), col("a.v"))
    first = window_union(scan("a"), call="s1")
    first = WindowUnion(keys, first.order_by, first.windows, first.source, first.unions)
    second = window_union(first, call="s2")
    second = WindowUnion(keys[::-1], second.order_by, second.windows, first, ())
    assert merge_window_unions(second) is not None


def test_a_union_source_wider_than_the_inner_source_prevents_merging() -> None:
    """Its last column stands beside the inner window's result, which the merged node's source lacks."""
    wide = scan("b", "k bigint, ts timestamp, v double, s double")
    assert merge_window_unions(window_union(window_union(scan("a"), call="s1"), (wide,), call="s2")) is None


def test_same_query_is_blind_to_aliases_only() -> None:
    left, right = (Filter(compare(f"{name}.k", ">", 1), scan("b", alias=name)) for name in ("x", "y"))
    assert same_query(left, right)
    assert not same_query(left, Filter(compare("y.k", ">", 2), scan("b", alias="y")))
    assert not same_query(scan("b"), scan("c"))
    joined = [
        Join(scan("b", alias=left), scan("b", alias=right), "inner", compare(f"{left}.k", "=", f"{read}.k"))
        for left, right, read in (("x", "y", "y"), ("p", "q", "q"), ("p", "q", "p"))
    ]
    assert same_query(joined[0], joined[1])
    assert not same_query(joined[0], joined[2])


def test_two_draws_are_not_the_same_query() -> None:
    draws = [Filter(opaque("rand() < 0.5", deterministic=False), scan("b", alias=name)) for name in ("x", "y")]
    assert not same_query(draws[0], draws[1])
    assert same_query(draws[0], draws[0])
    samples = [SparkRelation("SELECT * FROM b TABLESAMPLE (10 ROWS)", name, scan("b").fields) for name in ("x", "y")]
    assert not same_query(samples[0], samples[1])


def test_a_narrow_union_source_without_the_key_is_not_filtered() -> None:
    source, union = scan("a", "ts timestamp, v double, k bigint"), scan("b", "ts timestamp, v double")
    plan = Filter(compare("a.k", "=", 1), window_union(source, (union,)))
    pushed = apply_rule(push_filter, plan)
    assert tree_text(pushed, details=False).splitlines()[1:] == [
        "  Filter: a.k = 1",
        "    Scan: a [ts, v, k]",
        "  Scan: b [ts, v]",
    ]


def test_one_window_without_instance_not_in_window_keeps_filters_above() -> None:
    alone = WindowFrame("range", Bound("preceding", 1, "h"), CURRENT_ROW, instance_not_in_window=True)
    both = window_union(window_union(scan("a"), call="s1", frame=alone), call="s2")
    merged = merge_window_unions(both)
    assert merged is not None
    plan = Filter(compare("a.v", ">", 1), merged)
    assert apply_rule(push_filter, plan) is plan


def test_pruning_keeps_what_any_parent_of_a_shared_node_needs() -> None:
    shared = Filter(compare("a.v", ">", 1), scan("a", "k bigint, ts timestamp, v double, n string"))
    names = ("k", "ts", "v", "n")
    left, right = (SubqueryAlias(name, names, shared) for name in ("x", "y"))
    plan = project(Join(left, right, "inner", compare("x.k", "=", "y.k")), "x.k", "y.ts")
    new = apply_rule(prune_columns, plan)
    x, y = new.children[0].children
    assert x.child is y.child
    assert [column.name for column in x.child.output_columns] == ["k", "ts", "v"]
    assert apply_rule(prune_columns, new) is new


def test_pruning_a_union_all_of_unequal_sides_selects_the_same_places() -> None:
    filtered = Filter(compare("b.v", ">", 1), scan("b"))
    columns = (col("u.k"), col("u.ts"), col("u.v"))
    plan = project(SetOperation("union", True, columns, scan("a"), filtered), "u.ts")
    new = apply_rule(prune_columns, plan)
    assert tree_text(new, details=False).splitlines()[1:] == [
        "  SetOperation: UNION ALL",
        "    Scan: a [ts]",
        "    Project: b.ts",
        "      Filter: b.v > 1",
        "        Scan: b [ts, v]",
    ]


def test_pruning_never_takes_the_last_column() -> None:
    plan = output(project(scan("a"), named(opaque("1"), "one")))
    assert (
        tree_text(RuleExecutor(BATCHES, strict=True).optimize(plan).final, details=False).splitlines()[-1]
        == "    Scan: a [k]"
    )


def test_what_is_put_in_place_of_a_column_keeps_its_meaning() -> None:
    tables = {"a": {"k": "int", "n": "int"}}
    expression, negative = written("k-n", tables), written("- k", tables)
    assert expression.substitute({col("a.n"): negative}).sql() == "(`a.k`-(- `a.k`))"
    assert expression.substitute({col("a.n"): expression}).sql() == "(`a.k`-(`a.k`-`a.n`))"
    assert (col("n")).substitute({col("n"): negative}) == negative


def test_subqueries_windows_draws_and_generators_do_not_move() -> None:
    assert is_movable(opaque("upper(", col("a.n"), ")"))
    assert not is_movable(SparkExpr(("EXISTS (SELECT 1 FROM t)",), has_subquery=True))
    assert not is_movable(SparkExpr(("rank() OVER (ORDER BY x)",), has_window=True))
    assert not is_movable(opaque("1 + ", opaque("rand()", deterministic=False)))
    assert not is_movable(written("EXPLODE (n)", {"a": {"n": "array<int>"}}))
    assert is_generator(written("1 + posexplode_outer(n)", {"a": {"n": "array<int>"}}))
    assert not is_generator(written("exploded(n) || 'explode(n)'", {"a": {"n": "array<int>"}}))


def test_projections_merge_only_where_nothing_is_computed_twice() -> None:
    inner = project(scan("a"), named(opaque("f(", col("a.v"), ")"), "y"), named(col("a.k"), "k"))
    twice: LogicalPlan = project(inner, named(opaque(col("y"), " * ", col("y")), "z"))
    assert apply_rule(merge_projects, twice) is twice
    once = apply_rule(merge_projects, project(inner, named(opaque(col("y"), " * ", col("k"), " + ", col("k")), "z")))
    assert isinstance(once, Project)
    assert once.label() == "Project: f(a.v) * a.k + a.k AS z"
