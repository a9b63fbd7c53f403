"""Scalar subqueries over aggregates become joins with the aggregates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlext_planner.expressions.no_rows import is_strict, value_of_no_rows
from sqlext_planner.expressions.nodes import (
    Column,
    Compare,
    Expression,
    Literal,
    NamedExpr,
    SparkExpr,
    conjunction,
    conjuncts,
)
from sqlext_planner.expressions.patterns import holds_subquery, names_collation
from sqlext_planner.expressions.subquery import Subquery
from sqlext_planner.expressions.typed import NULL
from sqlext_planner.optimizer.correlation import Lifted
from sqlext_planner.optimizer.decorrelation import fresh_names, lifted, renamed
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Hint,
    Join,
    JoinKind,
    Limit,
    Project,
    Sort,
    filtered,
)
from sqlext_planner.relational.plan_patterns import is_single_row


@rule(order="top_down", on=(Filter,))
def decorrelate_scalar(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter(v > (SELECT avg(x) FROM s WHERE s.k = t.k), t)`` -> ``t JOIN Aggregate(k, avg(x)) ON .. WHERE v > avg``.

    ``SELECT a FROM t WHERE v > 2 * (SELECT avg(x) FROM s WHERE s.k = t.k AND s.x > 3)``::

        Filter: t.v > 2 * (SELECT ...)       Project: t.a, t.v, t.k
          Scan: t [a, v, k]                    Filter: t.v > 2 * subquery.value
                                       ->        Join: inner ON s.k = t.k
                                                   Scan: t [a, v, k]
                                                   Aggregate: [s.k] avg(s.x) AS subquery.value, s.k
                                                     Filter: s.x > 3
                                                       Scan: s [x, k]

    For any place in a term of WHERE or HAVING. The other terms are filtered below the joins; only the outer columns
    are output above.

    | subquery                                            | term                   | join                           |
    |-----------------------------------------------------|------------------------|--------------------------------|
    | aggregate of everything, reads nothing of the outer | any                    | cross                          |
    | correlated, NULL for no rows (sum, avg, min, max)   | is not true for a NULL | inner                          |
    | correlated, NULL for no rows                        | another                | left                           |
    | correlated, something else for no rows (count)      | any                    | left, that value where no match |

    A term is not true for a NULL if it is a comparison (not ``<=>``) one side of which is arithmetic on the value.

    Legal because the aggregate has one row for each value of the correlated columns (`correlation.Lifting`), so that
    the join gives each outer row once, with the value that the subquery has for it. For an outer row without a match
    the subquery aggregates no rows; its value then follows from its aggregates (`no_rows`).

    Counter-examples: the count bug: ``v >= (SELECT count(*) FROM s WHERE s.k = t.k)`` is true for v = 0 and a k that s
    lacks, where an inner join has no row and a left join NULL. ``SELECT x FROM s WHERE s.k = t.k`` may have two rows,
    which Spark refuses when it runs; ``s.k < t.k`` puts a row of s into many groups: both stay text, as does the
    select list.
    """
    match node:
        case Filter(condition, child) if child.output_columns:
            terms = conjuncts(condition)
            values = _values(terms, child)
            return _joined(terms, values, child, node) if values else None
    return None


@dataclass(frozen=True)
class _Value:
    """A subquery as the right side of a join, with the column that holds its value.

    `unmatched` is the value where the join has no match, None if there always is one.
    """

    right: LogicalPlan
    condition: Expression | None
    column: Column
    unmatched: Expression | None

    def kind(self, terms: Iterable[Expression]) -> JoinKind:
        """The join that keeps at least the rows that pass the terms over the column."""
        if self.unmatched is None:
            return "cross"
        rejected = self.unmatched == NULL and any(_rejects_null(term, self.column) for term in terms)
        return "inner" if rejected else "left"


def _values(terms: Iterable[Expression], child: LogicalPlan) -> dict[Subquery, _Value]:
    """The subqueries in the terms that can be joined with `child`; equal ones share one value."""
    found: dict[Subquery, _Value] = {}
    for term in terms:
        for item in term.walk() if holds_subquery(term) else ():
            if isinstance(item, Subquery) and item.kind == "scalar" and item not in found:
                value = _value(item, child)
                if value is not None:
                    found[item] = value
    return found


def _joined(
    terms: Iterable[Expression], values: dict[Subquery, _Value], child: LogicalPlan, node: LogicalPlan
) -> LogicalPlan:
    """The rows of `child` that pass the terms."""
    columns: dict[Expression, Expression] = {item: value.column for item, value in values.items()}
    pairs = [(term, _replaced(term, columns)) for term in terms]
    own = [term for term, new in pairs if new is term]
    compared = [new for term, new in pairs if new is not term]
    plan = filtered(own, child)
    exact: dict[Column, Expression] = {}
    for item, value in values.items():
        kind, right = value.kind(compared), value.right
        if kind == "left" and value.unmatched != NULL:
            matched = Column(value.column.relation, "matched")
            same = (NamedExpr(column, column) for column in right.output_columns)
            right = Project((*same, NamedExpr(Literal("true", dtype="boolean"), matched)), right)
            exact[value.column] = _with_default(value, matched)
        plan = Join(plan, right, kind, value.condition, span=item.span)
    plan = filtered([term.substitute(exact) for term in compared], plan)
    return Project(tuple(NamedExpr(c, c) for c in child.output_columns), plan, span=node.span)


def _replaced(term: Expression, mapping: Mapping[Expression, Expression]) -> Expression:
    new = term.transform_down(lambda item: mapping.get(item, item))
    assert isinstance(new, Expression)
    return new


def _with_default(value: _Value, matched: Column) -> Expression:
    assert value.unmatched is not None
    parts = ("CASE WHEN ", matched, " THEN ", value.column, " ELSE ", value.unmatched, " END")
    return SparkExpr(parts, dtype=value.right.dtypes[value.column])


def _rejects_null(term: Expression, column: Column) -> bool:
    """Whether a term is not true where the column is NULL."""
    return (
        isinstance(term, Compare)
        and term.op != "<=>"
        and (is_strict(term.left, column) or is_strict(term.right, column))
    )


def _value(subquery: Subquery, child: LogicalPlan) -> _Value | None:
    """The subquery as a side of a join; None if it has to stay."""
    if len(subquery.plan.output_columns) != 1:
        return None
    (column,) = subquery.plan.output_columns
    value = Column(subquery.relation, "value")
    if not subquery.plan.free_columns:
        right = renamed(subquery.plan, (column,), {column: value})
        return _Value(right, None, value, None) if is_single_row(subquery.plan) else None
    found = lifted(subquery, _block(subquery.plan), child)
    unmatched = value_of_no_rows(subquery.plan, column)
    if found is None or unmatched is None or not _groups_are_matches(subquery.plan, found):
        return None
    if any(map(names_collation, found.terms)):  # values that are equal under it are several groups
        return None
    read = {item for term in found.terms for item in term.references}
    keys = [item for item in found.plan.output_columns if item in read]
    taken = frozenset(child.output_columns)
    names = fresh_names([key for key in keys if not key.relation or key in taken], subquery.relation, (value,))
    condition = conjunction([term.substitute(dict(names)) for term in found.terms])
    return _Value(renamed(found.plan, (column, *keys), {**names, column: value}), condition, value, unmatched)


def _block(plan: LogicalPlan) -> LogicalPlan:
    """The plan without nodes that change nothing about a single row. (Spark 4.3 applies the LIMIT of a grouped query
    to all outer rows together: its result is left to Spark.)"""
    match plan:
        case Sort(child=child) | Distinct(child):
            return _block(child)
        case Limit(count, 0, child) if count is None or count > 0:
            aggregate = _aggregate(_block(child))
            return plan if aggregate is None or aggregate.keys else _block(child)
    return plan


def _groups_are_matches(plan: LogicalPlan, found: Lifted) -> bool:
    """Whether each outer row matches at most one group: GROUP BY has no key that the correlation does not fix."""
    before, after = _aggregate(_block(plan)), _aggregate(found.plan)
    if before is None or after is None:
        return False
    read = {column for term in found.terms for column in term.references}
    fixed = {item.expression for item in after.items if item.column in read}
    return all(key in fixed for key in before.keys)


def _aggregate(plan: LogicalPlan) -> Aggregate | None:
    """The aggregation of a block."""
    match plan:
        case Aggregate():
            return plan
        case Project(_, child) | Filter(_, child) | Sort(_, child) | Hint(child=child):
            return _aggregate(child)
    return None
