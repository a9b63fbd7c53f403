"""The syntax nodes of our dialect: windows, LAST JOIN, periods, EMIT AFTER.

With each the code that writes it back as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sqlext_operators.interval_join.relations import RELATIONS, PeriodRelation
from sqlext_planner.period_algebra.nodes import Operation
from sqlglot import exp
from sqlglot.generators.spark import SparkGenerator

from sqlext.syntax.hint_nodes import HintCall, hint_call_sql

#: The relation of each infix spelling, by its words.
PHRASES: Mapping[tuple[str, ...], PeriodRelation] = {
    tuple(words.split()): row for row in RELATIONS.values() for words in row.words
}
#: Number of words in the longest phrase.
LONGEST_PHRASE = max(map(len, PHRASES))

#: Words of other systems and of everyday language that are no relation here, with the one that means the same. Each is
#: alike to a word with another meaning: CONTAINED BY to CONTAINS, its inverse.
OTHER_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("CONTAINED BY", "CONTAINED IN", "COVERED BY", "INCLUDED BY", "INCLUDED IN"), "DURING"),
    **dict.fromkeys(("WITHIN", "INSIDE"), "DURING"),
    **dict.fromkeys(("STRICTLY CONTAINED BY", "PROPERLY CONTAINED BY", "STRICTLY DURING"), "ALLEN DURING"),
    **dict.fromkeys(("COVERS", "INCLUDES"), "CONTAINS"),
    **dict.fromkeys(("PROPERLY CONTAINS", "STRICTLY COVERS"), "STRICTLY CONTAINS"),
    **dict.fromkeys(("INTERSECTS", "OVERLAP"), "OVERLAPS"),
    **dict.fromkeys(("FOLLOWS", "PRECEDED BY"), "SUCCEEDS"),
    **dict.fromkeys(("FOLLOWED BY", "SUCCEEDED BY"), "PRECEDES"),
    **dict.fromkeys(("IMMEDIATELY PRECEDED BY", "IMMEDIATELY FOLLOWS"), "IMMEDIATELY SUCCEEDS"),
    **dict.fromkeys(("IMMEDIATELY SUCCEEDED BY", "IMMEDIATELY FOLLOWED BY"), "IMMEDIATELY PRECEDES"),
    "OVERLAPPED BY": "ALLEN OVERLAPPED BY",
    "ENDS": "FINISHES",
    "ENDED BY": "FINISHED BY",
}

#: What comes before a named bound of WITHIN.
BOUND_WORDS = {"START": "delta", "DELTA": "delta", "END": "epsilon", "EPSILON": "epsilon"}

#: The function that names Allen's relation.
ALLEN_RELATION = "allen_relation"


class PeriodOperand(exp.Expression):
    """``PERIOD CLOSED (a, b)`` or ``PERIOD(a, b OPEN [BY x, ...])``; any other PERIOD(...) is an ordinary call."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expression": True,
        "closed": False,
        "open": False,
        "by": False,
    }


class PeriodComparison(exp.Expression, exp.Predicate):
    """``this [NOT] relation expression [WITHIN ...]``: `relation` is a name of the table, `delta` and `epsilon` are the
    bounds given by WITHIN."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expression": True,
        "relation": True,
        "negated": False,
        "delta": False,
        "epsilon": False,
    }


def period_operand_sql(generator: Any, node: PeriodOperand) -> str:
    """The operand as text."""
    closed = " CLOSED " if node.args.get("closed") else ""
    end = f"{generator.sql(node, 'expression')}{' OPEN' if node.args.get('open') else ''}"
    if node.args.get("by"):
        end += f" BY {', '.join(generator.sql(item) for item in node.args['by'])}"
    return f"PERIOD{closed}({generator.sql(node, 'this')}, {end})"


def period_comparison_sql(generator: Any, node: PeriodComparison) -> str:
    """The predicate as text, with the relation's first spelling."""
    relation = RELATIONS[node.args["relation"]]
    words = [generator.sql(node, "this"), "NOT" if node.args.get("negated") else "", relation.words[0]]
    words += [generator.sql(node, "expression"), _within_sql(generator, node, relation)]
    return " ".join(word for word in words if word)


def _within_sql(generator: Any, node: PeriodComparison, relation: PeriodRelation) -> str:
    given = {name: generator.sql(node, name) for name in relation.parameters if node.args.get(name) is not None}
    if not given:
        return ""
    bounds = [f"{'START' if name == 'delta' else 'END'} {text}" for name, text in given.items()]
    if len(bounds) > 1:
        return f"WITHIN ({', '.join(bounds)})"
    first = relation.parameters[0]
    return f"WITHIN {given[first] if first in given else bounds[0]}"


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


#: For help texts.
EMIT_FORM = "EMIT AFTER DELAY INTERVAL '7' SECONDS [COMPENSATE USING shrink] [CONFIDENCE 0.95]"


class EmitClause(exp.Expression):
    """`delay` is an interval, `compensate` the name of an estimator, `confidence` a number; the last two may be None.

    The analyzer says whether they mean something.
    """

    arg_types: ClassVar[dict[str, bool]] = {"delay": True, "compensate": False, "confidence": False}


def emit_clause_sql(generator: Any, node: EmitClause) -> str:
    """The clause as text."""
    words = [f"EMIT AFTER DELAY {generator.sql(node, 'delay')}"]
    if node.args.get("compensate") is not None:
        words.append(f"COMPENSATE USING {generator.sql(node, 'compensate')}")
    if node.args.get("confidence") is not None:
        words.append(f"CONFIDENCE {generator.sql(node, 'confidence')}")
    return " ".join(words)


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
    words = [generator.sql(window, "alias")]
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

    `using` is parsed only for the error message. `title` is what error messages call it.
    """

    arg_types: ClassVar[dict[str, bool]] = {**exp.Join.arg_types, "order": False}
    title: ClassVar[str] = "a LAST JOIN"


class AsofJoinClause(LastJoinClause):
    """``ASOF [LEFT] JOIN b [MATCH_CONDITION (a.ts >= b.ts)] [ON a.k = b.k | USING (k)]``: a join of kind "ASOF"."""

    title: ClassVar[str] = "an ASOF JOIN"


def _last_join_sql(generator: Any, join: LastJoinClause) -> str:
    """The clause as text."""
    side = f" {join.side}" if join.side else ""
    words = [f"{generator.seg(f'{join.kind}{side} JOIN')} {generator.sql(join, 'this')}"]
    if join.args.get("order") is not None:
        words.append(generator.order_sql(join.args["order"], flat=True))
    if join.args.get("match_condition") is not None:
        words.append(f"MATCH_CONDITION ({generator.sql(join, 'match_condition')})")
    if join.args.get("on") is not None:
        words.append(f"ON {generator.sql(join, 'on')}")
    if join.args.get("using"):
        words.append(f"USING ({generator.expressions(join, key='using', flat=True)})")
    return " ".join(words)


class VariantPath(exp.Expression):
    """``this:path``; `path` is the text behind the colon."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "path": True}


class SqlExtGenerator(SparkGenerator):
    """Writes the extended windows, LAST JOIN, period predicates and operations over periods back as text."""

    SUPPORTS_WINDOW_EXCLUDE = True

    TRANSFORMS: ClassVar[dict[Any, Any]] = {
        **SparkGenerator.TRANSFORMS,
        EmitClause: emit_clause_sql,
        Duration: lambda self, e: f"{e.name}{e.args['unit'].name}",
        FrameSpec: _frame_sql,
        HintCall: hint_call_sql,
        AsofJoinClause: _last_join_sql,
        LastJoinClause: _last_join_sql,
        PeriodComparison: period_comparison_sql,
        PeriodOperand: period_operand_sql,
        PeriodSource: period_source_sql,
        PeriodTable: period_table_sql,
        UnionWindow: _union_window_sql,
        VariantPath: lambda self, e: f"{self.sql(e, 'this')}:{e.args['path']}",
    }
