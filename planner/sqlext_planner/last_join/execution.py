"""The physical LAST JOIN: every left row once, with the last matching row of each right side.

Over a stream with tables, each row is joined when it comes, with the tables as they were at the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, SqlExtError, UnsupportedError
from sqlext_planner.exchange.partitioning.choice import Demand, PartitionedExec, Partitioning, choose_partitioning
from sqlext_planner.exchange.partitioning.loads import SampledInput
from sqlext_planner.exchange.wire import from_months, is_shippable, months_schema, types_of
from sqlext_planner.expressions.nodes import Compare, Expression, conjuncts
from sqlext_planner.expressions.nodes import Literal as LiteralExpression
from sqlext_planner.expressions.types import common_type, family
from sqlext_planner.last_join.inputs import LastJoinSide, ShippedJoin, TypedMatch, join_by_exchange
from sqlext_planner.last_join.nodes import LastJoin, LastMatch, ResidualTerms
from sqlext_planner.relational.physical_plan import (
    ExecutionContext,
    NodeExec,
    Rival,
    Trial,
    execute_cached,
    quoted,
    spark_column,
    tried,
)
from sqlext_planner.relational.streams import shown, streams_of
from sqlext_planner.spark.versions import arrow_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sqlext_planner.catalog import Catalog


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
    by_pairs = [bool(residual.mixed) or config.last_join_strategy == "pairs" for residual in terms]
    others = [place for place, pairs in enumerate(by_pairs) if not pairs]
    by_reduction = [place for place in others if terms[place].is_empty]
    common: LastJoinStrategy = "exchange"
    if config.last_join_strategy == "auto" and by_reduction == others:
        known = [sizes[place] for place in others]
        large = any(size is not None and size > config.last_join_broadcast_bytes for size in known)
        common = "exchange" if large else "auto" if None in known else "reduce"
    strategies: list[LastJoinStrategy] = ["pairs" if pairs else common for pairs in by_pairs]
    if config.last_join_strategy == "reduce":
        strategies = ["reduce" if place in by_reduction else strategy for place, strategy in enumerate(strategies)]
    mixed = [term for residual in terms for term in residual.mixed]
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


def last_join_partitioning(node: LastJoin, catalog: Catalog | None, config: Config) -> Partitioning | None:
    """The partitioning of a node's exchange, if all right sides go through one; None: by the hash of the keys.

    Raises UnsupportedError for a hint that LAST JOIN does not allow.
    """
    demand = Demand(unbounded="the last row that matches can have any time")
    return choose_partitioning(_inputs(node), demand, catalog, config, node.partitioner)


def _inputs(node: LastJoin) -> list[SampledInput]:
    """The left side and the right ones, with their keys in the types in which they are compared."""
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


#: How a right side is joined. `exchange`: by our operator, behind one Arrow-block exchange of all such sides; `reduce`:
#: its last row of each key is broadcast; `pairs`: Spark makes all matching pairs; `auto`: `reduce` if the sides prove
#: to be small, else `exchange`; `broadcast`: by our operator, with the whole right sides in every task (streams).
LastJoinStrategy = Literal["exchange", "reduce", "pairs", "auto", "broadcast"]


@dataclass(frozen=True)
class LastJoinExec(PartitionedExec, NodeExec):
    """Computes a LastJoin node; `strategies[i]` is how `node.rights[i]` is joined.

    A right side whose strategy is not exact for the real types is joined by `pairs`, where Spark compares.
    """

    node: LastJoin
    strategies: tuple[LastJoinStrategy, ...] = field(kw_only=True)

    is_extension = True
    reads_streams = True

    def trials(self, frames: Sequence[DataFrame], context: ExecutionContext) -> Iterator[tuple[Expression, Trial]]:
        left, *rights = frames
        for right, match in zip(rights, self.node.matches, strict=True):
            for key in match.left_keys:
                yield key, tried(left)
            for key in (*match.right_keys, *match.order_by):
                yield key, tried(right)
            sides = zip(match.left_keys, match.right_keys, strict=True)
            for term in (*(Compare("=", a, b, span=match.span) for a, b in sides), *conjuncts(match.residual)):
                yield term, _tried_join(left, right)

    def execute(self, context: ExecutionContext) -> DataFrame:
        """Raises AnalysisError for an order key of a type that has no order, and for keys and
        conditions that Spark refuses, ConfigurationError if the workers lack the package."""
        from sqlext_planner.last_join.plain_spark import join_pairs, join_reduced

        left, *rights = (LastJoinSide(execute_cached(plan, context), plan.output_columns) for plan in self.inputs)
        for right, match in zip(rights, self.node.matches, strict=True):
            _check_order(right.frame, match)
        typed = [
            TypedMatch.of(left.frame, right.frame, match, ResidualTerms.of(match, left.columns, right.columns))
            for right, match in zip(rights, self.node.matches, strict=True)
        ]
        strategies = self._final_strategies(left, rights, typed, context)
        self._check_streams(left, rights, strategies)
        joined = left
        groups = _groups(strategies, typed)
        planned = self.partitioning if len(groups) == 1 and len(groups[0]) == len(rights) else None
        for group in groups:
            sides = [(rights[place], typed_match) for place in group if (typed_match := typed[place]) is not None]
            if strategies[group[0]] == "broadcast":
                frame = join_by_broadcast(joined, sides, context)
            else:
                frame = join_by_exchange(joined, sides, context, planned)
            added = tuple(column for place in group for column in rights[place].columns)
            joined = LastJoinSide(frame, joined.columns + added)
        frame = joined.frame
        for right, match, typed_match, strategy in zip(rights, self.node.matches, typed, strategies, strict=True):
            if strategy == "reduce" and typed_match is not None:
                frame = join_reduced(frame, right.frame, typed_match)
            elif strategy == "pairs":
                if context.config.last_join_strategy != "pairs":
                    context.left_to_spark(f"Spark makes all matching pairs of the LAST JOIN; {self.why}", match.span)
                frame = join_pairs(frame, right.frame, match)
        return frame.selectExpr(*map(quoted, self.frame_columns))

    def _final_strategies(
        self,
        left: LastJoinSide,
        rights: Sequence[LastJoinSide],
        typed: Sequence[TypedMatch | None],
        context: ExecutionContext,
    ) -> list[LastJoinStrategy]:
        """The strategies without `auto`, and `pairs` where the chosen one cannot be."""
        limit = context.config.last_join_broadcast_bytes
        small = all(
            _is_small(right.frame, limit, context)
            for right, strategy in zip(rights, self.strategies, strict=True)
            if strategy == "auto"
        )
        left_travels = is_shippable(left.frame)
        strategies: list[LastJoinStrategy] = []
        for right, strategy, found in zip(rights, self.strategies, typed, strict=True):
            chosen: LastJoinStrategy = ("reduce" if small else "exchange") if strategy == "auto" else strategy
            if chosen == "exchange" and not (left_travels and is_shippable(right.frame) and self.output):
                chosen = "reduce" if found is not None and found.terms.is_empty else "pairs"
            strategies.append("pairs" if found is None else chosen)
        return strategies

    def _check_streams(
        self, left: LastJoinSide, rights: Sequence[LastJoinSide], strategies: Sequence[LastJoinStrategy]
    ) -> None:
        """Raises UnsupportedError for a stream that no strategy serves: types may not compare, and a name may mean a
        stream since planning."""
        fits = not left.frame.isStreaming or all(strategy == "broadcast" for strategy in strategies)
        if not fits or any(right.frame.isStreaming for right in rights):
            raise UnsupportedError(
                "this join cannot read a stream: its sides have types that do not compare, or a table became one",
                condition="stream-not-supported",
                span=next((match.span for match in self.node.matches if match.span is not None), None),
                help="cast what is compared to one type, and run the statement again",
            )

    def label(self) -> str:
        parts = (f"[{strategy}] {match}" for strategy, match in zip(self.strategies, self.node.matches, strict=True))
        return f"LastJoinExec: {', '.join(parts)}"


def _tried_join(left: DataFrame, right: DataFrame) -> Trial:
    return lambda item: left.join(right, spark_column(item)).columns


def _groups(strategies: Sequence[LastJoinStrategy], typed: Sequence[TypedMatch | None]) -> list[list[int]]:
    """The numbers of the right sides that one run of our operator serves."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for place, (strategy, found) in enumerate(zip(strategies, typed, strict=True)):
        if strategy in ("exchange", "broadcast") and found is not None:
            groups.setdefault((strategy, *found.key_families), []).append(place)
    return list(groups.values())


def _is_small(frame: DataFrame, limit: int, context: ExecutionContext) -> bool:
    """Whether the frame is known to have at most `limit` bytes."""
    from sqlext_planner.exchange.driver import size_of

    size = size_of(frame, context)
    return size is not None and size.bytes <= limit


def _check_order(frame: DataFrame, match: LastMatch) -> None:
    """ORDER BY takes what the operators compare (docs/reference/last-join.md, section 1). Raises AnalysisError."""
    keys = [key for key in match.order_by if not isinstance(key, LiteralExpression)]
    for key, kind in zip(keys, types_of(frame, keys) if keys else (), strict=True):
        if common_type(kind, kind) is None:
            raise AnalysisError(
                f"{match.title} cannot be ordered by {kind}: {key}",
                condition="order-type",
                span=key.span or match.span,
                help="order by a number, a date, a timestamp or a string without a collation; cast it in a subquery",
            )


def join_by_broadcast(
    left: LastJoinSide, rights: Sequence[tuple[LastJoinSide, TypedMatch]], context: ExecutionContext
) -> DataFrame:
    """`left` with the columns of the last matching row of each right side.

    The right sides are collected when the DataFrame is made, so a stream joins the tables as they are then. The rows
    keep their order, and a stream its event time. Raises ConfigurationError if the workers lack the package.
    """
    from sqlext_operators.last_join.operator import broadcast_last_join, right_sides

    from sqlext_planner.exchange.driver import Reporting
    from sqlext_planner.spark.workers import broadcast_function, check_workers

    check_workers(context.spark)
    shipped = ShippedJoin.of(left, rights)
    operator = shipped.operator(left, context.config)
    tables = [
        arrow_table(frame).rename_columns(schema.names).cast(schema)
        for frame, schema in zip(shipped.frames[1:], operator.rights, strict=True)
    ]
    reporting = Reporting.of(context, "alone")
    entry = broadcast_function(reporting.entry(broadcast_last_join, operator), right_sides(tables), context.spark)
    # mapInArrow looks its columns up by unquoted name, which fails for names with dots.
    rows = shipped.frames[0].toDF(*(f"c{place}" for place in range(len(shipped.frames[0].columns))))
    return from_months(rows.mapInArrow(reporting.function(entry), months_schema(shipped.result)), shipped.result)


def refusal(node: LastJoin) -> SqlExtError | None:
    """Why the join cannot be computed over its streams; None if it can."""
    pairs = list(zip(node.rights, node.matches, strict=True))
    found = next(((stream, match) for right, match in pairs for stream in streams_of(right)), None)
    if found is not None:
        stream, match = found
        return UnsupportedError(
            f"the right side of {match.title} is the stream{shown(stream)}: its last row is never known",
            condition="stream-unbounded",
            span=stream.span,
            help="write the stream to a table and join that, or use a window: WINDOW w AS (UNION ...), last_value(...)",
        )
    if not node.is_streaming:
        return UnsupportedError(
            f"{node.operator_name} cannot read a stream in a subquery of an expression",
            condition="stream-not-supported",
        )
    for right, match in pairs:
        mixed = ResidualTerms.of(match, node.left.output_columns, right.output_columns).mixed
        if not mixed:
            continue
        return UnsupportedError(
            f"only Spark can evaluate {mixed[0]}, and not in {match.title} of a stream",
            condition="stream-not-supported",
            span=mixed[0].span or node.span,
            help="compare columns of the two sides with =, <, <=, > or >=, or compute what is compared in a subquery",
        )
    hint = node.partitioner
    if hint is not None and hint.name not in ("auto", "broadcast"):
        return UnsupportedError(
            f"the hint {hint} cannot be followed by a LAST JOIN of a stream: its rows stay where they are, and all "
            "tasks have the tables, as with broadcast",
            condition="hint-not-followed",
            span=hint.span,
            help="leave the hint out, or put the LAST JOIN in a subquery without it",
        ).about_hint()
    return None


def stream_strategies(node: LastJoin) -> tuple[tuple[LastJoinStrategy, ...], str]:
    """A strategy for each right side, and the reason."""
    why = "each row of the stream is joined when it comes, with the tables as they were when the query started"
    strategies: list[LastJoinStrategy] = ["broadcast"] * len(node.rights)
    return tuple(strategies), why
