"""Random multi-way joins on Spark: every strategy, the cascade, and Spark's own binary joins agree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from sqlext_planner.config import Config
from sqlext_planner.expressions.nodes import Expression, conjunction
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached
from sqlext_planner.umjoin.execute.cascade import cascade
from sqlext_planner.umjoin.execute.split import UMJoinSplit, ineligible, operator_plan
from sqlext_planner.umjoin.nodes import MemberKind, UMJoin

from tests.planner.umjoin.umjoin_plans import (
    TABLES,
    bag,
    binary_joins,
    equal,
    scans,
    tagged,
    term,
    umjoin,
    write_tables,
)
from tests.properties import examples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Spark = SparkSession

pytestmark = pytest.mark.spark

FOUR_CELLS = Config.from_mapping({"sqlext.exchange.partitions": "4"})


@pytest.fixture(scope="module", autouse=True)
def tables(spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Iterable[None]:
    write_tables(spark, tmp_path_factory.mktemp("umjoin_random"))
    yield
    for name in TABLES:
        spark.catalog.dropTempView(name)


NUMBERS = ("i", "j", "h")


@st.composite
def joins(draw: st.DrawFn) -> UMJoin:
    """Up to six inputs: a random graph of equalities, members, residual terms, counts."""
    aliases = "abcdef"[: draw(st.integers(2, 6))]
    inner = aliases[: draw(st.integers(2, len(aliases)))]
    table = st.sampled_from(["t0", "t1", "t2", "t1", "t0", "nobody"])
    relations = " ".join(f"{alias}={draw(table)}" for alias in aliases)
    key = st.sampled_from(NUMBERS)
    terms: list[Expression] = []
    for place in range(1, len(inner)):
        other = inner[draw(st.integers(0, place - 1))]
        terms.append(equal(f"{other}.{draw(key)}", f"{inner[place]}.{draw(key)}"))
    for _ in range(draw(st.integers(0, 2))):
        pair = draw(st.permutations(inner))[:2]
        terms.append(equal(f"{pair[0]}.{draw(key)}", f"{pair[1]}.{draw(key)}"))
    # Joins of six inputs would make millions of rows.
    terms += [term(f"{{{alias}.id}} < {draw(st.integers(2, 9))}") for alias in inner[1:]]
    if draw(st.booleans()):
        terms.append(term(f"{{{inner[0]}.id}} <> {{{inner[-1]}.id}} + 1"))
    members: dict[str, tuple[MemberKind, Expression | None]] = {}
    for place, alias in enumerate(aliases[len(inner) :], len(inner)):
        kind: MemberKind = draw(st.sampled_from(["left", "semi", "anti"]))
        there = inner + "".join(known for known in aliases[len(inner) : place] if members[known][0] == "left")
        match: list[Expression] = [equal(f"{alias}.{draw(key)}", f"{draw(st.sampled_from(there))}.{draw(key)}")]
        if draw(st.booleans()):
            match.append(equal(f"{draw(st.sampled_from(there))}.{draw(key)}", f"{alias}.{draw(key)}"))
        if draw(st.integers(0, 3)) == 0:
            match.append(term(f"{{{alias}.id}} < {{{inner[0]}.id}}"))
        match.append(term(f"{{{alias}.id}} < 6"))
        members[alias] = (kind, conjunction(match))
    given_ = [alias for alias in aliases if alias in inner or members[alias][0] == "left"]
    if given_[-1] not in inner and draw(st.booleans()):
        terms.append(term(f"{{{given_[-1]}.id}} IS NULL OR {{{given_[-1]}.id}} > 1"))
    count = draw(st.booleans())
    payload = " ".join(f"{alias}.id" for alias in draw(st.lists(st.sampled_from(given_), unique=True)))
    return umjoin(relations, *terms, members=members, count=count, payload=payload, columns="id i j h")


#: Several joins in one statement, which costs more than they do; without shrinking, for the same reason.
SOME = st.lists(joins(), min_size=4, max_size=4)


@pytest.mark.slow
@examples(8, phases=[Phase.generate])
@given(nodes=SOME)
def test_all_strategies_agree_on_random_joins(spark: Spark, nodes: list[UMJoin]) -> None:
    compare_strategies(spark, nodes)


@pytest.mark.slow
@examples(25, phases=[Phase.generate])
@given(nodes=SOME)
def test_all_strategies_agree_on_many_random_joins(spark: Spark, nodes: list[UMJoin]) -> None:
    compare_strategies(spark, nodes)


def compare_strategies(spark: Spark, nodes: list[UMJoin]) -> None:
    """The bag of rows of every way is that of Spark's binary joins."""
    ways: dict[str, dict[int, DataFrame]] = {"binary": {}, "cascade": {}, "hypercube": {}, "shared key": {}}
    for number, node in enumerate(nodes):
        plans: dict[str, PhysicalPlan] = {"cascade": cascade(node, scans(node))}
        if ineligible(node) is None:
            plans["hypercube"] = operator_plan(node, scans(node), routing="hypercube")
            if UMJoinSplit.of(node).layout.shared:
                plans["shared key"] = operator_plan(node, scans(node), routing="shared key")
        ways["binary"][number] = tagged(spark.sql(binary_joins(node)), node, number)
        for way, plan in plans.items():
            ways[way][number] = tagged(execute_cached(plan, ExecutionContext(spark, FOUR_CELLS)), node, number)
    expected = bag([*ways["binary"].values()])
    for way, frames in ways.items():
        part = {row: many for row, many in expected.items() if int(row.split("/")[0]) in frames}
        assert not frames or bag([*frames.values()]) == part, way
