"""Which partitioner the exchange of a statement over streams has: the one that a hint or the setting names. `auto` is
by hash, and gives a hot key several places while that pays, where the statement allows it (adaptive.py)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlext_planner.catalog import Catalog
from sqlext_planner.config import Config
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.exchange.partitioning.choice import AUTO, HASH, Demand, asked_partitioner
from sqlext_planner.relational.joins import PartitionerHint

if TYPE_CHECKING:
    from sqlext_operators.exchange.stream_placement import CountedInputs, StreamPlacement, StreamRouter


#: The partitioner whose places are the same from the first row on.
_STEADY = "broadcast"
#: Why keys keep their places where some inputs are tables.
TABLES = "tables are read once, when the query starts, so that a bucket that gets a key later lacks their rows"
#: Why no place is better than another where rows are in the windows of others of their key.
COPIED = "windows show rows of FROM, so that each bucket of a key would need all rows of it"


@dataclass(frozen=True)
class StreamPlacing:
    """The keys of an operator on streams get their places from the partitioner with a name; `demand` is what owned rows
    need. `hint` is the one that has asked for it; `by_hash` says why `auto` leaves keys in the buckets of their hashes.
    """

    partitioner: str
    demand: Demand = field(compare=False, repr=False)
    hint: PartitionerHint | None = field(default=None, compare=False, repr=False)
    by_hash: str | None = None

    @property
    def adapts(self) -> bool:
        """Whether keys are in the bucket of their hash until other places pay."""
        return self.partitioner == AUTO

    @property
    def changes(self) -> bool:
        """Whether keys get other places while the query runs."""
        return self.partitioner != _STEADY

    @property
    def copies_owned(self) -> bool:
        """Whether owned rows go to all members of their team too."""
        return self.demand.owned_copies or self.partitioner in ("broadcast", "hybrid")

    def allowed(self, steady: str | None = None) -> StreamPlacing | None:
        """This, if keys may change places or need not; `steady` says why they keep them. None: by hash. Raises as
        `stream_placing`."""
        if self.by_hash is not None:
            return None
        if steady is None or not self.changes:
            return self
        if not self.adapts:
            _give_way(self.hint, steady)
        return None

    def __str__(self) -> str:
        if self.by_hash is not None:
            return f"{HASH}: {self.by_hash}"
        if self.adapts:
            return f"{AUTO}: by hash; a key with more rows than a bucket should have is spread while that pays"
        if not self.changes:
            return f"{self.partitioner}: every row goes to all buckets"
        return (
            f"{self.partitioner}: by hash at first; keys get other places as the stream shows how many rows they have"
        )


@dataclass(frozen=True)
class PlacedInputs:
    """The inputs of an operator whose keys have places: their key columns and their columns of times (None for a
    table), by tag; `owned` is the tag of the input whose rows are owned. `null_safe` and `drops` as in `StreamRouter`.
    """

    placing: StreamPlacing
    keys: tuple[tuple[str, ...], ...]
    orders: tuple[str | None, ...]
    owned: int = 0
    null_safe: tuple[bool, ...] | None = None
    drops: bool = False

    @property
    def counted(self) -> CountedInputs | None:
        """What the buckets report on, if keys change places."""
        from sqlext_operators.exchange.stream_placement import CountedInputs

        return CountedInputs(self.keys, self.owned) if self.placing.changes else None

    def routers(self, where: StreamPlacement) -> tuple[StreamRouter, ...]:
        """The routers of the inputs, by tag."""
        from sqlext_operators.exchange.stream_placement import StreamRouter

        return tuple(
            StreamRouter(keys, order, where, tag != self.owned or self.placing.copies_owned, self.null_safe, self.drops)
            for tag, (keys, order) in enumerate(zip(self.keys, self.orders, strict=True))
        )


def stream_placing(
    demand: Demand, catalog: Catalog | None, config: Config, hint: PartitionerHint | None, steady: str | None
) -> StreamPlacing | None:
    """How keys have places; None: each in one bucket, by its hash. `steady` says why they keep the places that they
    begin with; None if they may change.

    Raises UnsupportedError for a hint that the statement does not allow; a setting gives way, and so does `auto`.
    """
    name = asked_partitioner(config, hint)
    if name == HASH:
        return None
    if name == AUTO:
        reason = demand.whole or steady or (COPIED if demand.owned_copies else None)
        if reason is None and catalog is not None:
            reason = catalog.placing_obstacle()
        return StreamPlacing(name, demand, hint, reason)
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
