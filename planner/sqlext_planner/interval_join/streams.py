"""Interval joins over streams at planning time: which ones are refused, when rows come out, how long rows are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlext_operators.interval_join.conditions import Condition, Operator, split_equalities
from sqlext_operators.interval_join.passes import Side, is_free, longest_life, time_bounds

from sqlext_planner.errors import SqlExtError, UnsupportedError
from sqlext_planner.exchange.chains import PlannedDelays, planned_delays
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.expressions.typed import Case
from sqlext_planner.interval_join.nodes import (
    SIDES,
    IntervalJoin,
    IntervalJoinKind,
    OpenPeriodOf,
    open_error,
    open_period,
)
from sqlext_planner.periods.predicates import Amount, OpenEnd
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.relational.streams import event_times, input_error

#: The sides whose rows without a match come out.
KEPT: dict[IntervalJoinKind, tuple[Side, ...]] = {
    "left": ("left",),
    "right": ("right",),
    "full": SIDES,
    "anti": ("left",),
}


def refusal(node: IntervalJoin) -> SqlExtError | None:
    """Why a join cannot be computed over its streams; None if it can, as far as planning knows."""
    error: SqlExtError | None = input_error(node)
    if error is not None:
        return error
    for side in KEPT.get(node.kind, ()):
        if not node.input_of(side).is_streaming:
            rows = "rows without a match" if node.kind == "anti" else "all rows"
            article = "an" if node.kind == "anti" else "a"
            return UnsupportedError(
                f"{article} {node.kind.upper()} JOIN of a table on the {side} and a stream needs {rows} of the "
                "table, and a match may always come",
                condition="stream-unbounded",
            )
    span = node.place
    for side in SIDES:
        error = open_error(node, side, node.kind, span) if node.input_of(side).is_streaming else None
        if error is not None:
            return error
    return None


def opened_period(node: IntervalJoin, side: Side) -> OpenPeriodOf | None:
    """The period of a stream's side whose end comes later."""
    return open_period(node, side) if node.input_of(side).is_streaming else None


def not_below(value: Expression, time: Column) -> bool:
    """Whether a value is a column, or NULL: a term of ON over one side alone makes it NULL (`conditions.guard`)."""
    return _unguarded(value) == time


def _unguarded(value: Expression) -> Expression:
    match value:
        case Case(values=(kept,), has_default=False, has_subject=False):
            return _unguarded(kept)
        case OpenEnd():
            return value.value
    return value


def unbounded(side: Side, time: str) -> tuple[str, str]:
    """The words for a kept side whose rows are never decided: (what is wrong, what to do)."""
    other = "right" if side == "left" else "left"
    return (
        f"rows of the {side} side without a match never come out: the condition does not bound {time}, the event time "
        f"of the {other} side, from above",
        f"add a condition with an upper bound for it, such as {time} <= a time of the {side} side + INTERVAL 1 HOUR, "
        "or make it an inner join",
    )


def retention(node: IntervalJoin, *, placed: bool) -> str:
    """When rows come out and how long rows are kept, for EXPLAIN; `placed`: a partitioner spreads the rows of a key."""
    parts = ["a pair is emitted with the later of its rows"]
    opened = [(side, period) for side in SIDES if (period := opened_period(node, side)) is not None]
    if opened:
        parts = ["a pair is emitted as soon as its conditions hold whatever the open ends will be"]
    if node.kind == "semi":
        parts = ["a left row is emitted with its first match"]
    elif node.kind == "anti":
        parts = []
    for side in SIDES:
        until = _until(node, side)
        if side in KEPT.get(node.kind, ()):
            parts.append(f"a {side} row without a match is emitted when {until}")
        if not node.input_of(side).is_streaming:
            parts.append(f"the {side} rows are those of a table")
        elif not node.input_of(_other(side)).is_streaming:
            parts.append(f"{side} rows are not kept")
        elif until is None:
            parts.append(f"{side} rows are kept for good: the state grows without a bound")
        else:
            closed = "closed " if opened_period(node, side) is not None else ""
            parts.append(f"{closed}{side} rows are kept until {until}")
    for side, period in opened:
        columns = ", ".join(sorted(map(str, period.closing)))
        parts.append(f"open {side} rows are kept until they are closed; {columns} may be NULL in a result")
    if not node.left_keys and not placed:
        parts.append("without equal keys one task has all rows")
    return "; ".join(parts)


def endless_side(node: IntervalJoin) -> Side | None:
    """A side whose rows find matches for ever, as far as planning knows."""
    return next((side for side in SIDES if _until(node, side) is None), None)


def time_column(delays: Mapping[Column, int], values: Sequence[Expression]) -> Column:
    """The event time of a side among its columns with a known delay: one that is compared, with the least delay."""
    return min(delays, key=lambda column: (not any(not_below(value, column) for value in values), delays[column]))


def delays(node: IntervalJoin, inputs: Sequence[PhysicalPlan]) -> PlannedDelays:
    """How late rows come, of the sides whose event time is known; `inputs` are the plans of the sides."""
    times: dict[Side, Column] = {}
    below = []
    for side, plan in zip(SIDES, inputs, strict=True):
        known = planned_delays(plan) or dict.fromkeys(sorted(event_times(node.input_of(side)), key=str), 0)
        if known:
            times[side] = time_column(known, tuple(node.values_of(side).values()))
            below.append(known[times[side]])
    found = {time: life for side, time in times.items() if (life := _life(node, side, times)) is not None}
    return PlannedDelays(max(below, default=0), found)


def _life(node: IntervalJoin, side: Side, times: Mapping[Side, Column]) -> int | None:
    """How long after its time a row of a side finds matches, in microseconds; None: for no fixed time."""
    other = _other(side)
    if any(opened_period(node, one) is not None for one in SIDES):  # a period may be closed at any time
        return None
    if other not in times:
        return None if node.input_of(other).is_streaming else 0
    ours, theirs = (
        {n for n, value in node.values_of(one).items() if not_below(value, times[one])} for one in (side, other)
    )
    amounts = dict(node.amounts)
    alternatives = [[_numeric(item, amounts) for item in conditions] for conditions in node.alternatives]
    return longest_life(side, [time_bounds(side, one, theirs, *node.only_periods) for one in alternatives], ours)


def _numeric(condition: Condition, amounts: Mapping[str, Amount]) -> Condition:
    """The condition with its amount as a number: microseconds where it compares times."""
    if not isinstance(condition.shift, tuple):
        return condition
    sign, name = condition.shift
    return replace(condition, shift=sign * int(amounts[name].value))


def _until(node: IntervalJoin, side: Side) -> str | None:
    """When no match of a row of a side can come any more; None if there is no such watermark."""
    child, names = node.input_of(_other(side)), node.values_of(_other(side))
    if not child.is_streaming:
        return "it comes"
    marked = event_times(child)
    if not marked:  # only Spark knows
        return "the watermark lets no match come any more"
    period = opened_period(node, _other(side))
    times = tuple(name for name, value in names.items() if any(not_below(value, time) for time in marked))
    if period is not None:
        times = period.names
    values, amounts = node.values_of(side), dict(node.amounts)
    texts = []
    for conditions in node.alternatives:
        bounds = [time_bounds(side, conditions, times, *node.only_periods)]
        if period is not None:
            bounds.append(_closing_bounds(node, side, period, conditions))
        if not bounds[0]:
            return None
        texts += [
            " or ".join(dict.fromkeys(_passed(side, item, values, amounts) for item in one)) for one in bounds if one
        ]
    parts = list(dict.fromkeys(texts))
    return " and ".join(f"({part})" if " or " in part and len(parts) > 1 else part for part in parts)


def _closing_bounds(
    node: IntervalJoin, side: Side, period: OpenPeriodOf, conditions: Sequence[Condition]
) -> tuple[Condition, ...]:
    """What bounds how long a row finds matches among open rows of the other side."""
    other, end = _other(side), period.names[1]
    if not is_free(other, end, conditions):
        return time_bounds(side, conditions, (end,), *node.only_periods)
    facing = [item for item in split_equalities(conditions) if getattr(item, other) == end]
    # such a row is decided where the end is beyond the value: `value <= watermark`, or `value < watermark` if strict
    turned: dict[Operator, Operator] = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
    return tuple(replace(item, operator=turned[item.operator]) for item in facing)


def _passed(side: Side, bound: Condition, values: Mapping[str, Expression], amounts: Mapping[str, Amount]) -> str:
    """That the watermark has passed a bound."""
    value = str(_unguarded(values[bound.left if side == "left" else bound.right]))
    if isinstance(bound.shift, tuple):
        sign = bound.shift[0] if side == "left" else -bound.shift[0]
        amount = amounts[bound.shift[1]]
        shown = f"{amount.value / 1e6:g}s" if amount.interval else str(amount.value)
        value += f" {'-' if sign < 0 else '+'} {shown}"
    return f"{value} {'<=' if bound.is_strict else '<'} watermark"


def _other(side: Side) -> Side:
    return "right" if side == "left" else "left"
