"""IN and NOT IN over a subquery become semi and anti joins."""

from __future__ import annotations

from sqlext_planner.expressions.nodes import Compare, Expression, SparkExpr, conjunction
from sqlext_planner.expressions.patterns import is_movable
from sqlext_planner.expressions.subquery import Subquery
from sqlext_planner.optimizer.decorrelation import as_side, is_selection, lifted, with_membership_joins
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Distinct, Filter, Sort


@rule(order="top_down", on=(Filter,))
def decorrelate_in(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter(x IN (SELECT y FROM s WHERE p), t)`` -> ``t LEFT SEMI JOIN Filter(p, s) ON x = y``.

    ``SELECT a FROM t WHERE a IN (SELECT x FROM s WHERE s.k = t.k) AND b NOT IN (SELECT v FROM u)``::

        Filter: a IN (...) AND b NOT IN (...)      Join: anti ON (t.b = u.v) OR isnull(t.b = u.v)
          Scan: t [a, b, k]                          Join: semi ON t.a = s.x AND s.k = t.k
                                             ->        Scan: t [a, b, k]
                                                       Scan: s [x, k]
                                                     Scan: u [v]

    For a term of WHERE or HAVING, with one operand or several (``(a, b) IN (SELECT x, y ...)``).

    | term   | keeps the rows t with                                  | condition, operand by operand |
    |--------|--------------------------------------------------------|-------------------------------|
    | IN     | a row s for which ``x = y`` is true                    | ``x = y``                     |
    | NOT IN | no row s for which ``x = y`` is true or unknown (NULL) | ``(x = y) OR isnull(x = y)``  |

    Legal because these are the definitions of IN and NOT IN. A correlated term chooses the rows s, so in both forms it
    stays beside the condition and must be true. ``(a, b) = (x, y)`` is false exactly if one of its equalities is. With
    one operand and no correlation, Catalyst plans an anti join of this form as a null-aware hash join.

    Counter-example: with ``x = y`` alone ``NOT IN`` would keep a row whose x is NULL, and every row where some y is
    NULL: ``SELECT 1 WHERE 1 NOT IN (SELECT NULL)`` has no row. If an operand and the subquery's column have different
    types and one of them is a string, the term stays text: IN and = convert them differently.
    """
    return with_membership_joins(node, "in", _side)


def _side(subquery: Subquery, child: LogicalPlan) -> tuple[LogicalPlan, Expression | None] | None:
    columns = subquery.plan.output_columns
    if len(columns) != len(subquery.operands) or not all(map(is_movable, subquery.operands)):
        return None
    if any(not operand.references <= frozenset(child.output_columns) for operand in subquery.operands):
        return None
    found = lifted(subquery, _members(subquery.plan), child)
    if found is None:
        return None
    pairs = list(zip(subquery.operands, columns, strict=True))
    if any(_converted(a.result_type(child.dtypes), found.plan.dtypes[b]) for a, b in pairs):
        return None
    needed = [*columns, *(c for t in found.terms for c in found.plan.output_columns if c in t.references)]
    right, names = as_side(found.plan, needed, child, subquery.relation)
    equal = [Compare("=", operand, names.get(column, column), span=subquery.span) for operand, column in pairs]
    terms: list[Expression] = list(map(_true_or_unknown, equal)) if subquery.negated else list(equal)
    terms += [term.substitute(names) for term in found.terms]
    below = right.children[0] if is_selection(right) else None
    return (below if below is not None and _apart(below, child) else right), conjunction(terms)


def _members(plan: LogicalPlan) -> LogicalPlan:
    """The plan without nodes that only order its rows or drop repeated ones, if it has terms to lift."""
    match plan:
        case Sort(child=child) | Distinct(child) if plan.free_columns:
            return _members(child)
    return plan


def _apart(plan: LogicalPlan, child: LogicalPlan) -> bool:
    """Whether a plan's columns can keep their names beside those of `child`."""
    return all(column.relation and column not in child.dtypes for column in plan.output_columns)


def _converted(left: str | None, right: str | None) -> bool:
    """Whether a string is compared with something else."""
    return left != right and "string" in (left, right) and None not in (left, right)


def _true_or_unknown(equality: Compare) -> Expression:
    return SparkExpr((equality, " OR isnull", equality), dtype="boolean", span=equality.span)
