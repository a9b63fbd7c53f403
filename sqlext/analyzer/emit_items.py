"""What blocks with EMIT AFTER have in common: the clauses that they cannot have, the names of what is added."""

from __future__ import annotations

from collections.abc import Sequence, Set

from sqlext_planner.errors import AnalysisError, Span, UnsupportedError
from sqlglot import exp

from sqlext.analyzer.context import Context
from sqlext.analyzer.items import Item
from sqlext.syntax.spans import span_of

#: What is behind each aggregate, as `<its name>_<word>`.
BOUNDS = ("lower", "upper", "coverage", "reliable")
#: What to do with what sees estimates without their bounds.
OUTER = "write it in a query around this one: SELECT ... FROM (SELECT ... EMIT AFTER ...)"
_REFUSED = {
    "distinct": "DISTINCT",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "laterals": "LATERAL VIEW",
    "pivots": "PIVOT",
    "hint": "a hint",
}


def refuse_clauses(node: exp.Select, span: Span) -> None:
    """Raises UnsupportedError for a clause that cannot be in the block; `span` is the place of EMIT AFTER."""
    for key, name in _REFUSED.items():
        clause = node.args.get(key)
        clause = clause[0] if isinstance(clause, list) and clause else clause
        if clause:
            place = span_of(clause) if isinstance(clause, exp.Expr) and key not in ("distinct", "hint") else span
            raise UnsupportedError(
                f"EMIT AFTER cannot be combined with {name}", condition="early-answer", span=place, help=OUTER
            )


def refuse_names(context: Context, items: Sequence[Item], added: Set[str]) -> None:
    """Raises AnalysisError for an item with the name of a column that is added."""
    for item in items:
        if context.fold(item.name) in {context.fold(name) for name in added}:
            raise AnalysisError(
                f"with EMIT AFTER the result has a column '{item.name}' of its own",
                condition="duplicate-name",
                span=item.span,
                help=f"give the item another name, for example {item.name}_1",
            )
