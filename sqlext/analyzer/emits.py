"""A block with EMIT AFTER: COUNT, SUM and AVG over a window join of two streams, by window.

    SELECT window.start, count(*) AS n, avg(l.v) AS a
    FROM l JOIN r ON l.k = r.k AND window(l.ts, '10 seconds') = window(r.ts, '10 seconds')
    GROUP BY window(l.ts, '10 seconds')
    EMIT AFTER DELAY INTERVAL '7' SECONDS

Spark takes no window() in a join: there the windows are columns of subqueries, which may be written here too. Then the
statement without EMIT AFTER is Spark's, and gives the final rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, cast

from sqlext_planner.early.nodes import EarlyAggregate, EarlyCall, EarlyFunction, TimeWindow, time_window
from sqlext_planner.errors import Span
from sqlext_planner.expressions.nodes import Column, Compare, Expression, NamedExpr, SparkExpr, conjunction, conjuncts
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Project
from sqlglot import exp

from sqlext.analyzer import emit_windows, joins, subquery_plans
from sqlext.analyzer.context import Analyzed, ComputedNames, Context, Env, Scope
from sqlext.analyzer.emit_options import BOUNDS, OUTER, emission, estimated, micros, refuse_clauses, refuse_names
from sqlext.analyzer.expressions import ExpressionBuilder, is_literal_function
from sqlext.analyzer.grouping import grouping
from sqlext.analyzer.items import Item, aggregate_calls, is_aggregate_call, select_items, unwrapped
from sqlext.analyzer.windows import PHASE
from sqlext.syntax.spans import mistake, span_of, unsupported

_mistake = partial(mistake, "early-answer")
_unsupported = partial(unsupported, "early-answer")

_FUNCTIONS = {"count": "count", "sum": "sum", "avg": "avg", "mean": "avg"}


def analyze_emit(context: Context, node: exp.Select, env: Env) -> Analyzed:
    """The plan of a block with EMIT AFTER. Raises AnalysisError, UnsupportedError at what does not fit."""
    if emit_windows.has_windows(node):
        return emit_windows.EmitWindows(context, node, env).analyze()
    return _EmitBlock(context, node, env).analyze()


@dataclass
class _EmitBlock:
    context: Context
    node: exp.Select
    env: Env

    def analyze(self) -> Analyzed:
        clause = self.node.args["emit"]
        emission_spec = emission(self.context, clause)
        self._refuse_clauses(span_of(clause))
        plan, self.scope = joins.from_clause(self.context, self.node, self.env)
        if not isinstance(plan, Join) or plan.kind not in ("inner", "cross"):
            raise _mistake(
                plan.span if isinstance(plan, Join) else span_of(clause),
                "EMIT AFTER needs an inner join of two streams on equal keys and equal windows",
                "write FROM l JOIN r ON l.k = r.k AND window(l.ts, '10 seconds') = window(r.ts, '10 seconds')",
            )
        self.join = window_join(self, plan)
        self.names = ComputedNames()
        self.start, self.end = self.names.column("start"), self.names.column("end")
        phase = self.names.column(PHASE)
        items = select_items(self.context, self.node, self.scope)
        self._check_group(items)
        calls: list[EarlyCall] = []
        chosen: list[NamedExpr] = []
        for item in items:
            chosen.append(self._item(item, calls, chosen))
        if not calls:
            raise _mistake(
                clause, "EMIT AFTER needs an aggregate to estimate", "select count(*), or count, sum or avg of a column"
            )
        left, right = self.join.sides
        times = [window.time for window in self.join.windows]
        assert times[0] is not None
        assert times[1] is not None
        plan = EarlyAggregate(
            left,
            right,
            self.join.keys[0],
            self.join.keys[1],
            times[0],
            times[1],
            *self.join.windows[0].shape,
            tuple(calls),
            self.start,
            self.end,
            phase,
            emission_spec,
            span=span_of(clause),
        )
        names = [item.name for item in items]
        more = [
            (f"{_name_of(call, chosen, names)}_{word}", c)
            for call in calls
            for word, c in zip(BOUNDS, call.bounds, strict=True)
        ]
        refuse_names(self.context, items, {name for name, _ in more} | {PHASE})
        chosen += [NamedExpr(column, column) for _, column in more]
        chosen.append(NamedExpr(phase, phase))
        return Analyzed(Project(tuple(chosen), plan), (*names, *(name for name, _ in more), PHASE))

    @cached_property
    def builder(self) -> ExpressionBuilder:
        """Expressions over the columns of both sides."""
        return ExpressionBuilder(self.context, self.scope, self.env)

    def _refuse_clauses(self, span: Span) -> None:
        refuse_clauses(self.node, span)
        for call in (one for one in self.node.find_all(exp.Window) if one.arg_key != "windows"):
            raise _unsupported(
                call,
                "EMIT AFTER over a join does not take windows of rows (OVER)",
                "compute them in a statement of their own",
            )

    def _check_group(self, items: list[Item]) -> None:
        group = self.node.args.get("group")
        if group is None:
            raise _mistake(
                self.node.args["emit"],
                "EMIT AFTER needs GROUP BY window(...): each window has an answer",
                f"add GROUP BY {self.join.shown}",
            )
        found = grouping(group, items, self.builder)
        others = [key for key in found.keys if not self._is_window(key)]
        if others or found.sets is not None or len(found.keys) != 1:
            place = others[0].span if others and others[0].span is not None else span_of(group)
            raise _unsupported(
                place,
                "EMIT AFTER groups by the window alone",
                f"write GROUP BY {self.join.shown}; a condition such as l.k = 5 belongs into WHERE",
            )

    def _is_window(self, expression: Expression) -> bool:
        """Whether an expression is the window of one of the sides."""
        return any(
            time_window(expression, side, micros) == window
            for side, window in zip(self.join.sides, self.join.windows, strict=True)
        )

    def _item(self, item: Item, calls: list[EarlyCall], chosen: list[NamedExpr]) -> NamedExpr:
        node = item.node
        if node is None:
            raise _mistake(item.span, "* cannot be selected from groups", "select window.start and aggregates")
        node = unwrapped(node)
        if is_aggregate_call(node):
            call = self._call(node, item)
            calls.append(call)
            return NamedExpr(call.column, call.column, span=item.span)
        inner = next(aggregate_calls(node), None)
        if inner is not None:
            raise _unsupported(inner, "EMIT AFTER gives each aggregate as it is, with its bounds", OUTER)
        above = ExpressionBuilder(self.context, Scope(), self.env, self._window_part)
        for column in self._other_columns(node):
            if not is_literal_function(tuple(part.name for part in column.parts)):
                self.builder.resolve(column)  # an unknown name is another error
                raise _mistake(
                    column,
                    f"'{self.context.slice(span_of(column))}' is neither the window nor in an aggregate",
                    "EMIT AFTER gives one row for each window: select window.start, window.end and aggregates",
                )
        expression = above.build(node)
        shown = self.names.of_item(item.name, expression, [other.column for other in chosen])
        return NamedExpr(expression, shown, span=item.span)

    def _other_columns(self, node: exp.Expr) -> Iterator[exp.Column]:
        """The columns of an expression that are not in one of the window."""
        stack = [node]
        while stack:
            top = stack.pop()
            if self._window_part(top) is not None:
                continue
            if isinstance(top, exp.Column):
                yield top
            else:
                stack.extend(reversed(list(top.iter_expressions())))

    def _window_part(self, node: exp.Expr) -> Expression | None:
        """The window that a node means, or its start or end."""
        if isinstance(node, exp.Dot) and node.name.lower() in ("start", "end"):
            return self._end(node.name) if self._means_window(node.this) else None
        if isinstance(node, exp.Column) and not node.is_star:
            parts = [part.name for part in node.parts]
            if parts[-1].lower() in ("start", "end") and len(parts) > 1 and self._named_window(node, 1):
                return self._end(parts[-1])
            return self._whole() if self._named_window(node, 0) else None
        return self._whole() if self._means_window(node) else None

    def _named_window(self, node: exp.Column, fields: int) -> bool:
        """Whether a name, with so many names of fields behind it, is that of the window."""
        parts = tuple(part.name for part in node.parts)
        match = self.scope.find(parts, span_of(node))
        if match is not None:
            return len(parts) - match.parts == fields and self._is_window(match.visible.column)
        return len(parts) == 1 + fields and parts[0].lower() == "window"

    def _means_window(self, node: exp.Expr) -> bool:
        if not isinstance(node, exp.Anonymous) or node.name.lower() != "window":
            return False
        return self._is_window(self.builder.build(node))

    def _end(self, name: str) -> Column:
        return self.start if name.lower() == "start" else self.end

    def _whole(self) -> SparkExpr:
        return SparkExpr(("named_struct('start', ", self.start, ", 'end', ", self.end, ")"))

    def _call(self, node: exp.Expr, item: Item) -> EarlyCall:
        """An aggregate that can be estimated."""
        span = span_of(node)
        name = estimated(node, _FUNCTIONS, "leave EMIT AFTER out: Spark computes it when the window is final")
        function, arguments = _FUNCTIONS[name], node.expressions
        if len(arguments) != 1:
            raise _unsupported(span, f"EMIT AFTER takes {name} of one value", "write count(*), or one column")
        (argument,) = arguments
        bounds = tuple(self.names.column(f"{item.name}_{word}") for word in BOUNDS)
        column = self.names.column(item.name)
        text = " ".join(self.context.slice(span).split())
        rows = isinstance(argument, exp.Star) or (isinstance(argument, exp.Literal) and function == "count")
        value = None if rows else self.builder.build(argument)
        side = self._side_of(value, argument)
        return EarlyCall(cast(EarlyFunction, function), value, side, column, bounds, text, span)

    def _side_of(self, value: Expression | None, node: exp.Expr) -> Literal["left", "right"]:
        left, right = (frozenset(side.output_columns) for side in self.join.sides)
        if value is None or value.references <= left:
            return "left"
        if value.references <= right:
            return "right"
        raise _unsupported(
            node,
            "EMIT AFTER estimates aggregates of values of one side, and this one reads both",
            "aggregate a column of one side",
        )


def _name_of(call: EarlyCall, chosen: list[NamedExpr], names: list[str]) -> str:
    """The name of a call's column that the user knows."""
    return next(name for item, name in zip(chosen, names, strict=True) if item.expression == call.column)


_ADD = "add window(l.ts, '10 seconds') = window(r.ts, '10 seconds') to ON"
Pair = tuple[Expression, Expression]


@dataclass(frozen=True)
class WindowJoin:
    """Rows match if the keys at the same places are equal, and the windows are. `shown` is the text of a window."""

    sides: tuple[LogicalPlan, LogicalPlan]
    keys: tuple[tuple[Expression, ...], tuple[Expression, ...]]
    windows: tuple[TimeWindow, TimeWindow]
    shown: str


def window_join(block: _EmitBlock, plan: Join) -> WindowJoin:
    """The parts of an inner join. Raises AnalysisError, UnsupportedError for one that is no window join of streams."""
    sides = (plan.left, plan.right)
    emit = span_of(block.node.args["emit"])
    for name, side in zip(("left", "right"), sides, strict=True):
        if not side.is_streaming:
            raise _mistake(
                side.span or emit,
                f"EMIT AFTER needs two streams, and the {name} side of the join is a table",
                "leave EMIT AFTER out: nothing of a table comes late",
            )
    keys: list[Pair] = []
    windows: list[tuple[TimeWindow, TimeWindow, Pair, Span | None]] = []
    filters: tuple[list[Expression], list[Expression]] = ([], [])
    for term in (*conjuncts(plan.condition), *_where(block)):
        pair = _equal(term, sides)
        if pair is None:
            place = next((i for i in (0, 1) if term.references <= frozenset(sides[i].output_columns)), None)
            if place is None:
                raise _unsupported(
                    term.span or plan.span,
                    "EMIT AFTER estimates joins on equal keys in equal windows, and this condition compares the sides "
                    "in another way",
                    "leave the condition or EMIT AFTER out",
                )
            filters[place].append(term)
            continue
        found = [time_window(expression, side, micros) for expression, side in zip(pair, sides, strict=True)]
        if found[0] is not None and found[1] is not None:
            windows.append((found[0], found[1], pair, term.span or plan.span))
        else:
            keys.append(pair)
    if len(windows) != 1:
        raise _mistake(
            plan.span if not windows else windows[1][3],
            "the join has no equal windows" if not windows else "the join has several windows",
            _ADD if not windows else "leave one of them out",
        )
    left, right, pair, span = windows[0]
    _check_windows(left, right, span)
    if not keys:
        raise _unsupported(
            plan.span,
            "EMIT AFTER needs equal keys in the join: all pairs of a window are nothing to estimate from sums by key",
            "add a condition such as l.k = r.k to ON",
        )
    filtered = tuple(
        side if (condition := conjunction(terms)) is None else Filter(condition, side, span=terms[0].span)
        for side, terms in zip(sides, filters, strict=True)
    )
    columns = (tuple(key[0] for key in keys), tuple(key[1] for key in keys))
    return WindowJoin((filtered[0], filtered[1]), columns, (left, right), str(pair[0]))


def _where(block: _EmitBlock) -> tuple[Expression, ...]:
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
            raise _unsupported(span, "EMIT AFTER takes windows that do not overlap", "write window(ts, '10 seconds')")
        if window.time is None:
            raise _mistake(
                span,
                "the subquery computes the window and does not pass its time on, which tells how far the stream is",
                "select the time of the window in the subquery too",
            )
    if left.shape != right.shape:
        raise _mistake(span, "the windows of the sides are not the same", "give both the same length and start")
