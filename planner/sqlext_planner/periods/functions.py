"""Functions that make a period, or the length of one, out of periods: plain Spark SQL wherever they stand.

With them, counts of rows whose periods match nothing, read from the inputs of a statement's period predicates and
functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from sqlext_planner.errors import raise_error
from sqlext_planner.expressions.arithmetic import INTEGERS
from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr
from sqlext_planner.periods.predicates import AllenRelation, EmptyPeriods, EndTexts, OpenEnd, Period, PeriodPredicate
from sqlext_planner.periods.relation_sets import EVERY
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Project


@dataclass(frozen=True)
class PeriodFunctionRow:
    """One function: the result of periods [a, b) and [c, d) is [start, end) where `condition` holds, else NULL. Without
    these texts, which name the ends in braces, it is the length of the one period. `relations` are those of Allen for
    which the condition holds. `endless` says when ends that are written OPEN make the result's end NULL: if "both" or
    "any" of them are forever.
    """

    name: str
    periods: int
    doc: str
    condition: str = ""
    start: str = ""
    end: str = ""
    relations: frozenset[str] = frozenset()
    endless: Literal["both", "any", "never"] = "never"


#: In the order of the documentation.
PERIOD_FUNCTIONS: Mapping[str, PeriodFunctionRow] = {
    row.name: row
    for row in (
        PeriodFunctionRow(
            "period_intersect",
            2,
            "What both periods cover; NULL if they share no instant.",
            "{a} < {d} AND {c} < {b}",
            "greatest({a}, {c})",
            "least({b}, {d})",
            EVERY - {"before", "after", "meets", "met_by"},
            endless="both",
        ),
        PeriodFunctionRow(
            "period_union",
            2,
            "What either period covers, if they overlap or touch; NULL if there is a gap between them.",
            "{a} <= {d} AND {c} <= {b}",
            "least({a}, {c})",
            "greatest({b}, {d})",
            EVERY - {"before", "after"},
            endless="any",
        ),
        PeriodFunctionRow(
            "period_gap",
            2,
            "What lies between the periods; NULL if they overlap or touch.",
            "{b} < {c} OR {d} < {a}",
            "least({b}, {d})",
            "greatest({a}, {c})",
            frozenset(("before", "after")),
        ),
        PeriodFunctionRow(
            "period_length",
            1,
            "The end minus the start: an INTERVAL for times, of elapsed time for TIMESTAMP; a number for numbers. NULL "
            "for a period that never ends.",
        ),
    )
}

#: The type of a length by that of the ends; decimals keep theirs.
_LENGTHS = {
    **dict.fromkeys(INTEGERS, "bigint"),
    "float": "double",
    "double": "double",
    "date": "interval day",
    "timestamp": "interval day to second",
    "timestamp_ntz": "interval day to second",
}


@dataclass(frozen=True)
class PeriodFunction(Expression):
    """``period_intersect(p, q)`` and the like; `right` is None for a function of one period.

    A period is a struct of the fields `start` and `end`. NULL where an end is NULL, and where a period is empty,
    reversed or has a NaN end: `empty` says what else may happen. An end is NULL again where ends written OPEN make it
    forever. `dtype` is the common type of the ends, None where it is unknown. A length beyond its type is a DataError.
    """

    name: str
    left: Period
    right: Period | None = None
    empty: EmptyPeriods = "drop"
    dtype: str | None = field(default=None, compare=False, kw_only=True, repr=False)

    @cached_property
    def references(self) -> frozenset[Column]:
        return frozenset().union(*(period.references for period in (self.left, self.right) if period is not None))

    def sql(self) -> str:
        """Plain Spark SQL: a CASE over the ends."""
        known = self.result_type({})
        texts = self._texts()
        null = "NULL" if known is None else f"CAST(NULL AS {known})"
        row = PERIOD_FUNCTIONS[self.name]
        if not row.condition:
            return texts.case(f"WHEN {texts.valid()} THEN {self._length(texts)}", null, known)
        ends = {"a": texts.a, "b": texts.end("a", "b"), "c": texts.c, "d": texts.end("c", "d")}
        condition, start, end = (text.format_map(ends) for text in (row.condition, row.start, row.end))
        made = f"named_struct('start', {start}, 'end', {self._endless(row, end)})"
        made = made if known is None else f"CAST({made} AS {known})"
        return texts.case(f"WHEN {texts.valid()} AND ({condition}) THEN {made}", null, known)

    def _texts(self) -> EndTexts:
        a, b = self.left.start.sql(), self.left.end.sql()
        c, d = (a, None) if self.right is None else (self.right.start.sql(), self.right.end.sql())
        return EndTexts(a, b, c, d, self.dtype, self.empty, self.span)

    def _endless(self, row: PeriodFunctionRow, end: str) -> str:
        """`end`, or NULL where that is forever."""
        ends = [None if period is None else period.end for period in (self.left, self.right)]
        terms = [f"{item.sql()} = {item.forever}" for item in ends if isinstance(item, OpenEnd)]
        if not terms or row.endless == "never" or (row.endless == "both" and len(terms) < 2):
            return end
        return f"CASE WHEN {(' AND ' if row.endless == 'both' else ' OR ').join(terms)} THEN NULL ELSE {end} END"

    def _length(self, texts: EndTexts) -> str:
        start, end = texts.a, texts.end("a", "b")
        length = self._difference(start, end)
        if not isinstance(self.left.end, OpenEnd):
            return length
        return f"CASE WHEN {self.left.end.sql()} = {self.left.end.forever} THEN NULL ELSE {length} END"

    def _difference(self, start: str, end: str) -> str:
        wide = self.result_type({})
        if wide == "double":
            return f"CAST({end} AS {wide}) - CAST({start} AS {wide})"
        if wide is None:  # decimals: Spark's result has a digit more
            return f"{end} - {start}"
        if wide == "bigint":
            difference = f"try_subtract(CAST({end} AS {wide}), CAST({start} AS {wide}))"
        elif self.dtype == "timestamp":  # the difference of two timestamps would be that of their local times
            difference = f"try_subtract(unix_micros({end}), unix_micros({start})) * INTERVAL '0.000001' SECOND"
        else:
            difference = f"try_subtract({end}, {start})"
        help = "compare the ends, or leave out such rows"
        failure = raise_error(f"a period is longer than {wide} can say", help, self.span, condition="overflow")
        # with a condition of its own: Spark may move it out of the CASE that has asked whether this is a period
        return f"coalesce({difference}, CASE WHEN {start} < {end} THEN CAST({failure} AS {wide}) END)"

    def result_type(self, known: Mapping[Column, str | None]) -> str | None:
        if self.dtype is None:
            return None
        end = "bigint" if self.empty == "point" and self.dtype in INTEGERS else self.dtype
        if PERIOD_FUNCTIONS[self.name].condition:
            return f"struct<start:{end},end:{end}>"
        return _LENGTHS.get(self.dtype)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(str(item) for item in (self.left, self.right) if item is not None)})"


_START, _END = Column("", "start"), Column("", "end")


@dataclass(frozen=True)
class PeriodInput:
    """A period of a statement and the plan whose rows hold it; `dtype` is the type of its ends, `effect` says what rows
    without one do."""

    period: Period
    dtype: str | None
    empty: EmptyPeriods
    child: LogicalPlan
    effect: str = "match nothing"

    @property
    def ends(self) -> LogicalPlan:
        """The columns `start` and `end`, one row for each of the input's."""
        items = (NamedExpr(self.period.start, _START), NamedExpr(self.period.end, _END))
        return Project(items, self.child)

    @property
    def counts(self) -> dict[str, str]:
        """Spark SQL aggregates over `ends`: `rows` are all rows; `unknown` those with a NULL end; `points` the periods
        ``[t, t)`` that count as one instant; `dropped` other empty or reversed periods, including those with NaN."""
        start, end = _START.sql(), _END.sql()
        valid = EndTexts(start, end, start, None, self.dtype, self.empty).valid()
        is_point = f"{start} = {end}" if self.empty == "point" else "false"
        return {
            "rows": "count(*)",
            "unknown": f"count_if({start} IS NULL OR {end} IS NULL)",
            "points": f"count_if({is_point} AND {valid})",
            "dropped": f"count_if(NOT ({valid}))",
        }


def period_inputs(plan: LogicalPlan) -> list[PeriodInput]:
    """The periods that predicates and functions of an analyzed plan read, each with the deepest filter, join or source
    below that has all its columns: a WHERE or ON of the same SELECT is not applied yet. Points have no period."""
    inputs: dict[tuple[Period, int], PeriodInput] = {}
    for node in plan.walk():
        for predicate in (item for expression in node.expressions() for item in expression.walk()):
            if not isinstance(predicate, PeriodPredicate | AllenRelation | PeriodFunction):
                continue
            effect = "give NULL" if isinstance(predicate, PeriodFunction) else "match nothing"
            for period in _periods(predicate):
                child = _source(node, period)
                if child is not None:
                    item = PeriodInput(period, predicate.dtype, predicate.empty, child, effect)
                    inputs.setdefault((period, id(child)), item)
    return list(inputs.values())


def _periods(predicate: PeriodPredicate | AllenRelation | PeriodFunction) -> Iterator[Period]:
    yield predicate.left
    if predicate.right is not None and not (isinstance(predicate, PeriodPredicate) and predicate.point):
        yield predicate.right


def _source(node: LogicalPlan, period: Period) -> LogicalPlan | None:
    """None for constants, and for periods over several sides of a join, which no single input has."""
    if not period.references:
        return None
    below: LogicalPlan | None = None
    while True:
        having = [child for child in node.children if period.references <= frozenset(child.output_columns)]
        if len(having) != 1:
            return below
        below = node = having[0]
        if not isinstance(node, Filter | Join):
            return below
