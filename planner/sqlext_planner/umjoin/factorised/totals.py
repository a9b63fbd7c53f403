"""Partial aggregates of one input, multiplied by numbers of rows of the others.

Numbers of rows and sums of whole numbers and decimals are decimals of 38 digits, which measured the same as bigint
(500,000 keys, products and sums: 3.2 s against 3.1 s). Everything that could overflow is checked, because without ANSI
mode Spark gives NULL for it, which the next sum would skip: `raise_error` fails the query in both modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlext_planner.errors import Span, raise_error
from sqlext_planner.expressions.arithmetic import FLOATS, INTEGERS, SMALL_INTEGERS, decimal_shape
from sqlext_planner.expressions.nodes import Expression, SparkExpr
from sqlext_planner.umjoin.factorised.classes import NotFactorisedError

#: The type of a number of rows.
ROWS_TYPE = "decimal(38,0)"
_ONE = "CAST(1 AS DECIMAL(38,0))"
#: Digits after the point that Spark's product of a decimal with a number of rows keeps in every setting.
_MOST_SCALE = 6


@dataclass(frozen=True)
class PartialAggregate:
    """A sum, count, minimum or maximum of `argument` over rows of input `owner`.

    `dtype` is the argument's type. `absent` is the argument over a row of NULLs, if that is not NULL: the value of a
    row without a match in a left input.
    """

    kind: Literal["count", "sum", "min", "max"]
    argument: Expression
    owner: int
    dtype: str | None
    absent: Expression | None = None

    @property
    def type(self) -> str | None:
        """The type of the partial result."""
        if self.kind in ("min", "max"):
            return self.dtype
        if self.kind == "count":
            return ROWS_TYPE
        if self.dtype in FLOATS:
            return "double"
        shape = decimal_shape(self.dtype)
        return ROWS_TYPE if shape is None else f"decimal(38,{shape[1]})"

    def check(self) -> None:
        """Raises NotFactorisedError for a sum that cannot be multiplied without loss."""
        if self.kind != "sum" or self.dtype in (*INTEGERS, *FLOATS):
            return
        shape = decimal_shape(self.dtype)
        if shape is None:
            found = "of an unknown type" if self.dtype is None else self.dtype
            raise NotFactorisedError(f"sum({self.argument}): the argument is {found}")
        if shape[1] > _MOST_SCALE:
            raise NotFactorisedError(f"sum({self.argument}): {self.dtype} times a number of rows may lose digits")

    def of_rows(self) -> Expression:
        """The partial result of rows of the input."""
        value = self.argument
        if self.kind in ("min", "max"):
            return _expr(self.type, f"{self.kind}(", value, ")")
        if self.kind == "count":
            return _expr(self.type, "CAST(count(", value, ") AS DECIMAL(38,0))")
        if self.dtype in FLOATS:
            return _expr(self.type, "sum(", value, ")")
        if self.dtype == "bigint":  # the sum of one key may be beyond bigint where the sum of all is not
            return _known(self.type, value, ("sum(CAST(", value, " AS DECIMAL(28,0)))"))
        adding = "try_sum" if self.dtype in SMALL_INTEGERS else "sum"
        return _known(self.type, value, (f"CAST({adding}(", value, f") AS {str(self.type).upper()})"))

    def of_row(self) -> Expression:
        """The partial result of one row of the input."""
        value = self.argument
        if self.kind in ("min", "max"):
            return value
        if self.kind == "count":
            return _expr(self.type, "CAST(CASE WHEN ", value, " IS NOT NULL THEN 1 ELSE 0 END AS DECIMAL(38,0))")
        return _expr(self.type, "CAST(", value, f" AS {str(self.type).upper()})")

    def of_nothing(self) -> Expression | None:
        """The partial result of a row without a match in the left input; None for NULL."""
        if self.absent is None:
            return _expr(self.type, "CAST(0 AS DECIMAL(38,0))") if self.kind == "count" else None
        return replace(self, argument=self.absent).of_row()

    def times(self, value: Expression, counts: Sequence[Expression]) -> Expression:
        """The partial result of rows that stand for as many rows as the product of `counts`."""
        if self.kind in ("min", "max") or not counts:
            return value
        if self.type == "double":
            doubles: list[str | Expression] = [value]
            for count in counts:
                doubles += [" * CAST(", count, " AS DOUBLE)"]
            return _expr(self.type, *doubles)
        product = product_of((value, *counts), self.type)
        return (
            product
            if self.kind == "count"
            else _expr(self.type, "CASE WHEN ", value, " IS NOT NULL THEN ", product, " END")
        )

    def merged(self, value: Expression) -> Expression:
        """The partial result of a group of one or more partial results."""
        if self.kind in ("min", "max"):
            return _expr(self.type, f"{self.kind}(", value, ")")
        if self.kind == "count":
            return sum_of_counts(value)
        return _expr("double", "sum(", value, ")") if self.type == "double" else _sum(self.type, value)

    def result(self, value: Expression) -> SparkExpr:
        """The result of Spark's own call, from all partial results; there may be none."""
        if self.kind == "count":
            return count_of(value, "count")
        if self.kind in ("min", "max") or self.type == "double":
            merged = self.merged(value)
            return merged if isinstance(merged, SparkExpr) else SparkExpr((merged,))
        shape = decimal_shape(self.dtype)
        if shape is None:
            return _known(
                "bigint", value, ("try_cast(sum(", value, ") AS BIGINT)"), "bigint overflow in sum", self.argument.span
            )
        total = f"decimal({min(38, shape[0] + 10)},{shape[1]})"
        return _expr(total, "CAST(sum(", value, f") AS {total.upper()})")


def mean(total: PartialAggregate, value: Expression, counts: Expression) -> SparkExpr:
    """avg() of numbers, a double in Spark: whole numbers are added up exactly, and rounded once."""
    added = total.merged(value)
    count = _sum(ROWS_TYPE, counts)
    return _expr("double", "CAST(", added, " AS DOUBLE) / nullif(CAST(", count, " AS DOUBLE), 0D)")


def rows() -> Expression:
    """The number of rows of a group of the input."""
    return _expr(ROWS_TYPE, "CAST(count(*) AS DECIMAL(38,0))")


def product_of(factors: Sequence[Expression], dtype: str | None = ROWS_TYPE) -> Expression:
    """The product of decimals that are not NULL; fails where it has more than 38 digits."""
    if len(factors) == 1:
        return factors[0]
    parts: list[str | Expression] = ["coalesce("]
    for place, factor in enumerate(factors):
        parts += [" * ", factor] if place else [factor]
    return _expr(dtype, *parts, f", {_failure()})")


def sum_of_counts(value: Expression) -> Expression:
    """The sum over a group, which is never empty, of numbers that are not NULL."""
    return _expr(ROWS_TYPE, "coalesce(sum(", value, f"), {_failure()})")


def count_of(value: Expression, call: str) -> SparkExpr:
    """count() from numbers of rows, 0 for none; fails where the result is beyond bigint."""
    found = _known("bigint", value, ("try_cast(sum(", value, ") AS BIGINT)"), f"bigint overflow in {call}")
    return _expr("bigint", "coalesce(", found, ", 0L)")


def one_row() -> Expression:
    """The number of rows that a row of an input stands for."""
    return _expr(ROWS_TYPE, _ONE)


def one_or(count: Expression) -> Expression:
    """The number of matches in a left input; a row without one stays as it is."""
    return _expr(ROWS_TYPE, "coalesce(", count, f", {_ONE})")


def unmatched(count: Expression, absent: Expression, value: Expression, dtype: str | None) -> Expression:
    """A value of a left input, or `absent` for a row without a match."""
    return _expr(dtype, "CASE WHEN ", count, " IS NULL THEN ", absent, " ELSE ", value, " END")


def _sum(dtype: str | None, value: Expression) -> SparkExpr:
    return _known(dtype, value, ("sum(", value, ")"))


def _known(
    dtype: str | None,
    value: Expression,
    total: tuple[str | Expression, ...],
    message: str | None = None,
    span: Span | None = None,
) -> SparkExpr:
    """A sum that is NULL if all values are, and fails if it overflows."""
    return _expr(dtype, "CASE WHEN count(", value, ") > 0 THEN coalesce(", *total, f", {_failure(message, span)}) END")


def _failure(message: str | None = None, span: Span | None = None) -> str:
    text = message or "a sum of the join has more than 38 digits"
    return raise_error(text, "set sqlext.umjoin.strategy=operator, or sum doubles instead", span, condition="overflow")


def _expr(dtype: str | None, *parts: str | Expression) -> SparkExpr:
    return SparkExpr.of(*parts, dtype=dtype)
