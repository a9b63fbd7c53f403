"""How each right side of a LAST JOIN is joined, as far as planning can tell, and why."""

from __future__ import annotations

from collections.abc import Sequence

from sqlext_planner.config import Config
from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.last_join.execution import LastJoinStrategy
from sqlext_planner.last_join.nodes import LastJoin
from sqlext_planner.last_join.terms import ResidualTerms
from sqlext_planner.relational.physical_plan import Rival


def choose_strategies(
    node: LastJoin, sizes: Sequence[int | None], config: Config
) -> tuple[tuple[LastJoinStrategy, ...], str]:
    """A strategy for each right side, and the reason. `sizes` bound the right sides' bytes, None if unknown.

    If one right side needs the exchange, the others join it: one more small side costs less than a join of its own.
    """
    terms = [
        ResidualTerms.of(match, node.left.output_columns, right.output_columns)
        for right, match in zip(node.rights, node.matches, strict=True)
    ]
    by_pairs = [bool(found.mixed) or config.last_join_strategy == "pairs" for found in terms]
    others = [place for place, pairs in enumerate(by_pairs) if not pairs]
    by_reduction = [place for place in others if terms[place].is_empty]
    common: LastJoinStrategy = "exchange"
    if config.last_join_strategy == "auto" and by_reduction == others:
        common = _by_size([sizes[place] for place in others], config.last_join_broadcast_bytes)
    strategies: list[LastJoinStrategy] = ["pairs" if pairs else common for pairs in by_pairs]
    if config.last_join_strategy == "reduce":
        strategies = ["reduce" if place in by_reduction else strategy for place, strategy in enumerate(strategies)]
    mixed = [term for found in terms for term in found.mixed]
    return tuple(strategies), "; ".join(_reasons(strategies, mixed, sizes, config))


def strategy_rivals(
    strategies: Sequence[LastJoinStrategy], sizes: Sequence[int | None], config: Config
) -> tuple[Rival, ...]:
    """The strategies with the bytes of the right sides, as far as planning knows them."""
    known = [size for size in sizes if size is not None]
    cost = f"{sum(known):,} bytes" if len(known) == len(sizes) else "unknown"
    limit = config.last_join_broadcast_bytes
    when = "; decided when it runs, by the right sides' sizes" if "auto" in strategies else ""
    told: dict[LastJoinStrategy, str] = {
        "exchange": f"one exchange for the left side and the right sides{when}",
        "reduce": f"the last row of each key is broadcast; up to {limit:,} bytes, if the key alone decides{when}",
        "pairs": "Spark makes all matching pairs; for conditions that only Spark evaluates",
    }
    return tuple(Rival(name, cost, note, name in strategies) for name, note in told.items())


def _by_size(sizes: Sequence[int | None], limit: int) -> LastJoinStrategy:
    if any(size is not None and size > limit for size in sizes):
        return "exchange"
    return "auto" if None in sizes else "reduce"


def _reasons(
    strategies: Sequence[LastJoinStrategy], mixed: Sequence[Expression], sizes: Sequence[int | None], config: Config
) -> list[str]:
    """One sentence for each strategy that occurs."""
    count = {strategy: strategies.count(strategy) for strategy in ("exchange", "reduce", "auto", "pairs")}
    reasons = []
    if count["exchange"]:
        sides = "the left side and one right side" if count["exchange"] == 1 else f"{count['exchange'] + 1} inputs"
        reasons.append(f"exchange: one for {sides}")
    limit = config.last_join_broadcast_bytes
    if count["reduce"]:
        known = [
            size for size, strategy in zip(sizes, strategies, strict=True) if strategy == "reduce" and size is not None
        ]
        size = f" of at most {sum(known)} bytes" if known else ""
        reasons.append(f"reduce: the winner depends on the key alone, right rows{size} are broadcast, one per key")
    if count["auto"]:
        reasons.append(
            f"auto: the winner depends on the key alone; when it runs, right sides of at most {limit} bytes are "
            "reduced to one row per key and broadcast, larger ones go through one exchange with the left side"
        )
    if count["pairs"]:
        asked = "as the setting says" if not mixed else f"only Spark can evaluate {mixed[0]}"
        reasons.append(f"pairs: Spark makes all matching pairs, {asked}")
    return reasons
