"""The FROM clauses of a text that join three or more relations, found only from the syntax tree.

This counts what TSC should group without looking at a plan, so that one can be checked against the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp, parse_one

#: Joins become one node from this number of relations on.
LEAST = 3


@dataclass(frozen=True)
class From:
    """One FROM clause.

    relations  the names of its relations, in order; those on both sides of every kind of join
    derived    the FROM of each relation that is a subquery or a common table expression with one: if only columns are
               computed in between, its relations can be joined in one node with the others
    """

    relations: tuple[str, ...]
    derived: tuple[tuple[str, From], ...] = ()


def multiway_froms(sql: str) -> list[From]:
    """Every FROM of three or more relations: of the query, its subqueries, and its common table expressions."""
    tree = parse_one(sql, read="sqlext")
    named = {cte.alias.lower(): cte.this for cte in tree.find_all(exp.CTE)}
    found = (_from(select, named) for select in tree.find_all(exp.Select))
    return [clause for clause in found if len(clause.relations) >= LEAST]


def _from(select: exp.Expr, named: dict[str, exp.Expr]) -> From:
    relations = list(_relations(select))
    bodies = ((relation.alias_or_name, _body(relation, named)) for relation in relations)
    below = tuple((name, _from(body, _without(named, body))) for name, body in bodies if body is not None)
    return From(tuple(relation.alias_or_name for relation in relations), below)


def _body(relation: exp.Expr, named: dict[str, exp.Expr]) -> exp.Select | None:
    """The SELECT of a relation; None for a table, a set operation, VALUES."""
    body = named.get(relation.name.lower()) if isinstance(relation, exp.Table) else relation.this
    return body if isinstance(body, exp.Select) else None


def _without(named: dict[str, exp.Expr], body: exp.Expr) -> dict[str, exp.Expr]:
    """A common table expression does not see itself: inside it, its name means a table."""
    return {name: other for name, other in named.items() if other is not body}


def _relations(node: exp.Expr) -> Iterator[exp.Expr]:
    """The relations of a SELECT's FROM, also those joined in parentheses."""
    first = node.args.get("from_")
    for relation in [
        *([first.this] if first is not None else []),
        *(join.this for join in node.args.get("joins") or ()),
    ]:
        if isinstance(relation, exp.Subquery) and not relation.alias and not isinstance(relation.this, exp.Query):
            yield relation.this  # (a JOIN b): the first one, then those joined to it
            yield from _relations(relation.this)
        else:
            yield relation
            if not isinstance(relation, exp.Subquery):
                yield from _relations(relation)
