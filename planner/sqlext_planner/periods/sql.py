"""Spark SQL text of comparisons between the ends of periods, with the same meaning as the interval join's kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_operators.interval_join.conditions import Condition

from sqlext_planner.errors import InternalError, Span, raise_error

if TYPE_CHECKING:
    from sqlext_planner.periods.predicates import Amount, EmptyPeriods

_FLOATS = ("float", "double")
_TICK = "INTERVAL '0.000001' SECOND"


@dataclass(frozen=True)
class EndTexts:
    """Text of the ends a, b, c, d of two periods; without `d` the right side is the point c.

    `dtype` is their common type, None where it is unknown.
    """

    a: str
    b: str
    c: str
    d: str | None
    dtype: str | None
    empty: EmptyPeriods
    span: Span | None = None

    def case(self, otherwise: str, null: str, dtype: str | None) -> str:
        """`otherwise` for valid periods, `null` where an end is NULL, the error that `empty` may ask for; all of them
        of type `dtype`, if that is known."""
        ends = [self.a, self.b, self.c, *([self.d] if self.d is not None else [])]
        nulls = " OR ".join(f"{text} IS NULL" for text in dict.fromkeys(ends))
        raised = ""
        if self.empty == "error":
            message = "there is an empty or reversed period, and sqlext.interval.empty is error"
            help = "correct or leave out such rows, or set sqlext.interval.empty=drop"
            failure = raise_error(message, help, self.span, condition="empty-period")
            failed = failure if dtype is None else f"CAST({failure} AS {dtype})"
            raised = f"WHEN NOT ({self.valid()}) THEN {failed} "
        return f"(CASE {raised}WHEN {nulls} THEN {null} {otherwise} END)"

    def valid(self) -> str:
        """That each period has start < end, without NaN; NULL where an end is NULL."""
        periods = [(self.a, self.end("a", "b")), *([(self.c, self.end("c", "d"))] if self.d is not None else [])]
        terms = [f"{start} < {end}" for start, end in periods]
        if self.dtype in _FLOATS:
            terms += [f"NOT isnan({end})" for _, end in periods]
        elif self.dtype is None:  # unknown type: no time and no whole number is NaN as text
            terms += [f"CAST({end} AS STRING) <> 'NaN'" for _, end in periods]
        return " AND ".join(terms)

    def comparison(self, condition: Condition, amount: Amount | None) -> str:
        """One term of a relation; `amount` is the value of the parameter that its shift names."""
        left, right = self._named(condition.left), self._named(condition.right)
        if not isinstance(condition.shift, tuple) or amount is None:
            return f"{left} {condition.operator} {right}"
        sign = condition.shift[0]
        if self.dtype in _FLOATS:  # added as doubles, like in the kernels: a difference would round differently
            operator = "+" if sign > 0 else "-"
            return f"CAST({left} AS DOUBLE) {operator} {amount.value!r}D {condition.operator} CAST({right} AS DOUBLE)"
        high, low = (right, left) if sign > 0 else (left, right)
        return self._distance(high, low, amount)

    def _distance(self, high: str, low: str, amount: Amount) -> str:
        """``high - low <= amount``; a difference that overflows is greater than any amount."""
        bound = amount.value
        match self.dtype:
            case "tinyint" | "smallint" | "int":
                return f"CAST({high} AS BIGINT) - CAST({low} AS BIGINT) <= {bound}"
            case "date":
                days = int(amount.units("date"))
                return f"CAST(unix_date({high}) AS BIGINT) - CAST(unix_date({low}) AS BIGINT) <= {days}"
            case "timestamp":  # the difference of two timestamps would be that of their local times
                return f"coalesce(try_subtract(unix_micros({high}), unix_micros({low})) <= {bound}, false)"
            case None if amount.interval:
                instants = [f"unix_micros(CAST({text} AS TIMESTAMP))" for text in (high, low)]
                exact = f"try_subtract({', '.join(instants)}) <= {bound}"
                local = f"try_subtract({high}, {low}) <= {amount.sql()}"
                return f"coalesce(CASE WHEN typeof({high}) = 'timestamp' THEN {exact} ELSE {local} END, false)"
            case None:
                doubles = f"CAST({low} AS DOUBLE) + {bound} >= CAST({high} AS DOUBLE)"
                exact = f"try_subtract({high} + 0L, {low}) <= {bound}"
                return (
                    f"coalesce(CASE WHEN typeof({high}) IN ('float', 'double') THEN {doubles} ELSE {exact} END, false)"
                )
        return f"coalesce(try_subtract({high}, {low}) <= {amount.sql()}, false)"

    def _named(self, name: str) -> str:
        if name in ("b", "d"):
            return self.end("a" if name == "b" else "c", name)
        return str(getattr(self, name))

    def end(self, start: str, end: str) -> str:
        """The end; the instant after t if `empty` is "point" and the period is [t, t)."""
        first, second = str(getattr(self, start)), str(getattr(self, end))
        return (
            f"CASE WHEN {first} = {second} THEN {self._next(first)} ELSE {second} END"
            if self.empty == "point"
            else second
        )

    def _next(self, text: str) -> str:
        match self.dtype:
            case "tinyint" | "smallint" | "int":
                return f"CAST({text} AS BIGINT) + 1"
            case "bigint":
                return f"coalesce(try_add({text}, 1), {text})"
            case "date":
                return f"date_add({text}, 1)"
            case "timestamp" | "timestamp_ntz":
                return f"coalesce(try_add({text}, {_TICK}), {text})"
            case str(dtype) if dtype.startswith("decimal("):
                scale = int(dtype.rstrip(")").split(",")[1])
                unit = f"0.{'1'.rjust(scale, '0')}" if scale else "1"
                return f"({text} + {unit})"
        raise InternalError(f"ends of type {self.dtype} have no next value")
