"""What the rules decorrelate_* share: subqueries among the terms of a filter, and their plans as sides of joins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr, conjuncts
from sqlext_planner.optimizer.correlation import Lifted, Lifting, Use
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Filter, Join, Project, filtered
from sqlext_planner.relational.subquery import Subquery, SubqueryKind

#: Turns a subquery into the right side and the condition of a semi or anti join; None where that is impossible.
Matching = Callable[[Subquery, LogicalPlan], tuple[LogicalPlan, Expression | None] | None]


def with_membership_joins(node: LogicalPlan, kind: SubqueryKind, matching: Matching) -> LogicalPlan | None:
    """A Filter whose subqueries of `kind` become semi and anti joins above the filter of the other terms.

    None if its terms hold none, or none that `matching` takes. The joins are in the order of the terms.
    """
    match node:
        case Filter(condition, child):
            found: list[tuple[Subquery, LogicalPlan, Expression | None]] = []
            rest: list[Expression] = []
            for term in conjuncts(condition):
                taken = matching(term, child) if isinstance(term, Subquery) and term.kind == kind else None
                if taken is None or not isinstance(term, Subquery):
                    rest.append(term)
                else:
                    found.append((term, *taken))
            if not found:
                return None
            plan = filtered(rest, child)
            for term, right, on in found:
                plan = Join(plan, right, "anti" if term.negated else "semi", on, sweep=term.sweep, span=term.span)
            return plan
    return None


def lifted(subquery: Subquery, plan: LogicalPlan, child: LogicalPlan) -> Lifted | None:
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


def renamed(plan: LogicalPlan, kept: Iterable[Column], names: dict[Column, Column]) -> LogicalPlan:
    """The `kept` columns of a plan under their new names; an aggregation or projection gives these names itself."""
    kept = tuple(kept)
    if isinstance(plan, (Aggregate, Project)):
        items = {item.column: item for item in plan.items}
        new = tuple(
            NamedExpr(items[column].expression, names.get(column, column), span=items[column].span) for column in kept
        )
        if isinstance(plan, Aggregate):
            return Aggregate(plan.keys, plan.grouping_sets, new, plan.child, span=plan.span)
        return Project(new, plan.child, span=plan.span)
    return Project(tuple(NamedExpr(column, names.get(column, column)) for column in kept), plan)


def is_selection(plan: LogicalPlan) -> bool:
    """Whether a plan only drops columns of its child."""
    return isinstance(plan, Project) and all(item.expression == item.column for item in plan.items)
