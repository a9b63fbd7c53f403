"""Counts of rows whose periods match nothing, read from the inputs of a statement's period predicates and functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlext_planner.expressions.nodes import Column, NamedExpr
from sqlext_planner.periods.functions import PeriodFunction
from sqlext_planner.periods.predicates import AllenRelation, EmptyPeriods, Period, PeriodPredicate
from sqlext_planner.periods.sql import EndTexts
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Project

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
