"""Syntax nodes of OpenMLDB's window definitions, and the code that writes them and our other nodes back as text."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.generators.spark import SparkGenerator

from sqlext.syntax.emit_nodes import EmitClause, emit_clause_sql
from sqlext.syntax.hint_nodes import HintCall, hint_call_sql
from sqlext.syntax.period_nodes import (
    PeriodComparison,
    PeriodOperand,
    PeriodSource,
    PeriodTable,
    period_comparison_sql,
    period_operand_sql,
    period_source_sql,
    period_table_sql,
)
from sqlext.syntax.variant_paths import VariantPath, variant_path_sql

#: What may follow a frame, by its words.
ATTRIBUTES = {
    ("EXCLUDE", "CURRENT_ROW"): "exclude_current_row",
    ("EXCLUDE", "CURRENT_TIME"): "exclude_current_time",
    ("INSTANCE_NOT_IN_WINDOW",): "instance_not_in_window",
}


class Duration(exp.Expression):
    """A frame bound such as ``10s``: `this` is the digits, `unit` one of ms s m h d w."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "unit": True}


class FrameSpec(exp.WindowSpec):
    """A frame that Spark has no syntax for: ROWS_RANGE, OPEN, MAXSIZE, EXCLUDE CURRENT_ROW, ..."""

    arg_types: ClassVar[dict[str, bool]] = {
        **exp.WindowSpec.arg_types,
        "start_open": False,
        "end_open": False,
        "maxsize": False,
        "exclude_current_row": False,
        "exclude_current_time": False,
        "instance_not_in_window": False,
    }


class UnionWindow(exp.Window):
    """A window definition with UNION sources; `union` lists tables and aliased subqueries, which are read by their
    columns' names if `by_name` is set."""

    arg_types: ClassVar[dict[str, bool]] = {**exp.Window.arg_types, "union": True, "by_name": False}


def _frame_sql(generator: SparkGenerator, spec: FrameSpec) -> str:
    def bound(side: str) -> str:
        words = [
            generator.sql(spec, side),
            "OPEN" if spec.args.get(f"{side}_open") else "",
            spec.args.get(f"{side}_side"),
        ]
        return " ".join(str(word) for word in words if word)

    words = []
    if spec.args.get("kind"):
        end = f" AND {bound('end')}" if spec.args.get("end") else ""
        words.append(f"{spec.args['kind']} {'BETWEEN ' if end else ''}{bound('start')}{end}")
    if spec.args.get("maxsize") is not None:
        words.append(f"MAXSIZE {generator.sql(spec, 'maxsize')}")
    words += [" ".join(phrase) for phrase, name in ATTRIBUTES.items() if spec.args.get(name)]
    if spec.args.get("exclude"):
        words.append(f"EXCLUDE {generator.sql(spec, 'exclude')}")
    return " ".join(words)


def _union_window_sql(generator: SparkGenerator, window: UnionWindow) -> str:
    base = ("alias",) if window.args.get("alias") else ()
    words = [generator.sql(window, key) for key in base]
    by_name = " BY NAME" if window.args.get("by_name") else ""
    words.append(f"UNION {generator.expressions(window, key='union', flat=True)}{by_name}")
    words.append(generator.partition_by_sql(window))
    if window.args.get("order"):
        words.append(generator.order_sql(window.args["order"], flat=True))
    words.append(generator.sql(window, "spec"))
    keyword = "AS" if window.arg_key == "windows" else "OVER"
    return f"{generator.sql(window, 'this')} {keyword} ({' '.join(word for word in words if word)})"


class LastJoinClause(exp.Join):
    """``LAST JOIN b ORDER BY b.ts ON a.k = b.k``: a join of kind "LAST" whose `order` comes before its condition.

    `using` is parsed only for the error message.
    """

    arg_types: ClassVar[dict[str, bool]] = {**exp.Join.arg_types, "order": False}


def _last_join_sql(generator: Any, join: LastJoinClause) -> str:
    """The clause as text."""
    words = [f"{generator.seg('LAST JOIN')} {generator.sql(join, 'this')}"]
    if join.args.get("order") is not None:
        words.append(generator.order_sql(join.args["order"], flat=True))
    if join.args.get("on") is not None:
        words.append(f"ON {generator.sql(join, 'on')}")
    if join.args.get("using"):
        words.append(f"USING ({generator.expressions(join, key='using', flat=True)})")
    return " ".join(words)


class SqlExtGenerator(SparkGenerator):
    """Writes the extended windows, LAST JOIN, period predicates and operations over periods back as text."""

    SUPPORTS_WINDOW_EXCLUDE = True

    TRANSFORMS: ClassVar[dict[Any, Any]] = {
        **SparkGenerator.TRANSFORMS,
        EmitClause: emit_clause_sql,
        Duration: lambda self, e: f"{e.name}{e.args['unit'].name}",
        FrameSpec: _frame_sql,
        HintCall: hint_call_sql,
        LastJoinClause: _last_join_sql,
        PeriodComparison: period_comparison_sql,
        PeriodOperand: period_operand_sql,
        PeriodSource: period_source_sql,
        PeriodTable: period_table_sql,
        UnionWindow: _union_window_sql,
        VariantPath: variant_path_sql,
    }
