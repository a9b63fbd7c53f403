"""Syntax nodes of operations over periods in FROM: ``NORMALIZE(shifts PARTITION BY emp PERIOD (ts, te))``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sqlext_planner.period_algebra.nodes import Operation
from sqlglot import exp

#: The operation of each word; NORMALIZE with EXCEPT is a difference.
PERIOD_TABLES: Mapping[str, Operation] = {"NORMALIZE": "normalize", "GAPS": "gaps", "CONCURRENT": "concurrent"}
#: How each is written, for messages.
PERIOD_TABLE_FORM = "(t PARTITION BY k PERIOD (start, end))"


class PeriodSource(exp.Expression):
    """``this PARTITION BY keys PERIOD (a, b)``: a relation, expressions that may have aliases, a period."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "keys": False, "period": True}


class PeriodTable(exp.Expression):
    """``word(this [EXCEPT removed]) [AS alias]``: both are a PeriodSource, `word` is one of PERIOD_TABLES."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "word": True,
        "removed": False,
        "alias": False,
        "joins": False,
    }


def period_source_sql(generator: Any, node: PeriodSource) -> str:
    """The input as text."""
    keys = ", ".join(generator.sql(key) for key in node.args.get("keys") or ())
    parts = [generator.sql(node, "this"), f"PARTITION BY {keys}" if keys else "", generator.sql(node, "period")]
    return " ".join(part for part in parts if part)


def period_table_sql(generator: Any, node: PeriodTable) -> str:
    """The operation as text."""
    removed = f" EXCEPT {generator.sql(node, 'removed')}" if node.args.get("removed") else ""
    alias = f" AS {generator.sql(node, 'alias')}" if node.args.get("alias") else ""
    joins = "".join(generator.sql(join) for join in node.args.get("joins") or ())
    return f"{node.args['word']}({generator.sql(node, 'this')}{removed}){alias}{joins}"
