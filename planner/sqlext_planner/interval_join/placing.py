"""How the keys of an interval join over streams get places: which side is owned, and which joins allow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlext_operators.interval_join.passes import Side

from sqlext_planner.interval_join.choice import BROADCAST_SIDES
from sqlext_planner.interval_join.nodes import SIDES, IntervalJoin
from sqlext_planner.interval_join.open_ends import open_period
from sqlext_planner.interval_join.streams import child_of, endless_side

if TYPE_CHECKING:
    from sqlext_planner.config import Config
    from sqlext_planner.exchange.partitioning.stream_placing import StreamPlacing


def owned_side(node: IntervalJoin) -> Side:
    """The side whose rows have their results in one bucket: one whose rows are decided, if there is one. Else the left
    one, unless its rows are a table's, or its periods are open while the right ones are not."""
    allowed = [side for side in SIDES if any(other != side for other in BROADCAST_SIDES[node.kind])] or list(SIDES)
    return min(allowed, key=lambda side: (_is_open(node, side), not child_of(node, side).is_streaming))


def interval_placing(node: IntervalJoin, config: Config) -> StreamPlacing | None:
    """How the keys of a node over streams have places, as far as the plan knows its event times; None: each in one
    bucket, by its hash.

    Raises UnsupportedError for a hint that the join does not allow; a setting gives way.
    """
    from sqlext_planner.exchange.partitioning.demand import Demand
    from sqlext_planner.exchange.partitioning.stream_placing import TABLES, stream_placing

    steady = None
    if not all(child_of(node, side).is_streaming for side in SIDES):
        steady = TABLES
    elif any(_is_open(node, side) for side in SIDES):
        steady = "an open period may be closed at any time, so that a bucket that gets a key later may lack it"
    elif (side := endless_side(node)) is not None:
        steady = endless(side)
    return stream_placing(Demand(whole=_whole(node)), config, node.partitioner, steady)


def endless(side: Side) -> str:
    """Why keys keep their places where rows of a side find matches for ever."""
    other = "right" if side == "left" else "left"
    return (
        f"rows of the {side} side find matches for ever, because the condition does not bound the event time of the "
        f"{other} side from above, so that a bucket that gets a key later lacks rows"
    )


def _whole(node: IntervalJoin) -> str | None:
    """Why the rows of a key must stay together, if they must."""
    if not BROADCAST_SIDES[node.kind]:
        return (
            f"{node.kind.upper()} JOIN keeps rows of both sides that match nothing: each must meet all rows of its key"
        )
    if _is_open(node, owned_side(node)):
        return "the row that closes an open period must come to the bucket of the row that has opened it"
    return None


def _is_open(node: IntervalJoin, side: Side) -> bool:
    return child_of(node, side).is_streaming and open_period(node, side) is not None
