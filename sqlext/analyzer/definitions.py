"""Finds which window definition each OVER means, and whether it is ours or Spark's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlext_operators.window.functions import lookup
from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.expressions.nodes import Column, Expression, Literal
from sqlext_planner.expressions.types import ORDER_TYPES, WINDOW_ORDER_TYPES
from sqlext_planner.relational.nodes import SortKey
from sqlext_planner.window.nodes import (
    CURRENT_ROW,
    MICROSECONDS,
    ONES,
    Bound,
    Direction,
    Ticks,
    WindowFrame,
    ticks_of,
)
from sqlglot import exp

from sqlext.analyzer import call_forms
from sqlext.analyzer.amounts import INTEGER, LARGEST, NO_BOUND, frame_amount, refuse_uneven, whole_number
from sqlext.analyzer.context import ComputedNames, Context, Env, Scope, suggest
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.items import Item, own_nodes
from sqlext.syntax.calls import EXTENSION_FUNCTIONS
from sqlext.syntax.parser import is_extension_window
from sqlext.syntax.spans import span_of
from sqlext.syntax.sql_settings import normal_text

_EXAMPLE = "write for example ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW"
_LARGEST = 2**53


def partition_keys(window: exp.Window, builder: ExpressionBuilder) -> tuple[Expression, ...]:
    """PARTITION BY; without it a constant: all rows are one group. Raises AnalysisError."""
    nodes = window.args.get("partition_by") or []
    if not nodes and builder.context.openmldb:
        raise AnalysisError(
            "the window has no PARTITION BY",
            condition="window-without-key",
            span=span_of(window),
            help="add PARTITION BY and the key column(s), or read the statement without compat='openmldb'",
        )
    if not nodes:
        return (Literal("1", dtype="int"),)
    keys = []
    for node in nodes:
        dtype = builder.dtype(node)
        if dtype is not None and (dtype.startswith("map") or dtype in ("float", "double")):
            raise AnalysisError(
                f"a window cannot be partitioned by a column of type {dtype}",
                condition="key-type",
                span=span_of(node),
                help="use a key of an integer, string, date, timestamp, decimal or boolean type",
            )
        keys.append(builder.build(node))
    return tuple(keys)


def order_key(window: exp.Window, builder: ExpressionBuilder) -> tuple[Expression | None, str | None]:
    """The first key of ORDER BY, in which frames count: ascending, of an integer, date or timestamp type; and that type
    if known. In OpenMLDB mode it is a plain column, and the only one. Raises AnalysisError."""
    order = window.args.get("order")
    if order is None:
        return None, None
    if len(order.expressions) > 1 and builder.context.openmldb:
        extra = order.expressions[1]
        raise AnalysisError(
            "OpenMLDB orders a window by one column",
            condition="window-order",
            span=span_of(extra),
            help="remove the other columns, or read the statement without compat='openmldb'",
        )
    item = order.expressions[0]
    if item.args.get("desc"):
        raise AnalysisError(
            "DESC in a window is not supported: windows look back in time",
            condition="window-order",
            span=span_of(item),
            help="order ascending; use FOLLOWING bounds to look ahead",
        )
    if not item.args.get("nulls_first"):
        raise AnalysisError(
            "NULL order keys sort first in a window",
            condition="window-order",
            span=span_of(item),
            help="remove NULLS LAST",
        )
    key = builder.build(item.this)
    if not isinstance(key, Column) and builder.context.openmldb:
        raise AnalysisError(
            "OpenMLDB orders a window by a plain column, not by an expression",
            condition="window-order",
            span=span_of(item.this),
            help="compute it in a subquery of FROM, and order by its name",
        )
    dtype = builder.dtype(item.this)
    allowed = ORDER_TYPES if builder.context.openmldb else WINDOW_ORDER_TYPES
    if dtype is not None and dtype not in allowed:
        date = "" if builder.context.openmldb else "date "
        raise AnalysisError(
            f"a window cannot be ordered by a column of type {dtype}",
            condition="order-type",
            span=span_of(item.this),
            help=f"order by a smallint, int, bigint, {date}or timestamp column; cast it in a subquery of FROM",
        )
    return key, dtype


def further_keys(window: exp.Window, builder: ExpressionBuilder) -> tuple[SortKey, ...]:
    """The keys of ORDER BY behind the first one."""
    order = window.args.get("order")
    return tuple(
        SortKey(
            builder.build(item.this),
            bool(item.args.get("desc")),
            bool(item.args.get("nulls_first")),
            span=span_of(item),
        )
        for item in (order.expressions[1:] if order is not None else [])
    )


def window_frame(context: Context, window: exp.Window, order_dtype: str | None) -> WindowFrame:
    """The frame of one of our definitions. Raises AnalysisError."""
    spec = window.args.get("spec")
    if spec is None or not spec.args.get("kind"):
        raise AnalysisError("the window has no frame", condition="window-frame", span=span_of(window), help=_EXAMPLE)
    kind = str(spec.args["kind"]).upper()
    places: dict[str, tuple[int, int]] = spec.meta["places"]
    if kind in ("RANGE", "GROUPS"):
        raise AnalysisError(
            f"{kind} frames are Spark's own and cannot be combined with the other parts of this window",
            condition="window-frame",
            span=span_of(spec),
            help="write ROWS_RANGE (by time or by order value) or ROWS (by position)",
        )
    if spec.args.get("end") is None:
        raise AnalysisError(
            "the frame has only one bound",
            condition="window-frame",
            span=span_of(spec),
            help="write BETWEEN ... AND CURRENT ROW",
        )
    if spec.args.get("exclude"):
        raise AnalysisError(
            f"EXCLUDE {spec.args['exclude'].name} is Spark's own and not available here",
            condition="window-frame",
            span=span_of(spec),
            help="write EXCLUDE CURRENT_ROW or EXCLUDE CURRENT_TIME",
        )
    of_type = MICROSECONDS if order_dtype is None else ticks_of(order_dtype)  # the most if the type is unknown
    ticks = ONES if kind == "ROWS" else of_type
    start, end = (_bound(context, spec, side, kind, ticks) for side in ("start", "end"))
    _check_order(spec, start, end, order_dtype)
    frame = WindowFrame(
        "rows" if kind == "ROWS" else "range",
        start,
        end,
        maxsize=_maxsize(context, spec, kind),
        exclude_current_row=bool(spec.args.get("exclude_current_row")),
        exclude_current_time=bool(spec.args.get("exclude_current_time")),
        instance_not_in_window=bool(spec.args.get("instance_not_in_window")),
    )
    if window.args.get("order") is None:
        _check_unordered(frame, spec, places)
    return frame


def _check_unordered(frame: WindowFrame, spec: exp.Expr, places: dict[str, tuple[int, int]]) -> None:
    if frame.exclude_current_time:
        raise AnalysisError(
            "EXCLUDE CURRENT_TIME needs an ORDER BY",
            condition="window-order",
            span=Span(*places["exclude_current_time"]),
            help="add ORDER BY",
        )
    if frame.unit == "range" and (frame.start.amount is not None or frame.end != CURRENT_ROW):
        raise AnalysisError(
            "a ROWS_RANGE window without ORDER BY can only be BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            condition="window-order",
            span=span_of(spec),
            help="add ORDER BY",
        )


def _bound(context: Context, spec: exp.Expr, side: str, kind: str, ticks: Ticks) -> Bound:
    """One end of the frame, over an order column that counts in `ticks`."""
    span = Span(*spec.meta["places"][side])
    value = spec.args[side]
    if value == "CURRENT ROW":
        return CURRENT_ROW
    direction: Direction = "following" if str(spec.args[f"{side}_side"]).upper() == "FOLLOWING" else "preceding"
    if value == "UNBOUNDED":
        wrong = "following" if side == "start" else "preceding"
        if direction == wrong:
            raise AnalysisError(
                f"a frame cannot {side} at UNBOUNDED {wrong.upper()}",
                condition="window-frame",
                span=span,
                help=_EXAMPLE,
            )
        return Bound(direction, None)
    amount, unit = frame_amount(context, value, span)
    if unit and kind == "ROWS":
        raise AnalysisError(
            "a ROWS frame counts rows, so its bounds have no time unit",
            condition="window-frame",
            span=span,
            help="write ROWS_RANGE for a time range, or a number of rows",
        )
    refuse_uneven(ticks, amount, unit, span)
    is_open = bool(spec.args.get(f"{side}_open"))
    reach = Bound(direction, amount, unit, is_open).offset(ticks, is_start=side == "start")
    if amount > _LARGEST or reach is None or abs(reach) > LARGEST:
        raise AnalysisError("the bound is too large", condition="window-frame", span=span, help=NO_BOUND)
    if amount == 0 and not is_open:
        return CURRENT_ROW
    return Bound(direction, amount, unit, is_open)


def _check_order(spec: exp.Expr, start: Bound, end: Bound, order_dtype: str | None) -> None:
    """Raises AnalysisError if the lower bound is above the upper one, OPEN included."""
    ticks = ticks_of(order_dtype)
    low, high = start.offset(ticks, is_start=True), end.offset(ticks, is_start=False)
    if low is not None and high is not None and low > high:
        raise AnalysisError(
            f"the frame is empty: its lower bound {start} is above its upper bound {end}",
            condition="window-frame",
            span=_between(spec, "start", "end"),
            help="write the older bound first",
        )


def _between(spec: exp.Expr, *sides: str) -> Span:
    places: Sequence[tuple[int, int]] = [spec.meta["places"][side] for side in sides]
    return Span(places[0][0], places[-1][1])


def _maxsize(context: Context, spec: exp.Expr, kind: str) -> int | None:
    value = spec.args.get("maxsize")
    if value is None:
        return None
    span = Span(*spec.meta["places"]["maxsize"])
    if kind == "ROWS":
        raise AnalysisError(
            "MAXSIZE cannot be used with ROWS",
            condition="window-frame",
            span=span,
            help="remove it: ROWS already counts rows",
        )
    number = INTEGER.fullmatch(context.slice(span_of(value)))
    if number is None or not number[1].strip("0"):
        raise AnalysisError(
            "MAXSIZE must be a positive integer literal",
            condition="window-frame",
            span=span,
            help="write MAXSIZE 1 or more",
        )
    return whole_number(number[1], span, "MAXSIZE", help="leave it out; then all rows of the frame stay")


@dataclass(frozen=True)
class Definition:
    """One window definition: `key` identifies it, `name` is the user's, or its number among anonymous ones."""

    key: str
    name: str
    node: exp.Window
    is_ours: bool


class Definitions:
    """The window definitions of one SELECT block and the calls over them."""

    def __init__(self, context: Context, select: exp.Select, calls: list[exp.Window]) -> None:
        self._context = context
        for call in calls if context.openmldb else ():
            call_forms.mark(call)
        self._named = self._collect_named(select)
        self._anonymous: dict[str, int] = {}
        by_key: dict[str, Definition] = {}
        self._by_call: dict[int, Definition] = {}
        keyed = [(call, *self._locate(call)) for call in calls]
        ours = {key for call, key, _, node in keyed if self._is_ours(call, node)}
        for call, key, name, node in keyed:
            definition = by_key.setdefault(key, Definition(key, name, node, key in ours))
            self._by_call[id(call)] = definition
            self._refuse_inner_window(call, definition)
        for name, node in self._named.items():
            if context.openmldb:
                self.follow(node, name)

    def _refuse_inner_window(self, call: exp.Window, definition: Definition) -> None:
        """Raises AnalysisError for an OVER inside our call or definition, and for one of ours inside Spark's."""
        for inner in (node for root in (call, definition.node) for node in own_nodes(root)):
            if not isinstance(inner, exp.Window) or inner is call or inner is definition.node:
                continue
            if definition.is_ours or self._is_ours(inner, self._locate(inner)[2]):
                raise AnalysisError(
                    "a window call cannot be inside another window call",
                    condition="misplaced-window",
                    span=span_of(inner),
                    help="compute it in a subquery of FROM, and use its column; over a sqlext window an aggregate "
                    "in an argument belongs to the window and takes no OVER of its own: sum(x - count(x)) OVER w",
                )

    def of(self, call: exp.Window) -> Definition:
        """The definition that a call's OVER means, also if it is inside another call or in HAVING."""
        known = self._by_call.get(id(call))
        if known is None:
            key, name, node = self._locate(call)
            known = self._by_call[id(call)] = Definition(key, name, node, self._is_ours(call, node))
        return known

    def is_ours(self, call: exp.Window) -> bool:
        """Whether a call's window is one of ours."""
        return self.of(call).is_ours

    def follow(self, node: exp.Window, name: str) -> exp.Window:
        """The definition that ``WINDOW w2 AS (w1)`` refers to."""
        seen = {self._context.fold(name)}
        while node.args.get("alias") is not None:
            base = node.args["alias"]
            if any(node.args.get(key) for key in ("partition_by", "order", "spec", "union")):
                raise AnalysisError(
                    f"a window cannot extend '{base.name}'",
                    condition="window-definition",
                    span=span_of(node),
                    help="write out the whole definition",
                )
            if self._context.openmldb:
                raise AnalysisError(
                    f"window '{name}' has no frame: AS {base.name} does not copy the other one's frame",
                    condition="window-definition",
                    span=span_of(node),
                    help=f"use OVER {base.name}, or write out the definition",
                )
            if len(seen) > 1:
                raise AnalysisError(
                    f"window '{base.name}' only names another one",
                    condition="window-definition",
                    span=span_of(base),
                    help="a window may be another name only for a window that is written out",
                )
            if self._context.fold(base.name) in seen:
                raise AnalysisError(
                    f"window '{name}' is defined by itself", condition="window-definition", span=span_of(base)
                )
            seen.add(self._context.fold(base.name))
            node = self._get(base)
        return node

    def _collect_named(self, select: exp.Select) -> dict[str, exp.Window]:
        named: dict[str, exp.Window] = {}
        for node in select.args.get("windows") or []:
            name = node.this.name
            if self._context.fold(name) in named:
                raise AnalysisError(
                    f"window '{name}' is defined twice",
                    condition="duplicate-name",
                    span=span_of(node.this),
                    help="give one of them another name",
                )
            named[self._context.fold(name)] = node
        return named

    def _get(self, name: exp.Expr) -> exp.Window:
        found = self._named.get(self._context.fold(name.name))
        if found is not None:
            return found
        names = [node.this.name for node in self._named.values()]
        nearest = suggest(name.name, names)
        if nearest:
            hint = f"did you mean '{nearest}'?"
        else:
            hint = f"windows here: {', '.join(names)}" if names else f"add WINDOW {name.name} AS (...) at the end"
        raise AnalysisError(
            f"window '{name.name}' not found", condition="unknown-window", span=span_of(name), help=hint
        )

    def _locate(self, call: exp.Window) -> tuple[str, str, exp.Window]:
        """Key, name and node of the definition that a call's OVER means."""
        base = call.args.get("alias")
        if base is None:
            span = definition_span(self._context, call)
            text = normal_text(self._context.slice(span), self._context.settings)
            number = self._anonymous.setdefault(text, len(self._anonymous) + 1)
            return f"({text})", f"window {number}", call
        if any(call.args.get(key) for key in ("partition_by", "order", "spec", "union")):
            raise AnalysisError(
                f"OVER ({base.name} ...) cannot extend window '{base.name}'",
                condition="window-definition",
                span=definition_span(self._context, call),
                help=f"write OVER {base.name}, or write out the whole definition",
            )
        node = self.follow(self._get(base), base.name)
        return self._context.fold(node.this.name), node.this.name, node

    def _is_ours(self, call: exp.Window, definition: exp.Window) -> bool:
        if self._context.openmldb or is_extension_window(definition):
            return True
        called = {node.name.lower() for node in own_nodes(call.this) if isinstance(node, exp.Anonymous)}
        return bool(called & EXTENSION_FUNCTIONS)


def definition_span(context: Context, call: exp.Window) -> Span:
    """The span of a call's OVER part."""
    start, end = span_of(call.this).end, span_of(call).end
    return Span(start + len(context.text[start:end]) - len(context.text[start:end].lstrip()), end)


def table_call(node: exp.Expr) -> bool:
    """Whether the node calls a function of the table of window functions."""
    if not isinstance(node, exp.Anonymous) or call_forms.template(node) is not None:
        return False
    function = lookup(node.name)
    return function is not None and not function.internal


@dataclass
class SelectBlock:
    """One SELECT block whose FROM is analyzed; its subclasses plan the clauses and windows."""

    context: Context
    node: exp.Select
    env: Env
    scope: Scope
    items: list[Item]
    definitions: Definitions
    names: ComputedNames = field(default_factory=ComputedNames)
    aliases: dict[str, Expression] = field(default_factory=dict)
