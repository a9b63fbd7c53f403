"""Operations over periods in FROM: NORMALIZE, with and without EXCEPT, GAPS and CONCURRENT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr, SparkExpr
from sqlext_planner.expressions.typed import cast
from sqlext_planner.period_algebra.nodes import Operation, PeriodAlgebra, common_key_type
from sqlext_planner.periods.types import check_period_types
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project
from sqlglot import exp

from sqlext.analyzer.context import Context, Env, Relation
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.period_operands import Operand, greatest, operand
from sqlext.syntax.nodes import PERIOD_TABLES, PeriodSource, PeriodTable
from sqlext.syntax.spans import mistake, span_of, unsupported

#: The name of the column that counts.
_COUNT = "concurrent"


@dataclass(frozen=True)
class _PeriodInput:
    """One input: its rows, the keys with their types and names, and the period."""

    plan: LogicalPlan
    keys: tuple[Expression, ...]
    types: tuple[str | None, ...]
    names: tuple[str, ...]
    period: Operand
    node: PeriodSource


def period_table(
    context: Context, node: PeriodTable, env: Env, relation: Callable[[Context, exp.Expr, Env], Relation]
) -> tuple[LogicalPlan, tuple[str, ...]]:
    """The plan of an operation, and the names of its columns; `relation` analyzes an item of FROM.

    Raises AnalysisError, UnsupportedError.
    """
    nodes = [node.this, *([node.args["removed"]] if node.args.get("removed") else [])]
    inputs = [_input(context, source, env, relation) for source in nodes]
    empty = context.options.empty
    dtype = check_period_types([end.type for side in inputs for end in side.period.ends], (), empty)
    types = _key_types(inputs)
    word = node.args["word"]
    operation: Operation = "difference" if len(inputs) > 1 else PERIOD_TABLES[word]
    names = _names(inputs[0], operation)
    plans = [_columns(context, side, types, dtype, names) for side in inputs]
    made = context.names.unique(word.lower())
    count = Column(made, names[-1]) if operation == "concurrent" else None
    width = len(inputs[0].keys)
    start, end = (Column(made, name) for name in names[width : width + 2])
    source = plans[0].output_columns
    places = [*(span_of(key) for key in nodes[0].args.get("keys") or ()), *(span_of(nodes[0].args["period"]),) * 2]
    columns = tuple(Column(c.relation, c.name, span=place) for c, place in zip(source, places, strict=True))
    plan = PeriodAlgebra(operation, columns, start, end, count, plans[0], tuple(plans[1:]), empty, span=span_of(node))
    return _with_open_end(context, plan, inputs[0], dtype), names


def _input(
    context: Context, node: PeriodSource, env: Env, relation: Callable[[Context, exp.Expr, Env], Relation]
) -> _PeriodInput:
    plan, scope = relation(context, node.this, env)
    builder = ExpressionBuilder(context.inside(), scope, env)
    written = node.args.get("keys") or []
    nodes = [key.unalias() for key in written]
    keys = tuple(map(builder.build, nodes))
    for key, place in zip(keys, nodes, strict=True):
        if key.traits:
            raise unsupported(
                "period-operation",
                place,
                f"PARTITION BY takes plain expressions of a row, not {context.slice(span_of(place))!r}",
                "compute it in a subquery, and name its column",
            )
    types = tuple(map(builder.dtype, nodes))
    period = operand(builder, node.args["period"])
    if period.end is None:
        raise mistake(
            "period-operation",
            node.args["period"],
            "PERIOD with one operand takes a struct of two ends",
            "write PERIOD(start, end)",
        )
    if period.end.by:
        raise unsupported(
            "period-operation",
            node.args["period"],
            "OPEN BY is for joins of streams: it names the row that closes a period later",
            "write PERIOD(start, end OPEN)",
        )
    return _PeriodInput(plan, keys, types, tuple(map(_name, written)), period, node)


def _name(key: exp.Expr) -> str:
    """The name of a key. Raises AnalysisError for an expression without one."""
    if isinstance(key, (exp.Alias, exp.Column)):
        return str(key.alias_or_name)
    raise mistake(
        "period-operation", key, "a key that is no column needs a name", "write PARTITION BY expression AS name"
    )


def _names(source: _PeriodInput, operation: Operation) -> tuple[str, ...]:
    """The names of the result's columns. Raises AnalysisError for one that occurs twice."""
    names = (*source.names, *source.period.names, *((_COUNT,) if operation == "concurrent" else ()))
    folded = [name.lower() for name in names]
    twice = next((name for name in names if folded.count(name.lower()) > 1), None)
    if twice is not None:
        raise mistake(
            "duplicate-name",
            source.node,
            f"two columns of the result would be called '{twice}'",
            "give a key another name with AS, or rename the columns of the period in a subquery",
        )
    return names


def _key_types(inputs: Sequence[_PeriodInput]) -> tuple[str | None, ...]:
    """The type of each key; None where one is unknown. Raises AnalysisError for keys that do not compare."""
    first, *others = inputs
    if not others:
        return first.types
    (other,) = others
    if len(first.keys) != len(other.keys):
        raise mistake(
            "period-operation",
            other.node,
            f"the inputs of EXCEPT have {len(first.keys)} and {len(other.keys)} keys",
            "write PARTITION BY with keys that correspond by position on both sides",
        )
    places = other.node.args.get("keys") or ()
    return tuple(
        None if own is None or their is None else common_key_type(str(key), own, their, span_of(place))
        for key, own, their, place in zip(first.keys, first.types, other.types, places, strict=True)
    )


def _columns(
    context: Context, side: _PeriodInput, types: Sequence[str | None], dtype: str | None, names: Sequence[str]
) -> Project:
    """The keys and both ends of an input, in the common types."""
    assert side.period.end is not None
    relation = context.names.unique("periods")
    keys = [
        key if wanted is None or own == wanted else cast(key, wanted)
        for key, own, wanted in zip(side.keys, side.types, types, strict=True)
    ]
    values = (*keys, side.period.start.cast(dtype), side.period.end.cast(dtype))
    items = [NamedExpr(value, Column(relation, name)) for value, name in zip(values, names, strict=False)]
    return Project(tuple(items), side.plan)


def _with_open_end(context: Context, plan: PeriodAlgebra, source: _PeriodInput, dtype: str | None) -> LogicalPlan:
    """The plan, with NULL for an end that means forever, as in the input."""
    if source.period.end is None or not source.period.end.open or dtype is None:
        return plan
    relation = context.names.unique("periods")
    shown: list[NamedExpr] = []
    for item in plan.output:
        column = Column(relation, item.column.name)
        forever = ("nullif(", item.column, f", {greatest(dtype)})")
        value = SparkExpr(forever, dtype=dtype) if item.column == plan.end else item.column
        shown.append(NamedExpr(value, column))
    return Project(tuple(shown), plan)
