"""What an exchange ships: the columns of each input by name, in types that Spark hands to Python.

Year-month intervals travel as their number of months, since Spark hands none to Python. A column of any of the types
INTERVAL YEAR, MONTH and YEAR TO MONTH is an int of months below all of them. The casts to months and back are exact for
every value (-178956970-8 to 178956970-7) and NULL, in ANSI mode and without it.

Arrow has no collations: on the wire a string with one is text like any other, whose bytes say nothing about which
strings are equal or which one is less. So a function over them may hand values on, and must not compare them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from sqlext_planner.errors import AnalysisError, Span, UnsupportedError
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.relational.physical_plan import quoted, spark_column
from sqlext_planner.spark.session import arrow_type
from sqlext_planner.spark.versions import from_arrow_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

    from sqlext_planner.relational.logical_plan import LogicalPlan


class WireColumns:
    """Names for the columns that an exchange ships: plain columns under their own, each expression once."""

    def __init__(self) -> None:
        self.computed: dict[Expression, str] = {}
        self.plain: dict[Column, None] = {}

    def name(self, expression: Expression) -> str:
        """The wire column that holds `expression`."""
        if isinstance(expression, Column):
            self.plain[expression] = None
            return expression.spark_name
        return self.computed.setdefault(expression, f"__sqlext_{len(self.computed)}")

    def texts(self) -> tuple[str, ...]:
        """The computed columns, as `name = text`."""
        return tuple(f"{name} = {expression.sql()}" for expression, name in self.computed.items())

    def select(self, frame: DataFrame, kept: Iterable[Column] = ()) -> DataFrame:
        """The frame's columns on the wire: those in `kept`, the plain ones, the computed ones."""
        plain = [quoted(column.spark_name) for column in dict.fromkeys((*kept, *self.plain))]
        computed = [f"{expression.sql()} AS {quoted(name)}" for expression, name in self.computed.items()]
        return frame.selectExpr(*plain, *computed)


def shippable(item: StructField, span: Span | None) -> pa.DataType:
    """The Arrow type of a column that is shipped, YEAR_MONTH for a year-month interval.

    Raises UnsupportedError, at `span`, if Spark cannot hand it to Python.
    """
    kind = YEAR_MONTH if is_year_month(item.dataType) else arrow_type(item.dataType)
    if kind is None:
        raise UnsupportedError(
            f"column '{item.name}' has the type {item.dataType.simpleString()}, which Spark cannot pass through Python",
            condition="unsupported-type",
            span=span,
            help="leave it out of the SELECT list, or cast it (for example to string) in a subquery",
        )
    return kind


def check_key(
    expression: Expression, kind: DataType, arrow: pa.DataType, place: Span | None = None, *, grouped: bool = False
) -> None:
    """PARTITION BY takes every type with an exact equality except float and double; GROUP BY (`grouped`) those too.

    `place` is that of an expression without a span. Raises AnalysisError, and UnsupportedError for a collation.
    """
    from sqlext_operators.columns.keys import is_key_type

    name, span = kind.simpleString(), expression.span or place
    clause, beside = ("GROUP BY", " beside a sqlext function") if grouped else ("PARTITION BY", "")
    if name in ("float", "double") and not grouped:
        raise AnalysisError(
            f"{clause} does not take {name}: {expression}",
            condition="key-type",
            span=span,
            help="cast it to decimal or bigint, so that equal keys are equal",
        )
    if "collate" in name.lower():
        raise UnsupportedError(
            f"{clause} does not take a string with a collation{beside}: {expression} is {name}",
            condition="key-type",
            span=span,
            help=f"in a subquery, {BY_BYTES}",
        )
    if arrow != YEAR_MONTH and not is_key_type(arrow):
        raise AnalysisError(
            f"{clause} does not take {name}{beside}: {expression}",
            condition="key-type",
            span=span,
            help=f"{'group by its' if grouped else 'use one of its'} fields, or cast it to string",
        )


def is_shippable(frame: DataFrame) -> bool:
    """Whether Spark hands all columns to Python."""
    return all(is_year_month(item.dataType) or arrow_type(item.dataType) is not None for item in frame.schema)


def types_of(frame: DataFrame, expressions: Sequence[Expression]) -> list[str]:
    """The types of expressions over a frame, as simple strings."""
    known = {item.name: item.dataType.simpleString() for item in frame.schema}
    if all(isinstance(item, Column) and item.spark_name in known for item in expressions):
        return [known[item.spark_name] for item in expressions if isinstance(item, Column)]
    columns = [spark_column(expression).alias(f"c{place}") for place, expression in enumerate(expressions)]
    return [item.dataType.simpleString() for item in frame.select(*columns).schema]


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns of a frame as Spark hands them over."""
    return pa.schema([(item.name, arrow_type(item.dataType)) for item in schema])


#: Represents the type where functions and keys are checked: Arrow's own interval, which no Spark type becomes.
YEAR_MONTH: pa.DataType = pa.month_day_nano_interval()


def is_year_month(kind: DataType) -> bool:
    """Whether a Spark type is a year-month interval (not one that holds some inside)."""
    from pyspark.sql.types import YearMonthIntervalType

    return isinstance(kind, YearMonthIntervalType)


def as_months(frame: DataFrame) -> DataFrame:
    """The frame with its year-month intervals as ints; without any, the frame itself."""
    return _cast(frame, frame.schema, lambda item, months: months.cast("int").alias(item.name))


def months_schema(schema: StructType) -> StructType:
    """The schema with ints for year-month intervals."""
    from pyspark.sql.types import IntegerType, StructField, StructType

    return StructType(
        [
            StructField(item.name, IntegerType(), item.nullable, item.metadata)
            if is_year_month(item.dataType)
            else item
            for item in schema
        ]
    )


def from_months(frame: DataFrame, schema: StructType) -> DataFrame:
    """A frame of `months_schema(schema)` with the columns of `schema`; without year-month intervals, itself."""
    return _cast(
        frame, schema, lambda item, months: months.cast(item.dataType).alias(item.name, metadata=item.metadata)
    )


def _cast(frame: DataFrame, schema: StructType, cast: Callable[[StructField, SparkColumn], SparkColumn]) -> DataFrame:
    """A frame with what `cast` makes of the columns that are year-month intervals in `schema`. It gets them as INTERVAL
    MONTH: an int cast to that counts months, one cast to INTERVAL YEAR years."""
    from pyspark.sql.functions import col
    from pyspark.sql.types import YearMonthIntervalType

    if not any(is_year_month(item.dataType) for item in schema):
        return frame
    months = YearMonthIntervalType(YearMonthIntervalType.MONTH, YearMonthIntervalType.MONTH)
    columns = [(item, col(quoted(item.name))) for item in schema]
    return frame.select(
        *(cast(item, column.cast(months)) if is_year_month(item.dataType) else column for item, column in columns)
    )


#: What to write instead, for help texts.
BY_BYTES = "write x COLLATE UTF8_BINARY, or lower(x) COLLATE UTF8_BINARY, which takes no notice of case"


class CollatedType(pa.ExtensionType):  # type: ignore[misc]
    """Represents a Spark type that is a string with a collation or holds one; `name` is its simple string.

    No type rule of a function that compares takes it, as it is neither text nor anything else that has an order.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(pa.null(), "sqlext.collated")

    def __arrow_ext_serialize__(self) -> bytes:
        return self.name.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> CollatedType:
        return cls(serialized.decode())

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name


def has_collation(kind: DataType) -> bool:
    """Whether a Spark type is a string with a collation other than UTF8_BINARY, or holds one."""
    return " collate " in kind.simpleString().lower()


def stand_in(kind: DataType, arrow: pa.DataType) -> pa.DataType:
    """The type that functions are checked with, for a column of a Spark type that travels as an Arrow type."""
    return CollatedType(kind.simpleString()) if has_collation(kind) else arrow


def result_of(result: pa.DataType, kinds: Mapping[pa.DataType, DataType]) -> DataType:
    """The Spark type of a function's result; `kinds` are the Spark types of the stand-ins among its arguments."""
    from pyspark.sql.types import ArrayType, StructField, StructType

    if (found := kinds.get(result)) is not None:
        return found
    if kinds and pa.types.is_list(result):
        return ArrayType(result_of(result.value_type, kinds))
    if kinds and pa.types.is_struct(result):
        return StructType([StructField(item.name, result_of(item.type, kinds)) for item in result])
    return from_arrow_type(result)


#: The size that Catalyst assumes for a string.
_TEXT_BYTES = 20


@dataclass(frozen=True)
class Size:
    """Bytes as Arrow data; `rows` is None where it is unknown."""

    bytes: int
    rows: int | None = None


def row_bytes(schema: StructType) -> int:
    """Estimated Arrow bytes of a row."""
    return sum(value_bytes(arrow_type(item.dataType)) for item in schema)


def value_bytes(kind: pa.DataType | None) -> int:
    """Estimated bytes of a value of an Arrow type, None for one that is not known."""
    try:
        return _TEXT_BYTES if kind is None else max(1, int(kind.bit_width) // 8)
    except ValueError:  # a type without a width
        return _TEXT_BYTES


def dtype_bytes(dtype: str | None) -> int:
    """Estimated bytes of a value of a Spark type, None for one that is not known."""
    from sqlext_planner.expressions.types import to_arrow

    try:
        return value_bytes(None if dtype is None else to_arrow(dtype))
    except UnsupportedError:
        return value_bytes(None)


def plan_row_bytes(plan: LogicalPlan) -> int:
    """Estimated Arrow bytes of a row of a plan's output."""
    return sum(dtype_bytes(item.dtype) for item in plan.output)


def row_by_row(size: Size | None, source: StructType, result: StructType) -> Size | None:
    """The size of an operator's result that has one row for each row of `source`.

    Measured, FEBench's Q3 at 1M rows: 75 window results for each row of 3 columns are ten times its bytes. When they
    were estimated at the row's own bytes, the next exchange had 8 partitions instead of 13 and went to disk.
    """
    if size is None:
        return None
    if size.rows is not None:
        return Size(size.rows * row_bytes(result), size.rows)
    return Size(size.bytes * row_bytes(result) // max(1, row_bytes(source)))
