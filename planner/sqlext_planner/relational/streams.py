"""Streams: which nodes read one, and the refusal of operators that cannot.

An operator without state sees the rows of one micro-batch and would take them for the whole table: it may not be above
a stream. The features say what their operators can (`strategies.stream_refusal`). Everything else is plain Spark, which
knows what a stream allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sqlext_planner.errors import Span, SqlExtError, UnsupportedError
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan, own_subqueries, relation_name
from sqlext_planner.relational.nodes import (
    Filter,
    Hint,
    Output,
    Project,
    Scan,
    SetOperation,
    SparkRelation,
    SubqueryAlias,
)

_HELP = (
    "run it over a table: write the stream to a table with writeStream, or compute each micro-batch as its own table "
    "with foreachBatch"
)


def streams_of(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """The streams that a plan reads, those of subqueries in its expressions included."""
    return (node for below in _plans(plan) for node in below.walk() if node.is_stream)


def stream_spans(plans: Iterable[LogicalPlan]) -> tuple[Span | None, ...]:
    """The place of the first stream that each of the plans reads; None for one that reads none."""
    return tuple(next((stream.span for stream in streams_of(plan)), None) for plan in plans)


def is_streaming(plan: LogicalPlan) -> bool:
    """Whether a plan reads a stream, also in a subquery of an expression."""
    return next(streams_of(plan), None) is not None


def operators_asked_for(plan: LogicalPlan) -> bool:
    """Whether hints (SWEEP, UMJOIN) ask for our operators in a plan, also in subqueries of its expressions."""
    for below in _plans(plan):
        joins = below.collect(Join)
        if any(join.sweep or (join.umjoin is not None and join.umjoin.wanted) for join in joins):
            return True
        if any(item.sweep for item in own_subqueries(below)):
            return True
    return False


def hidden_stream(plan: LogicalPlan) -> LogicalPlan | None:
    """A stream that only subqueries in a plan's expressions (EXISTS, IN) read; None if there is none."""
    return next((stream for item in own_subqueries(plan) for stream in streams_of(item.plan)), None)


def check_hidden(plan: LogicalPlan, stream: LogicalPlan) -> None:
    """Raises UnsupportedError if a hint asks for one of our operators in a plan that reads a stream so: Spark, which
    decides what a statement without our syntax means, allows no stream there."""
    if operators_asked_for(plan):
        raise UnsupportedError(
            f"a hint asks for an operator over the stream{shown(stream)} in EXISTS, IN or another subquery, where "
            "Spark allows none",
            condition="hint-not-followed",
            span=stream.span,
            help="write LEFT SEMI JOIN in place of EXISTS and IN, and LEFT ANTI JOIN in place of NOT EXISTS",
        ).about_hint()


#: Why one of our operators cannot be computed over the streams that it reads; None if it can. A refusal without a place
#: is about the stream itself.
Refusal = Callable[[LogicalPlan], SqlExtError | None]


def refuse_streams(plan: LogicalPlan, refusal_of: Refusal) -> None:
    """Raises the refusal of the first of our operators that reads a stream, directly or through others, and cannot."""
    if not is_streaming(plan):
        return
    for node in (node for below in _plans(plan) for node in below.walk()):
        stream = next(streams_of(node), None) if node.operator_name is not None else None
        refusal = refusal_of(node) if stream is not None else None
        if stream is None or refusal is None:
            continue
        if refusal.span is not None:
            raise refusal
        message = refusal.message.replace(" a stream ", f" the stream{shown(stream)} ")
        error = stream_refusal(message, stream)
        raise error.about_window() if refusal.of_window else error


def input_error(node: LogicalPlan) -> UnsupportedError | None:
    """Why an operator with state cannot read its inputs: late rows of another operator come out too, or the stream is
    read in a subquery of an expression only; None if it can."""
    below = (inner for child in node.children for inner in child.walk())
    inner = next((inner for inner in below if inner.gives_late_rows), None)
    if inner is not None:
        return UnsupportedError(
            f"{node.operator_name} cannot read the late rows of {inner.operator_name}, which come out because of "
            "sqlext.stream.late = rows",
            condition="stream-not-supported",
            span=node.span or inner.span,
            help="set sqlext.stream.late to drop or fail, or select the columns without 'phase' in a subquery",
        )
    if not any(child.is_streaming for child in node.children if isinstance(child, LogicalPlan)):
        return UnsupportedError(
            f"{node.operator_name} cannot read a stream in a subquery of an expression",
            condition="stream-not-supported",
        )
    return None


def other_stream_rows(node: LogicalPlan, inputs: Iterable[LogicalPlan], root: LogicalPlan | None) -> str | None:
    """Why plain SQL over streams would not be the same if an operator of ours computed a join of a plan's `root` over
    these inputs; None if nothing says so."""
    if root is not None and not any(item is node for item in _emitted(root)):
        return "what reads its rows keeps state in Spark, and needs their event time, which ends at our operator"
    for child in inputs:
        source = child
        while isinstance(source, _ROW_BY_ROW):
            (source,) = source.children
        if not isinstance(source, (Scan, SparkRelation)):
            return f"{relation_name(child)} is not a stream alone: other operators keep state for it"
        if any(item.dtype is None for item in child.output):
            return f"the types of {relation_name(child)} are known to Spark alone"
    return None


def _emitted(root: LogicalPlan) -> Iterator[LogicalPlan]:
    """The nodes whose rows come out as they are made, or go to an operator of ours: Spark keeps nothing above them."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        streams = [child for child in node.children if child.is_streaming]
        is_ours = node.operator_name is not None
        is_union = isinstance(node, SetOperation) and node.kind == "union" and node.all
        if len(streams) == 1 if node.is_join else is_ours or is_union or isinstance(node, _ROW_BY_ROW):
            stack += streams


_ROW_BY_ROW = (Output, Project, Filter, SubqueryAlias, Hint)


def event_times(plan: LogicalPlan) -> frozenset[Column]:
    """The columns of a plan that have a watermark, as far as planning knows."""
    known: dict[Column, Expression] = {}
    match plan:
        case Scan(relation=relation, watermark=name) if name is not None:
            below = frozenset((Column(relation, name),))
        case Project(items, child):
            known = {item.column: item.expression for item in items}
            below = event_times(child)
        case SubqueryAlias(child=child):
            known = dict(zip(plan.output_columns, child.output_columns, strict=True))
            below = event_times(child)
        case _:
            below = frozenset(column for child in plan.children for column in event_times(child))
    return frozenset(column for column in plan.output_columns if known.get(column, column) in below)


def stream_refusal(message: str, stream: LogicalPlan) -> UnsupportedError:
    """The error for a stream where none is allowed."""
    return UnsupportedError(message, condition="stream-not-supported", span=stream.span, help=_HELP)


def _plans(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """The plan and those of the subqueries in its expressions."""
    stack = [plan]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(item.plan for item in own_subqueries(top))


def shown(stream: LogicalPlan) -> str:
    """The stream's name in a sentence, if it has one."""
    match stream:
        case Scan(table=table):
            return f" '{table}'"
        case SparkRelation():
            return " in this part of FROM"
    return ""
