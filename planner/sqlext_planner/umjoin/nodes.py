"""The multi-way join that TSC makes of a tree of binary joins (docs/reference/umjoin.md, section 1).

With it, the key classes that our operator joins on: which columns of which inputs hold their values, in which types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sqlext_planner.errors import InternalError
from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjuncts
from sqlext_planner.expressions.types import common_type, family
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
    is_join = True

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

    graph = nx.Graph()
    graph.add_edges_from(edges)
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


@dataclass(frozen=True)
class KeyLayout:
    """`columns[i][c]` are the columns of input i that hold a value of the key class c, none if it lacks the class.

    `edges` are the equalities that make the classes: (class, column, column). Two columns of an input in one class must
    be equal to each other.
    """

    columns: tuple[tuple[tuple[Column, ...], ...], ...]
    edges: tuple[tuple[int, Column, Column], ...]

    @classmethod
    def of(
        cls,
        inputs: Sequence[Sequence[Column]],
        kinds: Sequence[MemberKind],
        condition: Expression | None,
        matches: Sequence[Expression | None],
    ) -> KeyLayout:
        """The classes of a join of inputs with these columns, all of whose terms are equalities of columns: of inner
        inputs in `condition`, of input i's own and an inner one's in ``matches[i]``.

        The connected components of the inner inputs' equalities, in order of the inputs; a column that only a match
        reads is a class as well. Matches connect nothing: ``d ON d.k = a.x AND d.k = a.y`` does not restrict a's rows
        without d. Raises InternalError for any other term.
        """
        pairs = zip(inputs, kinds, strict=True)
        inner = [column for columns, kind in pairs if kind == "inner" for column in columns]
        links = [_link(term, inner, inner) for term in conjuncts(condition)]
        match_links = [
            [_link(term, inner, input_columns) for term in conjuncts(match)]
            for input_columns, match in zip(inputs, matches, strict=True)
        ]
        groups = key_groups(links, inner, (theirs for item in match_links for theirs, _ in item))
        number = {column: n for n, group in enumerate(groups) for column in group}
        columns = tuple(
            tuple(tuple(dict.fromkeys(_held(input_columns, item, number, n))) for n in range(len(groups)))
            for input_columns, item in zip(inputs, match_links, strict=True)
        )
        edges = [(number[a], a, b) for item in (links, *match_links) for a, b in item]
        return cls(columns, tuple(edges))

    @cached_property
    def count(self) -> int:
        """How many classes there are."""
        return len(self.columns[0]) if self.columns else 0

    @cached_property
    def classes(self) -> tuple[tuple[int, ...], ...]:
        """The classes that each input has."""
        return tuple(tuple(n for n, held in enumerate(item) if held) for item in self.columns)

    @cached_property
    def shared(self) -> tuple[int, ...]:
        """The classes that all inputs have."""
        return tuple(n for n in range(self.count) if all(n in item for item in self.classes))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Each class as EXPLAIN prints it: ``a.x = b.x = c.x``."""
        return tuple(
            " = ".join(dict.fromkeys(str(column) for item in self.columns for column in item[n]))
            for n in range(self.count)
        )


def _held(
    own: Sequence[Column], links: Iterable[tuple[Column, Column]], number: dict[Column, int], n: int
) -> list[Column]:
    """The columns of an input in class n: its own as an inner one, or those that its match compares."""
    inner = [column for column in own if number.get(column) == n]
    return inner + [ours for theirs, ours in links if number[theirs] == n]


def _link(term: Expression, inner: Collection[Column], own: Collection[Column]) -> tuple[Column, Column]:
    found = linked(term, inner, own)
    if found is None:
        raise InternalError(f"{term} is no equality of an inner input's column")
    return found


def linked(term: Expression, inner: Collection[Column], own: Collection[Column]) -> tuple[Column, Column] | None:
    """The two columns of an equality of an inner input's column with one of `own`, the inner one first; else None."""
    found = equality(term)
    return next(((a, b) for a, b in (found, found[::-1]) if a in inner and b in own), None) if found else None


def class_type(edges: Iterable[tuple[str, str]]) -> str | None:
    """The type in which a class is compared, given the types of both sides of each of its equalities.

    None if no single type compares as Spark does: equalities that compare in different types only agree if these are
    integers and decimals, which compare by value in whatever type. ``bigint = double`` takes values for equal that
    ``bigint = bigint`` tells apart. Likewise date and timestamp, where
    a time zone skips days.
    """
    compared = [compared_type(left, right) for left, right in edges]
    known = [kind for kind in compared if kind is not None]
    if len(known) < len(compared):
        return None
    families = {family(kind) for kind in known}
    if len(families) == 1:
        only = families.pop()
        return {"integer": "bigint", "float": "double"}.get(only, only)
    widest: str | None = known[0]
    for kind in known[1:]:
        widest = None if widest is None else common_type(widest, kind)
    return widest if all(map(_is_exact_number, known)) else None


def compared_type(left: str, right: str) -> str | None:
    """The type in which Spark's ``=`` compares values of two types, in ANSI mode and without it (checked for all pairs,
    Spark 4.3).

    Besides the types that lose nothing (`common_type`) a double with any number, and a float with a decimal, are
    compared as doubles. None for the rest: a float with an integer depends on ANSI mode, a text is cast to what it is
    compared with, which may fail.
    """
    common = common_type(left, right)
    if common is not None:
        return common
    for one, other in ((left, right), (right, left)):
        if one == "double" and _is_exact_number(other):
            return "double"
        if one == "float" and other.startswith("decimal("):
            return "double"
    return None


def _is_exact_number(kind: str) -> bool:
    return family(kind) == "integer" or kind.startswith("decimal(")
