"""Calls over our windows that are computed by other calls: aggregates with aggregates in their arguments, rankings.

In ``sum(c1 - count(c1)) OVER w`` the inner aggregate has one value for each FROM row, computed over the row's own
window; the outer one then evaluates its argument, with that value, on every row of the window. The plan has three
plain steps:

1. a WindowUnion computes the inner calls and `frame_rows`, the list of the window's rows, oldest first;
2. a Project numbers the rows and explodes each list to one row an element, plus one row after the last element;
3. a WindowUnion over the exploded rows (PARTITION BY number ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND
   CURRENT ROW EXCLUDE CURRENT_ROW) evaluates the outer calls; the row after the last element sees exactly the
   window, and a Filter keeps only that row.

Deeper nesting repeats steps 2 and 3. The plan remains one chain of nodes: the number must be unique in one run only.
Each row costs the window's length, because the function has no incremental form.

``count_where(x, y = at(z, n)) OVER w`` is the one nested aggregate with an incremental form (`count_at`).

Feature scripts count the rows of a window that are like its newest one (FEBench does so in four of six scripts). The
general strategy makes a list of every window's rows; this one keeps a counted map of y, so that a row costs
the same whatever the window's length, and the call shares the exchange of its neighbours.

row_number, rank, dense_rank, percent_rank, cume_dist and ntile over our windows: counts over other frames.

As in Spark they are about the row's partition, not about the frame: here the sequence of FROM and union rows that
EXCLUDE CURRENT_TIME and INSTANCE_NOT_IN_WINDOW leave (docs/reference/windows.md, section 3). Each is an expression over
numbers of rows, which share the exchange of the window's other calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from sqlext_operators.window.functions import lookup
from sqlext_planner.expressions.nodes import Column, Compare, Expression, Literal, NamedExpr, SparkExpr
from sqlext_planner.expressions.typed import call as call_of
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Project
from sqlext_planner.window.nodes import CURRENT_ROW, Bound, WindowCall, WindowFrame, WindowGroup, WindowUnion
from sqlglot import exp

from sqlext.analyzer import calls, definitions
from sqlext.analyzer.call_forms import called
from sqlext.analyzer.definitions import table_call
from sqlext.analyzer.edits import filled
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.items import unwrapped
from sqlext.analyzer.union import Call, WindowPlan, key_builder, window_union
from sqlext.syntax.spans import mistake, span_of, unsupported

_EXPLODED = WindowFrame("rows", Bound("preceding", None), CURRENT_ROW, exclude_current_row=True)


def has_inner_calls(node: exp.Expr) -> bool:
    """Whether a call's arguments, or its FILTER, call a function of the table."""
    call = called(node)
    around = []
    while node is not call:
        around += [child for child in node.iter_expressions() if child is not node.this]
        node = node.this
    return next(_outermost_calls([*around, *call.iter_expressions()]), None) is not None


def calls_table(node: exp.Expr) -> bool:
    """Whether an expression calls a function of the table."""
    return next(_outermost_calls([node]), None) is not None


def _inner_calls(node: exp.Expr) -> Iterator[exp.Anonymous]:
    """The outermost calls in a call's arguments."""
    return _outermost_calls(node.iter_expressions())


def _outermost_calls(nodes: Iterable[exp.Expr]) -> Iterator[exp.Anonymous]:
    stack = list(reversed(list(nodes)))
    while stack:
        top = stack.pop()
        if isinstance(top, exp.Anonymous) and table_call(top):
            yield top
        elif called(top) is not top and table_call(called(top)):
            raise unsupported(
                "call-modifier",
                top,
                "an aggregate inside another one takes neither FILTER nor IGNORE NULLS",
                "compute it in a subquery of FROM, and use its column",
            )
        elif not isinstance(top, exp.Query):
            stack.extend(reversed(list(top.iter_expressions())))


def _level(node: exp.Expr) -> int:
    return 1 + max((_level(inner) for inner in _inner_calls(node)), default=-1)


def plan_nested(
    window_plan: WindowPlan, flat: Sequence[WindowCall], deep: Sequence[Call], source: LogicalPlan
) -> LogicalPlan:
    """`source` with the columns of `flat` and `deep`. Raises UnsupportedError if the outer function is a nested lag."""
    for node, _, whole in deep:
        function = lookup(node.name)
        if function is not None and function.positional and (whole or not window_plan.context.openmldb):
            raise unsupported(
                "misplaced-aggregate",
                node,
                f"{node.name}() with an aggregate inside is not supported",
                "use last_value",
            )
    levels = _by_level(window_plan, deep)
    columns = {id(node): column for group in levels for node, column, _ in group}
    builder = ExpressionBuilder(
        window_plan.context, window_plan.call_scope, window_plan.env, lambda node: columns.get(id(node))
    )
    made = [
        [calls.window_call(builder, node, column, whole=False, in_argument=True) for node, column, _ in group]
        for group in levels
    ]
    needed = sorted(
        {c for group in made[1:] for call in group for c in call.references if c in set(source.output_columns)}, key=str
    )
    rows, number = window_plan.names.column("frame_rows"), window_plan.names.column("row_number")
    # A value to collect even if the outer arguments read no column: the rows still have to be counted.
    collect = WindowCall("frame_rows", tuple(needed) or (SparkExpr(("1",), dtype="int"),), (), rows)
    plan: LogicalPlan = window_union(window_plan, [*flat, *made[0], collect], source)
    plan = Project(
        (*_same(plan), NamedExpr(SparkExpr(("monotonically_increasing_id()",), deterministic=False), number)), plan
    )
    for group in made[1:]:
        plan = _evaluate(window_plan, plan, group, tuple(needed), rows, number)
    keep = (*source.output_columns, *(call.column for call in flat), *(column for _, column, _ in deep))
    return Project(tuple(NamedExpr(column, column) for column in keep), plan)


def _by_level(window_plan: WindowPlan, deep: Sequence[Call]) -> list[list[Call]]:
    """All calls, inner ones included, by how deep they are nested; inner calls get columns of their own."""
    levels: list[list[Call]] = [[] for _ in range(1 + max(_level(node) for node, _, _ in deep))]

    def add(call: Call) -> None:
        levels[_level(call[0])].append(call)
        for inner in _inner_calls(call[0]):
            add((inner, window_plan.names.column(inner.name.lower()), False))

    for call in deep:
        add(call)
    return levels


def _evaluate(
    window_plan: WindowPlan,
    plan: LogicalPlan,
    group: Sequence[WindowCall],
    needed: tuple[Column, ...],
    rows: Column,
    number: Column,
) -> LogicalPlan:
    """Steps 2 and 3 for the calls of one level."""
    before = plan.output_columns
    place = window_plan.names.column("row_place")
    size = SparkExpr(("size(", rows, ")"), dtype="int")
    explode = replace(call_of("explode", call_of("sequence", Literal("0"), size)), deterministic=False, dtype="int")
    plan = Project((*_same(plan), NamedExpr(explode, place)), plan)
    elements = {column: window_plan.names.column(f"row_{column.name}") for column in needed}
    fields = tuple(
        NamedExpr(SparkExpr(("get(", rows, ", ", place, f").x{i}")), element)
        for i, element in enumerate(elements.values(), 1)
    )
    plan = Project((*_same(plan), *fields), plan)
    outer = tuple(replace(call, args=tuple(arg.substitute(elements) for arg in call.args)) for call in group)
    window = WindowGroup(window_plan.definition.name, _EXPLODED, (), outer)
    plan = WindowUnion((number,), place, (window,), plan, ())
    plan = Filter(Compare("=", place, size), plan)
    return Project(tuple(NamedExpr(c, c) for c in (*before, *(call.column for call in group))), plan)


def _same(plan: LogicalPlan) -> tuple[NamedExpr, ...]:
    return tuple(NamedExpr(column, column) for column in plan.output_columns)


def count_at(builder: ExpressionBuilder, node: exp.Anonymous, column: Column) -> WindowCall | None:
    """The call as one `count_where_at` over the frame; None for a call of any other shape.

    Both sides of the equality must be known to have one type: across types, Spark decides what is equal.
    Raises AnalysisError as for any call.
    """
    sides = _sides(node)
    if sides is None:
        return None
    row_side, position, null_safe = sides
    dtype = builder.dtype(row_side)
    if (
        dtype is None
        or dtype != builder.dtype(position.expressions[0])
        or not calls.takes_plainly("distinct_count", dtype)
    ):
        return None
    value = node.expressions[0]
    values = () if isinstance(value, exp.Star) else (builder.build(value),)
    at = calls.window_call(builder, position, column, whole=False, in_argument=True)
    args = (*values, builder.build(row_side), *at.args)
    return WindowCall("count_where_at", args, (*at.constants, null_safe), column, "bigint", span=span_of(node))


def _sides(node: exp.Anonymous) -> tuple[exp.Expr, exp.Anonymous, bool] | None:
    """(y, at(z, n), is it ``<=>``) of the condition, whatever their order in it."""
    if node.name.lower() != "count_where" or len(node.expressions) != 2:
        return None
    value, condition = node.expressions
    if isinstance(value, (exp.Distinct, exp.Order)) or calls_table(value):
        return None
    condition = unwrapped(condition)
    if not isinstance(condition, (exp.EQ, exp.NullSafeEQ)):
        return None
    for row_side, other in ((condition.left, condition.right), (condition.right, condition.left)):
        position = unwrapped(other)
        if isinstance(position, exp.Anonymous) and _is_positional(position) and not calls_table(row_side):
            return row_side, position, isinstance(condition, exp.NullSafeEQ)
    return None


def _is_positional(node: exp.Anonymous) -> bool:
    """Whether the node is lag(z), lag(z, n) or at(z, n), without calls inside."""
    function = lookup(node.name)
    return function is not None and function.positional and bool(node.expressions) and not has_inner_calls(node)


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
        raise mistake(
            "function-arguments",
            node,
            f"{name}() takes {'a positive literal integer' if ranking.arguments else 'no arguments'}",
            f"write {name}({'4' if ranking.arguments else ''})",
        )
    order = window.args.get("order")
    keys = 0 if order is None else len(order.expressions)
    if ranking.by_key and keys != 1:
        raise unsupported(
            "window-order",
            node,
            f"{name}() needs a window that is ordered by one key, and this one has {keys or 'none'}",
            "use row_number(), or order by one key",
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
    return SparkExpr.of("(", *filled(ranking.text, places.__getitem__), ")", dtype=ranking.dtype, span=span_of(node))
