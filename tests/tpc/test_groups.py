"""TSC finds the groups of joins that the texts of TPC-H and TPC-DS hold."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from sqlext_planner.errors import SqlExtError

from sqlext.explain.plan_operators import umjoins_json
from sqlext.tpc import BENCHMARKS
from tests.tpc.froms import From, multiway_froms
from tests.tpc.plans import planned

#: At least these inputs, one group each (docs/reference/umjoin.md, section 9).
TPCH_INPUTS = {
    2: (5, 4),
    3: (3,),
    5: (6,),
    7: (6,),
    8: (8,),
    9: (6,),
    10: (4,),
    11: (3, 3),
    15: (3,),
    18: (3,),
    21: (4,),
}
TPCH_WITHOUT = (1, 4, 6, 12, 13, 14)

#: Columns that the text of the query says are equal, in the group with the most inputs.
TPCH_CLASSES = {
    2: (
        {"p_partkey", "ps_partkey"},
        {"s_suppkey", "ps_suppkey"},
        {"s_nationkey", "n_nationkey"},
        {"n_regionkey", "r_regionkey"},
    ),
    3: ({"c_custkey", "o_custkey"}, {"l_orderkey", "o_orderkey"}),
    5: (
        {"c_custkey", "o_custkey"},
        {"l_orderkey", "o_orderkey"},
        {"l_suppkey", "s_suppkey"},
        {"c_nationkey", "s_nationkey", "n_nationkey"},
        {"n_regionkey", "r_regionkey"},
    ),
    7: (
        {"s_suppkey", "l_suppkey"},
        {"o_orderkey", "l_orderkey"},
        {"c_custkey", "o_custkey"},
        {"s_nationkey", "n1.n_nationkey"},
        {"c_nationkey", "n2.n_nationkey"},
    ),
    8: (
        {"p_partkey", "l_partkey"},
        {"s_suppkey", "l_suppkey"},
        {"l_orderkey", "o_orderkey"},
        {"o_custkey", "c_custkey"},
        {"c_nationkey", "n1.n_nationkey"},
        {"n1.n_regionkey", "r_regionkey"},
        {"s_nationkey", "n2.n_nationkey"},
    ),
    9: (
        {"s_suppkey", "l_suppkey", "ps_suppkey"},
        {"p_partkey", "l_partkey", "ps_partkey"},
        {"o_orderkey", "l_orderkey"},
        {"s_nationkey", "n_nationkey"},
    ),
    10: ({"c_custkey", "o_custkey"}, {"l_orderkey", "o_orderkey"}, {"c_nationkey", "n_nationkey"}),
    11: ({"ps_suppkey", "s_suppkey"}, {"s_nationkey", "n_nationkey"}),
    18: ({"c_custkey", "o_custkey"}, {"o_orderkey", "l_orderkey"}),
    21: ({"s_suppkey", "l1.l_suppkey"}, {"o_orderkey", "l1.l_orderkey"}, {"s_nationkey", "n_nationkey"}),
}


def groups(name: str, number: int) -> list[dict[str, Any]]:
    """What `plan --format json` says of the groups, planned from the types alone."""
    return umjoins_json(planned(name, number))


@pytest.mark.parametrize("number", list(TPCH_INPUTS))
def test_tpch_groups(number: int) -> None:
    sizes = sorted((len(group["inputs"]) for group in groups("tpch", number)), reverse=True)
    wanted = TPCH_INPUTS[number]
    assert len(sizes) >= len(wanted)
    assert all(size >= least for size, least in zip(sizes, wanted, strict=False)), f"{sizes}, at least {wanted}"


@pytest.mark.parametrize("number", TPCH_WITHOUT)
def test_tpch_queries_without_a_group(number: int) -> None:
    assert groups("tpch", number) == []


@pytest.mark.parametrize("number", list(TPCH_CLASSES))
def test_tpch_key_classes(number: int) -> None:
    """Each class of the text lies in a class of the group, two of the text never in one."""
    largest = max(groups("tpch", number), key=lambda group: len(group["inputs"]))
    found = [{short(column) for column in columns} for columns in largest["key_classes"]]
    places = [
        next((place for place, columns in enumerate(found) if wanted <= columns), None)
        for wanted in TPCH_CLASSES[number]
    ]
    assert None not in places, f"{TPCH_CLASSES[number]} not all in {found}"
    assert len(set(places)) == len(places)


@pytest.mark.few(6)
@pytest.mark.parametrize(("name", "number"), [(one.name, n) for one in BENCHMARKS.values() for n in one.numbers])
def test_streams_have_the_groups_of_tables(name: str, number: int) -> None:
    try:
        plan = planned(name, number, streams=True)
    except SqlExtError as error:
        if not error.of_window:
            raise
        return  # a window over groups, whose rows have no event time
    if set(plan.extensions) == {"WindowStreamExec"}:
        return  # so is this one, which is known when there are streams
    assert plan.passthrough  # no hint asks for the operator: Spark computes the statement as it is
    shapes = [
        [{part: group[part] for part in ("inputs", "kinds", "key_classes")} for group in found]
        for found in (umjoins_json(plan), groups(name, number))
    ]
    assert shapes[0] == shapes[1]


def test_each_group_of_streams_has_its_choice_with_the_reason() -> None:
    """As docs/reference/umjoin.md says: an aggregate above keeps state in Spark, and streams in subqueries
    of expressions are refused by Spark."""
    state = "what reads its rows keeps state in Spark, and needs their event time, which ends at our operator"
    subquery = "Spark refuses a stream in a subquery of an expression"
    wanted = {number: subquery if number in (2, 11, 15, 18, 21) else state for number in TPCH_INPUTS}
    found = {number: umjoins_json(planned("tpch", number, streams=True)) for number in TPCH_INPUTS}
    for number, reason in wanted.items():
        assert {(group["strategy"], group["why"]) for group in found[number]} == {
            ("cascade", f"Spark's joins of streams; {reason}")
        }


def short(column: str) -> str:
    """`orders.o_custkey` is known by its column; of tables that are there twice the alias is needed."""
    relation, _, name = column.rpartition(".")
    return column if relation in ("n1", "n2", "l1", "l2", "l3") else name


@pytest.mark.few(6)
@pytest.mark.parametrize("number", BENCHMARKS["tpcds"].numbers)
def test_every_from_of_tpcds_has_its_group(number: int) -> None:
    """Where FROMs nest, with nothing but computed columns between them, they may share a group."""
    left = [Counter(map(base, group["inputs"])) for group in groups("tpcds", number)]
    for clause in sorted(multiway_froms(BENCHMARKS["tpcds"].query(number)), key=lambda clause: -len(clause.relations)):
        taken = [(used, inputs) for inputs in left if (used := inputs_of(clause, inputs)) is not None]
        assert taken, f"no group for {clause.relations}; groups: {[sorted(inputs) for inputs in left]}"
        used, inputs = min(taken, key=lambda pair: pair[1].total() - pair[0].total())
        inputs -= used


def inputs_of(clause: From, inputs: Counter[str]) -> Counter[str] | None:
    """The inputs that a FROM takes from a group, a derived relation by its own ones; None if one is missing."""
    used: Counter[str] = Counter()
    below = dict(clause.derived)
    for relation in clause.relations:
        if (inputs - used)[base(relation)] > 0:
            used[base(relation)] += 1
            continue
        inner = inputs_of(below[relation], inputs - used) if relation in below else None
        if inner is None:
            return None
        used += inner
    return used


def base(name: str) -> str:
    """A plan numbers the relations of one name: date_dim, date_dim_2."""
    return re.sub(r"_\d+$", "", name).lower()
