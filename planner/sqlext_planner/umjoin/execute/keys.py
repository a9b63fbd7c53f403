"""The key classes that our operator joins on: which columns of which inputs hold their values, in which types."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlext_planner.errors import InternalError
from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjuncts
from sqlext_planner.expressions.types import common_type, family
from sqlext_planner.umjoin.nodes import MemberKind


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
        import networkx as nx  # 0.1 s that plans without a UMJoin need not pay

        pairs = zip(inputs, kinds, strict=True)
        inner = [column for columns, kind in pairs if kind == "inner" for column in columns]
        links = [_link(term, inner, inner) for term in conjuncts(condition)]
        match_links = [
            [_link(term, inner, input_columns) for term in conjuncts(match)]
            for input_columns, match in zip(inputs, matches, strict=True)
        ]
        graph = nx.Graph(links)
        graph.add_nodes_from(theirs for item in match_links for theirs, _ in item)
        place = {column: n for n, column in enumerate(inner)}
        groups = sorted(nx.connected_components(graph), key=lambda group: min(map(place.__getitem__, group)))
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
    """The two columns of an equality, the inner one first."""
    found = equality(term)
    for a, b in () if found is None else (found, found[::-1]):
        if a in inner and b in own:
            return a, b
    raise InternalError(f"{term} is no equality of an inner input's column")


def equality(term: Expression) -> tuple[Column, Column] | None:
    """The columns of ``column = column``; None for any other term."""
    if (
        isinstance(term, Compare)
        and term.op == "="
        and isinstance(term.left, Column)
        and isinstance(term.right, Column)
    ):
        return term.left, term.right
    return None


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
