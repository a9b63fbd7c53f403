"""Operands that the conditions of a chain of LAST JOINs compute from its first table are computed there, once."""

from __future__ import annotations

from dataclasses import replace

from sqlext_planner.expressions.nodes import Column, Compare, Expression, Literal, NamedExpr, conjunction, conjuncts
from sqlext_planner.expressions.patterns import is_movable, names_collation, reads_only
from sqlext_planner.last_join.nodes import LastJoin, LastMatch
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project


@rule(order="top_down", on=(LastJoin,))
def compute_last_join_operands(node: LogicalPlan) -> LogicalPlan | None:
    """``LastJoin(LastJoin(a, b), c) ON f(a.x) > c.y``: f(a.x) becomes a column of a.


    ``SELECT ... FROM a LAST JOIN b ON a.j = b.j LAST JOIN c ORDER BY c.ts ON a.k = c.k AND c.ts < a.ts - 60``::

        LastJoin: ORDER BY c.ts ON a.k = c.k             Project: a.j, a.k, a.ts, b.j, c.k, c.ts
                  AND c.ts < (a.ts - 60)                   LastJoin: ORDER BY c.ts ON a.k = c.k AND c.ts < (a.ts - 60)
          LastJoin: ON a.j = b.j                   ->        LastJoin: ON a.j = b.j
            Scan: a                                            Project: a.j, a.k, a.ts, a.ts - 60 AS (a.ts - 60)
            Scan: b                                              Scan: a
          Scan: c                                            Scan: b
                                                           Scan: c

    A column computed between two joins sends all that has been joined so far through Spark's rows; computed below it
    costs one column. Legal for a movable operand over the first table's columns alone: a LAST JOIN passes each left
    row on once, unchanged. Operands of the lowest join stay: they are computed where the table is read anyway.
    """
    match node:
        case LastJoin(LastJoin() as inner, rights, matches):
            base = _base(inner)
            operands = {operand: Column("", str(operand)) for found in matches for operand in _operands(found, base)}
            if not operands:
                return None
            moved = tuple(_with(found, operands) for found in matches)
            join = replace(node, left=_above(inner, operands), rights=rights, matches=moved)
            return Project(tuple(NamedExpr(column, column) for column in node.output_columns), join)
    return None


def _base(join: LastJoin) -> LogicalPlan:
    return _base(join.left) if isinstance(join.left, LastJoin) else join.left


def _operands(found: LastMatch, base: LogicalPlan) -> list[Expression]:
    """The operands of keys and comparisons that are computed from columns of `base`."""
    sides = [
        side for term in conjuncts(found.residual) if isinstance(term, Compare) for side in (term.left, term.right)
    ]
    return [
        side
        for side in (*found.left_keys, *sides)
        if not isinstance(side, Column | Literal)
        and reads_only(side, base.output_columns)
        and is_movable(side)
        and not names_collation(side)
    ]


def _with(found: LastMatch, operands: dict[Expression, Column]) -> LastMatch:
    terms = [
        replace(term, left=operands.get(term.left, term.left), right=operands.get(term.right, term.right))
        if isinstance(term, Compare)
        else term
        for term in conjuncts(found.residual)
    ]
    keys = tuple(operands.get(key, key) for key in found.left_keys)
    return replace(found, left_keys=keys, residual=conjunction(terms))


def _above(join: LastJoin, operands: dict[Expression, Column]) -> LastJoin:
    """The chain with the operands computed on its first table."""
    if isinstance(join.left, LastJoin):
        return replace(join, left=_above(join.left, operands))
    known = set(join.left.output_columns)
    items = [NamedExpr(column, column) for column in join.left.output_columns]
    items += [NamedExpr(operand, column) for operand, column in operands.items() if column not in known]
    return replace(join, left=Project(tuple(items), join.left))
