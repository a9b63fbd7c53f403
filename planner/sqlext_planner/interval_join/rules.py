"""The rules about interval joins.

Why Spark compares rows although a period predicate, or the hint SWEEP, asks for windows: for EXPLAIN, and for the
error of a hint that cannot be followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlext_planner.errors import UnsupportedError
from sqlext_planner.expressions.aggregates import COUNT, arguments, weighted_items
from sqlext_planner.expressions.nodes import (
    Column,
    Compare,
    Expression,
    NamedExpr,
    conjunction,
    conjuncts,
    is_exact,
    is_movable,
)
from sqlext_planner.interval_join.conditions import IntervalTerms, guard, mirrored_join, read_condition
from sqlext_planner.interval_join.nodes import IntervalJoin, IntervalJoinKind
from sqlext_planner.optimizer.executor import rule
from sqlext_planner.periods.functions import PeriodFunction
from sqlext_planner.periods.predicates import AllenRelation, Period, PeriodPredicate
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan, subqueries
from sqlext_planner.relational.nodes import Aggregate, Filter, Project, SparkRelation, filtered
from sqlext_planner.relational.plan_patterns import has_each_once, relation_names
from sqlext_planner.relational.streams import is_streaming

#: Whether a term over both sides may be filtered above the join. See the legality table in `plan_interval_joins`.
LEGAL: dict[IntervalJoinKind, bool] = {
    "inner": True,
    "left": False,
    "right": False,
    "full": False,
    "semi": False,
    "anti": False,
}


@rule(order="bottom_up", on=(Join,))
def plan_interval_joins(node: LogicalPlan) -> LogicalPlan | None:
    """``Join ON k = k AND PERIOD(..) OVERLAPS PERIOD(..)`` -> ``IntervalJoin``, and plain inequalities likewise.

    ``SELECT * FROM r JOIN s ON r.k = s.k AND r.ts < s.te AND s.ts < r.te``::

        Join: inner ON r.k = s.k AND r.ts < s.te AND s.ts < r.te  ->  IntervalJoin: inner ON r.k = s.k AND ...
          Scan: r [k, ts, te]                                           Scan: r [k, ts, te]
          Scan: s [k, ts, te]                                           Scan: s [k, ts, te]

    Equalities between the sides are its keys, comparisons between them its conditions, period predicates give both
    conditions and periods that must be valid. Plain inequalities are taken where they bound a window on both sides
    (overlap, containment, point in interval, band): ``a.x < b.y`` alone matches half of all pairs, and Spark makes
    those just as well. They are not taken where an aggregate has each key once, so that a row meets at most one other,
    nor over a stream, unless the hint SWEEP asks for it: such a statement is plain Spark's; nor between two sides that
    a hint UMJOIN names, whose group checks them. The node keeps the condition as it was: strategies.py decides, with
    sizes at hand, whether the join is worth an operator, and with NO_SWEEP it stays a Join.

    Legal because a pair matches if the condition is true: keys, conditions and valid periods together are true exactly
    where it is, NULLs included. Of plain inequalities nothing is assumed (a reversed period is just two values).
    Terms that the operator does not evaluate:

    | join            | over both sides | over one side                                                      |
    |-----------------|-----------------|--------------------------------------------------------------------|
    | inner           | filter above    | filter of that side (`push_join_condition`), else in its values    |
    | left right full | the residual    | in the values of that side: NULL where the term is not true        |
    | semi anti       | likewise        | likewise                                                           |

    The residual is tested on each candidate pair, before rows without a match are completed. It cannot hold rand(), a
    subquery or one of Spark's windows, nor be over a stream: such a join stays a Join.

    Counter-example: for ``r LEFT JOIN s ON r.ts < s.te AND s.ts < r.te AND r.a + s.b > 3`` a filter above would drop
    left rows whose matches all fail it, which ON keeps.
    """
    match node:
        case Join(left, right, kind, on, sweep) if on is not None and kind != "cross" and sweep is not False:
            terms = read_condition(on, left, right)
            if not all(terms.alternatives):
                return None
            if not LEGAL[kind] and terms.residual and (node.is_streaming or not all(map(is_movable, terms.residual))):
                return None
            # with at most one row for each value of the equality keys on a side
            is_lookup = has_each_once(left, terms.left_keys) or has_each_once(right, terms.right_keys)
            if not (terms.named or sweep or (terms.bounds_windows and not is_lookup)):
                return None
            if not (terms.named or sweep) and (is_streaming(node) or _is_of_hinted_group(node)):
                return None
            guard(terms)
            return filtered(terms.residual if LEGAL[kind] else [], _interval_join(node, kind, terms))
    return None


def band_over_streams(node: Join) -> LogicalPlan | None:
    """An inner join of two streams whose plain inequalities bound the times of both sides as an interval join, with
    what is to be filtered above; None for any other. The rule leaves these to the planner, who knows what is above."""
    if node.kind != "inner" or node.condition is None or node.sweep is False:
        return None
    if not all(side.is_streaming for side in (node.left, node.right)):
        return None
    terms = read_condition(node.condition, node.left, node.right)
    if not all(terms.alternatives) or not terms.bounds_windows:
        return None
    guard(terms)
    return filtered(terms.residual, _interval_join(node, "inner", terms))


def _is_of_hinted_group(node: Join) -> bool:
    """Whether a hint UMJOIN names relations of both sides."""
    if node.umjoin is None or not node.umjoin.wanted:
        return False
    return all(relation_names(side) & set(node.umjoin.names) for side in (node.left, node.right))


def _interval_join(node: Join, kind: IntervalJoinKind, terms: IntervalTerms) -> IntervalJoin:
    """The node for terms without one-sided ones. Its `condition` is ON as written, without what is filtered above."""
    above = terms.residual if LEGAL[kind] else []
    on_terms = [term for term in conjuncts(node.condition) if not any(term is other for other in above)]
    return IntervalJoin(
        left=node.left,
        right=node.right,
        kind=kind,
        left_keys=tuple(terms.left_keys),
        right_keys=tuple(terms.right_keys),
        null_safe=tuple(terms.null_safe),
        left_values=tuple(terms.left_values),
        right_values=tuple(terms.right_values),
        alternatives=tuple(terms.alternatives),
        left_periods=tuple(terms.left_periods),
        right_periods=tuple(terms.right_periods),
        empty=terms.empty or "drop",
        residual=None if LEGAL[kind] else conjunction(terms.residual),
        amounts=tuple(terms.amounts),
        condition=conjunction(on_terms),
        named=terms.named,
        sweep=node.sweep,
        partitioner=node.partitioner,
        span=node.span,
    )


@rule(order="top_down", on=(Join,))
def expand_endpoint_equalities(node: LogicalPlan) -> LogicalPlan | None:
    """``Join ON PERIOD(a, b) MEETS PERIOD(c, d)`` -> ``Join ON b = c AND a < b AND c < d``.

    ``SELECT * FROM r JOIN s ON PERIOD(r.ts, r.te) STARTS PERIOD(s.ts, s.te)``::

        Join: inner ON PERIOD(r.ts, r.te) ALLEN STARTS ...  ->  Join: inner ON r.ts = s.ts AND r.te < s.te
                                                                  AND r.ts < r.te AND s.ts < s.te
          Scan: r [ts, te]                                        Scan: r [ts, te]
          Scan: s [ts, te]                                        Scan: s [ts, te]

    Spark joins on the equal ends by hash or sort, with the rest as a condition of the same join; none of our operators
    is as good (docs/reference/sweeps.md, section 5). For meets, starts, finishes, equals and their inverses; not for a
    set of relations that takes several formulas.

    Legal in ON of every kind of join: ON asks only whether the condition is true, and the predicate is true where its
    formula is and both periods have start < end (`PeriodPredicate.comparisons`; a NULL end makes either not true). Not
    done for ends that may be NaN or are of unknown type, nor where empty periods stop the job or count.

    Not done over streams: there an interval join also knows which rows can go.

    Counter-example: under NOT or OR the two are different (NULL there is not false), so only conjuncts are expanded.
    """
    match node:
        case Join(condition=on) if on is not None and not node.is_streaming:
            terms = [part for term in conjuncts(on) for part in _expanded(term)]
            if len(terms) == len(conjuncts(on)):
                return None
            return replace(node, condition=conjunction(terms))
    return None


def _expanded(term: Expression) -> tuple[Expression, ...]:
    if not isinstance(term, PeriodPredicate):
        return (term,)
    found = term.comparisons()
    has_equality = any(isinstance(item, Compare) and item.op == "=" for item in found or ())
    return found if found is not None and has_equality else (term,)


@rule(order="bottom_up", on=(Aggregate, IntervalJoin))
def count_interval_matches(node: LogicalPlan) -> LogicalPlan | None:
    """``Aggregate(count(*), sum(v))`` over an inner interval join -> the same over its counts: ``sum(n), sum(v * n)``.

    ``SELECT r.k, count(*), sum(r.v) FROM r JOIN s ON r.ts < s.te AND s.ts < r.te GROUP BY r.k``::

        Aggregate: [r.k] count(*), sum(r.v)      Aggregate: [r.k] coalesce(sum(n), 0L), sum(r.v * n)
          IntervalJoin: inner ON ...        ->     IntervalJoin: count ON ... AS n
            Scan: r [k, ts, te, v]                   Scan: r [k, ts, te, v]
            Scan: s [ts, te]                         Scan: s [ts, te]

    The operator finds the number of matches of a row without looking at them (they are a slice of a sorted array), so
    that the cost does not grow with the pairs.

    Legal for keys and arguments that are columns of one side (of either: the join's sides are swapped; the other side's
    column of an equality key is its partner): every row r stands for n equal pairs, n > 0. count(*) is the sum of n,
    count(v) of n where v is not NULL; min, max and DISTINCT do not see multiplicities; sum and avg weigh by n, in types
    in which no product is lost (aggregates.py), a bigint's sum in decimals. Where Spark's own running sum
    overflows and the total does not, the result is the total.

    Counter-examples: ``sum(r.v * s.v)`` and ``max(s.v) ... GROUP BY r.k`` look at both rows of a pair; a residual over
    both sides (a Filter between) decides pair by pair; ``first(r.v)`` and ``collect_list(r.v)`` see order and
    multiplicity.
    """
    match node:
        case Aggregate(child=child) if child.is_streaming:  # pairs come one by one
            return None
        case Aggregate(keys, None, items, IntervalJoin(kind="inner") as join):
            return _counted(node, keys, items, join)
        case Aggregate(keys, None, items, Project(columns, IntervalJoin(kind="inner") as join)):
            given = {item.column: item.expression for item in columns}
            if not all(isinstance(expression, Column) for expression in given.values()):
                return None
            inner_keys = tuple(key.substitute(given) for key in keys)
            inner_items = tuple(NamedExpr(item.expression.substitute(given), item.column) for item in items)
            return _counted(node, inner_keys, inner_items, join)
    return None


def _counted(
    node: Aggregate, keys: tuple[Expression, ...], items: tuple[NamedExpr, ...], join: IntervalJoin
) -> LogicalPlan | None:
    read = [column for item in items if item.expression not in keys for column in arguments(item.expression) or ()]
    if any(item.expression not in keys and arguments(item.expression) is None for item in items):
        return None
    needed = {column for key in keys for column in key.references} | set(read)
    for side in (join, mirrored_join(join)):
        partners = _partners(side)
        if needed <= set(side.left.output_columns) | partners.keys():
            return _rewritten(node, keys, items, side, partners)
    return None


def _partners(join: IntervalJoin) -> Mapping[Column, Column]:
    """Right columns that equal a left column in every pair, value for value."""
    pairs = zip(join.left_keys, join.right_keys, strict=True)
    return {
        theirs: ours
        for ours, theirs in pairs
        if isinstance(ours, Column)
        and isinstance(theirs, Column)
        and join.left.dtypes[ours] == join.right.dtypes[theirs]
        and is_exact(join.left.dtypes[ours])
    }


def _rewritten(
    node: Aggregate,
    keys: tuple[Expression, ...],
    items: tuple[NamedExpr, ...],
    join: IntervalJoin,
    partners: Mapping[Column, Column],
) -> LogicalPlan | None:
    new_items = weighted_items(keys, items, partners, join.left.dtypes)
    if new_items is None:
        return None
    counting = replace(join, kind="count", count=COUNT, payload=None)
    new_keys = tuple(key.substitute(partners) for key in keys)
    return Aggregate(new_keys, None, new_items, counting, span=node.span)


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
        for term in conjuncts(node.condition)
        if all(term.references & side.column_set for side in (node.left, node.right))
        for item in term.walk()
    )


def _left(node: Join) -> str:
    assert node.condition is not None
    terms = read_condition(node.condition, node.left, node.right)
    keyed = "Spark joins on the equal keys and tests the rest"
    return f"{keyed if terms.left_keys else 'Spark compares all pairs of rows'}: {_cause(node, terms)}"


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
