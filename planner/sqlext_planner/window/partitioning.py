"""How the exchange of a window union spreads its rows: what its windows allow, and what is known of its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlext_planner.expressions.nodes import Column, Expression, Literal
from sqlext_planner.window.nodes import WindowUnion

if TYPE_CHECKING:
    from sqlext_operators.exchange.routing import Router
    from sqlext_operators.window.spec import WindowUnionSpec

    from sqlext_planner.catalog import Catalog
    from sqlext_planner.config import Config
    from sqlext_planner.exchange.partitioning.chosen import Partitioning
    from sqlext_planner.exchange.partitioning.demand import Demand
    from sqlext_planner.exchange.partitioning.samples import SampledInput
    from sqlext_planner.exchange.partitioning.stream_placing import StreamPlacing


def window_partitioning(node: WindowUnion, catalog: Catalog | None, config: Config) -> Partitioning | None:
    """The partitioning of a node's exchange; None: by the hash of the keys.

    Raises UnsupportedError for a hint that the windows do not allow.
    """
    from sqlext_planner.exchange.partitioning.chosen import choose_partitioning

    return choose_partitioning(_inputs(node), window_demand(node), catalog, config, node.partitioner)


def window_placing(node: WindowUnion, config: Config) -> StreamPlacing | None:
    """How the keys of a node over streams have places; None: each in one bucket, by its hash.

    Raises UnsupportedError for a hint that the windows do not allow; a setting gives way.
    """
    from sqlext_planner.exchange.partitioning.stream_placing import TABLES, stream_placing

    demand = window_demand(node)
    steady = None if all(child.is_streaming for child in (node.source, *node.unions)) else TABLES
    if demand.reach is None:
        steady = f"{demand.unbounded}, so that a bucket that gets a key later lacks rows"
    return stream_placing(demand, config, node.partitioner, steady)


def window_demand(node: WindowUnion) -> Demand:
    """What FROM rows need: rows in the reach of all windows, and other FROM rows if a window shows them."""
    from sqlext_operators.window.reach import time_reach
    from sqlext_operators.window.spec import Call, Window, WindowUnionSpec

    from sqlext_planner.exchange.partitioning.demand import Demand

    order = _order(node)
    windows = tuple(
        Window(
            group.frame.resolve(None if order is None else _dtype(node, order)),
            (),
            tuple(Call(call.function, (), "", call.constants) for call in group.calls),
        )
        for group in node.windows
    )
    # over an order of an unknown type, it is unknown what a distance counts
    is_known = order is not None and _dtype(node, order) is not None
    reach = time_reach(WindowUnionSpec((), None, (), windows)) if is_known else None
    return Demand(
        reach,
        owned_copies=any(not group.frame.instance_not_in_window for group in node.windows),
        unbounded="a window has no bound in time: its rows are counted, or it has no start or no end",
    )


def _inputs(node: WindowUnion) -> list[SampledInput]:
    from sqlext_planner.exchange.partitioning.samples import SampledInput

    order = _order(node)
    wanted = (*node.partition_by, *(() if order is None else (order,)))
    dtypes = tuple(_dtype(node, item) for item in wanted)
    found = []
    for plan in (node.source, *node.unions):
        theirs: dict[Column, Expression] = dict(zip(node.source.output_columns, plan.output_columns, strict=False))
        keys = tuple(item.substitute(theirs) for item in node.partition_by)
        found.append(SampledInput(plan, keys, None if order is None else order.substitute(theirs), dtypes))
    return found


def _order(node: WindowUnion) -> Expression | None:
    """ORDER BY a constant orders nothing."""
    return None if isinstance(node.order_by, Literal) else node.order_by


def _dtype(node: WindowUnion, item: Expression) -> str | None:
    return item.result_type(node.source.dtypes)


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
