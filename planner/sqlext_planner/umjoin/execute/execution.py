"""The physical multi-way join: all inputs at once, behind one Arrow-block exchange."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from sqlext_planner.errors import InternalError
from sqlext_planner.exchange.partitioning.choice import PartitionedExec, Partitioning
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.relational.logical_plan import Field, comma, relation_name
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached
from sqlext_planner.umjoin.nodes import KeyLayout, MemberKind, UMJoinGroup

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
        way = "hypercube" if self.routing == "hypercube" else "operator"
        facts: dict[str, Any] = {
            "runs": f"UMJoin ({way})",
            "strategy": self.routing,
            "key classes": list(self.layout.names),
        }
        if self.routing == "hypercube":
            facts["shares"] = "by the inputs' sizes when it runs"
        notes = {} if self.group is None else self.group.notes
        return facts | notes | super().details()
