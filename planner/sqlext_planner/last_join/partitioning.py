"""How the exchange of a LAST JOIN spreads its rows: left rows are owned, right ones copied to all that need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlext_planner.expressions.types import common_type, family
from sqlext_planner.last_join.nodes import LastJoin

if TYPE_CHECKING:
    from sqlext_planner.catalog import Catalog
    from sqlext_planner.config import Config
    from sqlext_planner.exchange.partitioning.chosen import Partitioning
    from sqlext_planner.exchange.partitioning.samples import SampledInput


def last_join_partitioning(node: LastJoin, catalog: Catalog | None, config: Config) -> Partitioning | None:
    """The partitioning of a node's exchange, if all right sides go through one; None: by the hash of the keys.

    Raises UnsupportedError for a hint that LAST JOIN does not allow.
    """
    from sqlext_planner.exchange.partitioning.chosen import choose_partitioning
    from sqlext_planner.exchange.partitioning.demand import Demand

    demand = Demand(unbounded="the last row that matches can have any time")
    return choose_partitioning(_inputs(node), demand, catalog, config, node.partitioner)


def _inputs(node: LastJoin) -> list[SampledInput]:
    """The left side and the right ones, with their keys in the types in which they are compared."""
    from sqlext_planner.exchange.partitioning.samples import SampledInput

    match = node.matches[0]
    common = [_common(node, place) for place in range(len(node.rights))]
    left = SampledInput(node.left, match.left_keys, None, common[0])
    return [
        left,
        *(
            SampledInput(right, found.right_keys, None, types)
            for right, found, types in zip(node.rights, node.matches, common, strict=True)
        ),
    ]


def _common(node: LastJoin, place: int) -> tuple[str | None, ...]:
    found, right = node.matches[place], node.rights[place]
    sides = [
        (left.result_type(node.left.dtypes), other.result_type(right.dtypes))
        for left, other in zip(found.left_keys, found.right_keys, strict=True)
    ]
    return tuple(None if a is None or b is None else common_type(a, b) for a, b in sides)


def is_one_exchange(node: LastJoin) -> bool:
    """Whether the keys of all right sides are surely compared as one type, so that they share an exchange."""
    families = {
        tuple(None if dtype is None else family(dtype) for dtype in _common(node, place))
        for place in range(len(node.rights))
    }
    return len(families) == 1 and None not in next(iter(families))
