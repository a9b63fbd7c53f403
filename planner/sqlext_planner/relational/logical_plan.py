"""The base class of logical plan nodes and their output fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property

from sqlext_planner.errors import InternalError, Span
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.tree import TreeNode


@dataclass(frozen=True)
class Field:
    """One output column of a plan node.

    `dtype` is Spark's simple string (`bigint`, `decimal(10,2)`, `struct<a:int>`), None where only Spark
    can tell (the type of opaque SQL).
    """

    column: Column
    dtype: str | None = None


@dataclass(frozen=True)
class LogicalPlan(TreeNode):
    """A relational operator. Immutable; equal by value; `span` points at the user's text."""

    span: Span | None = field(default=None, compare=False, kw_only=True, repr=False)

    #: True for nodes that plain Spark SQL has no text for; a plan without one goes to spark.sql unchanged.
    is_extension = False
    #: True for a node that is itself a stream's rows.
    is_stream = False

    @classmethod
    def child_type(cls) -> type[TreeNode]:
        return LogicalPlan

    @cached_property
    def output(self) -> tuple[Field, ...]:
        """The node's columns, in order; no column occurs twice."""
        raise NotImplementedError(type(self).__name__)

    @cached_property
    def output_columns(self) -> tuple[Column, ...]:
        return tuple(item.column for item in self.output)

    @cached_property
    def dtypes(self) -> dict[Column, str | None]:
        """Type by output column."""
        return {item.column: item.dtype for item in self.output}

    @cached_property
    def is_streaming(self) -> bool:
        """Whether a stream is read here or anywhere below, also by a subquery of an expression."""
        from sqlext_planner.relational.streams import streams_of

        return next(streams_of(self), None) is not None

    def expressions(self) -> Iterator[Expression]:
        """The expressions the node itself holds (not its children's)."""
        for item in fields(self):
            value = getattr(self, item.name)
            for entry in value if isinstance(value, tuple) else (value,):
                if isinstance(entry, Expression):
                    yield entry

    def missing_references(self) -> frozenset[Column]:
        """Columns that the node's expressions read but no child gives; empty in a sound plan."""
        available = frozenset(column for child in self.children for column in child.output_columns)
        needed = frozenset(column for item in self.expressions() for column in item.references)
        return needed - available

    def check_unique_output(self) -> None:
        """Refuse a node that outputs one column twice. Raises InternalError."""
        seen: set[Column] = set()
        for column in self.output_columns:
            if column in seen:
                raise InternalError(f"{type(self).__name__} outputs column {column} twice")
            seen.add(column)


def comma(items: tuple[object, ...]) -> str:
    """Items as the plan printout lists them."""
    return ", ".join(str(item) for item in items)
