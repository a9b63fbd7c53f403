"""Plans of the relational core as DuckDB SQL, so that thousands of rewritten plans run without a JVM."""

from __future__ import annotations

import re

from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Filter, Join, Project, Scan

_JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "semi": "SEMI JOIN", "anti": "ANTI JOIN", "cross": "CROSS JOIN"}
#: Spark's words for what DuckDB calls otherwise. Its sums of integers are wider, so that try_sum is sum.
_WORDS = (
    (r"`", '"'),
    (r"\braise_error\(", "error("),
    (r"\btry_sum\(", "sum("),
    (r"\b(\d+)L\b", r"CAST(\1 AS BIGINT)"),
    (r"\b(\d+)D\b", r"CAST(\1 AS DOUBLE)"),
)


def duck_text(expression: Expression) -> str:
    """An expression in DuckDB's words, over columns named `Column.spark_name`."""
    text = expression.sql()
    for pattern, replacement in _WORDS:
        text = re.sub(pattern, replacement, text)
    return text


def duck_sql(plan: LogicalPlan) -> str:
    """A query with the plan's rows; its columns are called as the plan's. Scans read the table of that name."""
    match plan:
        case Scan(table, _, fields):
            items = ", ".join(f'"{f.column.name}" AS {duck_text(f.column)}' for f in fields)
            return f"SELECT {items} FROM {table}"
        case Filter(condition, child):
            return f"SELECT * FROM ({duck_sql(child)}) WHERE {duck_text(condition)}"
        case Project(items, child):
            return f"SELECT {', '.join(map(duck_text, items))} FROM ({duck_sql(child)})"
        case Aggregate(keys, None, items, child):
            grouping = f" GROUP BY {', '.join(map(duck_text, keys))}" if keys else ""
            return f"SELECT {', '.join(map(duck_text, items))} FROM ({duck_sql(child)}){grouping}"
        case Join(left, right, kind, condition):
            on = "" if kind == "cross" else f" ON {duck_text(condition) if condition is not None else 'true'}"
            return f"SELECT * FROM ({duck_sql(left)}) {_JOINS[kind]} ({duck_sql(right)}){on}"
    raise TypeError(f"{type(plan).__name__} has no DuckDB text")
