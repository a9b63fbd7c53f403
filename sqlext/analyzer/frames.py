"""A window definition's frame, keys and order, checked (docs/reference/windows.md, section 1)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.expressions.nodes import Column, Expression, Literal
from sqlext_planner.expressions.types import ORDER_TYPES, WINDOW_ORDER_TYPES
from sqlext_planner.relational.nodes import SortKey
from sqlext_planner.window.frame import (
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

from sqlext.analyzer.amounts import INTEGER, LARGEST, NO_BOUND, frame_amount, refuse_uneven, whole_number
from sqlext.analyzer.context import Context
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.syntax.spans import span_of

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
