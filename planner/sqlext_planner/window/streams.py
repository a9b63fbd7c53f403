"""Windows over streams at planning time: which ones have a bound, when rows are answered, what is kept until then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlext_operators.window.functions import lookup

from sqlext_planner.errors import SqlExtError, UnsupportedError
from sqlext_planner.exchange.chains import PlannedDelays, planned_delays
from sqlext_planner.expressions.nodes import Column, Expression, SparkExpr
from sqlext_planner.relational.nodes import Scan
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.relational.streams import input_error, shown, streams_of
from sqlext_planner.window.frame import MICROSECONDS, Bound, WindowFrame, shown_amount
from sqlext_planner.window.nodes import WindowCall, WindowGroup, WindowUnion

#: Functions whose rows can be condensed, so that windows without a start are bounded by what is kept for each key.
CONDENSED = frozenset(
    f"{name}{suffix}" for name in ("count", "sum", "avg", "min", "max") for suffix in ("", "_where")
) | {"distinct_count"}

#: The operator tells its sources by one byte, and may use two for each input and each window.
_MOST_SOURCES = 250


def refusal(node: WindowUnion) -> SqlExtError | None:
    """Why a window cannot be computed over its streams; None if it can."""
    return next(_refusals(node), None)


def _refusals(node: WindowUnion) -> Iterator[SqlExtError]:
    error = input_error(node)
    if error is not None:
        yield error
    elif not node.source.is_streaming:
        stream = next(stream for union in node.unions for stream in streams_of(union))
        yield UnsupportedError(
            f"FROM is a table and UNION reads the stream{shown(stream)}: the table's rows have no watermark",
            condition="stream-needs-watermark",
            span=stream.span,
            help="read FROM as a stream too, or take the stream's rows from a table",
        )
    if not isinstance(node.order_by, Column):
        yield UnsupportedError(
            "a window over a stream is ordered by the column that has the watermark",
            condition="stream-needs-watermark",
            span=node.order_by.span if node.order_by is not None and node.order_by.span else node.span,
            help="write ORDER BY and the column that withWatermark, or WATERMARK ... DELAY OF, names",
        )
    if node.further:
        yield UnsupportedError(
            f"ORDER BY {node.further[0]}: a stream keeps rows of one time in the order in which they came",
            condition="stream-not-supported",
            span=node.further[0].span or node.span,
            help="order by the column with the watermark only",
        )
    if 2 * (len(node.children) + len(node.windows)) > _MOST_SOURCES:
        yield UnsupportedError(
            f"{len(node.windows)} windows over {len(node.children)} inputs are too many for one statement over streams",
            condition="stream-not-supported",
            span=node.span,
            help=f"twice the windows and inputs together may be {_MOST_SOURCES} at most: split the statement",
        )
    yield from (_random_key(key, node) for key in node.partition_by if _is_random(key))
    for group in node.windows:
        yield from _group_refusals(group, node)


def _is_random(key: Expression) -> bool:
    return isinstance(key, SparkExpr) and not key.deterministic


def _random_key(key: Expression, node: WindowUnion) -> SqlExtError:
    return UnsupportedError(
        f"PARTITION BY {key} gives another key when a micro-batch is repeated",
        condition="stream-not-supported",
        span=key.span or node.span,
        help="use a column of the rows, or a function that always gives the same for the same row",
    )


def _group_refusals(group: WindowGroup, node: WindowUnion) -> Iterator[SqlExtError]:
    frame, span = group.frame, group.span or node.span
    if frame.end.direction == "following" and frame.end.amount is None:
        yield UnsupportedError(
            "a window to UNBOUNDED FOLLOWING is never complete on a stream",
            condition="stream-unbounded",
            span=span,
            help="end it at a time after the row, for example 10s FOLLOWING, or at CURRENT ROW",
        )
    elif frame.unit == "rows" and frame.end.direction == "following" and frame.end.amount:
        yield UnsupportedError(
            "a window that counts rows FOLLOWING has no time at which it is complete on a stream",
            condition="stream-unbounded",
            span=span,
            help="use ROWS_RANGE with a time after the row, or end the window at CURRENT ROW",
        )
    yield from map(_unknown_neighbour, filter(_is_unknown, group.calls))
    if frame.start.amount is None and frame.maxsize is None:
        yield from _unbounded_refusals(group, span)


def _is_unknown(call: WindowCall) -> bool:
    """Whether a call reads a row that no time tells: one after the current one, or the last with a value."""
    function = lookup(call.function)
    return function is not None and function.positional and (call.filtered or call.function == "lead")


def _unknown_neighbour(call: WindowCall) -> SqlExtError:
    if call.filtered:
        what, help = "looks for a row with a value, however old it is", "leave out IGNORE NULLS, or use last_value"
    else:
        what, help = (
            "reads a row after the current one, which may come at any time",
            "use first_value over a window ahead",
        )
    return UnsupportedError(
        f"{call.function}() {what}: a stream cannot tell when it has come",
        condition="stream-unbounded",
        span=call.span,
        help=help if call.filtered else f"{help}: ROWS_RANGE BETWEEN 0s OPEN FOLLOWING AND 10s FOLLOWING",
    )


def _unbounded_refusals(group: WindowGroup, span: object) -> Iterator[SqlExtError]:
    frame = group.frame
    if frame.unit == "rows" and (frame.end.amount or frame.end.open):
        yield UnsupportedError(
            "ROWS from UNBOUNDED PRECEDING to a row before the current one have no bound on a stream",
            condition="stream-unbounded",
            span=group.span,
            help="end the window at CURRENT ROW, or use ROWS_RANGE",
        )
    for call in group.calls:
        # with a second condition, or where NULL is a value, there is no partial call (window/condense.py)
        alone = call.function == "distinct_count" or call.function.endswith("_where")
        if call.function not in CONDENSED or (call.filtered and alone):
            yield unbounded_refusal(_name(call), call, group)


def unbounded_refusal(what: str, call: WindowCall | None, group: WindowGroup) -> SqlExtError:
    """The error for something that would need all rows of an endless window."""
    return UnsupportedError(
        f"{what} over UNBOUNDED PRECEDING needs all rows of each key, and a stream has no end",
        condition="stream-unbounded",
        span=(call.span if call is not None else None) or group.span,
        help="give the window a start, for example 30d PRECEDING; lag() can have a window of its own",
    )


def _name(call: WindowCall) -> str:
    function = lookup(call.function)
    return "this aggregate" if function is None or function.internal else f"{call.function}()"


def retention(node: WindowUnion) -> str:
    """When a row is answered, and what is kept for how long, for EXPLAIN."""
    ahead = _longest(_distance(group.frame, "following") for group in node.windows)
    back = _longest(_distance(group.frame, "preceding") for group in node.windows)
    when = f"{node.order_by} + {ahead}" if ahead else str(node.order_by)
    span = " + ".join(part for part in (back, ahead, _delay(node)) if part)
    parts = [f"a row is emitted when {when} < watermark", f"rows are kept for {span}"]
    rows = [n for group in node.windows if (n := _rows(group)) is not None]
    if rows:
        parts.append(f"the newest {max(rows)} rows of each key stay")
    if any(group.frame.start.amount is None and group.frame.maxsize is None for group in node.windows):
        parts.append("what is older stays condensed, a few rows for each key")
    return "; ".join(parts)


def delays(node: WindowUnion, inputs: Sequence[PhysicalPlan]) -> PlannedDelays:
    """How late rows come; `inputs` are the plans of FROM and of the UNION sources."""
    order = node.order_by
    if not isinstance(order, Column) or order not in node.source.output_columns:
        return PlannedDelays()
    place = node.source.output_columns.index(order)
    wide = [plan for plan in inputs if len(plan.output_columns) > place]
    below = [planned_delays(plan).get(plan.output_columns[place], 0) for plan in wide]
    frames = [group.frame.resolve("timestamp") for group in node.windows]
    ahead = max((max(frame.end or 0, 0) for frame in frames if frame.unit == "range"), default=0)
    return PlannedDelays(max(below, default=0), {} if node.gives_late_rows else {order: ahead})


def _delay(node: WindowUnion) -> str:
    """The longest delay of the streams' watermarks, if all are known."""
    delays = [scan.watermark_delay for stream in streams_of(node) for scan in stream.collect(Scan)]
    known = [delay for delay in delays if delay is not None]
    if not known or len(known) < len(list(streams_of(node))):
        return "the watermark's delay"
    most = max(known)
    return f"the watermark's delay of {most // 1000}s" if most % 1000 == 0 else f"the watermark's delay of {most}ms"


def _distance(frame: WindowFrame, direction: str) -> Bound | None:
    bound = frame.start if direction == "preceding" else frame.end
    far = frame.unit == "range" and bound.direction == direction and bound.amount
    return bound if far else None


def _longest(bounds: Iterator[Bound | None]) -> str:
    """The longest of some distances, as the user wrote it; empty without any."""
    known = [bound for bound in bounds if bound is not None]
    if not known:
        return ""
    found = max(known, key=lambda bound: abs(bound.offset(MICROSECONDS, is_start=True) or 0))
    return shown_amount(found.amount or 0, found.unit or "ms")


def _rows(group: WindowGroup) -> int | None:
    """How many rows of each key a window needs whatever their time."""
    frame = group.frame
    counts = [frame.maxsize] if frame.start.amount is None else []
    counts += [frame.start.amount] if frame.unit == "rows" and frame.start.direction == "preceding" else []
    for call in group.calls:
        function = lookup(call.function)
        if function is not None and function.positional:
            counts += [n for n in function.complete_constants(call.constants) if isinstance(n, int)]
    known = [n for n in counts if n]
    return max(known, default=None)
