"""From multi-way joins, and aggregates over them, to physical plans."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from sqlext_planner.catalog import Catalog
from sqlext_planner.config import Config
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Project
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.umjoin.choose.choice import Obstacles, StrategyChoice, choose
from sqlext_planner.umjoin.choose.partitioning import umjoin_partitioning, umjoin_placing
from sqlext_planner.umjoin.execute.cascade import FactorisedAggregateExec, UMJoinCascadeExec, cascade
from sqlext_planner.umjoin.execute.execution import Routing, UMJoinExec
from sqlext_planner.umjoin.execute.split import UMJoinSplit, ineligible, operator_plan
from sqlext_planner.umjoin.factorised.plan import Factorised, NotFactorised, counted, factorise
from sqlext_planner.umjoin.find.groups import UMJoinGroup
from sqlext_planner.umjoin.nodes import UMJoin
from sqlext_planner.umjoin.streams import refusal, stream_parts, stream_plan


class JoinPlanner(Protocol):
    """What this module needs of the planner (strategies.py)."""

    config: Config
    catalog: Catalog | None
    #: The choice for a join together with the aggregate above it, by id.
    decided: dict[int, tuple[UMJoin, StrategyChoice]]

    def later(self, node: LogicalPlan) -> PhysicalPlan:
        """The physical plan of a node."""

    def marked(self, child: PhysicalPlan) -> PhysicalPlan:
        """`child` as an input of an exchange."""


def plan_umjoin(node: UMJoin, planner: JoinPlanner) -> PhysicalPlan:
    """The physical plan of a node. Raises UnsupportedError for a hint that cannot be followed."""
    _, choice = planner.decided.get(id(node), (node, None))
    if choice is None:
        obstacles = Obstacles("there is no aggregate above", ineligible(node))
        choice = choose(node, obstacles, node, planner.config, planner.catalog)
    inputs = [planner.later(child) for child in node.inputs]
    if choice.strategy != "operator":
        return UMJoinCascadeExec(UMJoinGroup.of(node), cascade(node, inputs), **choice.facts)
    routing: Routing = "shared key" if UMJoinSplit.of(node).layout.shared else "hypercube"
    found = umjoin_partitioning(node, planner.catalog, planner.config) if routing == "shared key" else None
    make = UMJoinExec if found is None else partial(UMJoinExec, partitioning=found.partitioning, owner=found.place)
    return operator_plan(node, inputs, routing, facts=choice.facts, mark=planner.marked, make=make)


def plan_stream(node: UMJoin, planner: JoinPlanner) -> PhysicalPlan:
    """The physical plan of a node over streams: our operator where a hint or the setting asks for it.

    Raises UnsupportedError for a hint that cannot be followed.
    """
    inputs = [planner.later(child) for child in node.inputs]
    wanted = node.asked is not None or planner.config.umjoin_strategy == "operator"
    parts = stream_parts(node) if wanted else "nothing asks for one operator"
    if not isinstance(parts, str):
        placing = umjoin_placing(parts, planner.config, node.partitioner)
        why = "as the hint says" if node.asked else "operator, as the setting says"
        return stream_plan(node, parts, inputs, why, placing)
    error = refusal(node)
    if error is not None:
        raise error
    why = f"Spark's joins of streams; {parts}"
    return UMJoinCascadeExec(UMJoinGroup.of(node), cascade(node, inputs), why=why)


def plan_aggregate(node: Aggregate, planner: JoinPlanner) -> PhysicalPlan | None:
    """The physical plan of an aggregate over a multi-way join, if it is more than the plans of the two in sequence.

    Raises UnsupportedError for a hint that cannot be followed.
    """
    join = _joined(node)
    if join is None:
        return None
    factorised = factorise(node)
    closed = factorised.reason if isinstance(factorised, NotFactorised) else None
    counting = counted(node)
    target = join if counting is None else _joined(counting) or join
    choice = choose(join, Obstacles(closed, ineligible(target)), target, planner.config, planner.catalog)
    if choice.strategy == "factorised":
        factorised = factorise(node, None if choice.sizes is None else choice.sizes.inputs)
        if isinstance(factorised, Factorised):
            return FactorisedAggregateExec(UMJoinGroup.of(join), planner.later(factorised.plan), **choice.facts)
    if choice.strategy == "operator" and counting is not None:
        planner.decided[id(target)] = (target, choice)
        return planner.later(counting)
    planner.decided[id(join)] = (join, choice)
    return None


def _joined(node: Aggregate) -> UMJoin | None:
    """The multi-way join that an aggregate reads, through nodes that compute row by row."""
    below: LogicalPlan = node.child
    while isinstance(below, Project):
        below = below.child
    return below if isinstance(below, UMJoin) else None
