"""How the keys of a multi-way join over streams get places: one inner input is owned, the others are copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlext_planner.relational.logical_plan import relation_name
from sqlext_planner.relational.nodes import PartitionerHint
from sqlext_planner.umjoin.execute.split import UMJoinSplit
from sqlext_planner.umjoin.execute.stream_execution import endless
from sqlext_planner.umjoin.streams import StreamParts, stream_times

if TYPE_CHECKING:
    from sqlext_planner.config import Config
    from sqlext_planner.exchange.partitioning.stream_placing import StreamPlacing


def umjoin_placing(parts: StreamParts, config: Config, hint: PartitionerHint | None) -> StreamPlacing | None:
    """How the keys of a join over streams have places, as far as the plan knows its event times; None: each in one
    bucket, by its hash.

    Raises UnsupportedError for a hint that the join does not allow; a setting gives way.
    """
    from sqlext_planner.exchange.partitioning.demand import Demand
    from sqlext_planner.exchange.partitioning.stream_placing import stream_placing

    core = parts.core
    whole = None
    if not UMJoinSplit.of(core).layout.shared:
        whole = "its inputs share no key, so that each row goes to several buckets by several keys"
    names = [relation_name(child) for child in core.inputs]
    return stream_placing(Demand(whole=whole), config, hint, endless(stream_times(core, parts.bounds), names))
