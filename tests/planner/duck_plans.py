"""Plans of the relational core as DuckDB SQL, so that thousands of rewritten plans run without a JVM."""

from __future__ import annotations

import re

from sqlext_operators.interval_join.conditions import Condition
from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.interval_join.nodes import IntervalJoin
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Filter, Project, Scan

_JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "semi": "SEMI JOIN", "anti": "ANTI JOIN", "cross": "CROSS JOIN"}
#: Spark's words for what DuckDB calls otherwise. Its sums of integers are wider, so that try_sum is sum.
_WORDS = (
    (r"`", '"'),
    (r"\braise_error\(", "error("),
    (r"\btry_sum\(", "sum("),
    (r"\bnvl\(", "coalesce("),
    (r" <=> ", " IS NOT DISTINCT FROM "),
    (r"struct<start:(\w+),end:(\w+)>", r'STRUCT("start" \1, "end" \2)'),
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
        case IntervalJoin():
            return _interval_join(plan)
        case Project(items, child):
            return f"SELECT {', '.join(map(duck_text, items))} FROM ({duck_sql(child)})"
        case Aggregate(keys, None, items, child):
            grouping = f" GROUP BY {', '.join(map(duck_text, keys))}" if keys else ""
            return f"SELECT {', '.join(map(duck_text, items))} FROM ({duck_sql(child)}){grouping}"
        case Join(left, right, kind, condition):
            on = "" if kind == "cross" else f" ON {duck_text(condition) if condition is not None else 'true'}"
            return f"SELECT * FROM ({duck_sql(left)}) {_JOINS[kind]} ({duck_sql(right)}){on}"
    raise TypeError(f"{type(plan).__name__} has no DuckDB text")


def _interval_join(node: IntervalJoin) -> str:
    """The pairs of each alternative of an inner join over numbers: a pair of two alternatives is there twice."""
    values = {f"l{i}": duck_text(v) for i, v in enumerate(node.left_values)}
    values |= {f"r{i}": duck_text(v) for i, v in enumerate(node.right_values)}
    common = [
        f"{duck_text(left)} {'IS NOT DISTINCT FROM' if safe else '='} {duck_text(right)}"
        for left, right, safe in zip(node.left_keys, node.right_keys, node.null_safe, strict=True)
    ]
    common += [f"{values[start]} < {values[end]}" for start, end in (*node.left_periods, *node.right_periods)]
    items = ", ".join(map(duck_text, node.output_columns))
    sides = f"({duck_sql(node.left)}) JOIN ({duck_sql(node.right)})"
    amounts = dict(node.amounts)

    def compared(item: Condition) -> str:
        shift = item.shift[0] * amounts[item.shift[1]].value if isinstance(item.shift, tuple) else item.shift
        return f"{values[item.left]} + {shift} {item.operator} {values[item.right]}"

    options = [" AND ".join([*common, *map(compared, terms)]) for terms in node.alternatives]
    return " UNION ALL ".join(f"SELECT {items} FROM {sides} ON {option}" for option in options)
