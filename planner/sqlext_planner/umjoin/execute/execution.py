"""The physical multi-way join: all inputs at once, behind one Arrow-block exchange."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from sqlext_planner.errors import InternalError
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.relational.logical_plan import Field, comma
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, Rival, execute_cached
from sqlext_planner.umjoin.execute.keys import KeyLayout
from sqlext_planner.umjoin.find.groups import UMJoinGroup
from sqlext_planner.umjoin.nodes import MemberKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sqlext_planner.exchange.partitioning.choice import Partitioning
    from sqlext_planner.umjoin.execute.exchanged import Routed

#: `shared key`: rows meet by the hash of the key classes that all inputs have, each row in one partition; `hypercube`:
#: they meet in the cells of a grid over several classes, copied along those that their input lacks.
Routing = Literal["shared key", "hypercube"]


@dataclass(frozen=True)
class UMJoinExec(PhysicalPlan):
    """Joins inputs on equal columns, as a UMJoin does (umjoin/nodes.py), and does nothing else.

    `condition` holds equalities of two inner inputs' columns, ``matches[i]`` of input i's columns and inner ones; rows
    in which one of these columns is NULL are not output. `fields` are the output: columns of inner and left inputs in
    their order, and `count` if there is one. `shares` are the places of each key class in a hypercube, None to choose
    them from the real inputs' sizes. With a `partitioning`, the rows of input `owner` are owned. `group` describes the
    whole node, of which Spark may compute a part.

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
    shares: tuple[int, ...] | None = None
    group: UMJoinGroup | None = field(default=None, compare=False, repr=False)
    partitioning: Partitioning | None = field(default=None, compare=False, kw_only=True, repr=False)
    owner: int = field(default=0, kw_only=True)

    is_extension = True

    def __post_init__(self) -> None:
        if self.routing == "shared key" and not self.layout.shared:
            raise InternalError("a join by shared key has a key class that all inputs have")
        if self.shares is not None and (self.routing != "hypercube" or len(self.shares) != self.layout.count):
            raise InternalError("a hypercube has a share for each key class")
        given = [item.column for child in self.inputs for item in child.output]
        kept = [item.column for item in self.fields if item.column != self.count]
        if kept != [column for column in given if column in kept]:
            raise InternalError("the columns of a UMJoinExec are those of its inputs, in order")

    @cached_property
    def output(self) -> tuple[Field, ...]:
        return self.fields

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
        from sqlext_planner.umjoin.execute.exchanged import join_by_exchange
        from sqlext_planner.umjoin.execute.inputs import TypedInputs

        frames = [execute_cached(child, context) for child in self.inputs]
        typed = TypedInputs.of(self, frames)
        if typed is None:
            return execute_cached(cascade(self, self.inputs), context)
        frame = join_by_exchange(typed, self._routed(), context)
        return frame if tuple(frame.columns) == self.frame_columns else frame.toDF(*self.frame_columns)

    def _routed(self) -> Routed:
        from sqlext_planner.umjoin.execute.exchanged import Routed

        placed = self.partitioning is not None and self.partitioning.placement is not None
        return Routed(self.routing, self.shares, self.partitioning if placed else None, self.owner)

    def label(self) -> str:
        kept = comma(tuple(column for columns in self.payload for column in columns))
        counted = "" if self.count is None else f" AS {self.count}"
        names = [input_label(child) for child in self.inputs]
        shown = [name if kind == "inner" else f"{kind} {name}" for name, kind in zip(names, self.kinds, strict=True)]
        classes = comma(self.layout.names)
        return f"{type(self).__name__}: [{self.routing}] {', '.join(shown)} ON {classes} PAYLOAD [{kept}]{counted}"

    def choices(self) -> dict[str, tuple[Rival, ...]]:
        return super().choices() | ({} if self.partitioning is None else {"partitioner": self.partitioning.rivals})

    def details(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"strategy": self.routing, "key classes": list(self.layout.names)}
        if self.routing == "hypercube":
            facts["shares"] = "by the inputs' sizes when it runs" if self.shares is None else list(self.shares)
        notes = {} if self.group is None else self.group.notes
        return facts | notes | super().details() | ({} if self.partitioning is None else self.partitioning.lines)


def input_label(child: PhysicalPlan) -> str:
    """Like `relation_name` of the logical plan: the relation that all columns come from, here or below."""
    relations = {column.relation for column in child.output_columns}
    if len(relations) == 1 and (name := relations.pop()):
        return name
    below = child.children
    return input_label(below[0]) if len(below) == 1 else type(child).__name__.removesuffix("Exec").lower()
