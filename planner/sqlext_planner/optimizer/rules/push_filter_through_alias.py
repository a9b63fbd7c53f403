"""A filter moves below the alias of a subquery."""

from __future__ import annotations

from sqlext_planner.expressions.nodes import conjuncts
from sqlext_planner.expressions.patterns import is_movable
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, SubqueryAlias
from sqlext_planner.relational.plan_patterns import filtered


@rule(order="top_down", on=(Filter, SubqueryAlias))
def push_filter_through_alias(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter(p(d.x), SubqueryAlias d(q))`` -> ``SubqueryAlias d(Filter(p(x), q))``.

    ``SELECT * FROM (SELECT a AS x FROM t) d WHERE d.x > 5``::

        Filter: d.x > 5               SubqueryAlias: d
          SubqueryAlias: d      ->      Filter: x > 5
            Project: t.a AS x             Project: t.a AS x

    Legal for every movable conjunct: an alias only renames columns. A conjunct with a subquery stays, since the
    subquery's text may itself name ``d.x``.
    """
    match node:
        case Filter(condition, SubqueryAlias(_, _, child) as alias):
            terms = conjuncts(condition)
            pushed = [term for term in terms if is_movable(term)]
            if not pushed:
                return None
            names = dict(zip(alias.output_columns, child.output_columns, strict=True))
            below = filtered([term.substitute(names) for term in pushed], child)
            rest = [term for term in terms if not is_movable(term)]
            return filtered(rest, SubqueryAlias(alias.relation, alias.names, below, span=alias.span))
    return None
