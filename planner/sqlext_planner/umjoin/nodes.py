"""The multi-way join that TSC makes of a tree of binary joins (docs/reference/umjoin.md, section 1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sqlext_planner.errors import InternalError
from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjuncts
from sqlext_planner.relational.joins import PartitionerHint, UMJoinHint
from sqlext_planner.relational.logical_plan import Built, Field, LogicalPlan, relation_name, with_fields
from sqlext_planner.relational.plan_patterns import is_single_row

#: How an input takes part: `inner` inputs make the rows; each `left` input extends a row by its matches, or by NULLs;
#: `semi` and `anti` inputs keep the rows with and without a match.
MemberKind = Literal["inner", "left", "semi", "anti"]


@dataclass(frozen=True)
class UMJoin(LogicalPlan):
    """Joins all inputs at once, in no order of its own.

    ``SELECT * FROM a, b, c LEFT JOIN d ON c.z = d.z WHERE a.x = b.x AND b.y = c.y AND a.v < c.v``::

        UMJoin: a, b, c, left d ON a.x = b.x AND b.y = c.y AND a.v < c.v, d: c.z = d.z
          Scan: a [x, v]
          Scan: b [x, y]
          Scan: c [y, z, v]
          Scan: d [z]

    The rows: the inner inputs' product where the terms of `condition` over them hold; then, for every other input i in
    an order in which `matches[i]` reads only available columns, its matches (`left`), or those rows with one (`semi`)
    or none (`anti`); then the remaining terms of `condition`, which read columns of `left` inputs. `matches[i]` is None
    for inner inputs and for one that every row matches. Output: the columns of the inner and left inputs that are in
    `payload` (None: all), in order.

    With `count`, equal rows may be one row with their number in the column `count` (bigint, > 0); with an empty
    payload the result may be one row or several whose counts add up. `asked` and `partitioner` are hints.
    """

    operator_name = "a multi-way join (UMJOIN)"

    inputs: tuple[LogicalPlan, ...]
    kinds: tuple[MemberKind, ...]
    condition: Expression | None
    matches: tuple[Expression | None, ...]
    count: Column | None = None
    payload: tuple[Column, ...] | None = None
    asked: UMJoinHint | None = None
    partitioner: PartitionerHint | None = None

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        new = with_fields(self, inputs=tuple(map(built, self.inputs)))
        everything = tuple(field.column for field in new.joined)
        payload = tuple(column for column in everything if column in needed) or everything[:1]
        return with_fields(new, payload=None if payload == everything else payload)

    def __post_init__(self) -> None:
        if not len(self.inputs) == len(self.kinds) == len(self.matches):
            raise InternalError("a UMJoin has a kind and a match for every input")
        if len(self.inputs) < 2 or "inner" not in self.kinds:
            raise InternalError("a UMJoin has two inputs or more, one of them inner")
        if any(kind == "inner" and match is not None for kind, match in zip(self.kinds, self.matches, strict=True)):
            raise InternalError("the terms of inner inputs stand in the condition")
        self.check_unique_output()

    @cached_property
    def joined(self) -> tuple[Field, ...]:
        """The columns of a joined row: those of the inner and left inputs."""
        pairs = zip(self.inputs, self.kinds, strict=True)
        return tuple(field for child, kind in pairs if kind in ("inner", "left") for field in child.output)

    @cached_property
    def output(self) -> tuple[Field, ...]:
        kept = self.joined
        if self.payload is not None:
            kept = tuple(item for item in kept if item.column in self.payload)
        return kept if self.count is None else (*kept, Field(self.count, "bigint"))

    @cached_property
    def key_classes(self) -> tuple[tuple[Column, ...], ...]:
        """Columns that are equal in a match, grouped: the connected components of the join graph, whose edges are the
        equalities of columns of two inputs. In order of the inputs."""
        return tuple(key_groups(self.equalities, (column for child in self.inputs for column in child.output_columns)))

    @cached_property
    def equalities(self) -> tuple[tuple[Column, Column], ...]:
        """The terms ``column = column`` of two different inputs, in all conditions."""
        order = {column: i for i, child in enumerate(self.inputs) for column in child.output_columns}
        pairs = (equality(term) for condition in (self.condition, *self.matches) for term in conjuncts(condition))
        return tuple(pair for pair in pairs if pair is not None and order[pair[0]] != order[pair[1]])

    @cached_property
    def residual(self) -> tuple[Expression, ...]:
        """The terms of `condition` that are not among `equalities`."""
        pairs = set(self.equalities)
        return tuple(term for term in conjuncts(self.condition) if equality(term) not in pairs)

    def expressions(self) -> Iterator[Expression]:
        yield from (item for item in (self.condition, *self.matches) if item is not None)

    def label(self) -> str:
        names = [relation_name(child) for child in self.inputs]
        shown = [name if kind == "inner" else f"{kind} {name}" for name, kind in zip(names, self.kinds, strict=True)]
        on = [str(self.condition)] if self.condition is not None else []
        on += [f"{name}: {match}" for name, match in zip(names, self.matches, strict=True) if match is not None]
        suffix = "" if self.payload is None else f" PAYLOAD [{', '.join(map(str, self.payload))}]"
        suffix += "" if self.count is None else f" AS {self.count}"
        suffix += "" if self.asked is None else f" [{self.asked}]"
        suffix += "" if self.partitioner is None else f" [{self.partitioner}]"
        return f"UMJoin: {', '.join(shown)}" + (f" ON {', '.join(on)}" if on else "") + suffix


def key_groups(
    edges: Iterable[tuple[Column, Column]], order: Iterable[Column], alone: Iterable[Column] = ()
) -> list[tuple[Column, ...]]:
    """The connected components of the graph of these edges, and of columns that may have none; they and their columns
    are in `order`."""
    import networkx as nx  # 0.1 s that plans without a UMJoin need not pay

    graph = nx.Graph(edges)
    graph.add_nodes_from(alone)
    place = {column: n for n, column in enumerate(order)}
    groups = [tuple(sorted(found, key=place.__getitem__)) for found in nx.connected_components(graph)]
    return sorted(groups, key=lambda found: place[found[0]])


def equality(term: Expression) -> tuple[Column, Column] | None:
    """The columns of ``column = column``; None for any other term."""
    match term:
        case Compare("=", Column() as left, Column() as right):
            return left, right
    return None


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
