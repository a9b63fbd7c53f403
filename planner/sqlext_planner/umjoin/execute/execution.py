"""The physical multi-way join: all inputs at once, behind one Arrow-block exchange.

The key classes that our operator joins on: which columns of which inputs hold their values, in which types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from sqlext_planner.errors import InternalError
from sqlext_planner.exchange.partitioning.choice import PartitionedExec, Partitioning
from sqlext_planner.expressions.nodes import Column, Expression, conjuncts
from sqlext_planner.expressions.types import common_type, family
from sqlext_planner.relational.logical_plan import Field, comma, relation_name
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached
from sqlext_planner.umjoin.nodes import MemberKind, UMJoinGroup, equality, key_groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


#: `shared key`: rows meet by the hash of the key classes that all inputs have, each row in one partition; `hypercube`:
#: they meet in the cells of a grid over several classes, copied along those that their input lacks.
Routing = Literal["shared key", "hypercube"]


@dataclass(frozen=True)
class UMJoinExec(PartitionedExec):
    """Joins inputs on equal columns, as a UMJoin does (umjoin/nodes.py), and does nothing else.

    `condition` holds equalities of two inner inputs' columns, ``matches[i]`` of input i's columns and inner ones; rows
    in which one of these columns is NULL are not output. `fields` are the output: columns of inner and left inputs in
    their order, and `count` if there is one. With a `partitioning`, the rows of input `owner` are owned. `group`
    describes the whole node, of which Spark may compute a part.

    If the types have no common one that the operator compares as Spark does, or Spark does not hand one to Python,
    Catalyst's binary joins compute the same rows.
    """

    inputs: tuple[PhysicalPlan, ...]
    kinds: tuple[MemberKind, ...]
    condition: Expression | None
    matches: tuple[Expression | None, ...]
    fields: tuple[Field, ...]
    count: Column | None
    routing: Routing
    group: UMJoinGroup | None = field(default=None, compare=False, repr=False)
    owner: int = field(default=0, kw_only=True)

    is_extension = True

    def __post_init__(self) -> None:
        if self.routing == "shared key" and not self.layout.shared:
            raise InternalError("a join by shared key has a key class that all inputs have")
        given = [item.column for child in self.inputs for item in child.output]
        kept = [item.column for item in self.fields if item.column != self.count]
        if kept != [column for column in given if column in kept]:
            raise InternalError("the columns of a UMJoinExec are those of its inputs, in order")

    @cached_property
    def layout(self) -> KeyLayout:
        """The key classes."""
        return KeyLayout.of([child.output_columns for child in self.inputs], self.kinds, self.condition, self.matches)

    @cached_property
    def payload(self) -> tuple[tuple[Column, ...], ...]:
        """The columns that are passed on from each input."""
        kept = frozenset(item.column for item in self.fields)
        return tuple(
            tuple(column for column in child.output_columns if column in kept and kind in ("inner", "left"))
            for child, kind in zip(self.inputs, self.kinds, strict=True)
        )

    def execute(self, context: ExecutionContext) -> DataFrame:
        """Raises ConfigurationError if the workers lack the package."""
        from sqlext_planner.umjoin.execute.cascade import cascade
        from sqlext_planner.umjoin.execute.exchanged import TypedInputs, join_by_exchange

        frames = [execute_cached(child, context) for child in self.inputs]
        typed = TypedInputs.of(self, frames)
        if typed is None:
            return execute_cached(cascade(self, self.inputs), context)
        frame = join_by_exchange(typed, self, context)
        return frame if tuple(frame.columns) == self.frame_columns else frame.toDF(*self.frame_columns)

    @property
    def placed(self) -> Partitioning | None:
        """The partitioning, if it places shared keys in several partitions, over which the rows of input `owner` are
        split."""
        return None if self.partitioning is None or self.partitioning.placement is None else self.partitioning

    def label(self) -> str:
        kept = comma(tuple(column for columns in self.payload for column in columns))
        counted = "" if self.count is None else f" AS {self.count}"
        names = [relation_name(child) for child in self.inputs]
        shown = [name if kind == "inner" else f"{kind} {name}" for name, kind in zip(names, self.kinds, strict=True)]
        classes = comma(self.layout.names)
        return f"{type(self).__name__}: [{self.routing}] {', '.join(shown)} ON {classes} PAYLOAD [{kept}]{counted}"

    def details(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"strategy": self.routing, "key classes": list(self.layout.names)}
        if self.routing == "hypercube":
            facts["shares"] = "by the inputs' sizes when it runs"
        notes = {} if self.group is None else self.group.notes
        return facts | notes | super().details()


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
    """The two columns of an equality of an inner input's column with one of `own`, the inner one first; None for any
    other term."""
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
