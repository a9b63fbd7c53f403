"""Finds which window definition each OVER means, and whether it is ours or Spark's."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from sqlext_operators.window.functions import lookup
from sqlext_planner.errors import Span
from sqlext_planner.expressions.nodes import Column, Expression, Literal
from sqlext_planner.expressions.types import ORDER_TYPES, WINDOW_ORDER_TYPES
from sqlext_planner.relational.nodes import SortKey
from sqlext_planner.window.nodes import CURRENT_ROW, MICROSECONDS, ONES, Bound, Direction, Ticks, WindowFrame, ticks_of
from sqlglot import exp

from sqlext.analyzer import call_forms
from sqlext.analyzer.amounts import INTEGER, LARGEST, NO_BOUND, frame_amount, refuse_uneven, whole_number
from sqlext.analyzer.context import ComputedNames, Context, Env, Scope, did_you_mean
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.items import Item, own_nodes
from sqlext.analyzer.ordering import sort_key
from sqlext.syntax.calls import EXTENSION_FUNCTIONS
from sqlext.syntax.parser import is_extension_window
from sqlext.syntax.spans import mistake, span_of
from sqlext.syntax.sql_settings import normal_text

_wrong_frame = partial(mistake, "window-frame")
_wrong_order = partial(mistake, "window-order")
_wrong_definition = partial(mistake, "window-definition")

_EXAMPLE = "write for example ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW"
_LARGEST = 2**53


def partition_keys(window: exp.Window, builder: ExpressionBuilder) -> tuple[Expression, ...]:
    """PARTITION BY; without it a constant: all rows are one group. Raises AnalysisError."""
    nodes = window.args.get("partition_by") or []
    if not nodes and builder.context.openmldb:
        raise mistake(
            "window-without-key",
            window,
            "the window has no PARTITION BY",
            "add PARTITION BY and the key column(s), or read the statement without compat='openmldb'",
        )
    if not nodes:
        return (Literal("1", dtype="int"),)
    keys = []
    for node in nodes:
        dtype = builder.dtype(node)
        if dtype is not None and (dtype.startswith("map") or dtype in ("float", "double")):
            raise mistake(
                "key-type",
                node,
                f"a window cannot be partitioned by a column of type {dtype}",
                "use a key of an integer, string, date, timestamp, decimal or boolean type",
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
        raise _wrong_order(
            extra,
            "OpenMLDB orders a window by one column",
            "remove the other columns, or read the statement without compat='openmldb'",
        )
    item = order.expressions[0]
    if item.args.get("desc"):
        raise _wrong_order(
            item,
            "DESC in a window is not supported: windows look back in time",
            "order ascending; use FOLLOWING bounds to look ahead",
        )
    if not item.args.get("nulls_first"):
        raise _wrong_order(item, "NULL order keys sort first in a window", "remove NULLS LAST")
    key = builder.build(item.this)
    if not isinstance(key, Column) and builder.context.openmldb:
        raise _wrong_order(
            item.this,
            "OpenMLDB orders a window by a plain column, not by an expression",
            "compute it in a subquery of FROM, and order by its name",
        )
    dtype = builder.dtype(item.this)
    allowed = ORDER_TYPES if builder.context.openmldb else WINDOW_ORDER_TYPES
    if dtype is not None and dtype not in allowed:
        date = "" if builder.context.openmldb else "date "
        raise mistake(
            "order-type",
            item.this,
            f"a window cannot be ordered by a column of type {dtype}",
            f"order by a smallint, int, bigint, {date}or timestamp column; cast it in a subquery of FROM",
        )
    return key, dtype


def further_keys(window: exp.Window, builder: ExpressionBuilder) -> tuple[SortKey, ...]:
    """The keys of ORDER BY behind the first one."""
    order = window.args.get("order")
    return () if order is None else tuple(sort_key(item, builder.build(item.this)) for item in order.expressions[1:])


def window_frame(context: Context, window: exp.Window, order_dtype: str | None) -> WindowFrame:
    """The frame of one of our definitions. Raises AnalysisError."""
    spec = window.args.get("spec")
    if spec is None or not spec.args.get("kind"):
        raise _wrong_frame(window, "the window has no frame", _EXAMPLE)
    kind = str(spec.args["kind"]).upper()
    places: dict[str, tuple[int, int]] = spec.meta["places"]
    if kind in ("RANGE", "GROUPS"):
        raise _wrong_frame(
            spec,
            f"{kind} frames are Spark's own and cannot be combined with the other parts of this window",
            "write ROWS_RANGE (by time or by order value) or ROWS (by position)",
        )
    if spec.args.get("end") is None:
        raise _wrong_frame(spec, "the frame has only one bound", "write BETWEEN ... AND CURRENT ROW")
    if spec.args.get("exclude"):
        raise _wrong_frame(
            spec,
            f"EXCLUDE {spec.args['exclude'].name} is Spark's own and not available here",
            "write EXCLUDE CURRENT_ROW or EXCLUDE CURRENT_TIME",
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


def plain_frame(context: Context, window: exp.Window, order_dtype: str | None) -> WindowFrame:
    """The frame of a window of standard SQL, or the one that it has without words. Raises AnalysisError."""
    spec = window.args.get("spec")
    if spec is None or not spec.args.get("kind"):
        return WindowFrame("range", Bound("preceding", None), CURRENT_ROW, peers=True, plain=True)
    kind = str(spec.args["kind"]).upper()
    if kind not in ("ROWS", "RANGE") or spec.args.get("exclude"):
        raise _wrong_frame(spec, "a plain window has ROWS or RANGE, without EXCLUDE", "write ROWS or RANGE BETWEEN")
    ticks = ONES if kind == "ROWS" else MICROSECONDS if order_dtype is None else ticks_of(order_dtype)
    start = _bound(context, spec, "start", kind, ticks)
    end = CURRENT_ROW if spec.args.get("end") is None else _bound(context, spec, "end", kind, ticks)
    _check_order(spec, start, end, order_dtype)
    peers = kind == "RANGE" and end == CURRENT_ROW
    return WindowFrame("rows" if kind == "ROWS" else "range", start, end, peers=peers, plain=True)


def _check_unordered(frame: WindowFrame, spec: exp.Expr, places: dict[str, tuple[int, int]]) -> None:
    if frame.exclude_current_time:
        raise _wrong_order(
            Span(*places["exclude_current_time"]), "EXCLUDE CURRENT_TIME needs an ORDER BY", "add ORDER BY"
        )
    if frame.unit == "range" and (frame.start.amount is not None or frame.end != CURRENT_ROW):
        raise _wrong_order(
            spec,
            "a ROWS_RANGE window without ORDER BY can only be BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            "add ORDER BY",
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
            raise _wrong_frame(span, f"a frame cannot {side} at UNBOUNDED {wrong.upper()}", _EXAMPLE)
        return Bound(direction, None)
    amount, unit = frame_amount(context, value, span)
    if unit and kind == "ROWS":
        raise _wrong_frame(
            span,
            "a ROWS frame counts rows, so its bounds have no time unit",
            "write ROWS_RANGE for a time range, or a number of rows",
        )
    refuse_uneven(ticks, amount, unit, span)
    is_open = bool(spec.args.get(f"{side}_open"))
    reach = Bound(direction, amount, unit, is_open).offset(ticks, is_start=side == "start")
    if amount > _LARGEST or reach is None or abs(reach) > LARGEST:
        raise _wrong_frame(span, "the bound is too large", NO_BOUND)
    if amount == 0 and not is_open:
        return CURRENT_ROW
    return Bound(direction, amount, unit, is_open)


def _check_order(spec: exp.Expr, start: Bound, end: Bound, order_dtype: str | None) -> None:
    """Raises AnalysisError if the lower bound is above the upper one, OPEN included."""
    ticks = ticks_of(order_dtype)
    low, high = start.offset(ticks, is_start=True), end.offset(ticks, is_start=False)
    if low is not None and high is not None and low > high:
        raise _wrong_frame(
            Span(spec.meta["places"]["start"][0], spec.meta["places"]["end"][1]),
            f"the frame is empty: its lower bound {start} is above its upper bound {end}",
            "write the older bound first",
        )


def _maxsize(context: Context, spec: exp.Expr, kind: str) -> int | None:
    value = spec.args.get("maxsize")
    if value is None:
        return None
    span = Span(*spec.meta["places"]["maxsize"])
    if kind == "ROWS":
        raise _wrong_frame(span, "MAXSIZE cannot be used with ROWS", "remove it: ROWS already counts rows")
    number = INTEGER.fullmatch(context.slice(span_of(value)))
    if number is None or not number[1].strip("0"):
        raise _wrong_frame(span, "MAXSIZE must be a positive integer literal", "write MAXSIZE 1 or more")
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
                raise mistake(
                    "misplaced-window",
                    inner,
                    "a window call cannot be inside another window call",
                    "compute it in a subquery of FROM, and use its column; over a sqlext window an aggregate "
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
                raise _wrong_definition(node, f"a window cannot extend '{base.name}'", "write out the whole definition")
            if self._context.openmldb:
                raise _wrong_definition(
                    node,
                    f"window '{name}' has no frame: AS {base.name} does not copy the other one's frame",
                    f"use OVER {base.name}, or write out the definition",
                )
            if len(seen) > 1:
                raise _wrong_definition(
                    base,
                    f"window '{base.name}' only names another one",
                    "a window may be another name only for a window that is written out",
                )
            if self._context.fold(base.name) in seen:
                raise _wrong_definition(base, f"window '{name}' is defined by itself")
            seen.add(self._context.fold(base.name))
            node = self._get(base)
        return node

    def _collect_named(self, select: exp.Select) -> dict[str, exp.Window]:
        named: dict[str, exp.Window] = {}
        for node in select.args.get("windows") or []:
            name = node.this.name
            if self._context.fold(name) in named:
                raise mistake(
                    "duplicate-name", node.this, f"window '{name}' is defined twice", "give one of them another name"
                )
            named[self._context.fold(name)] = node
        return named

    def _get(self, name: exp.Expr) -> exp.Window:
        found = self._named.get(self._context.fold(name.name))
        if found is not None:
            return found
        names = [node.this.name for node in self._named.values()]
        known = f"windows here: {', '.join(names)}" if names else f"add WINDOW {name.name} AS (...) at the end"
        hint = did_you_mean(name.name, names, known)
        raise mistake("unknown-window", name, f"window '{name.name}' not found", hint)

    def _locate(self, call: exp.Window) -> tuple[str, str, exp.Window]:
        """Key, name and node of the definition that a call's OVER means."""
        base = call.args.get("alias")
        if base is None:
            span = definition_span(self._context, call)
            text = normal_text(self._context.slice(span), self._context.settings)
            number = self._anonymous.setdefault(text, len(self._anonymous) + 1)
            return f"({text})", f"window {number}", call
        if any(call.args.get(key) for key in ("partition_by", "order", "spec", "union")):
            raise _wrong_definition(
                definition_span(self._context, call),
                f"OVER ({base.name} ...) cannot extend window '{base.name}'",
                f"write OVER {base.name}, or write out the whole definition",
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
