"""The operands of period predicates: PERIOD(a, b), (a, b), a struct of two ends, or a point."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.expressions.arithmetic import INTEGERS, decimal_shape
from sqlext_planner.expressions.nodes import RANDOM, Expression, SparkExpr
from sqlext_planner.expressions.types import struct_fields
from sqlext_planner.periods.predicates import ClosedEnd, OpenEnd
from sqlext_planner.periods.types import PeriodEnd
from sqlext_planner.relational.physical_plan import quoted
from sqlglot import exp

from sqlext.analyzer.items import unwrapped
from sqlext.syntax.nodes import PeriodOperand
from sqlext.syntax.spans import mistake, span_of, unsupported

if TYPE_CHECKING:
    from sqlext.analyzer.expressions import ExpressionBuilder

_wrong_end = partial(mistake, "period-ends")

_NAN = re.compile(
    r"(cast\s*\(\s*'nan'\s+as\s+(double|float)\s*\)|(double|float)\s*(\(\s*'nan'\s*\)|'nan'))", re.IGNORECASE
)

#: The largest value of a type, which means "forever".
GREATEST = {
    "tinyint": "127Y",
    "smallint": "32767S",
    "int": "2147483647",
    "bigint": "9223372036854775807L",
    "float": "float('Infinity')",
    "double": "double('Infinity')",
    "date": "date_from_unix_date(2147483647)",
    "timestamp": "timestamp_micros(9223372036854775807L)",
    "timestamp_ntz": "TIMESTAMP_NTZ '+294247-01-10 04:00:54.775807'",
}


@dataclass(frozen=True)
class End:
    """An end as written; `open`: NULL means forever, on streams that the row that closes the period follows; `by` are
    the columns that such a row shares."""

    expression: Expression
    type: PeriodEnd
    open: bool = False
    by: tuple[Expression, ...] = ()

    def cast(self, dtype: str | None) -> Expression:
        """The end as a value of the common type, if that is known. Raises AnalysisError for OPEN if it is not."""
        if dtype is None and self.open:
            raise _wrong_end(
                self.type.span,
                "OPEN needs the types of all ends, and one of them is unknown here",
                "CAST(... AS its type)",
            )
        if dtype is None:
            return self.expression
        value = self.expression
        if self.type.dtype != dtype:
            value = SparkExpr(("CAST(", value, f" AS {dtype.upper()})"), dtype=dtype, span=value.span)
        if not self.open:
            return value
        return OpenEnd(value, greatest(dtype), self.by, dtype=dtype, span=value.span or self.type.span)


@dataclass(frozen=True)
class Operand:
    """A period, or a point if `end` is None. `names` are those of the ends where they are columns or fields."""

    start: End
    end: End | None
    names: tuple[str, str] = ("start", "end")

    @property
    def ends(self) -> tuple[End, ...]:
        return (self.start,) if self.end is None else (self.start, self.end)


def greatest(dtype: str) -> str:
    """Spark SQL text of the largest value of an end's type."""
    if dtype in GREATEST:
        return GREATEST[dtype]
    digits, scale = decimal_shape(dtype) or (0, 0)
    number = "9" * (digits - scale) + ("." + "9" * scale if scale else "")
    return f"CAST('{number}' AS {dtype.upper()})"


def operand(builder: ExpressionBuilder, node: exp.Expr) -> Operand:
    """A written period or a struct as a period; anything else as a point. Raises AnalysisError."""
    plain = unwrapped(node)
    match plain:
        case PeriodOperand():
            return _written(
                builder, plain, closed=bool(plain.args.get("closed")), open_end=bool(plain.args.get("open"))
            )
        case exp.Tuple(expressions=[start, end]):
            return Operand(end_of(builder, start), end_of(builder, end), _names(start, end))
        case exp.Tuple():
            raise _wrong_count(plain, "a period in parentheses", len(plain.expressions))
        case exp.Anonymous() if plain.name.upper() == "PERIOD":
            if len(plain.expressions) == 1 and (builder.dtype(plain.expressions[0]) or "").startswith("struct<"):
                return operand(builder, plain.expressions[0])
            if len(plain.expressions) != 2:
                raise _wrong_count(plain, "PERIOD", len(plain.expressions))
            start, end = plain.expressions
            return Operand(end_of(builder, start), end_of(builder, end), _names(start, end))
    dtype = builder.dtype(plain)
    if dtype is None and isinstance(plain, exp.Subquery):
        dtype = builder.build(plain).result_type({})
    if dtype is not None and dtype.startswith("struct<"):
        return _struct(builder, plain, dtype)
    return Operand(end_of(builder, plain), None)


def end_of(builder: ExpressionBuilder, node: exp.Expr, *, closed: bool = False, open_end: bool = False) -> End:
    """One end of a period, or a point."""
    span = span_of(node)
    if _NAN.fullmatch(builder.context.slice(span).strip()):
        raise _wrong_end(span, "an end of a period cannot be NaN", "write double('Infinity') for no end")
    if isinstance(node, exp.Interval):
        raise _wrong_end(
            span,
            "an end of a period cannot be an INTERVAL",
            "write the end itself: PERIOD(ts, ts + INTERVAL 5 MINUTES)",
        )
    dtype = builder.dtype(node)
    expression = builder.build(node)
    _refuse_unrepeatable(expression, span)
    if (closed or open_end) and dtype is None:
        word = "CLOSED" if closed else "OPEN"
        raise _wrong_end(span, f"{word} needs the type of the end, which is unknown here", "CAST(... AS its type)")
    if closed and dtype != "void":
        expression, dtype = _after(expression, str(dtype), span, open_end=open_end)
    return End(expression, PeriodEnd(dtype, span), open_end)


def _written(builder: ExpressionBuilder, node: PeriodOperand, *, closed: bool, open_end: bool) -> Operand:
    end = end_of(builder, node.args["expression"], closed=closed, open_end=open_end)
    tables = {column.relation for column in end.expression.references}
    own = [item for item in builder.scope.columns if item.column.relation in tables]
    inside = replace(builder, scope=replace(builder.scope, columns=tuple(own))) if own else builder
    nodes = node.args.get("by") or ()
    is_bare = (isinstance(item, exp.Column) and len(item.parts) == 1 for item in nodes)  # named without its table
    by = tuple((inside if bare else builder).build(item) for item, bare in zip(nodes, is_bare, strict=True))
    for item, place in zip(by, nodes, strict=True):
        _refuse_unrepeatable(item, span_of(place))
        if tables and not {column.relation for column in item.references} <= tables:
            raise _wrong_end(
                place,
                "BY takes columns of the period's own table",
                "name the column that tells its periods apart: PERIOD(a.ts, a.te OPEN BY a.id)",
            )
    return Operand(end_of(builder, node.this), replace(end, by=by), _names(node.this, node.args["expression"]))


def _after(end: Expression, dtype: str, span: Span, *, open_end: bool) -> tuple[Expression, str]:
    """The value after a closed end, and its type: only whole numbers and days have one."""
    if dtype in ("date", "bigint"):
        return ClosedEnd(end, dtype, open_end, span=span), dtype
    if dtype in INTEGERS:
        return SparkExpr(("CAST(", end, " AS BIGINT) + 1"), dtype="bigint", span=span), "bigint"
    raise _wrong_end(
        span,
        f"PERIOD CLOSED does not take ends of type {dtype}, which have no next value",
        "write PERIOD(start, end) with an end that is no longer part of the period, or cast both ends to DATE",
    )


def _struct(builder: ExpressionBuilder, node: exp.Expr, dtype: str) -> Operand:
    """A column of a struct of two fields: the start, the end."""
    span = span_of(node)
    fields = struct_fields(dtype)
    if len(fields) != 2:
        raise _wrong_end(
            span,
            f"a struct of {len(fields)} field{'' if len(fields) == 1 else 's'} is not a period",
            "a period is a struct of two fields of the same type (start, end); or write PERIOD(x.a, x.b)",
        )
    base = builder.build(node)
    _refuse_unrepeatable(base, span)
    start, end = (_field(base, name, kind, span) for name, kind in fields)
    return Operand(start, end, (fields[0][0], fields[1][0]))


def _names(*ends: exp.Expr) -> tuple[str, str]:
    """The names of a written period's ends."""
    start, end = (
        item.name if isinstance(item, exp.Column) else name for item, name in zip(ends, ("start", "end"), strict=True)
    )
    return start, end


def _field(base: Expression, name: str, dtype: str, span: Span) -> End:
    written = name if name.isidentifier() else quoted(name)
    return End(SparkExpr((base, f".{written}"), dtype=dtype, span=span), PeriodEnd(dtype, span))


def _refuse_unrepeatable(expression: Expression, span: Span) -> None:
    """Raises UnsupportedError for rand() and the like: the text of an end is read more than once."""
    if expression.traits & RANDOM:
        raise unsupported(
            "period-ends",
            span,
            "an end of a period cannot be an expression that gives a new value each time",
            "compute it in a subquery of FROM, and use its column",
        )


def _wrong_count(node: exp.Expr, what: str, count: int) -> AnalysisError:
    return _wrong_end(node, f"{what} takes two ends, not {count}", "write PERIOD(start, end)")
