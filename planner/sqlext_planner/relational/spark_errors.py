"""Turns Spark's refusal of an expression into our error: one sentence, in the user's names, at the expression's place.

Spark sees columns under our names and knows nothing of the user's text, so its own message points nowhere. All of
this runs only after a failure: the node's expressions are tried one by one, which costs one analysis each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sqlext_planner.conditions import condition_of
from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.spark.versions import condition_name, sentences_of

if TYPE_CHECKING:
    from pyspark.errors import AnalysisException, PySparkException
    from pyspark.sql import DataFrame

    from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan, Trial


_SENTENCE_END = re.compile(r"(?<=[.?])\s+(?=[A-Z])")
_QUOTED = re.compile(r'"[^"]*"|`[^`]*`')


def located(
    node: PhysicalPlan, frames: Sequence[DataFrame], context: ExecutionContext, error: AnalysisException
) -> AnalysisError:
    """What to raise (from `error`) if building the node's DataFrame failed; `frames` are the children's."""
    sentence, rest = sentences(error)
    guilty = _guilty(node.trials(frames, context), sentence)
    names = _shown_names(node)
    condition = condition_name(error)
    known = f"Spark's error condition is {condition}" if condition else None
    return AnalysisError(
        _in_user_names(sentence, names),
        condition=condition_of(condition),
        span=_together(map(place_of, node.expressions() if guilty is None else [guilty])),
        help=_in_user_names(rest, names) or known,
        notes=(known,) if rest and known else (),
    )


def sentences(error: PySparkException) -> tuple[str, str]:
    """The first sentence of Spark's message, and the rest of it; without codes, positions and plans."""
    text = sentences_of(error)
    text = " ".join(re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", text).split())
    first, *rest = _SENTENCE_END.split(text, maxsplit=1)
    return first.rstrip("."), "".join(rest).rstrip(".")


def _guilty(trials: Iterable[tuple[Expression, Trial]], sentence: str) -> Expression | None:
    """The innermost expression that Spark refuses with this sentence."""
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

    for expression, trial in trials:
        if refused(expression, trial) == sentence:
            return innermost(expression, trial)
    return None


def spans_of(node: PhysicalPlan) -> tuple[Span | None, dict[str, Span]]:
    """The place in the text of a whole node, and of the calls of its windows and groups by their columns' names."""
    calls = {call.column.spark_name: call.span for call in node.shown_calls() if call.span is not None}
    condition = getattr(node, "condition", None)
    if isinstance(condition, Expression) and (place := place_of(condition)) is not None:
        return place, calls
    return _together((*calls.values(), *map(place_of, node.expressions()))), calls


def place_of(expression: Expression) -> Span | None:
    """The expression's place in the text; if it has none, that of its parts."""
    if expression.span is not None:
        return expression.span
    return _together(place_of(child) for child in expression.children)


def _together(places: Iterable[Span | None]) -> Span | None:
    whole: Span | None = None
    for place in places:
        if place is not None:
            whole = place | whole
    return whole


def _shown_names(node: PhysicalPlan) -> dict[str, str]:
    """DataFrame column -> the name that the user knows, for the columns that the node reads: a window's is its call."""
    made = {call.column: call.text for below in node.walk() for call in below.shown_calls()}
    columns = [column for child in node.children for column in child.output_columns]
    tables = dict(found for below in node.walk() if (found := below.shown_relation()) is not None)
    return {column.spark_name: made.get(column, _shown(column, tables)) for column in columns}


def _shown(column: Column, tables: dict[str, str]) -> str:
    """A column of an unnamed subquery has no qualifier that the user wrote."""
    if re.fullmatch(r"(subquery|values)(_\d+)?", column.relation):
        return column.name
    return Column(tables.get(column.relation, column.relation), column.name).spark_name


def _in_user_names(text: str, names: dict[str, str]) -> str:
    """The text with the columns' names inside Spark's quotes turned back; a single name loses its backticks."""
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
