"""Which types a window union takes, with errors that point into the statement.

The rules are those of docs/reference/windows.md, sections 1 and 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlext_operators.window.spec import Call

from sqlext_planner.errors import AnalysisError, InternalError, Span, UnsupportedError
from sqlext_planner.exchange.arrow_scan import ArrowScanExec
from sqlext_planner.exchange.collations import BY_BYTES, has_collation, result_of, stand_in
from sqlext_planner.exchange.year_month import YEAR_MONTH
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.expressions.numbers import decimal_shape
from sqlext_planner.expressions.typed import is_null, plain_number
from sqlext_planner.expressions.types import WINDOW_ORDER_TYPES, union_type
from sqlext_planner.relational.nodes import Filter, Limit, Project, Sort, SortKey, SubqueryAlias
from sqlext_planner.relational.physical_plan import PhysicalPlan, quoted
from sqlext_planner.relational.spark_exec import SparkExec
from sqlext_planner.window.nodes import WindowCall

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


def check_order(expression: Expression | None, kind: DataType) -> None:
    """ORDER BY takes integers, dates and timestamps. Raises AnalysisError."""
    if expression is not None and kind.simpleString() not in WINDOW_ORDER_TYPES:
        raise AnalysisError(
            f"ORDER BY of a window union does not take {kind.simpleString()}: {expression}",
            condition="order-type",
            span=expression.span,
            help="order by a smallint, int, bigint, date or timestamp column; cast it in a subquery if necessary",
        )


def check_further(key: SortKey, kind: DataType, arrow: pa.DataType) -> None:
    """Further keys of ORDER BY are of any type with an order, which is Spark's.

    Raises AnalysisError for another type, UnsupportedError for a collation.
    """
    from sqlext_operators.window.functions.types import is_scalar

    name = kind.simpleString()
    if "collate" in name.lower():
        raise UnsupportedError(
            f"ORDER BY of a window union does not take a string with a collation: {key.expression} is {name}",
            condition="order-type",
            span=key.span or key.expression.span,
            help="order by lower(...) or COLLATE UTF8_BINARY",
        )
    if arrow != YEAR_MONTH and not is_scalar(arrow):
        raise AnalysisError(
            f"ORDER BY of a window union does not take {name}: {key.expression}",
            condition="order-type",
            span=key.span or key.expression.span,
            help="order by its fields, or cast it to string",
        )


def result_type(logical: WindowCall, call: Call, kinds: dict[str, pa.DataType], types: dict[str, DataType]) -> DataType:
    """The Spark type of a call's result, from the Arrow and the Spark types of the wire columns.

    Raises AnalysisError if the function does not take its arguments, UnsupportedError if it puts a year-month
    interval into a list, InternalError if there is no such function.
    """
    from sqlext_operators.window.functions import FunctionTypeError, check_filter, lookup

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

    wanted = source_frame.schema.fields
    columns = []
    for place, (item, name) in enumerate(zip(wanted, names, strict=True)):
        if place >= len(union.output):
            columns.append(lit(None).cast(item.dataType).alias(name))
            continue
        ours, theirs = source.output_columns[place], union.output_columns[place]
        kind = frame.schema.fields[place].dataType
        column = col(quoted(frame.columns[place]))
        same = kind.simpleString() == item.dataType.simpleString()
        if not same and (_widens(kind, item.dataType, frame) or _fits(_constant(union, theirs), item.dataType)):
            column, same = column.cast(item.dataType), True
        if not same or ours.name.lower() != theirs.name.lower():
            raise AnalysisError(
                f"UNION source {number + 1} has {theirs.name} {kind.simpleString()} as column {place + 1}, "
                f"where FROM has {ours.name} {item.dataType.simpleString()}",
                condition="union-columns",
                span=span,
                help="a UNION source must have FROM's columns: same number, order, names and types; "
                "use a subquery to rename, cast, fill or drop columns",
            )
        columns.append(column.alias(name))
    return frame.select(*columns)


def _widens(kind: DataType, wanted: DataType, frame: DataFrame) -> bool:
    """Whether Spark's UNION of the two types has the second."""
    ansi = str(frame.sparkSession.conf.get("spark.sql.ansi.enabled")).lower() == "true"
    return union_type(kind.simpleString(), wanted.simpleString(), ansi=ansi) == wanted.simpleString()


def _constant(plan: PhysicalPlan, column: Column) -> Expression | None:
    """The constant that a column of the plan holds in every row; None if it is not a constant."""
    match plan:
        case SparkExec(SubqueryAlias(), (child,)):
            return _constant(child, child.output_columns[plan.output_columns.index(column)])
        case SparkExec(Project(items), (child,)):
            expression = next(item.expression for item in items if item.column == column)
            if isinstance(expression, Column):
                return _constant(child, expression)
            return None if expression.references else expression
        case SparkExec(Filter() | Sort() | Limit(), (child,)) | ArrowScanExec(child):
            return _constant(child, column)
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
