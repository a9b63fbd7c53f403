"""Which partitioner the exchange of a statement over streams has: the one that a hint or the setting names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlext_planner.config import Config
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.exchange.partitioning.choice import HASH, Demand
from sqlext_planner.relational.joins import PartitionerHint

if TYPE_CHECKING:
    from sqlext_operators.exchange.stream_placement import CountedInputs, StreamPlacement, StreamRouter


#: The partitioner whose places are the same from the first row on.
_STEADY = "broadcast"
#: Why keys keep their places where some inputs are tables.
TABLES = "tables are read once, when the query starts, so that a bucket that gets a key later lacks their rows"


@dataclass(frozen=True)
class StreamPlacing:
    """The keys of an operator on streams get their places from the partitioner with a name; `demand` is what owned rows
    need. `hint` is the one that has asked for it."""

    partitioner: str
    demand: Demand = field(compare=False, repr=False)
    hint: PartitionerHint | None = field(default=None, compare=False, repr=False)

    @property
    def changes(self) -> bool:
        """Whether keys get other places while the query runs."""
        return self.partitioner != _STEADY

    @property
    def copies_owned(self) -> bool:
        """Whether owned rows go to all members of their team too."""
        return self.demand.owned_copies or self.partitioner in ("broadcast", "hybrid")

    def allowed(self, steady: str | None) -> StreamPlacing | None:
        """This, if keys may change places or need not; `steady` says why they keep them. Raises as `stream_placing`."""
        if steady is None or not self.changes:
            return self
        _give_way(self.hint, steady)
        return None

    def __str__(self) -> str:
        if not self.changes:
            return f"{self.partitioner}: every row goes to all buckets"
        return (
            f"{self.partitioner}: by hash at first; keys get other places as the stream shows how many rows they have"
        )


@dataclass(frozen=True)
class PlacedInputs:
    """The inputs of an operator whose keys have places: their key columns and their columns of times (None for a
    table), by tag; `owned` is the tag of the input whose rows are owned. `null_safe` as in `StreamRouter`."""

    placing: StreamPlacing
    keys: tuple[tuple[str, ...], ...]
    orders: tuple[str | None, ...]
    owned: int = 0
    null_safe: tuple[bool, ...] | None = None

    @property
    def counted(self) -> CountedInputs | None:
        """What the buckets report on, if keys change places."""
        from sqlext_operators.exchange.stream_placement import CountedInputs

        return CountedInputs(self.keys, self.owned) if self.placing.changes else None

    def routers(self, where: StreamPlacement) -> tuple[StreamRouter, ...]:
        """The routers of the inputs, by tag."""
        from sqlext_operators.exchange.stream_placement import StreamRouter

        return tuple(
            StreamRouter(keys, order, where, tag != self.owned or self.placing.copies_owned, self.null_safe)
            for tag, (keys, order) in enumerate(zip(self.keys, self.orders, strict=True))
        )


def stream_placing(
    demand: Demand, config: Config, hint: PartitionerHint | None, steady: str | None
) -> StreamPlacing | None:
    """How keys have places; None: each in one bucket, by its hash. `steady` says why they keep the places that they
    begin with; None if they may change.

    Raises UnsupportedError for a hint that the statement does not allow; a setting gives way.
    """
    name = hint.name if hint is not None else config.partitioner
    if name in ("auto", HASH):
        return None
    if demand.whole is not None:
        _give_way(hint, demand.whole, "leave the hint out: by hash, a key is in one bucket")
        return None
    if name == "time_range":
        _give_way(
            hint, "the rows of a key that come at one time are all in the newest range, so that one task has them all"
        )
        return None
    return StreamPlacing(name, demand, hint).allowed(steady)


def _give_way(
    hint: PartitionerHint | None,
    reason: str,
    help: str = "leave the hint out, or name another partitioner: broadcast can always be had",
) -> None:
    """A setting gives way to the hash of the keys, a hint is an error."""
    if hint is not None:
        message = f"the hint {hint} cannot be followed on streams: {reason}"
        raise UnsupportedError(message, condition="hint-not-followed", span=hint.span, help=help).about_hint()
