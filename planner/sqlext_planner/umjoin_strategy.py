"""From multi-way joins, and aggregates over them, to physical plans."""

from __future__ import annotations

from typing import Protocol

from sqlext_planner.catalog import Catalog
from sqlext_planner.config import Config
from sqlext_planner.logical import LogicalPlan, UMJoin
from sqlext_planner.physical.base import PhysicalPlan
from sqlext_planner.physical.umjoin import Strategy
from sqlext_planner.physical.umjoin_cascade import cascade
from sqlext_planner.physical.umjoin_plain import UMJoinCascadeExec
from sqlext_planner.physical.umjoin_split import UMJoinSplit, ineligible, operator_plan
from sqlext_planner.umjoin_choice import Choice, Obstacles, choose
from sqlext_planner.umjoin_group import UMJoinGroup


class Planner(Protocol):
    """What is asked of the planner (strategies.py)."""

    config: Config
    catalog: Catalog | None

    def later(self, node: LogicalPlan) -> PhysicalPlan:
        """The physical plan of a node."""

    def marked(self, child: PhysicalPlan) -> PhysicalPlan:
        """`child` as an input of an exchange."""


def plan_umjoin(node: UMJoin, planner: Planner, decided: Choice | None = None) -> PhysicalPlan:
    """The physical plan of a node. `decided` is what was chosen for it together with the aggregate above."""
    choice = decided
    if choice is None:
        obstacles = Obstacles("there is no aggregate above", ineligible(node))
        choice = choose(node, obstacles, False, planner.config, planner.catalog)
    inputs = [planner.later(child) for child in node.inputs]
    if choice.way != "operator":
        return UMJoinCascadeExec(UMJoinGroup.of(node), cascade(node, inputs), why=choice.why)
    strategy: Strategy = "shared key" if UMJoinSplit.of(node).layout.shared else "hypercube"
    return operator_plan(node, inputs, strategy, why=choice.why, mark=planner.marked)
