"""Which pictures a node of a plan has."""

from __future__ import annotations

from collections.abc import Iterator

from sqlext_planner.periods.predicates import PeriodPredicate
from sqlext_planner.plan_format.pictures.frames import window_pictures
from sqlext_planner.plan_format.pictures.join_graph import join_graph
from sqlext_planner.plan_format.pictures.picture import Picture
from sqlext_planner.plan_format.pictures.relations import predicate_pictures
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.umjoin.nodes import UMJoin
from sqlext_planner.window.nodes import WindowUnion


def pictures_of(node: LogicalPlan) -> Iterator[Picture]:
    """Drawings of what a node does: a time line for each window, the graph of a multi-way join, then two bars for each
    relation in its expressions, each picture once."""
    match node:
        case WindowUnion():
            yield from window_pictures(node)
        case UMJoin():
            yield join_graph(node)
    parts = (part for item in node.expressions() for part in item.walk())
    predicates = (part for part in parts if isinstance(part, PeriodPredicate))
    yield from dict.fromkeys(picture for predicate in predicates for picture in predicate_pictures(predicate))
