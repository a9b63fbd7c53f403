"""The strategy of an interval join, as far as planning can tell and when it runs, and the reason."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from sqlext_planner.catalog import TableInfo
from sqlext_planner.config import Config
from sqlext_planner.exchange.arrow_scan import scan_of
from sqlext_planner.exchange.driver import BUSY_BYTES, size_of
from sqlext_planner.exchange.wire import Size, row_bytes
from sqlext_planner.interval_join.nodes import IntervalJoin, IntervalJoinKind
from sqlext_planner.relational.physical_plan import ExecutionContext, Rival
from sqlext_planner.spark.session import REMOTE_BYTES, cores, is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sqlext_planner.interval_join.execution import IntervalJoinExec
    from sqlext_planner.interval_join.inputs import TypedJoin

#: `exchange`: both sides through one Arrow-block exchange; `broadcast`: the smaller side is sent to every task of the
#: other; `spark`: Spark compares rows; `auto`: one of these, when sizes are known.
IntervalJoinStrategy = Literal["exchange", "broadcast", "spark", "auto"]

#: Which side may be broadcast: a row whose matches decide whether it is output has to see all of them in one task.
BROADCAST_SIDES: dict[IntervalJoinKind, tuple[str, ...]] = {
    "inner": ("left", "right"),
    "left": ("right",),
    "right": ("left",),
    "full": (),
    "semi": ("right",),
    "anti": ("right",),
    "count": ("right",),
}
#: `IntervalJoinStrategy` without `auto`, and with the side that is broadcast.
FinalStrategy = Literal["exchange", "broadcast left", "broadcast right", "spark"]

#: The least that a task reads of the side that is not broadcast: the work of a join is its pairs, not its bytes.
TASK_BYTES = 64 << 10
#: The cost of a byte in an exchange relative to one in a broadcast join, and the cost of a stage in such bytes.
_EXCHANGE_COST = 2.7
_STAGE_BYTES = 18 << 20
#: Bytes of a value, and of a row besides its values, where only a table's bytes are known (as Catalyst estimates).
_VALUE_BYTES = 8


def choose_strategy(
    node: IntervalJoin, left: TableInfo | None, right: TableInfo | None, config: Config
) -> tuple[IntervalJoinStrategy, str]:
    """The strategy and the reason. `left` and `right` are the tables that the sides only scan, None for any other side.

    Joins on plain inequalities are left to Spark if they are small. Period predicates and joins with the hint SWEEP
    are not, so that such a statement costs about the same whatever its size.
    """
    asked = config.interval_join_strategy
    if asked == "spark":
        return "spark", "Spark compares rows, as the setting says"
    if asked != "auto":
        broadcast = asked == "broadcast" and BROADCAST_SIDES[node.kind]
        return ("broadcast" if broadcast else "exchange"), f"{asked}, as the setting says"
    sizes, rows, least = _known(node, (left, right))
    if may_leave(node) and rows[0] is not None and rows[1] is not None:
        pairs = rows[0] * rows[1]
        if pairs < config.interval_join_least_pairs:
            limit = config.interval_join_least_pairs
            return "spark", f"{rows[0]} x {rows[1]} rows make {pairs} pairs, fewer than {limit}: Spark compares them"
    if node.partitioner is not None:
        return "exchange", f"one exchange, for the hint {node.partitioner}"
    if None in sizes:
        return "auto", _auto_reason(node, config)
    limit = config.interval_join_broadcast_bytes
    if least is not None and least <= limit:
        return (
            "auto",
            f"a side of at most {least} bytes is sent to every task of the other if that is cheaper, up to {limit} "
            "bytes",
        )
    return "exchange", f"one exchange for sides of at most {sizes[0]} and {sizes[1]} bytes"


def strategy_rivals(
    node: IntervalJoin, left: TableInfo | None, right: TableInfo | None, config: Config, taken: IntervalJoinStrategy
) -> tuple[Rival, ...]:
    """The strategies with the sizes that decide between them, as far as planning knows them."""
    sizes, rows, least = _known(node, (left, right))
    pairs = None if rows[0] is None or rows[1] is None else rows[0] * rows[1]
    both = None if sizes[0] is None or sizes[1] is None else sizes[0] + sizes[1]
    limit, few = config.interval_join_broadcast_bytes, config.interval_join_least_pairs
    small = (
        f"for a side of at most {limit:,} bytes"
        if BROADCAST_SIDES[node.kind]
        else f"not possible for a {node.kind} join"
    )
    leaves = f"for fewer than {few:,} pairs" if may_leave(node) else "not for a period predicate or a hint"
    when = "; decided when it runs, by the inputs' sizes" if taken == "auto" else ""
    return (
        Rival("spark", _cost(pairs, "pairs"), f"Spark compares all pairs of rows; {leaves}", taken == "spark"),
        Rival("broadcast", _cost(least, "bytes"), f"one side goes to every task; {small}{when}", taken == "broadcast"),
        Rival(
            "exchange", _cost(both, "bytes"), f"both sides are sorted behind one exchange{when}", taken == "exchange"
        ),
    )


def _known(
    node: IntervalJoin, infos: tuple[TableInfo | None, TableInfo | None]
) -> tuple[list[int | None], list[int | None], int | None]:
    """The bytes and the rows of the sides, and the bytes of the smallest one that may be broadcast."""
    sizes = [None if info is None else info.bytes for info in infos]
    rows = [None if info is None else _rows(info) for info in infos]
    allowed = [size for size, side in zip(sizes, ("left", "right"), strict=True) if side in BROADCAST_SIDES[node.kind]]
    return sizes, rows, min((size for size in allowed if size is not None), default=None)


def _cost(number: int | None, unit: str) -> str:
    return "unknown" if number is None else f"{number:,} {unit}"


def _auto_reason(node: IntervalJoin, config: Config) -> str:
    leave = f"Spark for fewer than {config.interval_join_least_pairs} pairs, " if may_leave(node) else ""
    limit = config.interval_join_broadcast_bytes
    broadcast = f"broadcast of a side of at most {limit} bytes, " if BROADCAST_SIDES[node.kind] else ""
    return f"by size when it runs: {leave}{broadcast}else one exchange"


def may_leave(node: IntervalJoin) -> bool:
    """Whether small inputs may be left to Spark."""
    return not node.named and node.sweep is None


def _rows(info: TableInfo) -> int | None:
    if info.rows is not None:
        return info.rows
    return None if info.bytes is None else info.bytes // (_VALUE_BYTES * (len(info.columns) + 1))


def final_strategy(planned: IntervalJoinExec, typed: TypedJoin, context: ExecutionContext) -> FinalStrategy:
    """The strategy with the sizes of the real inputs at hand."""
    node = planned.node
    if planned.strategy == "exchange":
        return "exchange"
    sizes = {side: size_of(typed.frame(side), context) for side in ("left", "right")}
    if planned.strategy == "auto" and may_leave(node):
        rows = [_frame_rows(typed.frame(side), size) for side, size in sizes.items()]
        if rows[0] is not None and rows[1] is not None and rows[0] * rows[1] < context.config.interval_join_least_pairs:
            return "spark"
    allowed = [(size.bytes, side) for side, size in sizes.items() if size and side in BROADCAST_SIDES[node.kind]]
    least = min(allowed, default=None)
    if planned.strategy == "broadcast":
        side = least[1] if least is not None else BROADCAST_SIDES[node.kind][-1]
        return "broadcast left" if side == "left" else "broadcast right"
    limit = context.config.interval_join_broadcast_bytes
    # files are smaller than their rows
    limit = min(limit, REMOTE_BYTES // 4) if is_remote(context.spark) else limit
    if least is None or least[0] > limit:
        return "exchange"
    other = "right" if least[1] == "left" else "left"
    if not broadcast_pays(least[0], sizes[other], cores(context.spark)):
        return "exchange"
    if least[0] >= BUSY_BYTES and _tasks_of_files(typed.frame(other), context) < cores(context.spark):
        return "exchange"
    return "broadcast left" if least[1] == "left" else "broadcast right"


def broadcast_pays(small: int, other: Size | None, core_count: int) -> bool:
    """Whether sending `small` bytes to every task takes less time than an exchange of both sides on that many cores.

    Every task sorts the whole small side; an exchange spreads that over all cores, but handles each byte more often and
    has one more stage. Measured (counts, 1M and 4M rows a side, 2 cores): 16 ns a byte in a broadcast join, 43 ns in an
    exchange. The stage is estimated at 0.3 s (100,000 rows a side, where bytes matter little: 0.9 s against 0.4 s).
    """
    if other is None:
        return True
    exchange = _EXCHANGE_COST * (small + other.bytes) / core_count + _STAGE_BYTES
    return small + other.bytes / core_count <= exchange


def _tasks_of_files(frame: DataFrame, context: ExecutionContext) -> float:
    """How many tasks read a frame's files; infinitely many for a frame that Spark reads, in its own partitions.

    The work of a join is its pairs: one task for a side of few bytes would leave the other cores idle.
    """
    scan = scan_of(frame, context, cores(context.spark), TASK_BYTES)
    return math.inf if scan is None else len(scan.scan.tasks)


def _frame_rows(frame: DataFrame, size: Size | None) -> int | None:
    if size is None:
        return None
    # Catalyst adds 8 bytes to every row
    return size.rows if size.rows is not None else size.bytes // (8 + row_bytes(frame.schema))
