"""What EMIT AFTER says: the delay, the estimator, the confidence."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence, Set
from functools import partial

from sqlext_planner.early.nodes import Emission, default_estimator, estimator_docs, row_estimators, stream_estimators
from sqlext_planner.errors import AnalysisError, Span
from sqlglot import exp

from sqlext.analyzer.amounts import time_of
from sqlext.analyzer.context import Context, did_you_mean
from sqlext.analyzer.items import Item
from sqlext.syntax.nodes import EmitClause
from sqlext.syntax.spans import mistake, span_of, unsupported

_mistake = partial(mistake, "early-answer-options")

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?:bd|d|f|l)?", re.IGNORECASE)


def emission(context: Context, clause: EmitClause, *, rows: bool = False) -> Emission:
    """The clause's meaning, for windows of rows if `rows` is set. Raises AnalysisError, UnsupportedError."""
    delay, given = clause.args["delay"], clause.args.get("confidence")
    confidence = 0.95 if given is None else _confidence(context, given)
    found = _delay(context, delay, rows=rows)
    return Emission(found, _estimator(clause, rows=rows), confidence, delay_span=span_of(delay))


def micros(text: str) -> int | None:
    """Microseconds of an interval such as ``10 seconds``; None for any other text, or none of a fixed length."""
    try:
        found = time_of(f"interval '{text}'", None, "the interval")
    except AnalysisError:
        return None
    return int(found) if found is not None and found == found.to_integral_value() else None


def _delay(context: Context, node: exp.Expr, *, rows: bool) -> int:
    span = span_of(node)
    delay = time_of(context.slice(span).strip(), span, "DELAY")
    if delay is None:
        raise _mistake(
            span,
            f"DELAY must be an interval, not {context.slice(span)!r}",
            "write for example DELAY INTERVAL '7' SECONDS",
        )
    if delay < 0 and rows:
        raise _mistake(span, "DELAY must not be below 0", "DELAY 0s answers each row at once")
    if delay <= 0 and not rows:
        raise _mistake(
            span, "DELAY must be longer than 0", "it counts from the start of a window, when no row has come"
        )
    if delay != delay.to_integral_value() or delay >= 2**63:
        raise _mistake(span, "DELAY must be whole microseconds", "write for example DELAY 7ms")
    return int(delay)


def _estimator(clause: EmitClause, *, rows: bool) -> str:
    node = clause.args.get("compensate")
    if node is None:
        return default_estimator()
    name = str(node.name).lower()
    usable = row_estimators() if rows else stream_estimators()
    if name not in estimator_docs():
        raise _mistake(
            node, f"there is no estimator '{node.name}'", did_you_mean(name, usable, f"use one of {', '.join(usable)}")
        )
    if name not in usable and rows:
        raise unsupported(
            "early-answer-options",
            node,
            f"the estimator {name} is about window joins, and not about windows of rows (OVER)",
            f"use one of {', '.join(usable)}",
        )
    if name not in usable:
        raise unsupported(
            "early-answer-options",
            node,
            f"the estimator {name} follows every row as it arrives, and a stream keeps sums by key only",
            f"use one of {', '.join(usable)}; sqlext pecj replay has {name} for recorded data",
        )
    return name


def _confidence(context: Context, node: exp.Expr) -> float:
    text = context.slice(span_of(node)).strip()
    value = float(text.rstrip("bBdDfFlL")) if _NUMBER.fullmatch(text) else None
    if value is None or not 0 < value < 1:
        raise _mistake(
            node,
            f"CONFIDENCE must be a number between 0 and 1, not {text}",
            "it is the share of windows whose interval is to hold the exact answer: write CONFIDENCE 0.95",
        )
    return value


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
            raise unsupported("early-answer", place, f"EMIT AFTER cannot be combined with {name}", OUTER)


def estimated(node: exp.Expr, functions: Collection[str], help: str) -> str:
    """The name of an aggregate. Raises UnsupportedError for one that is none of the `functions`, or over DISTINCT."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name not in functions:
        shown = f"{node.name}()" if name else "an aggregate with FILTER or another clause"
        raise unsupported("early-answer", node, f"EMIT AFTER estimates COUNT, SUM and AVG, and not {shown}", help)
    if any(isinstance(one, exp.Distinct) for one in node.expressions):
        raise unsupported(
            "early-answer",
            node,
            f"EMIT AFTER does not estimate {name}(DISTINCT ...): what has come says little of what is distinct",
            "leave EMIT AFTER or DISTINCT out",
        )
    return name


def refuse_names(context: Context, items: Sequence[Item], added: Set[str]) -> None:
    """Raises AnalysisError for an item with the name of a column that is added."""
    for item in items:
        if context.fold(item.name) in {context.fold(name) for name in added}:
            raise mistake(
                "duplicate-name",
                item.span,
                f"with EMIT AFTER the result has a column '{item.name}' of its own",
                f"give the item another name, for example {item.name}_1",
            )
