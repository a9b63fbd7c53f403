"""Where the rows of an interval join's exchange go, as the plan says or as a sample says when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_operators.interval_join.passes import Side

if TYPE_CHECKING:
    from sqlext_operators.exchange.placed import Part
    from sqlext_operators.exchange.placement import Placement
    from sqlext_operators.interval_join.spec import IntervalJoinSpec
    from sqlext_operators.interval_join.tile_routing import TileRouter
    from sqlext_operators.interval_join.tiles import Tiles

    from sqlext_planner.exchange.sizes import Size
    from sqlext_planner.interval_join.inputs import TypedJoin
    from sqlext_planner.interval_join.partitioning import SplitSide
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
        cls, typed: TypedJoin, sizes: Sequence[Size | None], split: SplitSide | None, context: ExecutionContext
    ) -> Routing:
        """The plan's; that of a sample of the inputs where the plan leaves tiles to the run."""
        from sqlext_planner.exchange.driver import join_partition_count
        from sqlext_planner.interval_join.run_samples import run_tiles
        from sqlext_planner.interval_join.tiles import TIME_RANGE, can_be_cut

        partitions = join_partition_count(sizes, context)
        if split is None or (split.partitioning.name == TIME_RANGE and split.partitioning.placement is None):
            return cls(partitions, *run_tiles(typed, sizes, partitions, context))
        planned = cls.planned(split, partitions)
        if planned.tiles is not None and not can_be_cut(typed.spec, typed.schemas):
            return cls(partitions)  # a table has got other types since the plan was made
        return planned

    @classmethod
    def planned(cls, split: SplitSide, partitions: int) -> Routing:
        """The plan's; without a placement by the hash of the keys to so many partitions."""
        from sqlext_operators.interval_join.tiles import Tiles

        found = split.partitioning
        if found.placement is None:
            return cls(partitions)
        tiles = Tiles.of_placement(found.placement)
        return cls(found.partitions, tiles, found.placement, split.owner, found.copies == "all")

    def router(self, join: IntervalJoinSpec, side: Side) -> TileRouter:
        """The router of a side."""
        from sqlext_operators.exchange.placed import PlacedRows
        from sqlext_operators.interval_join.tile_routing import TileRouter

        if self.placement is None:
            return TileRouter(join, side, self.tiles)
        part: Part = "both" if self.both and side == self.owner else "owned"
        if side != self.owner and not join.decides(side):
            part = "copies"  # a side whose rows are decided is owned too: then each team has one member
        return TileRouter(join, side, self.tiles, PlacedRows(self.placement), part)
