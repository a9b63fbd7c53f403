"""Period predicates as expressions: rules look inside them, everywhere else they are plain Spark SQL.

With them, the Spark SQL text of comparisons between the ends of periods, with the same meaning as the interval join's
kernels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property
from typing import Literal

from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.relations import RELATIONS, PeriodRelation

from sqlext_planner.errors import InternalError, Span, raise_error
from sqlext_planner.expressions.arithmetic import FLOATS
from sqlext_planner.expressions.nodes import Column, Compare, Expression
from sqlext_planner.periods.relation_sets import ALLEN, allowed, formulas

#: What an empty or reversed period does: match nothing, stop the job, or (``[t, t)`` only) count as one instant.
EmptyPeriods = Literal["drop", "error", "point"]

#: What `allen_relation` gives for a period that is empty or reversed.
NO_RELATION = "none"

#: Microseconds of the units of a day-time interval.
UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}


@dataclass(frozen=True)
class Amount:
    """A bound of a distance: a whole number or fraction in the unit of the ends (`interval` False), or microseconds."""

    value: int | float
    interval: bool
    span: Span | None = field(default=None, compare=False, kw_only=True, repr=False)

    def sql(self) -> str:
        """Spark SQL text."""
        if not self.interval:
            return str(self.value)
        seconds = Decimal(self.value).scaleb(-6)
        return f"INTERVAL '{seconds:.6f}' SECOND"

    def units(self, dtype: str) -> int | float:
        """The amount in the unit of ends of that type: microseconds, days, the integer, the double; for a decimal the
        number itself. Whole numbers of units are rounded down, which keeps the meaning of "at most"."""
        if dtype in ("float", "double"):
            return float(self.value)
        if dtype.startswith("decimal("):
            place = Decimal(1).scaleb(-int(dtype.rstrip(")").split(",")[1]))
            exact = Decimal(str(self.value)).quantize(place, rounding=ROUND_FLOOR)
            return int(exact) if exact == exact.to_integral_value() else float(exact)
        return math.floor(self.value) // UNITS["day"] if dtype == "date" and self.interval else math.floor(self.value)


@dataclass(frozen=True)
class OpenEnd(Expression):
    """``end OPEN BY key``: NULL is the largest value `forever` of the type; on a stream, an end that is not known yet.

    There a later row closes the period: the one with the same `key`, or without one with the same start.
    """

    value: Expression
    forever: str
    key: tuple[Expression, ...] = ()
    dtype: str | None = field(default=None, compare=False, kw_only=True, repr=False)

    def sql(self) -> str:
        return f"coalesce({self.value.sql()}, {self.forever})"

    def __str__(self) -> str:
        by = f" BY {', '.join(map(str, self.key))}" if self.key else ""
        return f"{self.value} OPEN{by}"


#: The largest values of the types whose closed ends have a next value of the same type.
_LAST = {"bigint": "9223372036854775807L", "date": "date_from_unix_date(2147483647)"}


@dataclass(frozen=True)
class ClosedEnd(Expression):
    """The value after ``end`` of ``PERIOD CLOSED(start, end)``, for a BIGINT or a DATE.

    The largest value has none. With OPEN (`open`) it means forever; otherwise it is a DataError, since any other end
    would lose that value.
    """

    value: Expression
    dtype: str
    open: bool = False

    def sql(self) -> str:
        end, last = self.value.sql(), _LAST[self.dtype]
        after = f"date_add({end}, 1)" if self.dtype == "date" else f"{end} + 1"
        # of a comparison of a CAST to DATE with this date Spark makes one of TIMESTAMPs, which have no such value
        is_last = f"unix_date({end}) = 2147483647" if self.dtype == "date" else f"{end} = {last}"
        return f"CASE WHEN {is_last} THEN {last if self.open else self._failure()} ELSE {after} END"

    def _failure(self) -> str:
        failure = raise_error(
            f"the end of a PERIOD CLOSED is the largest {self.dtype.upper()}, after which there is no value",
            "if it means forever, write PERIOD CLOSED (start, end OPEN)",
            self.span,
            condition="overflow",
        )
        return f"CAST({failure} AS {self.dtype})"

    def __str__(self) -> str:
        return f"{self.value} + 1"


@dataclass(frozen=True)
class Period(Expression):
    """``PERIOD(start, end)``: [start, end). A point t is ``Period(t, t)``, taken as [t, t]."""

    start: Expression
    end: Expression

    @cached_property
    def references(self) -> frozenset[Column]:
        return self.start.references | self.end.references

    def sql(self) -> str:
        """Spark has no periods: a struct of the ends, which fails where one of them does."""
        return f"struct({self.start.sql()}, {self.end.sql()})"

    def __str__(self) -> str:
        return f"PERIOD({self.start}, {self.end})"


@dataclass(frozen=True)
class PeriodPredicate(Expression):
    """``left relation right`` between two periods: true, false, or NULL where an end is NULL.

    False where a period is empty or reversed, as in a join (docs/reference/periods.md, section 6), or has a NaN end;
    `empty` says what else may happen. `relations` are names of the table; several (or none) are Allen's, and mean any
    of them. `or_empty`: true instead where a period is empty or reversed, which is what NOT makes of a predicate.
    `point`: the right side is a single value. `dtype` is the common type of the ends, None where it is unknown.
    """

    relations: tuple[str, ...]
    left: Period
    right: Period
    delta: Amount | None = None
    epsilon: Amount | None = None
    empty: EmptyPeriods = "drop"
    point: bool = False
    or_empty: bool = False
    dtype: str | None = field(default=None, compare=False, kw_only=True, repr=False)

    @property
    def rows(self) -> tuple[PeriodRelation, ...]:
        """The relations' rows in the table."""
        return tuple(RELATIONS[name] for name in self.relations)

    def endpoint(self, name: str) -> Expression:
        """The expression for a, b, c or d."""
        return {"a": self.left.start, "b": self.left.end, "c": self.right.start, "d": self.right.end}[name]

    def terms(self, relation: PeriodRelation) -> tuple[Condition, ...]:
        """The formula of one of the relations, without distances that nothing bounds."""
        given = {"delta": self.delta, "epsilon": self.epsilon}
        kept = (
            term for term in relation.terms if not isinstance(term.shift, tuple) or given[term.shift[1]] is not None
        )
        if not self.point:
            return tuple(kept)
        return (Condition("a", "<=", "c"), Condition("b", ">", "c"))

    @cached_property
    def formulas(self) -> tuple[tuple[Condition, ...], ...]:
        """Formulas of which exactly one holds for periods that are related, and none for others."""
        if len(self.relations) == 1:
            return (self.terms(self.rows[0]),)
        return formulas(frozenset(name.removeprefix("allen_") for name in self.relations))

    @cached_property
    def allen(self) -> frozenset[str] | None:
        """The predicate as a set of Allen's relations; None with a distance or a point."""
        if self.point or self.delta is not None or self.epsilon is not None:
            return None
        return frozenset(name for row in self.rows for name in allowed(self.terms(row)))

    def sql(self) -> str:
        """Plain Spark SQL: NULL where an end is NULL, else whether the periods are valid and related."""
        texts = _texts(self.left, self.right, self.dtype, self.empty, self.span, point=self.point)
        options = [self._formula(texts, terms) for terms in self.formulas]
        related = options[0] if len(options) == 1 else f"({' OR '.join(f'({text})' for text in options) or 'false'})"
        met = f"NOT ({texts.valid()}) OR {related}" if self.or_empty else f"{texts.valid()} AND {related}"
        return texts.case(f"ELSE {met}", "CAST(NULL AS BOOLEAN)", "BOOLEAN")

    def _formula(self, texts: EndTexts, terms: Sequence[Condition]) -> str:
        given = {"delta": self.delta, "epsilon": self.epsilon}
        return " AND ".join(
            texts.comparison(term, given[term.shift[1]] if isinstance(term.shift, tuple) else None) for term in terms
        )

    def comparisons(self) -> tuple[Expression, ...] | None:
        """Plain comparisons that are all true exactly where the predicate is true, for Spark's own joins and filters:
        ``a < b``, ``c < d`` and the formula.

        None where there are none: several formulas, distances, ends that may be NaN or of unknown type, empty
        periods that stop the job or count.
        """
        bounded = self.delta is not None or self.epsilon is not None
        several = len(self.formulas) != 1 or self.or_empty
        if several or bounded or self.empty != "drop" or self.dtype in (None, "float", "double"):
            return None
        periods = [("a", "b")] if self.point else [("a", "b"), ("c", "d")]
        pairs = [(start, "<", end) for start, end in periods]
        pairs += [(term.left, term.operator, term.right) for term in self.formulas[0]]
        return tuple(Compare(op, self.endpoint(x), self.endpoint(y), span=self.span) for x, op, y in pairs)

    def result_type(self, known: Mapping[Column, str | None]) -> str | None:
        return "boolean"

    def __str__(self) -> str:
        words = " OR ".join((*(row.words[0] for row in self.rows), *(["NO RELATION"] if self.or_empty else [])))
        bounds = [f"{n} {v.sql()}" for n, v in (("START", self.delta), ("END", self.epsilon)) if v is not None]
        within = f" WITHIN ({', '.join(bounds)})" if bounds else ""
        return f"{self.left} {words} {self.right.start if self.point else self.right}{within}"


@dataclass(frozen=True)
class AllenRelation(Expression):
    """``allen_relation(a, b, c, d)``: the name of the one Allen relation that holds, such as 'met_by'.

    NULL where an end is NULL, 'none' where a period is empty, reversed or has a NaN end.
    """

    left: Period
    right: Period
    empty: EmptyPeriods = "drop"
    dtype: str | None = field(default=None, compare=False, kw_only=True, repr=False)

    def sql(self) -> str:
        """Plain Spark SQL: a CASE over the thirteen formulas."""
        texts = _texts(self.left, self.right, self.dtype, self.empty, self.span)
        whens = [f"WHEN NOT ({texts.valid()}) THEN '{NO_RELATION}'"]
        for name in ALLEN:
            terms = " AND ".join(texts.comparison(term, None) for term in RELATIONS[f"allen_{name}"].terms)
            whens.append(f"WHEN {terms} THEN '{name}'")
        return texts.case(" ".join(whens), "CAST(NULL AS STRING)", "STRING")

    def result_type(self, known: Mapping[Column, str | None]) -> str | None:
        return "string"

    def __str__(self) -> str:
        return f"allen_relation({self.left}, {self.right})"


def allen_names(names: Sequence[str]) -> tuple[str, ...]:
    """The relations that `allen_relation` calls `names`, each once, in the order of the table."""
    return tuple(f"allen_{name}" for name in ALLEN if name in names)


def _texts(
    left: Period, right: Period, dtype: str | None, empty: EmptyPeriods, span: Span | None, *, point: bool = False
) -> EndTexts:
    d = None if point else right.end.sql()
    return EndTexts(left.start.sql(), left.end.sql(), right.start.sql(), d, dtype, empty, span)


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
        if self.dtype in FLOATS:
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
        if self.dtype in FLOATS:  # added as doubles, like in the kernels: a difference would round differently
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
