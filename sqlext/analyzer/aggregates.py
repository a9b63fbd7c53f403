"""GROUP BY blocks."""

from __future__ import annotations

from sqlext.analyzer.context import LeftToSparkError
from sqlext.dialect import span_of


def analyze_aggregate(context, node, env, plan, scope, items, definitions):  # type: ignore
    raise LeftToSparkError("GROUP BY is left to Spark", span=span_of(node))
