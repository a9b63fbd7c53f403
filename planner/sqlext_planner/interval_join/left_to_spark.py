"""Why Spark compares rows although a period predicate, or the hint SWEEP, asks for windows: for EXPLAIN, and for the
error of a hint that cannot be followed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlext_planner.errors import UnsupportedError
from sqlext_planner.expressions.nodes import Compare, Expression, conjuncts, is_movable
from sqlext_planner.interval_join.conditions import IntervalTerms, read_condition
from sqlext_planner.periods.functions import PeriodFunction
from sqlext_planner.periods.predicates import AllenRelation, Period, PeriodPredicate
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan, subqueries
from sqlext_planner.relational.nodes import Filter, SparkRelation

_PERIODS = (PeriodPredicate, AllenRelation, PeriodFunction)
_ORDERED = ("<", "<=", ">", ">=")


def reason(node: LogicalPlan) -> str:
    """Why Spark compares the rows of a join whose condition holds a period predicate; '' for every other node."""
    match node:
        case SparkRelation(because=because) if because:
            return f"{because}, and so are the period predicates in this block: written out as comparisons"
        case Filter(condition, Join(condition=None)) if _holds_periods(condition):
            return f"Spark compares all pairs of rows: {_unread(condition)}"
        case Join(condition=condition) if condition is not None and _holds_periods(condition):
            return _left(node)
    return ""


def refuse_unfollowed(plan: LogicalPlan) -> None:
    """Raises UnsupportedError for a join that the hint SWEEP asks for and that no rule has made an interval join: one
    on periods, or on a comparison of the two sides by their order; and for a subquery with the hint that is no join."""
    for item in subqueries(plan):
        if item.ordered is not None:
            raise UnsupportedError(
                "the hint SWEEP cannot be followed: no join can be made of this subquery, so Spark computes it",
                condition="hint-not-followed",
                span=item.ordered,
                help="leave the hint out, or write EXISTS or IN as a condition of its own in WHERE",
            ).about_hint()
    for node in plan.walk():
        if isinstance(node, Join) and node.sweep and node.condition is not None and _is_asked_for(node):
            raise UnsupportedError(
                f"the hint SWEEP cannot be followed: {_left(node)}",
                condition="hint-not-followed",
                span=node.span or node.condition.span,
                help="leave the hint out: Spark compares the rows",
            ).about_hint()


def _holds_periods(condition: Expression) -> bool:
    return any(isinstance(item, _PERIODS) for item in condition.walk())


def _is_asked_for(node: Join) -> bool:
    return any(
        isinstance(item, _PERIODS) or (isinstance(item, Compare) and item.op in _ORDERED)
        for term in _over_both(node)
        for item in term.walk()
    )


def _over_both(node: Join) -> Iterator[Expression]:
    """The terms that read both sides."""
    sides = node.left.column_set, node.right.column_set
    return (term for term in conjuncts(node.condition) if all(term.references & side for side in sides))


def _left(node: Join) -> str:
    assert node.condition is not None
    terms = read_condition(node.condition, node.left, node.right)
    return f"{_how(terms)}: {_cause(node, terms)}"


def _how(terms: IntervalTerms) -> str:
    return "Spark joins on the equal keys and tests the rest" if terms.left_keys else "Spark compares all pairs of rows"


def _cause(node: Join, terms: IntervalTerms) -> str:
    if node.sweep is False:
        return "the hint NO_SWEEP asks for it"
    if not all(terms.alternatives):
        unread = [term for term in terms.residual if _holds_periods(term)] or terms.residual
        return "; ".join(_unread(term) for term in unread) or "no term compares one side's values with the other's"
    return (
        f"a {node.kind.upper()} JOIN decides about rows without a match, and {_shown(terms.residual)} is tested later"
    )


def _unread(term: Expression) -> str:
    """Why no window follows from a term."""
    shown = _shown([term])
    if not is_movable(term):
        return f"{shown} has to be computed where it stands"
    mixed = next((item for item in term.walk() if isinstance(item, Period) and _is_mixed(item)), None)
    if mixed is not None:
        return f"{mixed} has ends of both sides"
    if isinstance(term, PeriodPredicate):
        return f"{shown} is true for empty periods, too, whose ends are of a type or a setting that has no window"
    return f"no window over the ends finds the pairs for which {shown} holds"


def _is_mixed(period: Period) -> bool:
    """Whether the ends of a period come from different relations."""
    ends = [{column.relation for column in end.references} for end in (period.start, period.end)]
    return bool(ends[0] and ends[1] and ends[0] != ends[1])


def _shown(terms: Iterable[Expression]) -> str:
    return ", ".join(f"'{term}'" for term in terms)
