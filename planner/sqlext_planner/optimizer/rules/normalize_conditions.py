"""Conditions get the form in which other rules look for comparisons and period predicates."""

from __future__ import annotations

from dataclasses import replace

from sqlext_planner.expressions.truth import Truth
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.periods.normal_form import merged_periods, period_form
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Join


@rule(order="bottom_up")
def normalize_conditions(node: LogicalPlan) -> LogicalPlan | None:
    """``Join ON NOT (a.s >= b.e OR a.e <= b.s)`` -> ``Join ON a.s < b.e AND a.e > b.s``, and filters likewise.

    ``SELECT * FROM a JOIN b ON a.p MEETS b.q OR b.q MEETS a.p``::

        Join: inner ON a.p MEETS b.q OR b.q MEETS a.p  ->  Join: inner ON a.p MEETS OR MET BY b.q
          Scan: a [p]                                        Scan: a [p]
          Scan: b [q]                                        Scan: b [q]

    NOT goes to the comparisons; ``IS TRUE``, ``= true`` and ``coalesce(..., false)`` go; ``greatest(x, y) < least(z,
    w)`` becomes comparisons of the values, and the predicates over the same two periods become one set of relations.

    Legal because these nodes ask only for which rows the condition is true, and each rewrite is true for the same rows
    (`expressions/truth.py`, `periods/normal_form.py`).

    Counter-example: ``SELECT NOT (a.s < b.e) IS TRUE``: there false and NULL are different results. And
    ``(p OVERLAPS q) IS NOT FALSE`` stays: it is true where an end is NULL.
    """
    match node:
        case Filter(condition) | Join(condition=condition) if condition is not None:
            known = {column: dtype for child in node.children for column, dtype in child.dtypes.items()}
            found = Truth(known, period_form, merged_periods).when_true(condition)
            return None if found == condition else replace(node, condition=found)
    return None
