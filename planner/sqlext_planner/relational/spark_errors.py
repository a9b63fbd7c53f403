"""Spark's refusal of an expression as an error of ours: one sentence, in the user's names, at the expression's place.

Spark sees columns under our names and knows nothing of the user's text, so its own message points nowhere. All of
this runs after a failure only: the node's expressions are tried one by one, which costs an analysis each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.expressions.nodes import Column, Compare, Expression, NamedExpr, conjuncts
from sqlext_planner.last_join.execution import LastJoinExec
from sqlext_planner.last_join.nodes import LastMatch
from sqlext_planner.relational.aggregate_execution import AggregateExec
from sqlext_planner.relational.execution import FilterExec, WindowExec, spark_column
from sqlext_planner.relational.join_execution import JoinExec
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, execute_cached
from sqlext_planner.relational.source_execution import ScanExec, ValuesExec
from sqlext_planner.window.functions import lookup
from sqlext_planner.window.nodes import WindowCall, WindowGroup

if TYPE_CHECKING:
    from pyspark.errors import AnalysisException, PySparkException
    from pyspark.sql import DataFrame

#: Analyses one expression; raises Spark's AnalysisException if Spark refuses it.
Trial = Callable[[Expression], object]

_SENTENCE_END = re.compile(r"(?<=[.?])\s+(?=[A-Z])")
_QUOTED = re.compile(r'"[^"]*"|`[^`]*`')


def located(node: PhysicalPlan, context: ExecutionContext, error: AnalysisException) -> AnalysisError:
    """What to raise (from `error`) where building the node's DataFrame failed; the children's were built."""
    sentence, rest = sentences(error)
    guilty = _guilty(node, context, sentence)
    names = _shown_names(node)
    condition = error.getCondition()
    known = f"Spark's error condition is {condition}" if condition else None
    return AnalysisError(
        _in_user_names(sentence, names),
        span=_together(map(_expression_place, _expressions(node) if guilty is None else [guilty])),
        help=_in_user_names(rest, names) or known,
        notes=(known,) if rest and known else (),
    )


def sentences(error: PySparkException) -> tuple[str, str]:
    """The first sentence of Spark's message, and the rest of it; without codes, positions and plans."""
    text = str(error).strip().split(" SQLSTATE:", 1)[0].split("\n\n", 1)[0]
    text = " ".join(re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", text).split())
    first, *rest = _SENTENCE_END.split(text, maxsplit=1)
    return first.rstrip("."), "".join(rest).rstrip(".")


def _guilty(node: PhysicalPlan, context: ExecutionContext, sentence: str) -> Expression | None:
    """The node's expression that Spark refuses with this sentence, as deep inside as that holds."""
    from pyspark.errors import PySparkException

    def refused(expression: Expression, trial: Trial) -> str | None:
        try:
            trial(expression)
        except PySparkException as error:
            return sentences(error)[0]
        return None

    def innermost(expression: Expression, trial: Trial) -> Expression:
        for part in expression.children:
            if not isinstance(part, Column) and part.span is not None and refused(part, trial) == sentence:
                return innermost(part, trial)
        return expression

    for expression, trial in _trials(node, context):
        if refused(expression, trial) == sentence:
            return innermost(expression, trial)
    return None


def _trials(node: PhysicalPlan, context: ExecutionContext) -> Iterator[tuple[Expression, Trial]]:
    """The expressions of a node, each with the way to analyse it as the node does."""
    frames = [execute_cached(child, context) for child in node.children]
    match node:
        case FilterExec(condition):
            for term in conjuncts(condition):
                yield term, lambda item: frames[0].filter(spark_column(item))
        case JoinExec(condition=condition):
            for term in conjuncts(condition):
                yield term, lambda item: frames[0].join(frames[1], spark_column(item)).columns
        case LastJoinExec(matches=matches):
            for right, match in zip(frames[1:], matches, strict=True):
                yield from _match_trials(frames[0], right, match)
        case AggregateExec(keys=keys, items=items):
            for key in keys:
                yield key, partial(_selected, frames[0])
            for item in items:
                yield item.expression, lambda part: node.grouped(frames[0]).agg(spark_column(part)).columns
        case ValuesExec(rows):
            for value in (value for row in rows for value in row):
                yield value, lambda item: context.spark.sql(f"SELECT {item.sql()}").columns
        case _ if frames:
            for expression in _expressions(node):
                yield expression, partial(_selected, frames[0])


def _match_trials(left: DataFrame, right: DataFrame, match: LastMatch) -> Iterator[tuple[Expression, Trial]]:
    for key in match.left_keys:
        yield key, partial(_selected, left)
    for key in (*match.right_keys, *([match.order_by] if match.order_by is not None else [])):
        yield key, partial(_selected, right)
    sides = zip(match.left_keys, match.right_keys, strict=True)
    for term in (*(Compare("=", a, b, span=match.span) for a, b in sides), *conjuncts(match.residual)):
        yield term, lambda item: left.join(right, spark_column(item)).columns


def _selected(frame: DataFrame, expression: Expression) -> object:
    return frame.select(spark_column(expression)).columns


def _expressions(node: PhysicalPlan) -> Iterator[Expression]:
    """The scalar expressions that a node holds: its items, keys, and the arguments of its window calls."""
    for item in fields(node):
        value = getattr(node, item.name)
        for entry in value if isinstance(value, tuple) else (value,):
            match entry:
                case NamedExpr(expression):
                    yield expression
                case WindowGroup(calls=calls):
                    yield from (arg for call in calls for arg in call.args)
                case WindowCall(args=args):
                    yield from args
                case Expression():
                    yield entry
                case _ if isinstance(getattr(entry, "expression", None), Expression):  # a key of ORDER BY
                    yield entry.expression


def spans_of(node: PhysicalPlan) -> tuple[Span | None, dict[str, Span]]:
    """Where a node stands in the text as a whole, and the calls of its windows and groups by their columns' names."""
    calls = {
        call.column.spark_name: call.span
        for item in fields(node)
        for call in _calls_in(getattr(node, item.name))
        if call.span is not None
    }
    condition = getattr(node, "condition", None)
    if isinstance(condition, Expression) and (place := _expression_place(condition)) is not None:
        return place, calls
    return _together((*calls.values(), *map(_expression_place, _expressions(node)))), calls


def _calls_in(value: object) -> Iterator[WindowCall]:
    for entry in value if isinstance(value, tuple) else ():
        if isinstance(entry, WindowGroup):
            yield from entry.calls
        elif isinstance(entry, WindowCall):
            yield entry


def _expression_place(expression: Expression) -> Span | None:
    """The expression's place in the text; where it has none, that of what it is made of."""
    if expression.span is not None:
        return expression.span
    return _together(_expression_place(child) for child in expression.children)


def _together(places: Iterable[Span | None]) -> Span | None:
    whole: Span | None = None
    for place in places:
        if place is not None:
            whole = place | whole
    return whole


def _shown_names(node: PhysicalPlan) -> dict[str, str]:
    """DataFrame column -> how the user knows it, for the columns that the node reads: a window's column is its call."""
    made: dict[Column, str] = {}
    for below in node.walk():
        match below:
            case WindowExec(items=items):
                made |= {item.column: str(item.expression) for item in items}
            case _:
                made |= dict(_calls(below))
    columns = [column for child in node.children for column in child.output_columns]
    tables = dict(_renamed(below) for below in node.collect(ScanExec))
    return {column.spark_name: made.get(column, _shown(column, tables)) for column in columns}


def _renamed(scan: ScanExec) -> tuple[str, str]:
    """A table without an alias that the statement reads again is `b_2` in the plan, and still `b` for the user."""
    table = scan.table.rsplit(".", 1)[-1].strip("`")
    return scan.relation, table if re.fullmatch(rf"{re.escape(table)}_\d+", scan.relation) else scan.relation


def _calls(node: PhysicalPlan) -> Iterator[tuple[Column, str]]:
    for item in fields(node):
        value: Any = getattr(node, item.name)
        for group in value if isinstance(value, tuple) else ():
            if isinstance(group, WindowGroup):
                yield from ((call.column, _shown_call(call, f" OVER {group.name}")) for call in group.calls)
            elif isinstance(group, WindowCall):
                yield group.column, _shown_call(group, "")


def _shown_call(call: WindowCall, over: str) -> str:
    """`sum(a.v) OVER w`; a function of ours without a public name goes by its column, which has the user's."""
    function = lookup(call.function)
    if function is None or function.internal:
        return call.column.name
    return f"{str(call).removesuffix(f' AS {call.column}')}{over}"


def _shown(column: Column, tables: dict[str, str]) -> str:
    """A column of an unnamed subquery has no qualifier that the user wrote."""
    if re.fullmatch(r"(subquery|values)(_\d+)?", column.relation):
        return column.name
    return Column(tables.get(column.relation, column.relation), column.name).spark_name


def _in_user_names(text: str, names: dict[str, str]) -> str:
    """The text with the columns' names inside Spark's quotes turned back; one name alone loses its backticks."""
    if not names:
        return text
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    name = re.compile(rf"(?<![\w.])(?:{'|'.join(longest)})(?![\w.(])")

    def quoted(match: re.Match[str]) -> str:
        whole = match.group()
        if whole[0] == "`" and whole[1:-1] in names:
            return names[whole[1:-1]]
        return whole[0] + name.sub(lambda found: names[found.group()], whole[1:-1]) + whole[-1]

    return _QUOTED.sub(quoted, text)
