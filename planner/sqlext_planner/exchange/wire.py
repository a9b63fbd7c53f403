"""What an exchange ships: the columns of each input by name, in types that Spark hands to Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sqlext_planner.errors import AnalysisError, Span, UnsupportedError
from sqlext_planner.exchange.collations import BY_BYTES
from sqlext_planner.exchange.year_month import YEAR_MONTH, is_year_month
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.relational.physical_plan import quoted, spark_column
from sqlext_planner.spark.session import arrow_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField, StructType


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


def check_key(expression: Expression, kind: DataType, arrow: pa.DataType) -> None:
    """PARTITION BY takes every type with an exact equality except float and double. Raises AnalysisError."""
    from sqlext_operators.columns.keys import is_key_type

    name = kind.simpleString()
    if name in ("float", "double"):
        raise AnalysisError(
            f"PARTITION BY does not take {name}: {expression}",
            condition="key-type",
            span=expression.span,
            help="cast it to decimal or bigint, so that equal keys are equal",
        )
    if "collate" in name.lower():
        raise UnsupportedError(
            f"PARTITION BY does not take a string with a collation: {expression} is {name}",
            condition="key-type",
            span=expression.span,
            help=f"in a subquery, {BY_BYTES}",
        )
    if arrow != YEAR_MONTH and not is_key_type(arrow):
        raise AnalysisError(
            f"PARTITION BY does not take {name}: {expression}",
            condition="key-type",
            span=expression.span,
            help="use one of its fields, or cast it to string",
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
    import pyarrow as pa

    return pa.schema([(item.name, arrow_type(item.dataType)) for item in schema])
