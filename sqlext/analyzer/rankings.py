"""row_number, rank, dense_rank, percent_rank, cume_dist and ntile over our windows: counts over other frames.

As in Spark they are about the row's partition, not about the frame: here the sequence of FROM and union rows that
EXCLUDE CURRENT_TIME and INSTANCE_NOT_IN_WINDOW leave (docs/reference/windows.md, section 3). Each is an expression over
numbers of rows, which share the exchange of the window's other calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from sqlext_planner.errors import AnalysisError, UnsupportedError
from sqlext_planner.expressions.nodes import Column, Expression, SparkExpr
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.window.frame import CURRENT_ROW, Bound, WindowFrame
from sqlext_planner.window.nodes import WindowCall, WindowGroup, WindowUnion
from sqlglot import exp

from sqlext.analyzer import definitions
from sqlext.analyzer.union import WindowPlan, key_builder, window_union
from sqlext.syntax.spans import span_of

#: What is counted: the rows up to the current one, those with a smaller key, those with no larger one, all of them, the
#: keys that are not larger, the rows up to the current one without a key.
Part = OneOf["until", "smaller", "no larger", "all", "keys", "timeless"]
_START = Bound("preceding", None)
_FRAMES: Mapping[Part, tuple[OneOf["rows", "range"], Bound]] = {
    "until": ("rows", CURRENT_ROW),
    "smaller": ("range", Bound("preceding", 0, open=True)),
    "no larger": ("range", CURRENT_ROW),
    "all": ("rows", Bound("following", None)),
    "keys": ("range", CURRENT_ROW),
    "timeless": ("range", CURRENT_ROW),
}


@dataclass(frozen=True)
class _Ranking:
    """The numbers that a function is made of, and its text over them: ``{0}`` and so on, ``{key}``, ``{n}``."""

    parts: tuple[Part, ...]
    text: str
    dtype: str
    by_key: bool = True
    arguments: int = 0


# Rows without a key come first, and are before each other in a frame of keys: their rank is known.
_RANKINGS: Mapping[str, _Ranking] = {
    "row_number": _Ranking(("until",), "CAST({0} AS INT)", "int", by_key=False),
    "rank": _Ranking(("smaller",), "CASE WHEN {key} IS NULL THEN 1 ELSE CAST({0} AS INT) + 1 END", "int"),
    "dense_rank": _Ranking(("keys", "timeless"), "CAST({0} AS INT) + CASE WHEN {1} > 0 THEN 1 ELSE 0 END", "int"),
    "percent_rank": _Ranking(
        ("smaller", "all"), "CASE WHEN {key} IS NULL OR {1} <= 1 THEN 0.0D ELSE {0} / ({1} - 1) END", "double"
    ),
    "cume_dist": _Ranking(("no larger", "all"), "{0} / {1}", "double"),
    "ntile": _Ranking(
        ("until", "all"),
        "CAST(CASE WHEN {0} <= ({1} % {n}) * ({1} DIV {n} + 1) THEN ({0} - 1) DIV ({1} DIV {n} + 1) + 1 "
        "ELSE ({0} - 1 - {1} % {n}) DIV ({1} DIV {n}) + 1 END AS INT)",
        "int",
        by_key=False,
        arguments=1,
    ),
}


def is_ranking(node: exp.Expr) -> bool:
    """Whether the node calls one of these functions."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in _RANKINGS


def parts_of(node: exp.Anonymous, window: exp.Window) -> tuple[Part, ...]:
    """The numbers that a call needs. Raises AnalysisError for arguments that it does not take, UnsupportedError for a
    window whose rows have no rank."""
    ranking, name = _RANKINGS[node.name.lower()], node.name.lower()
    given = node.expressions
    is_count = all(isinstance(item, exp.Literal) and not item.is_string and item.name.strip("0") for item in given)
    if len(given) != ranking.arguments or not is_count:
        raise AnalysisError(
            f"{name}() takes {'a positive literal integer' if ranking.arguments else 'no arguments'}",
            condition="function-arguments",
            span=span_of(node),
            help=f"write {name}({'4' if ranking.arguments else ''})",
        )
    order = window.args.get("order")
    keys = 0 if order is None else len(order.expressions)
    if ranking.by_key and keys != 1:
        raise UnsupportedError(
            f"{name}() needs a window that is ordered by one key, and this one has {keys or 'none'}",
            condition="window-order",
            span=span_of(node),
            help="use row_number(), or order by one key",
        )
    return ranking.parts


def counted(wanted: WindowPlan, parts: Mapping[Part, Column], source: LogicalPlan) -> WindowUnion:
    """`source` with a column for each number. Raises AnalysisError for a definition that is not allowed."""
    plan = window_union(wanted, (), source)
    (group,) = plan.windows
    groups = tuple(
        WindowGroup(group.name, _frame(group.frame, part), group.sources, (_call(part, column, plan),), span=group.span)
        for part, column in parts.items()
    )
    return replace(plan, windows=groups)


def _frame(like: WindowFrame, part: Part) -> WindowFrame:
    unit, end = _FRAMES[part]
    return WindowFrame(
        unit,
        _START,
        end,
        exclude_current_time=like.exclude_current_time,
        instance_not_in_window=like.instance_not_in_window,
        peers=part == "no larger",
    )


def _call(part: Part, column: Column, plan: WindowUnion) -> WindowCall:
    if part not in ("keys", "timeless") or plan.order_by is None:
        return WindowCall("count", (), (), column, "bigint", span=plan.span)
    word = "NOT NULL" if part == "keys" else "NULL"
    condition = SparkExpr(("(", plan.order_by, f") IS {word}"), dtype="boolean")
    if part == "timeless":
        return WindowCall("count", (condition,), (), column, "bigint", filtered=True, span=plan.span)
    return WindowCall("distinct_count", (plan.order_by, condition), (), column, "bigint", filtered=True, span=plan.span)


def expression(wanted: WindowPlan, node: exp.Anonymous, columns: Sequence[Column]) -> Expression:
    """The call's value over the columns of its numbers."""
    ranking = _RANKINGS[node.name.lower()]
    builder = key_builder(wanted.context, wanted.scope, wanted.env)
    key = definitions.order_key(wanted.definition.node, builder)[0]
    places: dict[str, str | Expression] = {str(number): column for number, column in enumerate(columns)}
    places |= {"key": key or "NULL", "n": node.expressions[0].name if node.expressions else ""}
    return SparkExpr.of("(", *_filled(ranking.text, places.__getitem__), ")", dtype=ranking.dtype, span=span_of(node))


def _filled(text: str, value: Callable[[str], str | Expression]) -> list[str | Expression]:
    """The parts of a text with values in place of ``{names}``."""
    first, *rest = text.split("{")
    found: list[str | Expression] = [first]
    for part in rest:
        name, _, after = part.partition("}")
        found += [value(name), after]
    return found
