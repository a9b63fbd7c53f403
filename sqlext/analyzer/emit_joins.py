"""The join of a block with EMIT AFTER, taken apart: equal keys, equal windows, conditions on one side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sqlext_planner.early.time_windows import TimeWindow
from sqlext_planner.errors import AnalysisError, Span, UnsupportedError
from sqlext_planner.expressions.nodes import Compare, Expression, conjunction, conjuncts
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Join
from sqlglot import exp

from sqlext.analyzer import subquery_plans
from sqlext.analyzer.context import Context
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.syntax.spans import span_of

_ADD = "add window(l.ts, '10 seconds') = window(r.ts, '10 seconds') to ON"
Pair = tuple[Expression, Expression]


class Block(Protocol):
    """What is needed of the block."""

    context: Context
    node: exp.Select

    @property
    def builder(self) -> ExpressionBuilder: ...

    def window_of(self, expression: Expression, plan: LogicalPlan) -> TimeWindow | None: ...


@dataclass(frozen=True)
class WindowJoin:
    """Rows match if the keys at the same places are equal, and the windows are. `shown` is the text of a window."""

    sides: tuple[LogicalPlan, LogicalPlan]
    keys: tuple[tuple[Expression, ...], tuple[Expression, ...]]
    windows: tuple[TimeWindow, TimeWindow]
    shown: str


def window_join(block: Block, plan: Join) -> WindowJoin:
    """The parts of an inner join. Raises AnalysisError, UnsupportedError for one that is no window join of streams."""
    sides = (plan.left, plan.right)
    emit = span_of(block.node.args["emit"])
    for name, side in zip(("left", "right"), sides, strict=True):
        if not side.is_streaming:
            raise AnalysisError(
                f"EMIT AFTER needs two streams, and the {name} side of the join is a table",
                condition="early-answer",
                span=side.span or emit,
                help="leave EMIT AFTER out: nothing of a table comes late",
            )
    keys: list[Pair] = []
    windows: list[tuple[TimeWindow, TimeWindow, Pair, Span | None]] = []
    own: tuple[list[Expression], list[Expression]] = ([], [])
    for term in (*conjuncts(plan.condition), *_where(block)):
        pair = _equal(term, sides)
        if pair is None:
            place = next((i for i in (0, 1) if term.references <= frozenset(sides[i].output_columns)), None)
            if place is None:
                raise UnsupportedError(
                    "EMIT AFTER estimates joins on equal keys in equal windows, and this condition compares the sides "
                    "in another way",
                    condition="early-answer",
                    span=term.span or plan.span,
                    help="leave the condition or EMIT AFTER out",
                )
            own[place].append(term)
            continue
        found = [block.window_of(expression, side) for expression, side in zip(pair, sides, strict=True)]
        if found[0] is not None and found[1] is not None:
            windows.append((found[0], found[1], pair, term.span or plan.span))
        else:
            keys.append(pair)
    if len(windows) != 1:
        raise AnalysisError(
            "the join has no equal windows" if not windows else "the join has several windows",
            condition="early-answer",
            span=plan.span if not windows else windows[1][3],
            help=_ADD if not windows else "leave one of them out",
        )
    left, right, pair, span = windows[0]
    _check_windows(left, right, span)
    if not keys:
        raise UnsupportedError(
            "EMIT AFTER needs equal keys in the join: all pairs of a window are nothing to estimate from sums by key",
            condition="early-answer",
            span=plan.span,
            help="add a condition such as l.k = r.k to ON",
        )
    filtered = tuple(
        side if (condition := conjunction(terms)) is None else Filter(condition, side, span=terms[0].span)
        for side, terms in zip(sides, own, strict=True)
    )
    columns = (tuple(key[0] for key in keys), tuple(key[1] for key in keys))
    return WindowJoin((filtered[0], filtered[1]), columns, (left, right), str(pair[0]))


def _where(block: Block) -> tuple[Expression, ...]:
    where = block.node.args.get("where")
    return () if where is None else conjuncts(subquery_plans.filter_condition(where.this, block.builder))


def _equal(term: Expression, sides: tuple[LogicalPlan, LogicalPlan]) -> Pair | None:
    """The operands of an equality of the sides, the left side's first."""
    if not isinstance(term, Compare) or term.op != "=" or not term.left.references or not term.right.references:
        return None
    left, right = (frozenset(side.output_columns) for side in sides)
    if term.left.references <= left and term.right.references <= right:
        return term.left, term.right
    if term.left.references <= right and term.right.references <= left:
        return term.right, term.left
    return None


def _check_windows(left: TimeWindow, right: TimeWindow, span: Span | None) -> None:
    for window in (left, right):
        if window.slide != window.length:
            raise UnsupportedError(
                "EMIT AFTER takes windows that do not overlap",
                condition="early-answer",
                span=span,
                help="write window(ts, '10 seconds')",
            )
        if window.time is None:
            raise AnalysisError(
                "the subquery computes the window and does not pass its time on, which tells how far the stream is",
                condition="early-answer",
                span=span,
                help="select the time of the window in the subquery too",
            )
    if left.shape != right.shape:
        raise AnalysisError(
            "the windows of the sides are not the same",
            condition="early-answer",
            span=span,
            help="give both the same length and start",
        )
