"""What a window union ships: the columns of each input, checked against the DataFrames' real types.

Which types a window union takes, with errors that point into the statement.

The rules are those of docs/reference/windows.md, sections 1 and 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlext_operators.window.functions import FunctionTypeError, check_filter, lookup
from sqlext_operators.window.functions.types import is_scalar
from sqlext_operators.window.spec import Call, Window, WindowUnionSpec

from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, InternalError, Span, UnsupportedError
from sqlext_planner.exchange.arrow_scan import ArrowScanExec
from sqlext_planner.exchange.driver import memory_bytes
from sqlext_planner.exchange.wire import (
    BY_BYTES,
    YEAR_MONTH,
    WireColumns,
    as_months,
    check_key,
    has_collation,
    result_of,
    shippable,
    stand_in,
)
from sqlext_planner.expressions.arithmetic import decimal_shape
from sqlext_planner.expressions.nodes import Column, Expression, Literal
from sqlext_planner.expressions.typed import is_null, plain_number
from sqlext_planner.expressions.types import WINDOW_ORDER_TYPES, union_type
from sqlext_planner.relational.nodes import Filter, Limit, Project, Sort, SortKey, SubqueryAlias
from sqlext_planner.relational.physical_plan import PhysicalPlan, quoted
from sqlext_planner.relational.spark_exec import SparkExec
from sqlext_planner.window.nodes import WindowCall, WindowUnion

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField, StructType
    from sqlext_operators.sequences.sequence import FurtherKey
    from sqlext_operators.window.operator import WindowOperatorSpec

    from sqlext_planner.window.execution import WindowUnionExec


@dataclass(frozen=True)
class WindowInputs:
    """A window union ready to run: `frames` are FROM (first) and the unions with wire columns only.

    `computed` are the expressions among the wire columns. Year-month intervals are months in the frames, and in what
    the workers return; `result_schema` has them.
    """

    frames: tuple[DataFrame, ...]
    keys: tuple[str, ...]
    spec: WindowUnionSpec
    tie_order: str | None
    result_schema: StructType
    computed: tuple[str, ...] = ()
    further: tuple[FurtherKey, ...] = ()

    @classmethod
    def of(cls, planned: WindowUnionExec, frames: Sequence[DataFrame]) -> WindowInputs:
        """Check all types and choose what is shipped.

        Raises AnalysisError or UnsupportedError, which point at the text.
        """
        from sqlext_operators.sequences.sequence import FurtherKey

        node = planned.node
        wire = WireColumns()
        keys = tuple(wire.name(expression) for expression in node.partition_by)
        is_ordered = node.order_by is not None and not isinstance(node.order_by, Literal)  # a constant orders nothing
        order = wire.name(node.order_by) if node.order_by is not None and is_ordered else None
        further = tuple((key, wire.name(key.expression)) for key in node.further)
        calls = {call: call.shipped(wire.name) for group in node.windows for call in group.calls}
        payload = tuple(item.column for item in node.payload_fields)
        source = frames[0]
        names = [column.spark_name for column in node.source.output_columns]
        unions = [
            union_columns(planned.inputs[0], source, plan, frame, number, names, union.span)
            for number, (union, plan, frame) in enumerate(zip(node.unions, planned.inputs[1:], frames[1:], strict=True))
        ]
        tie = node.tie_order
        kept = payload if tie is None else (*payload, tie)
        shipped = (wire.select(source, kept), *(wire.select(union) for union in unions))
        types = {item.name: item.dataType for item in shipped[0].schema}
        places = _places(calls)
        kinds = {item.name: shippable(item, places.get(item.name, places.get(None))) for item in shipped[0].schema}
        for expression, name in zip(node.partition_by, keys, strict=True):
            check_key(expression, types[name], kinds[name])
        if order is not None:
            check_order(node.order_by, types[order])
        for key, name in further:
            check_further(key, types[name], kinds[name])
        spec = WindowUnionSpec(
            keys,
            order,
            tuple(column.spark_name for column in payload),
            wire_windows(node, calls, types[order].simpleString() if order is not None else None),
            time_zone=str(source.sparkSession.conf.get("spark.sql.session.timeZone")),
        )
        return cls(
            tuple(map(as_months, shipped)),
            keys,
            spec,
            tie.spark_name if tie is not None else None,
            _result_schema(shipped[0].schema, payload, calls, kinds),
            wire.texts(),
            tuple(FurtherKey(name, key.descending, key.nulls_first) for key, name in further),
        )

    def operator(self, config: Config, *, ansi: bool) -> WindowOperatorSpec:
        """What a worker does with a partition."""
        from sqlext_operators.sequences.sequence import SequenceSpec
        from sqlext_operators.window.operator import WindowOperatorSpec

        args = dict.fromkeys(arg for window in self.spec.windows for call in window.calls for arg in call.args)
        sequence = SequenceSpec(
            keys=self.spec.keys,
            order=self.spec.order,
            args=tuple(args),
            payload=self.spec.payload,
            tie_order=self.tie_order,
            memory_bytes=memory_bytes(config),
            piece_rows=config.max_piece_rows,
            further=self.further,
        )
        return WindowOperatorSpec(sequence, replace(self.spec, ansi=ansi), len(self.frames), config.output_batch_rows)


def wire_windows(node: WindowUnion, calls: dict[WindowCall, Call], order_type: str | None) -> tuple[Window, ...]:
    """The windows of a node; `order_type` is the Spark type of its order, None without one."""
    return tuple(
        Window(
            frame=group.frame.resolve(order_type),
            sources=tuple(number + 1 for number in group.sources),
            calls=tuple(calls[call] for call in group.calls),
        )
        for group in node.windows
    )


def state_parts(spec: WindowUnionSpec, computed: Sequence[str], *, ansi: bool) -> dict[str, str]:
    """What the state of windows on streams depends on besides the columns, by names that a user knows; `computed` are
    the expressions among the columns of the wire, as `name = text`."""
    return {
        "operator": "window union",
        "windows": repr(spec.windows),
        "expressions": "; ".join(computed),
        "keys and order": f"{', '.join(spec.keys)}; {spec.order}",
        "time zone": spec.time_zone,
        "spark.sql.ansi.enabled": str(ansi).lower(),
    }


def _places(calls: dict[WindowCall, Call]) -> dict[str | None, Span | None]:
    """Where the statement names wire columns; under None, the place of the first call."""
    places: dict[str | None, Span | None] = {None: next((call.span for call in calls if call.span is not None), None)}
    for logical, call in calls.items():
        for arg, name in zip(logical.args, call.args, strict=True):
            places.setdefault(name, arg.span or logical.span)
    return places


def _result_schema(
    schema: StructType, payload: Sequence[Column], calls: dict[WindowCall, Call], kinds: dict[str, pa.DataType]
) -> StructType:
    """The payload's fields, then a nullable one for each call."""
    from pyspark.sql.types import StructField, StructType

    known: dict[str, StructField] = {item.name: item for item in schema}
    types = {name: item.dataType for name, item in known.items()}
    results = [StructField(call.output, result_type(logical, call, kinds, types)) for logical, call in calls.items()]
    return StructType([*(known[column.spark_name] for column in payload), *results])


_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def check_order(expression: Expression | None, kind: DataType) -> None:
    """ORDER BY takes integers, dates and timestamps. Raises AnalysisError."""
    if expression is not None and kind.simpleString() not in WINDOW_ORDER_TYPES:
        raise AnalysisError(
            f"ORDER BY of a window does not take {kind.simpleString()}: {expression}",
            condition="order-type",
            span=expression.span,
            help="order by a smallint, int, bigint, date or timestamp column; cast it in a subquery if necessary",
        )


def check_further(key: SortKey, kind: DataType, arrow: pa.DataType) -> None:
    """Further keys of ORDER BY are of any type with an order, which is Spark's.

    Raises AnalysisError for another type, UnsupportedError for a collation.
    """
    name = kind.simpleString()
    if "collate" in name.lower():
        raise UnsupportedError(
            f"ORDER BY of a window does not take a string with a collation: {key.expression} is {name}",
            condition="order-type",
            span=key.span or key.expression.span,
            help="order by lower(...) or COLLATE UTF8_BINARY",
        )
    if arrow != YEAR_MONTH and not is_scalar(arrow):
        raise AnalysisError(
            f"ORDER BY of a window does not take {name}: {key.expression}",
            condition="order-type",
            span=key.span or key.expression.span,
            help="order by its fields, or cast it to string",
        )


def result_type(logical: WindowCall, call: Call, kinds: dict[str, pa.DataType], types: dict[str, DataType]) -> DataType:
    """The Spark type of a call's result, from the Arrow and the Spark types of the wire columns.

    Raises AnalysisError if the function does not take its arguments, UnsupportedError if it puts a year-month
    interval into a list, InternalError if there is no such function.
    """
    function = lookup(call.function)
    if function is None:
        raise InternalError(f"there is no window function {call.function}")
    given = {name: stand_in(types[name], kinds[name]) for name in call.args}
    try:
        taken = [given[name] for name in call.args]
        if call.filtered:
            check_filter(taken.pop())
        result = function.result_type(taken, openmldb=call.openmldb)
    except FunctionTypeError as error:
        span, help = logical.span, error.help
        if error.argument is not None and error.argument < len(logical.args):
            span = logical.args[error.argument].span or span
        if any(has_collation(types[name]) for name in call.args):
            help = BY_BYTES
        raise AnalysisError(error.message, condition="function-arguments", span=span, help=help) from None
    intervals = [name for name in call.args if kinds[name] == YEAR_MONTH]
    if result == YEAR_MONTH:
        return types[intervals[0]]
    if intervals and pa.types.is_nested(result):
        raise UnsupportedError(
            f"a function over windows does not take {types[intervals[0]].simpleString()}",
            condition="function-arguments",
            span=logical.span,
            help="cast it to int (months) in a subquery",
        )
    return result_of(result, {given[name]: types[name] for name in call.args if has_collation(types[name])})


def union_columns(
    source: PhysicalPlan,
    source_frame: DataFrame,
    union: PhysicalPlan,
    frame: DataFrame,
    number: int,
    names: Sequence[str],
    span: Span | None,
) -> DataFrame:
    """The union's rows with FROM's column names and types, by position.

    The union must have FROM's columns by number, order, name (in any case) and type. A column of a type that Spark's
    UNION would turn into FROM's is cast; a bare literal takes FROM's type where that loses nothing; columns that FROM
    has got from an earlier window are NULL. Raises AnalysisError.
    """
    from pyspark.sql.functions import col, lit

    ansi = str(frame.sparkSession.conf.get("spark.sql.ansi.enabled")).lower() == "true"
    wanted = source_frame.schema.fields
    columns = []
    for place, (item, name) in enumerate(zip(wanted, names, strict=True)):
        if place >= len(union.output):
            columns.append(lit(None).cast(item.dataType).alias(name))
            continue
        ours, theirs = source.output_columns[place], union.output_columns[place]
        kind = frame.schema.fields[place].dataType
        column = col(quoted(frame.columns[place]))
        given, needed = kind.simpleString(), item.dataType.simpleString()
        same, widens = given == needed, union_type(given, needed, ansi=ansi) == needed
        if not same and (widens or _fits(_constant_of(union, theirs), item.dataType)):
            column, same = column.cast(item.dataType), True
        if not same or ours.name.lower() != theirs.name.lower():
            raise AnalysisError(
                f"UNION source {number + 1} has {theirs.name} {given} as column {place + 1}, "
                f"where FROM has {ours.name} {needed}",
                condition="union-columns",
                span=span,
                help="a UNION source must have FROM's columns: same number, order, names and types; "
                "use a subquery to rename, cast, fill or drop columns",
            )
        columns.append(column.alias(name))
    return frame.select(*columns)


def _constant_of(plan: PhysicalPlan, column: Column) -> Expression | None:
    """The constant that a column of the plan holds in every row; None if it is not a constant."""
    match plan:
        case SparkExec(SubqueryAlias(), (child,)):
            return _constant_of(child, child.output_columns[plan.output_columns.index(column)])
        case SparkExec(Project(items), (child,)):
            expression = next(item.expression for item in items if item.column == column)
            if isinstance(expression, Column):
                return _constant_of(child, expression)
            return None if expression.references else expression
        case SparkExec(Filter() | Sort() | Limit(), (child,)) | ArrowScanExec(child):
            return _constant_of(child, column)
    return None


def _fits(constant: Expression | None, kind: DataType) -> bool:
    """Whether a constant (NULL or a plain number) becomes a value of the type without losing anything."""
    if constant is None:
        return False
    if is_null(constant):
        return True
    value, name = plain_number(constant), kind.simpleString()
    if value is None:
        return False
    if name in ("float", "double"):
        return True  # the user's 0.1 is the double nearest to it
    if name in _INTEGER_BITS:
        limit = 1 << (_INTEGER_BITS[name] - 1)
        return value == value.to_integral_value() and -limit <= value < limit
    if (shape := decimal_shape(name)) is not None:
        precision, scale = shape
        return value == round(value, scale) and abs(value) < Decimal(10) ** (precision - scale)
    return False
