"""A group that TSC made, as EXPLAIN and `plan --format json` show it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlext_planner.expressions.nodes import conjuncts
from sqlext_planner.relational.logical_plan import relation_name
from sqlext_planner.relational.plan_patterns import is_single_row
from sqlext_planner.umjoin.nodes import MemberKind, UMJoin


@dataclass(frozen=True)
class UMJoinGroup:
    """The inputs by their names, how they take part, the columns that are equal in a match, as ``alias.column``, and
    the inputs that no term ties to the first ones."""

    inputs: tuple[str, ...]
    kinds: tuple[MemberKind, ...]
    key_classes: tuple[tuple[str, ...], ...]
    apart: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: UMJoin) -> UMJoinGroup:
        """The group of a node."""
        classes = tuple(tuple(str(column) for column in found) for found in node.key_classes)
        names = tuple(map(relation_name, node.inputs))
        return cls(names, node.kinds, classes, tuple(names[place] for place in _apart(node)))

    @property
    def notes(self) -> dict[str, str]:
        """What a reader should know before the query runs, for EXPLAIN."""
        if not self.apart:
            return {}
        return {"warning": f"no condition connects {', '.join(self.apart)} to the other inputs: all rows are paired"}

    def __str__(self) -> str:
        pairs = zip(self.inputs, self.kinds, strict=True)
        return ", ".join(name if kind == "inner" else f"{kind} {name}" for name, kind in pairs)


def _apart(node: UMJoin) -> list[int]:
    """Inputs that may have several rows and are tied to none of those before them, not even through later ones."""
    owner = {column: place for place, child in enumerate(node.inputs) for column in child.output_columns}
    ties = [{owner[column] for column in item.references} for item in conjuncts(node.condition)]
    pairs = zip(node.matches, node.inputs, strict=True)
    ties += [
        {owner[column] for column in match.references} | {place}
        for place, (match, _) in enumerate(pairs)
        if match is not None
    ]
    reached = {0}
    while grown := [tie for tie in ties if tie & reached and not tie <= reached]:
        reached |= set().union(*grown)
    return [
        place
        for place, (child, kind) in enumerate(zip(node.inputs, node.kinds, strict=True))
        if place not in reached and kind in ("inner", "left") and not is_single_row(child)
    ]
