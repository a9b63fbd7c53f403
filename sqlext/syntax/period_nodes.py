"""Syntax nodes of period predicates, the words of their relations, and the code that writes them back as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sqlext_operators.interval_join.relations import RELATIONS, Relation
from sqlext_planner.period_algebra.nodes import Operation
from sqlglot import exp

#: The relation of each infix spelling, by its words.
PHRASES: Mapping[tuple[str, ...], Relation] = {
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


def _within_sql(generator: Any, node: PeriodComparison, relation: Relation) -> str:
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
