"""What an interval join ships: the columns of each side, in types that compare.

Where the residual of an interval join is tested: by the operator, or by Spark on the operator's candidate pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

from sqlext_operators.expressions import nodes as operators
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.spec import ROW, IntervalJoinSpec, IntervalSide, Kind, PairAlgorithm

from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.exchange.wire import WireColumns, arrow_schema, as_months, is_shippable, types_of
from sqlext_planner.expressions.arithmetic import arithmetic_type
from sqlext_planner.expressions.nodes import Column, Expression, SparkExpr, conjunction, conjuncts
from sqlext_planner.expressions.operator_expressions import OperatorExpressions
from sqlext_planner.expressions.scalars.settings import ScalarSettings
from sqlext_planner.expressions.types import as_type, common_type
from sqlext_planner.interval_join.nodes import SIDES, IntervalJoin
from sqlext_planner.periods.predicates import Amount
from sqlext_planner.periods.types import PeriodEnd, check_period_types

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


#: Types whose values a distance can be added to.
_SHIFTED = ("tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class TypedJoin:
    """An interval join over real DataFrames: what the operator computes, and the two sides with their wire columns.

    `spec` names wire columns, `names` has them by the names of the node's values (l0, r0, ...). `result` has the
    output's fields; year-month intervals travel as months. `test` is what Spark tests of the candidate pairs, which
    then have the fields `pairs`.
    """

    spec: IntervalJoinSpec
    left: DataFrame
    right: DataFrame
    result: StructType
    names: Mapping[str, str]
    test: Expression | None = None
    pairs: StructType | None = None

    @classmethod
    def of(
        cls,
        node: IntervalJoin,
        left: DataFrame,
        right: DataFrame,
        config: Config,
        beside: Mapping[str, Sequence[Column]] | None = None,
    ) -> TypedJoin | None:
        """None where the operators do not compare as Spark does, or Spark does not hand a column's type to Python.

        `beside` are columns of the side "left" or "right" that are shipped even if nothing reads them. Raises
        AnalysisError for a distance that cannot be added to its values.
        """
        keys = _common_keys(node, left, right)
        values = _common_values(node, left, right)
        if keys is None or values is None:
            return None
        more = beside or {}
        wires = (_Columns("left"), _Columns("right"))
        residual, tested = _residual(node, wires, (left, right))
        sides = [
            _Side.of(node, name, frame, keys, values, more.get(name, ()), wire, columns)
            for name, frame, wire, columns in zip(SIDES, (left, right), wires, tested, strict=True)
        ]
        frames = [side.frame for side in sides]
        if not all(map(is_shippable, frames)):
            return None
        names = {**sides[0].names, **sides[1].names}
        alternatives = numeric_alternatives(node, names, {name: common for name, (_, common) in values.items()})
        kind: Kind = node.kind
        algorithm = cast(PairAlgorithm, config.interval_join_algorithm)
        spec = IntervalJoinSpec(
            kind,
            sides[0].side,
            sides[1].side,
            node.null_safe,
            alternatives,
            node.empty,
            algorithm,
            residual.operator,
            residual.spark is not None,
        )
        pairs = None if residual.spark is None else _pair_schema(spec, frames)
        result = _result_schema(node, left, right)
        return cls(spec, as_months(frames[0]), as_months(frames[1]), result, names, residual.spark, pairs)

    def frame(self, side: str) -> DataFrame:
        """One side's rows."""
        return self.left if side == "left" else self.right

    @cached_property
    def schemas(self) -> Mapping[Side, pa.Schema]:
        """The wire columns of both sides."""
        return {side: arrow_schema(self.frame(side).schema) for side in SIDES}


class _Columns(WireColumns):
    """Wire columns of one side; computed ones are named unlike the other side's, because conditions name both."""

    def __init__(self, side: str) -> None:
        super().__init__()
        self._side = side

    def name(self, expression: Expression) -> str:
        if isinstance(expression, Column):
            return super().name(expression)
        return self.computed.setdefault(expression, f"__sqlext_{self._side}{len(self.computed)}")


@dataclass(frozen=True)
class _Side:
    """One side on the wire; `names` are the wire columns of its values."""

    side: IntervalSide
    frame: DataFrame
    names: dict[str, str]

    @classmethod
    def of(
        cls,
        node: IntervalJoin,
        name: Side,
        frame: DataFrame,
        keys: Sequence[tuple[str, str, str]],
        values: Mapping[str, tuple[str, str]],
        beside: Sequence[Column],
        wire: _Columns,
        tested: tuple[str, ...],
    ) -> _Side:
        is_left = name == "left"
        own_keys = node.left_keys if is_left else node.right_keys
        key_names = tuple(
            wire.name(as_type(key, types[0 if is_left else 1], types[2]))
            for key, types in zip(own_keys, keys, strict=True)
        )
        periods = node.periods_of(name)
        moving = {end for _, end in periods} if node.empty == "point" else set()
        names: dict[str, str] = {}
        for own, value in node.values_of(name).items():
            typed = as_type(value, *values[own])
            # The end of a period that may be one instant moves: it is a wire column of its own.
            names[own] = wire.name(SparkExpr((typed,)) if own in moving else typed)
        payload = node.passed_on[0 if is_left else 1]
        side = IntervalSide(
            key_names,
            tuple(dict.fromkeys(names.values())),
            tuple((names[start], names[end]) for start, end in periods),
            tuple(column.spark_name for column in payload),
            tested,
        )
        return cls(side, wire.select(frame, (*payload, *beside)), names)


def _residual(
    node: IntervalJoin, wires: tuple[_Columns, _Columns], frames: tuple[DataFrame, DataFrame]
) -> tuple[SplitResidual, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Who tests the residual, and the wire columns of both sides that are read for it."""
    if node.residual is None:
        return SplitResidual(), ((), ())
    known = [{item.name: item.dataType.simpleString() for item in frame.schema} for frame in frames]
    types = {column: {**known[0], **known[1]}.get(column.spark_name) for column in node.residual.references}

    def computed(expression: Expression) -> tuple[str, str] | None:
        for wire, frame, columns in zip(wires, frames, known, strict=True):
            if all(column.spark_name in columns for column in expression.references):
                return wire.name(expression), types_of(frame, [expression])[0]
        return None

    ansi = str(frames[0].sparkSession.conf.get("spark.sql.ansi.enabled")).lower() == "true"
    split = split_residual(node.residual, types, ansi, computed)
    read = list(dict.fromkeys(split.operator.inputs())) if split.operator is not None else []
    read += sorted(column.spark_name for column in (split.spark.references if split.spark is not None else ()))
    tested = []
    for wire, columns in zip(wires, known, strict=True):
        own = [name for name in dict.fromkeys(read) if name in columns or name in wire.computed.values()]
        for column in node.residual.references:
            if column.spark_name in columns and column.spark_name in own:
                wire.name(column)
        tested.append(tuple(own))
    return split, (tested[0], tested[1])


def _pair_schema(spec: IntervalJoinSpec, frames: Sequence[DataFrame]) -> StructType:
    """The fields of candidate pairs (sqlext_operators/interval_join/output.py)."""
    from pyspark.sql.types import LongType, StructField, StructType
    from sqlext_operators.interval_join.output import NUMBER, candidate_columns

    fields = []
    for side, frame in zip(SIDES, frames, strict=True):
        for name in candidate_columns(spec, side):
            item = frame.schema[name]
            fields.append(StructField(name, item.dataType, True, item.metadata))
    return StructType([*fields, StructField(NUMBER, LongType())])


def with_row(schema: StructType) -> StructType:
    """The fields of candidate pairs of undecided copies."""
    from pyspark.sql.types import LongType, StructField, StructType

    return StructType([*schema, StructField(ROW, LongType())])


def _common_keys(node: IntervalJoin, left: DataFrame, right: DataFrame) -> list[tuple[str, str, str]] | None:
    """(left type, right type, common type) of every key."""
    pairs = zip(types_of(left, node.left_keys), types_of(right, node.right_keys), strict=True)
    found = [(a, b, common) for a, b in pairs if (common := common_type(a, b)) is not None]
    return found if len(found) == len(node.null_safe) else None


def _common_values(node: IntervalJoin, left: DataFrame, right: DataFrame) -> dict[str, tuple[str, str]] | None:
    """(own type, common type) of every value."""
    own = dict(zip(node.values_of("left"), types_of(left, node.left_values), strict=True))
    own |= zip(node.values_of("right"), types_of(right, node.right_values), strict=True)
    _check_periods(node, own, _compared(node))
    common = common_types(node, own)
    return None if common is None else {name: (kind, common[name]) for name, kind in own.items()}


def common_types(node: IntervalJoin, types: Mapping[str, str]) -> dict[str, str] | None:
    """The type in which each value is compared, by its name; values that are compared, even through a third one, share
    a type. None if some have none in common."""
    compared_types: dict[str, str] = {}
    for group in _components(types, [*_compared(node), *node.left_periods, *node.right_periods]):
        common: str | None = types[group[0]]
        for name in group:
            common = None if common is None else common_type(common, types[name])
        if common is None:
            return None
        compared_types |= dict.fromkeys(group, common)
    return compared_types


def _compared(node: IntervalJoin) -> list[tuple[str, str]]:
    return [(item.left, item.right) for terms in node.alternatives for item in terms]


def _check_periods(node: IntervalJoin, types: Mapping[str, str], links: Iterable[tuple[str, str]]) -> None:
    """The analyzer's checks of periods, with the real types. Raises AnalysisError."""
    periods = [*node.left_periods, *node.right_periods]
    ends = {name for period in periods for name in period}
    values = {**node.values_of("left"), **node.values_of("right")}
    compared = [link for link in links if ends.issuperset(link)]
    for group in _components(types, [*compared, *periods]):
        if ends.issuperset(group):
            spans = {name: values[name].span or node.place for name in group}
            check_period_types([PeriodEnd(types[name], spans[name]) for name in group], (), node.empty)


def _components(names: Iterable[str], links: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Groups of names that links connect, directly or not."""
    groups = {name: [name] for name in names}
    for a, b in links:
        if groups[a] is not groups[b]:
            groups[a] += groups[b]
            for name in groups[b]:
                groups[name] = groups[a]
    return list({id(group): group for group in groups.values()}.values())


def numeric_alternatives(
    node: IntervalJoin, names: Mapping[str, str], kinds: Mapping[str, str]
) -> tuple[tuple[Condition, ...], ...]:
    """The node's alternatives between columns, which `names` has by the names of the values, with shifts in the unit of
    the `kinds` of the values. Raises AnalysisError for a distance that does not fit them."""
    amounts = dict(node.amounts)
    place = node.place
    return tuple(
        tuple(_numeric(item, names, kinds[item.left], amounts, place) for item in terms) for terms in node.alternatives
    )


def _numeric(
    item: Condition, names: Mapping[str, str], kind: str, amounts: Mapping[str, Amount], place: Span | None
) -> Condition:
    """The condition between wire columns, with its shift in the unit of their type."""
    shift = item.shift
    if isinstance(shift, tuple):
        sign, name = shift
        amount = amounts[name]
        timed = kind in ("timestamp", "timestamp_ntz")
        if not (kind in _SHIFTED or kind.startswith("decimal(")) or (amount.interval != timed and kind != "date"):
            raise AnalysisError(
                f"a distance of {amount.sql()} does not fit values of type {kind}",
                condition="period-distance",
                span=amount.span or place,
                help="use an INTERVAL for times, and a number for numbers",
            )
        shift = sign * amount.units(kind)
    return Condition(names[item.left], item.operator, names[item.right], shift)


def _result_schema(node: IntervalJoin, left: DataFrame, right: DataFrame) -> StructType:
    """The output's fields; those of a side that may be missing are nullable."""
    from pyspark.sql.types import LongType, StructField, StructType

    fields = {}
    for frame, kinds in ((left, ("right", "full")), (right, ("left", "full"))):
        for item in frame.schema:
            nullable = item.nullable or node.kind in kinds
            fields[item.name] = StructField(item.name, item.dataType, nullable, item.metadata)
    kept: list[StructField] = [fields[column.spark_name] for side in node.passed_on for column in side]
    if node.count is not None:
        kept.append(StructField(node.count.spark_name, LongType(), False))
    return StructType(kept)


@dataclass(frozen=True)
class SplitResidual:
    """The terms that the operator tests, as one expression, and those that Spark tests after it."""

    operator: operators.TaskExpression | None = None
    spark: Expression | None = None


def split_residual(
    residual: Expression | None,
    types: Mapping[Column, str | None],
    ansi: bool,
    computed: Callable[[Expression], tuple[str, str] | None],
) -> SplitResidual:
    """Who tests what; arguments as of `OperatorExpressions`.

    A term that may raise an error is not tested before one that stands in front of it: that may keep it from being
    computed.
    """
    translator = OperatorExpressions(types, ScalarSettings(ansi), computed)
    ours: list[operators.TaskExpression] = []
    theirs: list[Expression] = []
    for term in conjuncts(residual):
        found = translator.condition(term)
        if found is None or (theirs and found.may_fail):
            theirs.append(term)
        else:
            ours.append(found)
    joined = None if not ours else ours[0] if len(ours) == 1 else operators.TaskAnd(tuple(ours))
    return SplitResidual(joined, conjunction(theirs))


def residual_line(node: IntervalJoin) -> str | None:
    """Where the residual is tested, for EXPLAIN, as far as planning knows the types; None without one."""
    if node.residual is None:
        return None
    types = {**node.left.dtypes, **node.right.dtypes}
    if any(types.get(column) is None for column in node.residual.references):
        return f"{node.residual}: on each candidate pair, by the operator or by Spark, as its columns' types allow"

    def computed(expression: Expression) -> tuple[str, str] | None:
        dtype = expression.result_type(types) or arithmetic_type(expression, types)
        return (str(expression), dtype or "string")

    # division and % may raise errors in ANSI mode, and are Spark's there
    split = split_residual(node.residual, types, True, computed)
    if split.spark is None:
        return f"{node.residual}: by the operator, on each candidate pair"
    if split.operator is None:
        return f"{node.residual}: by Spark, on each candidate pair"
    return f"{node.residual}: on each candidate pair, {split.spark} by Spark, the rest by the operator"
