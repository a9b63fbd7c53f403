"""EXISTS and NOT EXISTS become semi and anti joins."""

from __future__ import annotations

from sqlext_planner.expressions.nodes import Expression, conjunction
from sqlext_planner.expressions.patterns import is_generator
from sqlext_planner.expressions.subquery import Subquery
from sqlext_planner.optimizer.decorrelation import as_side, lifted, with_membership_joins
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Distinct, Filter, Limit, Project, Sort, Window


@rule(order="top_down", on=(Filter,))
def decorrelate_exists(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter(EXISTS (s WHERE s.k = t.k AND p), t)`` -> ``t LEFT SEMI JOIN Filter(p, s) ON s.k = t.k``.

    ``SELECT a FROM t WHERE a > 1 AND NOT EXISTS (SELECT 1 FROM s WHERE s.k = t.k AND s.x > 3)``::

        Filter: t.a > 1 AND NOT EXISTS (...)       Join: anti ON s.k = t.k
          Scan: t [a, k]                     ->      Filter: t.a > 1
                                                       Scan: t [a, k]
                                                     Filter: s.x > 3
                                                       Scan: s [x, k]

    For a term of WHERE or HAVING. What the subquery selects does not matter, nor do DISTINCT, ORDER BY, GROUP BY
    without HAVING, or a LIMIT of one row or more: they leave a row if there is one. (Spark 4.3 applies the LIMIT of a
    correlated subquery to all outer rows together; where Spark can run the subquery, its result is left to Spark.) A
    subquery that reads nothing of the outer query is limited to one row. The rule is top_down, like those for IN and
    scalar subqueries: it sees a subquery in a subquery once that has become part of the plan, and a common table
    expression that both sides read stays one node.

    Legal because a semi join keeps the rows with a partner for which the condition is true, and the subquery has a row
    for exactly these; in either form, a row for which it is unknown is no partner. The table of `correlation.Lifting`
    says which terms can leave the subquery.

    Counter-examples: ``EXISTS (SELECT max(x) FROM s WHERE s.k = t.k)`` is always true, as an aggregate without GROUP BY
    has a row; ``a = 1 OR EXISTS (...)`` keeps rows without a partner; so both stay text.
    """
    return with_membership_joins(node, "exists", _side)


def _side(subquery: Subquery, child: LogicalPlan) -> tuple[LogicalPlan, Expression | None] | None:
    limits = subquery.refusal is not None or not subquery.plan.free_columns
    plan = _rows(subquery.plan, limits=limits)
    found = lifted(subquery, plan, child)
    if found is None:
        return None
    if not found.terms:
        return Limit(1, 0, found.plan), None
    needed = [column for term in found.terms for column in found.plan.output_columns if column in term.references]
    right, names = as_side(found.plan, needed, child, subquery.relation)
    return right, conjunction([term.substitute(names) for term in found.terms])


def _rows(plan: LogicalPlan, *, limits: bool) -> LogicalPlan:
    """The plan without nodes that change neither whether it has a row nor what it reads of the outer query; with
    `limits`, also without LIMIT."""
    match plan:
        case Project(items, child) if not any(is_generator(item.expression) for item in items):
            return _rows(child, limits=limits)
        case Sort(child=child) | Distinct(child) | Window(child=child):
            return _rows(child, limits=limits)
        case Limit(count, 0, child) if limits and (count is None or count > 0):
            return _rows(child, limits=limits)
        case Aggregate(keys, None, _, child) if keys:
            return _rows(child, limits=limits)
    return plan
