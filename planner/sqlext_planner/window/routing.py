"""The routers of a window union's inputs, as its partitioning says."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlext_operators.exchange.routing import Router
    from sqlext_operators.window.spec import WindowUnionSpec

    from sqlext_planner.exchange.partitioning.chosen import Partitioning


def window_routers(spec: WindowUnionSpec, partitioning: Partitioning | None, inputs: int) -> tuple[Router, ...]:
    """One router for each input, FROM first: by the hash of the keys; by a placement, FROM rows to one partition, or
    also as candidates of others, and all other rows to all that need them."""
    from sqlext_operators.exchange.placed import PlacedRouter, PlacedRows
    from sqlext_operators.exchange.routing import KeyRouter
    from sqlext_operators.window.reach import time_reach

    if partitioning is None or partitioning.placement is None:
        return (KeyRouter(spec.keys),) * inputs
    rows = PlacedRows(partitioning.placement, time_reach(spec) or (0, 0))
    shows = partitioning.copies == "all" or any(not window.frame.instance_not_in_window for window in spec.windows)
    first = PlacedRouter(spec.keys, spec.order, rows, "both" if shows else "owned")
    return (first, *(PlacedRouter(spec.keys, spec.order, rows, "copies"),) * (inputs - 1))
