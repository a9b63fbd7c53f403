"""How the exchange of a join by a shared key spreads its rows: one inner input is split, the others are copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.relational.joins import PartitionerHint
from sqlext_planner.relational.logical_plan import relation_name
from sqlext_planner.umjoin.execute.keys import class_type
from sqlext_planner.umjoin.execute.split import UMJoinSplit
from sqlext_planner.umjoin.execute.stream_execution import endless
from sqlext_planner.umjoin.nodes import UMJoin
from sqlext_planner.umjoin.streams import StreamParts, stream_times

if TYPE_CHECKING:
    from sqlext_planner.catalog import Catalog
    from sqlext_planner.config import Config
    from sqlext_planner.exchange.partitioning.choice import Partitioning
    from sqlext_planner.exchange.partitioning.samples import SampledInput
    from sqlext_planner.exchange.partitioning.stream_placing import StreamPlacing


@dataclass(frozen=True)
class SplitInput:
    """A partitioning, and the place of the operator's input whose rows are owned."""

    partitioning: Partitioning
    place: int


def umjoin_partitioning(node: UMJoin, catalog: Catalog | None, config: Config) -> SplitInput | None:
    """The partitioning of the exchange of a node that is joined by shared keys; None: by the hash of the keys.

    Raises UnsupportedError for a hint that a multi-way join does not allow.
    """
    from sqlext_planner.exchange.partitioning.choice import PAIR_COST, Demand, choose_partitioning, input_rows

    inputs = _inputs(node)
    places = UMJoinSplit.of(node).places
    inner = [n for n, place in enumerate(places) if node.kinds[place] == "inner"]
    rows = input_rows(inputs, catalog) if catalog is not None else [None] * len(inputs)
    owner = max(inner, key=lambda n: rows[n] or 0.0)
    ordered = [inputs[owner], *(item for n, item in enumerate(inputs) if n != owner)]
    demand = Demand(
        pair_cost=0.0 if node.count is not None else PAIR_COST,
        unbounded="a multi-way join by a shared key has no time",
    )
    found = choose_partitioning(ordered, demand, catalog, config, node.partitioner, per_core=2)
    return None if found is None else SplitInput(found, owner)


def _inputs(node: UMJoin) -> list[SampledInput]:
    """The operator's inputs with a column of each shared class, in the types in which they are compared."""
    from sqlext_planner.exchange.partitioning.samples import SampledInput

    split = UMJoinSplit.of(node)
    layout = split.layout
    known = {column: kind for child in node.inputs for column, kind in child.dtypes.items()}
    types = []
    for shared in layout.shared:
        edges = [(known.get(a), known.get(b)) for number, a, b in layout.edges if number == shared]
        typed = [(a, b) for a, b in edges if a is not None and b is not None]
        types.append(class_type(typed) if len(typed) == len(edges) else None)
    return [
        SampledInput(node.inputs[place], tuple(held[shared][0] for shared in layout.shared), None, tuple(types))
        for place, held in zip(split.places, layout.columns, strict=True)
    ]


def umjoin_placing(parts: StreamParts, config: Config, hint: PartitionerHint | None) -> StreamPlacing | None:
    """How the keys of a join over streams have places, as far as the plan knows its event times; None: each in one
    bucket, by its hash.

    Raises UnsupportedError for a hint that the join does not allow; a setting gives way.
    """
    from sqlext_planner.exchange.partitioning.choice import Demand
    from sqlext_planner.exchange.partitioning.stream_placing import stream_placing

    core = parts.core
    whole = None
    if not UMJoinSplit.of(core).layout.shared:
        whole = "its inputs share no key, so that each row goes to several buckets by several keys"
    names = [relation_name(child) for child in core.inputs]
    return stream_placing(Demand(whole=whole), config, hint, endless(stream_times(core, parts.bounds), names))
