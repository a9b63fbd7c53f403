"""A group that TSC made, as EXPLAIN and `plan --format json` show it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlext_planner.logical import MemberKind, UMJoin
from sqlext_planner.logical.umjoin import input_name


@dataclass(frozen=True)
class UMJoinGroup:
    """The inputs by their names, how they take part, and the columns that are equal in a match, as ``alias.column``."""

    inputs: tuple[str, ...]
    kinds: tuple[MemberKind, ...]
    key_classes: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, node: UMJoin) -> UMJoinGroup:
        """The group of a node."""
        classes = tuple(tuple(str(column) for column in found) for found in node.key_classes)
        return cls(tuple(map(input_name, node.inputs)), node.kinds, classes)

    def __str__(self) -> str:
        pairs = zip(self.inputs, self.kinds, strict=True)
        return ", ".join(name if kind == "inner" else f"{kind} {name}" for name, kind in pairs)
