"""The base class of logical plan nodes and their output fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from sqlext_planner.errors import InternalError, Span, UnsupportedError
from sqlext_planner.expressions.nodes import SUBQUERY, Column, Expression, SparkExpr
from sqlext_planner.tree import TreeNode, field_names

if TYPE_CHECKING:
    from sqlext_planner.relational.physical_plan import PhysicalPlan


@dataclass(frozen=True)
class Field:
    """One output column of a plan node.

    `dtype` is Spark's simple string (`bigint`, `decimal(10,2)`, `struct<a:int>`), None where only Spark
    can tell (the type of opaque SQL).
    """

    column: Column
    dtype: str | None = None


Plan = TypeVar("Plan", bound="LogicalPlan")

#: The columns that a node reads of each child.
Needs = list[tuple["LogicalPlan", Set[Column]]]
#: A node with terms of a filter below it, and the terms.
Passed = tuple["LogicalPlan", Sequence[Expression]]
#: Returns the narrowed node of a child.
Built = Callable[["LogicalPlan"], "LogicalPlan"]


def reads(expressions: Iterable[Expression]) -> set[Column]:
    """The columns that expressions read."""
    return {column for item in expressions for column in item.references}


class PlanNode(TreeNode):
    """A node of a logical or a physical plan, which has columns."""

    @cached_property
    def output(self) -> tuple[Field, ...]:
        """The node's columns, in order; no column occurs twice. By default its `fields`, or its only child's."""
        fields: tuple[Field, ...] | None = getattr(self, "fields", None)
        if fields is not None:
            return fields
        (child,) = self.children
        return child.output

    @cached_property
    def output_columns(self) -> tuple[Column, ...]:
        same = self._same_output
        return tuple(item.column for item in self.output) if same is None else same.output_columns

    @cached_property
    def column_set(self) -> frozenset[Column]:
        same = self._same_output
        return frozenset(self.output_columns) if same is None else same.column_set

    @cached_property
    def _same_output(self) -> Self | None:
        """The child whose columns are the node's; then what follows from them is made once."""
        return next((child for child in self.children if child.output is self.output), None)


@dataclass(frozen=True)
class LogicalPlan(PlanNode):
    """A relational operator. Immutable; equal by value; `span` points at the user's text."""

    span: Span | None = field(default=None, compare=False, kw_only=True, repr=False)

    #: True for nodes that have no plain Spark SQL text; a plan without one goes to spark.sql unchanged.
    is_extension = False
    #: The name in messages of a node that reads its inputs with one of our operators.
    operator_name: ClassVar[str | None] = None
    #: True for a join that Spark's joins may compute: of several streams they keep rows, and need their event times.
    is_join: ClassVar[bool] = False
    #: True for an operator whose rows the exchange of an operator above takes over in the same task, without passing
    #: through Spark's rows.
    feeds_exchange: ClassVar[bool] = False
    #: True for a node whose own rows are a stream.
    is_stream = False

    @classmethod
    def child_type(cls) -> type[TreeNode]:
        return LogicalPlan

    @cached_property
    def node_types(self) -> frozenset[type[LogicalPlan]]:
        """The classes of the node and of all below it."""
        return frozenset((type(self),)).union(*(child.node_types for child in self.children))

    @cached_property
    def dtypes(self) -> dict[Column, str | None]:
        """Type by output column."""
        same = self._same_output
        return {item.column: item.dtype for item in self.output} if same is None else same.dtypes

    @cached_property
    def is_streaming(self) -> bool:
        """Whether the node or one below it reads a stream; subqueries in expressions do not count."""
        return self.is_stream or any(child.is_streaming for child in self.children if isinstance(child, LogicalPlan))

    @property
    def gives_late_rows(self) -> bool:
        """Whether rows of a stream that are too late for the node's operator come out all the same."""
        return False

    def expressions(self) -> Iterator[Expression]:
        """The expressions the node itself holds (not its children's)."""
        for name in field_names(type(self)):
            value = getattr(self, name)
            for entry in value if isinstance(value, tuple) else (value,):
                if isinstance(entry, Expression):
                    yield entry

    @cached_property
    def free_columns(self) -> frozenset[Column]:
        """The columns that expressions here and below read and that no node outputs: those of an outer query."""
        return frozenset().union(*(node.missing_references() for node in self.walk()))

    def with_free(self, mapping: Mapping[Column, Expression]) -> LogicalPlan:
        """The plan with columns of the outer query replaced; the plan itself if it reads none of them."""
        if not mapping.keys() & self.free_columns:
            return self

        def replaced(node: LogicalPlan) -> LogicalPlan:
            own = {column: mapping[column] for column in node.missing_references() & mapping.keys()}
            return node.substituted(own) if own else node

        new = self.transform_up(replaced)
        assert isinstance(new, LogicalPlan)
        return new

    def substituted(self, mapping: Mapping[Column, Expression]) -> LogicalPlan:
        """The node with columns in its own expressions replaced; the node itself if its class cannot do that."""
        return self

    def child_needs(self, needed: Set[Column]) -> Needs:
        """The columns that the node reads of each child, if its parents read `needed`: those and its expressions'."""
        columns = needed | reads(self.expressions())
        return [(child, columns & child.column_set) for child in self.children]

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        """The node over its narrowed children; its output holds at least `needed`, in the old order."""
        return self.map_children(built)

    def filtered_below(self, terms: Sequence[Expression]) -> Passed | None:
        """The node with some of the movable `terms` of a filter above it checked below it instead, and those terms;
        None if none may pass. The node's class says which may, and why that is legal."""
        return None

    def missing_references(self) -> frozenset[Column]:
        """Columns that the node's expressions read but no child gives; empty in a sound plan."""
        needed = frozenset().union(*(item.references for item in self.expressions()))
        return needed.difference(*(child.column_set for child in self.children)) if needed else needed

    def check_unique_output(self) -> None:
        """Refuse a node that outputs one column twice. Raises InternalError."""
        seen: set[Column] = set()
        for column in () if len(self.column_set) == len(self.output_columns) else self.output_columns:
            if column in seen:
                raise InternalError(f"{type(self).__name__} outputs column {column} twice")
            seen.add(column)


def relation_name(plan: LogicalPlan | PhysicalPlan) -> str:
    """A plan's name: the relation that all its columns come from, here or below, else its node's name."""
    relations = {column.relation for column in plan.output_columns}
    if len(relations) == 1 and (name := relations.pop()):
        return name
    below = plan.children
    return relation_name(below[0]) if len(below) == 1 else type(plan).__name__.removesuffix("Exec").lower()


def comma(items: tuple[object, ...]) -> str:
    """Items as the plan printout lists them."""
    return ", ".join(str(item) for item in items)


def with_fields(node: Plan, **changes: Any) -> Plan:
    """The node with fields replaced; the node itself if every new value equals the old one."""
    real = {name: new for name, new in changes.items() if not _unchanged(getattr(node, name), new)}
    return replace(node, **real) if real else node


def _unchanged(old: Any, new: Any) -> bool:
    if old is new:
        return True
    if isinstance(old, LogicalPlan) or isinstance(new, LogicalPlan):
        return False
    if isinstance(old, tuple) and isinstance(new, tuple) and any(isinstance(item, LogicalPlan) for item in old + new):
        return len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True))
    return bool(old == new)


SubqueryKind = Literal["exists", "in", "scalar"]


@dataclass(frozen=True)
class SubqueryExpression(Expression):
    """``[NOT] EXISTS (...)``, ``x [NOT] IN (...)``, or ``(...)`` as a value.

    `plan` is the analysed query; columns in it that none of its nodes gives belong to the outer query
    (`LogicalPlan.free_columns`). It is not a child of the node that holds the expression. `operands` are the
    expressions before IN, one for each column of the plan. `text` is the whole expression as Spark SQL; subqueries are
    compared by it. `relation` is a name that no relation of the statement has, for columns of the plan that a join
    needs. `sweep` is what the hints SWEEP and NO_SWEEP say about that join. `refusal` is set if only we can run
    the text: unless a rule turns the subquery into a join, the statement cannot run. `ordered` is where SWEEP stands in
    the subquery itself.
    """

    kind: SubqueryKind
    operands: tuple[Expression, ...]
    negated: bool
    text: SparkExpr
    plan: LogicalPlan = field(compare=False, repr=False)
    relation: str = field(compare=False)
    sweep: bool | None = field(default=None, compare=False)
    refusal: UnsupportedError | None = field(default=None, compare=False, repr=False)
    ordered: Span | None = field(default=None, compare=False, repr=False)

    @property
    def own_traits(self) -> int:
        return SUBQUERY

    @property
    def atomic(self) -> bool:
        return self.kind == "scalar" or (self.kind == "exists" and not self.negated)

    @property
    def dtype(self) -> str | None:
        """The type of the value, where certain."""
        if self.kind != "scalar":
            return "boolean"
        return self.plan.output[0].dtype if self.plan.output else None

    @cached_property
    def references(self) -> frozenset[Column]:
        found = super().references
        if self.refusal is None:
            return found
        return found | self.plan.free_columns

    def substitute(self, mapping: Mapping[Column, Expression]) -> Expression:
        plan = self.plan.with_free(mapping)
        new = super().substitute(mapping)
        return new if plan is self.plan or not isinstance(new, SubqueryExpression) else replace(new, plan=plan)

    def sql(self) -> str:
        if self.refusal is not None:
            raise self.refusal
        return self.text.sql()

    def __str__(self) -> str:
        return str(self.text)


def own_subqueries(plan: LogicalPlan) -> Iterator[SubqueryExpression]:
    """Every subquery in the plan's expressions."""
    for node in plan.walk():
        for expression in node.expressions():
            if expression.traits & SUBQUERY:
                yield from (inner for inner in expression.walk() if isinstance(inner, SubqueryExpression))


def subqueries(plan: LogicalPlan) -> Iterator[SubqueryExpression]:
    """Every subquery in the plan's expressions, and in the expressions of the subqueries' own plans."""
    stack = [plan]
    while stack:
        for inner in own_subqueries(stack.pop()):
            yield inner
            stack.append(inner.plan)


def refuse_left_over(plan: LogicalPlan) -> None:
    """Raises UnsupportedError for a subquery that no rule has turned into a join and that Spark cannot run as text."""
    for item in subqueries(plan):
        if item.refusal is not None:
            raise item.refusal
