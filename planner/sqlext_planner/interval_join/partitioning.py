"""How the exchange of an interval join spreads its rows: one side is owned, the other copied, or time is cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_operators.interval_join.passes import Side

from sqlext_planner.exchange.driver import join_partition_count
from sqlext_planner.expressions.types import common_type
from sqlext_planner.interval_join.choice import BROADCAST_SIDES
from sqlext_planner.interval_join.nodes import SIDES, IntervalJoin
from sqlext_planner.interval_join.streams import endless_side, opened_period

if TYPE_CHECKING:
    from sqlext_operators.exchange.placed import Part
    from sqlext_operators.exchange.placement import Placement
    from sqlext_operators.interval_join.spec import IntervalJoinSpec
    from sqlext_operators.interval_join.tiles import TileRouter, Tiles

    from sqlext_planner.catalog import Catalog
    from sqlext_planner.config import Config
    from sqlext_planner.exchange.partitioning.choice import Partitioning
    from sqlext_planner.exchange.partitioning.loads import Sampled, SampledInput
    from sqlext_planner.exchange.partitioning.plans import Partitioner
    from sqlext_planner.exchange.partitioning.stream_placing import StreamPlacing
    from sqlext_planner.exchange.wire import Size
    from sqlext_planner.interval_join.inputs import TypedJoin
    from sqlext_planner.interval_join.tiles import JoinSample
    from sqlext_planner.relational.physical_plan import ExecutionContext


@dataclass(frozen=True)
class Routing:
    """Rows go to `partitions` partitions by the hash of their keys, by tiles, by a placement, or by tiles that a
    placement places. By a placement alone, the rows of `owner` are owned and those of the other side copied, with
    `both` the owned ones too."""

    partitions: int
    tiles: Tiles | None = None
    placement: Placement | None = None
    owner: Side = "left"
    both: bool = False

    @classmethod
    def of(
        cls,
        typed: TypedJoin,
        sizes: Sequence[Size | None],
        partitioning: Partitioning | None,
        owner: Side,
        context: ExecutionContext,
    ) -> Routing:
        """The plan's; that of a sample of the inputs where the plan leaves tiles to the run."""
        from sqlext_planner.interval_join.tiles import TIME_RANGE, can_be_cut, run_tiles

        partitions = join_partition_count(sizes, context)
        if partitioning is None or (partitioning.name == TIME_RANGE and partitioning.placement is None):
            return cls(partitions, *run_tiles(typed, sizes, partitions, context))
        planned = cls.planned(partitioning, owner, partitions)
        if planned.tiles is not None and not can_be_cut(typed.spec, typed.schemas):
            return cls(partitions)  # a table has got other types since the plan was made
        return planned

    @classmethod
    def planned(cls, partitioning: Partitioning, owner: Side, partitions: int) -> Routing:
        """The plan's; without a placement by the hash of the keys to so many partitions."""
        from sqlext_operators.interval_join.tiles import Tiles

        if partitioning.placement is None:
            return cls(partitions)
        tiles = Tiles.of_placement(partitioning.placement)
        return cls(partitioning.partitions, tiles, partitioning.placement, owner, partitioning.copies == "all")

    def router(self, join: IntervalJoinSpec, side: Side) -> TileRouter:
        """The router of a side."""
        from sqlext_operators.exchange.placed import PlacedRows
        from sqlext_operators.interval_join.tiles import TileRouter

        if self.placement is None:
            return TileRouter(join, side, self.tiles)
        part: Part = "both" if self.both and side == self.owner else "owned"
        if side != self.owner and not join.decides(side):
            part = "copies"  # a side whose rows are decided is owned too: then each team has one member
        return TileRouter(join, side, self.tiles, PlacedRows(self.placement), part)


def interval_partitioning(
    node: IntervalJoin, catalog: Catalog | None, config: Config
) -> tuple[Partitioning, Side] | None:
    """The partitioning of a node's exchange, and the side whose rows are owned; None: keys with much
    work are cut into tiles by a sample when it runs.

    Raises UnsupportedError for a hint that the join does not allow.
    """
    from sqlext_planner.exchange.partitioning.choice import WantedPartitioning, input_rows
    from sqlext_planner.exchange.partitioning.loads import sampled
    from sqlext_planner.exchange.partitioning.partitioners import PARTITIONERS
    from sqlext_planner.exchange.partitioning.plans import Refused
    from sqlext_planner.interval_join.tiles import TIME_RANGE, TilePartitioner, join_demand

    typed = _TypedSides.of(node)
    inputs = {side: typed.input(side) for side in SIDES}
    owner = _owner(node, dict(zip(SIDES, input_rows(list(inputs.values()), catalog), strict=True)) if catalog else {})
    order = (owner, *(side for side in SIDES if side != owner))
    requested = WantedPartitioning.of([inputs[side] for side in order], catalog, config, node.partitioner, per_core=2)
    if requested is None:
        return None
    samples = sampled([inputs[side] for side in order], requested.rows, requested.catalog)
    sample = typed.sample(samples, order)
    tiles = requested.partitions
    partitioners: dict[str, Partitioner] = dict(PARTITIONERS)
    if not node.left_keys:
        tiles = min(tiles, config.interval_join_tiles or tiles)
        refused = Refused("the join has no keys: time_range cuts its rows, and broadcast copies them all")
        partitioners |= dict.fromkeys(("key", "fragment", "dynamic", "hybrid"), lambda exchange: refused)
    partitioners[TIME_RANGE] = TilePartitioner(sample, tiles).plan
    chosen = requested.chosen(samples, join_demand(node.kind, sample), partitioners, unknown=TIME_RANGE)
    return chosen, owner


def _owner(node: IntervalJoin, rows: Mapping[Side, float | None]) -> Side:
    """The side whose rows have their results alone: the other one may be copied. The larger one if both may be."""
    copied = BROADCAST_SIDES[node.kind]
    allowed = [side for side in SIDES if any(other != side for other in copied)] or list(SIDES)
    return max(allowed, key=lambda side: rows.get(side) or 0.0)


@dataclass(frozen=True)
class _TypedSides:
    """A node with the types in which its keys and values are compared, by their names; None where they are not known,
    or where the operators do not compare them."""

    node: IntervalJoin
    keys: tuple[str | None, ...]
    values: Mapping[str, str] | None

    @classmethod
    def of(cls, node: IntervalJoin) -> _TypedSides:
        from sqlext_planner.interval_join.inputs import common_types

        pairs = [
            (left.result_type(node.left.dtypes), right.result_type(node.right.dtypes))
            for left, right in zip(node.left_keys, node.right_keys, strict=True)
        ]
        types = {name: value.result_type(node.left.dtypes) for name, value in node.values_of("left").items()}
        types |= {name: value.result_type(node.right.dtypes) for name, value in node.values_of("right").items()}
        known = {name: kind for name, kind in types.items() if kind is not None}
        return cls(
            node,
            tuple(None if a is None or b is None else common_type(a, b) for a, b in pairs),
            common_types(node, known) if len(known) == len(types) else None,
        )

    def input(self, side: Side) -> SampledInput:
        """A side with its keys and values; without values if their types are not known."""
        from sqlext_planner.exchange.partitioning.loads import SampledInput

        node = self.node
        plan, keys = (node.left, node.left_keys) if side == "left" else (node.right, node.right_keys)
        values = {} if self.values is None else node.values_of(side)
        types = () if self.values is None else tuple(self.values[name] for name in values)
        return SampledInput(plan, keys, None, (*self.keys, *types), tuple(values.values()), node.null_safe)

    def sample(self, sampled: Sampled, order: tuple[Side, ...]) -> JoinSample | None:
        """The sampled rows of both sides, if their values are known."""
        from sqlext_planner.interval_join.tiles import JoinSample

        if self.values is None:
            return None
        spec = self._spec(self.values)
        tables = {}
        for side, table in zip(order, sampled.tables, strict=True):
            own = spec.side(side)
            if table is None:
                return None
            tables[side] = table.rename_columns([*own.keys, *own.values])
        return JoinSample.of(spec, tables, dict(zip(order, sampled.loads.weights, strict=True)))

    def _spec(self, kinds: Mapping[str, str]) -> IntervalJoinSpec:
        """What the operator computes, with columns called like the node's values, and without a payload."""
        from sqlext_operators.interval_join.spec import IntervalJoinSpec, IntervalSide

        from sqlext_planner.interval_join.inputs import numeric_alternatives

        node = self.node
        keys = [tuple(f"{side}{place}" for place in range(len(node.null_safe))) for side in SIDES]
        sides = [
            IntervalSide(own, tuple(node.values_of(side)), node.periods_of(side))
            for side, own in zip(SIDES, keys, strict=True)
        ]
        alternatives = numeric_alternatives(node, {name: name for name in kinds}, kinds)
        return IntervalJoinSpec(node.kind, sides[0], sides[1], node.null_safe, alternatives, node.empty)


def owned_side(node: IntervalJoin) -> Side:
    """The side whose rows have their results in one bucket: one whose rows are decided, if there is one. Else the left
    one, unless its rows are a table's, or its periods are open while the right ones are not."""
    allowed = [side for side in SIDES if any(other != side for other in BROADCAST_SIDES[node.kind])] or list(SIDES)
    return min(allowed, key=lambda side: (opened_period(node, side) is not None, not node.input_of(side).is_streaming))


def interval_placing(node: IntervalJoin, catalog: Catalog | None, config: Config) -> StreamPlacing | None:
    """How the keys of a node over streams have places, as far as the plan knows its event times; None: each in one
    bucket, by its hash.

    Raises UnsupportedError for a hint that the join does not allow; a setting gives way.
    """
    from sqlext_planner.exchange.partitioning.choice import Demand
    from sqlext_planner.exchange.partitioning.stream_placing import TABLES, stream_placing

    steady = None
    if not all(node.input_of(side).is_streaming for side in SIDES):
        steady = TABLES
    elif any(opened_period(node, side) is not None for side in SIDES):
        steady = "an open period may be closed at any time, so that a bucket that gets a key later may lack it"
    elif (side := endless_side(node)) is not None:
        steady = endless(side)
    return stream_placing(Demand(whole=_whole(node)), catalog, config, node.partitioner, steady)


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
    if opened_period(node, owned_side(node)) is not None:
        return "the row that closes an open period must come to the bucket of the row that has opened it"
    return None
