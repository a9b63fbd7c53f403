"""Rewrite rules: functions of one node; the executor in `executor.py` does the recursion.

``@rule(order=..., on=...)`` makes a rule:

- ``bottom_up`` and ``top_down`` rules see every node once a pass, children first or parents first;
- ``root`` rules see only the root. They are for rewrites that depend on what *all* parents of a node ask for
  (column pruning) or on the whole graph (join grouping); they must keep shared nodes shared themselves.

`on` are the class of the nodes that the rule looks at, and the classes of which there must be nodes below it. A rule is
not called for others: most rules have nothing to do in most plans.

A rule returns the new node, or None for "not mine"; it never returns an equal copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from sqlext_planner.relational.logical_plan import LogicalPlan

Order = Literal["bottom_up", "top_down", "root"]
Rewrite = Callable[[LogicalPlan], LogicalPlan | None]


@dataclass(frozen=True)
class Rule:
    """A named rewrite of one node with the order in which the executor visits nodes."""

    name: str
    order: Order
    on: frozenset[type[LogicalPlan]]
    rewrite: Rewrite

    def may_match(self, plan: LogicalPlan) -> bool:
        """Whether the plan holds what the rule looks for."""
        return self.on <= plan.node_types

    @property
    def doc(self) -> str:
        """What the rule does, its example and its legality argument."""
        return self.rewrite.__doc__ or ""

    def __call__(self, node: LogicalPlan) -> LogicalPlan | None:
        return self.rewrite(node)


def rule(*, order: Order, on: Collection[type[LogicalPlan]] = ()) -> Callable[[Rewrite], Rule]:
    """Decorator: turns a function of one node into a `Rule`."""

    def decorate(rewrite: Rewrite) -> Rule:
        return Rule(rewrite.__name__, order, frozenset(on), rewrite)

    return decorate
