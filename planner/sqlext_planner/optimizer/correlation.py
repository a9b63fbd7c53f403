"""Correlated subqueries: which columns of the outer query a plan reads, and the terms that read them, lifted out.

At the end what the rules decorrelate_* share: subqueries among the terms of a filter, their plans as sides of joins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sqlext_planner.expressions.arithmetic import INTEGERS, common_decimal
from sqlext_planner.expressions.nodes import (
    Column,
    Compare,
    Expression,
    NamedExpr,
    conjunction,
    conjuncts,
    is_generator,
    is_movable,
    reads_only,
)
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan, SubqueryExpression, SubqueryKind
from sqlext_planner.relational.nodes import Aggregate, Distinct, Filter, Hint, Project, Sort, filtered

#: Whether only the set of the subquery's rows matters (EXISTS, IN), or the aggregate that it computes of them.
Use = Literal["rows", "value"]


@dataclass(frozen=True)
class Lifted:
    """A plan that reads no outer column, and the terms over its output and the outer columns that select from it."""

    plan: LogicalPlan
    terms: tuple[Expression, ...]


class Lifting:
    """Lifts the correlated terms of one subquery to its top.

    `outer_dtypes` are the columns that the outer query gives, with their types; `relation` names the columns that an
    aggregation needs in addition. What nodes let through, with S the subquery's rows and p a term over both:

    | node                    | p below                                                                             |
    |-------------------------|-------------------------------------------------------------------------------------|
    | Filter, inner join      | goes up: filters commute, and ON of an inner join is a filter                       |
    | left, semi, anti join   | goes up from the left side, whose rows are output or not whatever p says            |
    | Project                 | goes up, with the columns that it reads added to the items                          |
    | Sort, Hint              | goes up; an order without a LIMIT means nothing here                                |
    | Distinct                | goes up for "rows": a set of rows has the same members; the node is dropped         |
    | Aggregate with keys     | ``inner = outer`` goes up: `inner` becomes a key, and the groups of one value of it |
    |                         | are those of the rows that have it                                                  |
    | Aggregate without keys  | the same for "value"; the caller restores its value for no rows                     |
    | Limit, set operation,   | nothing goes up                                                                     |
    | any other               |                                                                                     |

    Counter-example for a Limit: ``x IN (SELECT y FROM s WHERE s.k = t.k LIMIT 1)`` takes one row for each k.
    Counter-example for an Aggregate: with ``inner < outer`` a row of s belongs to the groups of many outer rows; and in
    ``s.text = t.number`` the texts '1' and '01' equal one number, so they are two groups where there should be one.
    """

    def __init__(self, use: Use, outer_dtypes: Mapping[Column, str | None], relation: str) -> None:
        self._use = use
        self._outer = dict(outer_dtypes)
        self._relation = relation
        self._computed = 0

    def lift(self, plan: LogicalPlan) -> Lifted | None:
        """The plan and its terms; None where a term has to stay."""
        if not plan.free_columns:
            return Lifted(plan, ())
        match plan:
            case Filter(condition, child):
                return self._filter(condition, child)
            case Project(items, child):
                return self._project(items, child, plan)
            case Aggregate(grouping_sets=None):
                return self._aggregate(plan)
            case Join():
                return self._join(plan)
            case Sort(keys, child) if reads_only_given(keys, child):
                return self.lift(child)
            case Distinct(child) if self._use == "rows":
                return self.lift(child)
            case Hint(child=child):
                below = self.lift(child)
                return below and Lifted(replace(plan, child=below.plan), below.terms)
        return None

    def _filter(self, condition: Expression, child: LogicalPlan) -> Lifted | None:
        below = self.lift(child)
        own, correlated = split(condition, child.output_columns)
        if below is None or not all(map(is_movable, correlated)):
            return None
        return Lifted(filtered(own, below.plan), (*below.terms, *correlated))

    def _project(self, items: tuple[NamedExpr, ...], child: LogicalPlan, node: Project) -> Lifted | None:
        below = self.lift(child)
        if below is None or not reads_only_given(items, child) or any(is_generator(i.expression) for i in items):
            return None
        given = {item.column: item.expression for item in items}
        needed = self._needed(below)
        if any(given.get(column, column) != column for column in needed):  # the name means something else above
            return None
        extra = tuple(NamedExpr(column, column) for column in needed if column not in given)
        return Lifted(Project((*items, *extra), below.plan, span=node.span), below.terms)

    @staticmethod
    def _needed(below: Lifted) -> list[Column]:
        """The columns of the plan that its terms read, in its order."""
        read = frozenset().union(*(term.references for term in below.terms))
        return [column for column in below.plan.output_columns if column in read]

    def _aggregate(self, node: Aggregate) -> Lifted | None:
        below = self.lift(node.child)
        if below is None or not reads_only_given((*node.keys, *node.items), node.child):
            return None
        if not node.keys and self._use == "rows":
            return None
        keys, items, terms = list(node.keys), list(node.items), []
        for term in below.terms:
            sides = self._equality(term, below.plan)
            if sides is None:
                return None
            inner, turned = sides
            if inner not in keys:
                keys.append(inner)
            column = self._item(inner, items)
            if column is None:
                return None
            other = term.left if turned else term.right  # type: ignore[attr-defined]
            both = (other, column) if turned else (column, other)
            terms.append(Compare(term.op, *both, span=term.span))  # type: ignore[attr-defined]
        return Lifted(Aggregate(tuple(keys), None, tuple(items), below.plan, span=node.span), tuple(terms))

    def _equality(self, term: Expression, plan: LogicalPlan) -> tuple[Expression, bool] | None:
        """The subquery's side of an equality, and whether it is the right one; None for any other term."""
        if not isinstance(term, Compare) or term.op not in ("=", "<=>"):
            return None
        for inner, outer, turned in ((term.left, term.right, False), (term.right, term.left, True)):
            apart = not any(column in plan.dtypes for column in outer.references)
            if apart and reads_only(inner, plan.output_columns):
                types = inner.result_type(plan.dtypes), outer.result_type(self._outer)
                return (inner, turned) if compares_exactly(*types) else None
        return None

    def _item(self, inner: Expression, items: list[NamedExpr]) -> Column | None:
        """The column of an aggregation's item for the key `inner`, added if there is none."""
        for item in items:
            if item.expression == inner:
                return item.column
        if isinstance(inner, Column):
            column = inner
        else:
            self._computed += 1
            column = Column(self._relation, f"key_{self._computed}")
        if any(item.column == column for item in items):
            return None
        items.append(NamedExpr(inner, column))
        return column

    def _join(self, node: Join) -> Lifted | None:
        left = self.lift(node.left)
        if left is None:
            return None
        if node.kind not in ("inner", "cross"):
            closed = node.kind in ("left", "semi", "anti") and not node.right.free_columns
            return (
                Lifted(replace(node, left=left.plan), left.terms) if closed and not node.missing_references() else None
            )
        right = self.lift(node.right)
        own, correlated = split(node.condition, (*node.left.output_columns, *node.right.output_columns))
        if right is None or not all(map(is_movable, correlated)):
            return None
        condition = conjunction(own)
        kind: Literal["inner", "cross"] = "cross" if condition is None else "inner"
        joined = replace(node, left=left.plan, right=right.plan, kind=kind, condition=condition)
        return Lifted(joined, (*left.terms, *right.terms, *correlated))


def reads_only_given(expressions: Collection[Expression], child: LogicalPlan) -> bool:
    """Whether expressions read only columns of `child`."""
    return all(column in child.dtypes for item in expressions for column in item.references)


def split(condition: Expression | None, given: Collection[Column]) -> tuple[list[Expression], list[Expression]]:
    """The terms that read only columns of `given`, and the others."""
    own: list[Expression] = []
    others: list[Expression] = []
    known = frozenset(given)
    for term in conjuncts(condition):
        (own if term.references <= known else others).append(term)
    return own, others


def compares_exactly(inner: str | None, outer: str | None) -> bool:
    """Whether at most one value of type `inner` equals a value of type `outer`.

    A comparison casts both to one type: two integers, dates or decimals stay two, two texts may become one number.
    """
    if inner is None or outer is None:
        return False
    return inner == outer or (inner in INTEGERS and outer in INTEGERS) or common_decimal(inner, outer) is not None


#: Turns a subquery into the right side and the condition of a semi or anti join; None where that is impossible.
Matching = Callable[[SubqueryExpression, LogicalPlan], tuple[LogicalPlan, Expression | None] | None]


def with_membership_joins(node: LogicalPlan, kind: SubqueryKind, matching: Matching) -> LogicalPlan | None:
    """A Filter whose subqueries of `kind` become semi and anti joins above the filter of the other terms.

    None if its terms hold none, or none that `matching` takes. The joins are in the order of the terms.
    """
    match node:
        case Filter(condition, child):
            memberships: list[tuple[SubqueryExpression, LogicalPlan, Expression | None]] = []
            rest: list[Expression] = []
            for term in conjuncts(condition):
                taken = matching(term, child) if isinstance(term, SubqueryExpression) and term.kind == kind else None
                if taken is None or not isinstance(term, SubqueryExpression):
                    rest.append(term)
                else:
                    memberships.append((term, *taken))
            if not memberships:
                return None
            plan = filtered(rest, child)
            for term, right, on in memberships:
                plan = Join(plan, right, "anti" if term.negated else "semi", on, sweep=term.sweep, span=term.span)
            return plan
    return None


def lifted(subquery: SubqueryExpression, plan: LogicalPlan, child: LogicalPlan) -> Lifted | None:
    """`plan`, a part of the subquery's plan, with its correlated terms lifted; the outer query filters `child`."""
    use: Use = "value" if subquery.kind == "scalar" else "rows"
    found = Lifting(use, child.dtypes, subquery.relation).lift(plan)
    given = {*child.output_columns, *(found.plan.output_columns if found is not None else ())}
    if found is None or any(not term.references <= given for term in found.terms):
        return None  # a term reads a column of a query that encloses the outer one
    return found


def as_side(
    plan: LogicalPlan, needed: Iterable[Column], child: LogicalPlan, relation: str
) -> tuple[LogicalPlan, dict[Column, Expression]]:
    """A plan as the other side of a join with `child`. Computed columns, whose names are unique in one block only, and
    columns that `child` has too move to `relation`. Also gives the new names of the `needed` columns that have one."""
    taken = frozenset(child.output_columns)
    clash = [column for column in plan.output_columns if not column.relation or column in taken]
    if not clash:
        return plan, {}
    names = fresh_names(clash, relation, plan.output_columns)
    kept = tuple(dict.fromkeys(needed)) or plan.output_columns[:1]
    return renamed(plan, kept, names), {old: new for old, new in names.items() if old in kept}


def fresh_names(columns: Iterable[Column], relation: str, taken: Collection[Column]) -> dict[Column, Column]:
    """A column of `relation` for each column, none of them in `taken`."""
    names: dict[Column, Column] = {}
    used = {column.name.lower() for column in taken if column.relation == relation}
    for column in columns:
        name, count = column.name, 1
        while name.lower() in used:
            count += 1
            name = f"{column.name}_{count}"
        used.add(name.lower())
        names[column] = Column(relation, name)
    return names


def renamed(plan: LogicalPlan, columns: Iterable[Column], names: dict[Column, Column]) -> LogicalPlan:
    """The `columns` columns of a plan under their new names; an aggregation or projection gives these names itself."""
    columns = tuple(columns)
    if isinstance(plan, (Aggregate, Project)):
        items = {item.column: item for item in plan.items}
        new = tuple(
            NamedExpr(items[column].expression, names.get(column, column), span=items[column].span)
            for column in columns
        )
        if isinstance(plan, Aggregate):
            return Aggregate(plan.keys, plan.grouping_sets, new, plan.child, span=plan.span)
        return Project(new, plan.child, span=plan.span)
    return Project(tuple(NamedExpr(column, names.get(column, column)) for column in columns), plan)


def is_selection(plan: LogicalPlan) -> bool:
    """Whether a plan only drops columns of its child."""
    return isinstance(plan, Project) and all(item.expression == item.column for item in plan.items)
