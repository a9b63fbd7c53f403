"""Rules that make joins of subqueries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlext_planner.expressions.nodes import (
    Column,
    Compare,
    Expression,
    Literal,
    NamedExpr,
    SparkExpr,
    conjunction,
    conjuncts,
    holds_subquery,
    is_generator,
    is_movable,
    names_collation,
)
from sqlext_planner.expressions.typed import NULL
from sqlext_planner.optimizer.correlation import (
    Lifted,
    as_side,
    fresh_names,
    is_selection,
    lifted,
    renamed,
    with_membership_joins,
)
from sqlext_planner.optimizer.executor import rule
from sqlext_planner.relational.joins import Join, JoinKind
from sqlext_planner.relational.logical_plan import LogicalPlan, SubqueryExpression
from sqlext_planner.relational.nodes import Aggregate, Distinct, Filter, Hint, Limit, Project, Sort, Window, filtered
from sqlext_planner.relational.plan_patterns import is_single_row, is_strict, value_of_no_rows


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
    return with_membership_joins(node, "exists", _exists_side)


def _exists_side(subquery: SubqueryExpression, child: LogicalPlan) -> tuple[LogicalPlan, Expression | None] | None:
    limits = subquery.refusal is not None or not subquery.plan.free_columns
    plan = _rows(subquery.plan, limits=limits)
    lifted_plan = lifted(subquery, plan, child)
    if lifted_plan is None:
        return None
    if not lifted_plan.terms:
        return Limit(1, 0, lifted_plan.plan), None
    needed = [
        column for term in lifted_plan.terms for column in lifted_plan.plan.output_columns if column in term.references
    ]
    right, names = as_side(lifted_plan.plan, needed, child, subquery.relation)
    return right, conjunction([term.substitute(names) for term in lifted_plan.terms])


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
    return with_membership_joins(node, "in", _in_side)


def _in_side(subquery: SubqueryExpression, child: LogicalPlan) -> tuple[LogicalPlan, Expression | None] | None:
    columns = subquery.plan.output_columns
    if len(columns) != len(subquery.operands) or not all(map(is_movable, subquery.operands)):
        return None
    if any(not operand.references <= frozenset(child.output_columns) for operand in subquery.operands):
        return None
    lifted_plan = lifted(subquery, _members(subquery.plan), child)
    if lifted_plan is None:
        return None
    pairs = list(zip(subquery.operands, columns, strict=True))
    types = [(a.result_type(child.dtypes), lifted_plan.plan.dtypes[b]) for a, b in pairs]
    if any(a != b and "string" in (a, b) and None not in (a, b) for a, b in types):  # a string beside something else
        return None
    needed = [*columns, *(c for t in lifted_plan.terms for c in lifted_plan.plan.output_columns if c in t.references)]
    right, names = as_side(lifted_plan.plan, needed, child, subquery.relation)
    equal = [Compare("=", operand, names.get(column, column), span=subquery.span) for operand, column in pairs]
    terms: list[Expression] = list(equal)
    if subquery.negated:  # true or unknown
        terms = [SparkExpr((term, " OR isnull", term), dtype="boolean", span=term.span) for term in equal]
    terms += [term.substitute(names) for term in lifted_plan.terms]
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


def _values(terms: Iterable[Expression], child: LogicalPlan) -> dict[SubqueryExpression, _Value]:
    """The subqueries in the terms that can be joined with `child`; equal ones share one value."""
    values: dict[SubqueryExpression, _Value] = {}
    for term in terms:
        for item in term.walk() if holds_subquery(term) else ():
            if isinstance(item, SubqueryExpression) and item.kind == "scalar" and item not in values:
                value = _value(item, child)
                if value is not None:
                    values[item] = value
    return values


def _joined(
    terms: Iterable[Expression], values: dict[SubqueryExpression, _Value], child: LogicalPlan, node: LogicalPlan
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


def _value(subquery: SubqueryExpression, child: LogicalPlan) -> _Value | None:
    """The subquery as a side of a join; None if it has to stay."""
    if len(subquery.plan.output_columns) != 1:
        return None
    (column,) = subquery.plan.output_columns
    value = Column(subquery.relation, "value")
    if not subquery.plan.free_columns:
        right = renamed(subquery.plan, (column,), {column: value})
        return _Value(right, None, value, None) if is_single_row(subquery.plan) else None
    lifted_plan = lifted(subquery, _block(subquery.plan), child)
    unmatched = value_of_no_rows(subquery.plan, column)
    if lifted_plan is None or unmatched is None or not _groups_are_matches(subquery.plan, lifted_plan):
        return None
    if any(map(names_collation, lifted_plan.terms)):  # values that are equal under it are several groups
        return None
    read = {item for term in lifted_plan.terms for item in term.references}
    keys = [item for item in lifted_plan.plan.output_columns if item in read]
    taken = frozenset(child.output_columns)
    names = fresh_names([key for key in keys if not key.relation or key in taken], subquery.relation, (value,))
    condition = conjunction([term.substitute(dict(names)) for term in lifted_plan.terms])
    return _Value(renamed(lifted_plan.plan, (column, *keys), {**names, column: value}), condition, value, unmatched)


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
