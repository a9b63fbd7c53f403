"""What a LAST JOIN ships through its exchange: the columns of each side, in types that compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from sqlext_operators.last_join.spec import JoinComparison, LastJoinSpec, Operator, RightSide

from sqlext_planner.config import Config
from sqlext_planner.exchange.wire import WireColumns, arrow_schema, as_months, row_by_row, types_of
from sqlext_planner.expressions.nodes import And, Column, Expression, Literal
from sqlext_planner.expressions.types import as_type, common_type, family
from sqlext_planner.last_join.nodes import LastMatch, ResidualTerms
from sqlext_planner.relational.physical_plan import ExecutionContext, spark_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from sqlext_operators.exchange.placed import Part
    from sqlext_operators.exchange.scatter import Router
    from sqlext_operators.last_join.operator import LastJoinOperatorSpec

    from sqlext_planner.exchange.partitioning.choice import Partitioning


@dataclass(frozen=True)
class TypedMatch:
    """A match of one right side, with the types of both sides' expressions.

    `keys[i]` is (left type, right type, common type); so is `comparisons[i]`. `match` and `terms` are as in the
    statement: casts are added where they are shipped.
    """

    match: LastMatch
    terms: ResidualTerms
    keys: tuple[tuple[str, str, str], ...]
    comparisons: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, left: DataFrame, right: DataFrame, match: LastMatch, terms: ResidualTerms) -> TypedMatch | None:
        """None where the operators do not compare as Spark does: other types, or a condition over both sides."""
        if terms.mixed:
            return None
        operands = [(term.left, term.right) for term in terms.comparisons]
        pairs = [*zip(match.left_keys, match.right_keys, strict=True), *operands]
        types = list(zip(types_of(left, [a for a, _ in pairs]), types_of(right, [b for _, b in pairs]), strict=True))
        typed = tuple((a, b, common) for a, b in types if (common := common_type(a, b)) is not None)
        if len(typed) < len(pairs):
            return None
        return cls(match, terms, typed[: len(match.left_keys)], typed[len(match.left_keys) :])

    @property
    def key_families(self) -> tuple[str, ...]:
        """Right sides that agree here can share an exchange."""
        return tuple(family(common) for _, _, common in self.keys)

    def left_keys(self) -> tuple[Expression, ...]:
        """The left keys in the common types."""
        keys = zip(self.match.left_keys, self.keys, strict=True)
        return tuple(as_type(key, own, common) for key, (own, _, common) in keys)

    def right_keys(self) -> tuple[Expression, ...]:
        """The right keys in the common types."""
        keys = zip(self.match.right_keys, self.keys, strict=True)
        return tuple(as_type(key, own, common) for key, (_, own, common) in keys)


@dataclass(frozen=True)
class LastJoinSide:
    """One side of a join: its rows, and its columns in the frame's order."""

    frame: DataFrame
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class ShippedJoin:
    """A LAST JOIN with right sides that agree in `TypedMatch.key_families`: `frames` are the left side and the right
    ones with wire columns only, `result` has year-month intervals."""

    keys: tuple[str, ...]
    sides: tuple[RightSide, ...]
    frames: tuple[DataFrame, ...]
    result: StructType

    @classmethod
    def of(cls, left: LastJoinSide, rights: Sequence[tuple[LastJoinSide, TypedMatch]]) -> ShippedJoin:
        """Choose what is shipped."""
        wire = WireColumns()
        keys = tuple(wire.name(key) for key in rights[0][1].left_keys())
        shipped = [_right_side(right, typed, wire) for right, typed in rights]
        frames = (as_months(wire.select(left.frame, left.columns)), *(as_months(frame) for _, frame in shipped))
        return cls(keys, tuple(side for side, _ in shipped), frames, _result_schema(left, [r for r, _ in rights]))

    def operator(self, left: LastJoinSide, config: Config) -> LastJoinOperatorSpec:
        """What a worker does with its rows."""
        from sqlext_operators.last_join.operator import LastJoinOperatorSpec

        from sqlext_planner.exchange.driver import memory_bytes

        schemas = tuple(arrow_schema(frame.schema) for frame in self.frames)
        return LastJoinOperatorSpec(
            LastJoinSpec(self.keys, tuple(left.frame.columns), self.sides),
            schemas[0],
            schemas[1:],
            memory_bytes=memory_bytes(config),
            batch_rows=config.output_batch_rows,
        )


def join_by_exchange(
    left: LastJoinSide,
    rights: Sequence[tuple[LastJoinSide, TypedMatch]],
    context: ExecutionContext,
    partitioning: Partitioning | None = None,
) -> DataFrame:
    """`left` with the columns of the last matching row of each right side: one exchange, one pass.

    The right sides agree in `TypedMatch.key_families`. Raises ConfigurationError if the workers lack the package.
    """
    from sqlext_planner.exchange.driver import Shipment, ship

    shipped = ShippedJoin.of(left, rights)
    sides = shipped.sides
    any_safe = tuple(any(side.null_safe[place] for side in sides) for place in range(len(shipped.keys)))
    keys = [(shipped.keys, any_safe), *((side.keys, side.null_safe) for side in sides)]
    shipments = [
        Shipment(tag, frame, names, _router(names, safe, partitioning, is_left=tag == 0))
        for tag, (frame, (names, safe)) in enumerate(zip(shipped.frames, keys, strict=True))
    ]
    sent = ship(shipments, context, None if partitioning is None else partitioning.planned)
    size = row_by_row(sent.sizes[0], shipped.frames[0].schema, shipped.result)
    return sent.run(shipped.operator(left, context.config), shipped.result, size)


def _router(
    keys: tuple[str, ...], null_safe: tuple[bool, ...], partitioning: Partitioning | None, *, is_left: bool
) -> Router:
    """The router of a side: left rows all come out, right rows only if they match."""
    from sqlext_operators.exchange.placed import PlacedRouter, PlacedRows
    from sqlext_operators.exchange.scatter import MatchRouter

    if partitioning is None or partitioning.placement is None:
        return MatchRouter(keys, null_safe, keep=is_left)
    part: Part = "copies" if not is_left else "both" if partitioning.copies == "all" else "owned"
    return PlacedRouter(keys, None, PlacedRows(partitioning.placement), part, null_safe, keep=is_left)


def _right_side(right: LastJoinSide, typed: TypedMatch, left_wire: WireColumns) -> tuple[RightSide, DataFrame]:
    """The spec of a right side, and its rows with their wire columns; names in `left_wire` what it reads there."""
    wire = WireColumns()
    match, terms = typed.match, typed.terms
    keys = tuple(wire.name(key) for key in typed.right_keys())
    comparisons, compared = [], {}
    for term, (own, other, common) in zip(terms.comparisons, typed.comparisons, strict=True):
        left_name = left_wire.name(as_type(term.left, own, common))
        compared[term.right] = as_type(term.right, other, common)
        comparisons.append(JoinComparison(left_name, cast(Operator, term.op), wire.name(compared[term.right])))
    # In the type in which it is compared a key has the same order, and a comparison is a binary search.
    ways = zip(match.order_by, match.descending, strict=True)
    order = [(wire.name(compared.get(key, key)), down) for key, down in ways if not isinstance(key, Literal)]
    # AND TRUE makes Spark check that a condition of one term is a boolean.
    condition = left_wire.name(And((*terms.left_only, Literal("TRUE")))) if terms.left_only else None
    side = RightSide(
        keys,
        match.null_safe,
        tuple(right.frame.columns),
        tuple(name for name, _ in order),
        tuple(down for _, down in order),
        tuple(comparisons),
        condition,
    )
    rows = right.frame
    for kept in terms.right_only:
        rows = rows.filter(spark_column(kept))
    return side, wire.select(rows, right.columns)


def _result_schema(left: LastJoinSide, rights: Sequence[LastJoinSide]) -> StructType:
    """The left fields, then those of the right sides, NULL without a match."""
    from pyspark.sql.types import StructField, StructType

    added = [item for right in rights for item in right.frame.schema]
    nullable = [StructField(item.name, item.dataType, True, item.metadata) for item in added]
    return StructType([*left.frame.schema.fields, *nullable])
