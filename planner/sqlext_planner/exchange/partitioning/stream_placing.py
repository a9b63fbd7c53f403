"""Which partitioner the exchange of a statement over streams has: the one that a hint or the setting names."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlext_planner.config import Config
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.exchange.partitioning.chosen import HASH
from sqlext_planner.exchange.partitioning.demand import Demand
from sqlext_planner.relational.nodes import PartitionerHint

#: The partitioner whose places are the same from the first row on.
_STEADY = "broadcast"


@dataclass(frozen=True)
class StreamPlacing:
    """The keys of an operator on streams get their places from the partitioner with a name; `demand` is what owned rows
    need, those of input 0."""

    partitioner: str
    demand: Demand = field(compare=False, repr=False)

    @property
    def changes(self) -> bool:
        """Whether keys get other places while the query runs."""
        return self.partitioner != _STEADY

    @property
    def copies_owned(self) -> bool:
        """Whether owned rows go to all members of their team too."""
        return self.demand.owned_copies or self.partitioner in ("broadcast", "hybrid")

    def __str__(self) -> str:
        if not self.changes:
            return f"{self.partitioner}: every row goes to all buckets"
        return (
            f"{self.partitioner}: by hash at first; keys get other places as the stream shows how many rows they have"
        )


def stream_placing(
    demand: Demand, config: Config, hint: PartitionerHint | None, *, tables: bool
) -> StreamPlacing | None:
    """How keys have places; None: each in one bucket, by its hash. `tables`: some inputs are tables.

    Raises UnsupportedError for a hint that the statement does not allow; a setting gives way.
    """
    name = hint.name if hint is not None else config.partitioner
    if name in ("auto", HASH):
        return None
    reason = _refused(name, demand, tables=tables)
    if reason is None:
        return StreamPlacing(name, demand)
    if hint is None:
        return None
    raise UnsupportedError(
        f"the hint {hint} cannot be followed on streams: {reason}",
        span=hint.span,
        help="leave the hint out, or name another partitioner: broadcast can always be had",
    ).about_hint()


def _refused(name: str, demand: Demand, *, tables: bool) -> str | None:
    """Why streams cannot have a partitioner, in a sentence."""
    if name == _STEADY:
        return None
    if name == "time_range":
        return "the rows of a key that come at one time are all in the newest range, so that one task has them all"
    if demand.reach is None:
        return f"{demand.unbounded}, so that a bucket that gets a key later lacks rows"
    if tables:
        return "tables are read once, when the query starts, so that a bucket that gets a key later lacks their rows"
    return None
