"""Short ways to build plans by hand."""

from __future__ import annotations

from collections.abc import Mapping

from sqlext_planner.expressions.nodes import Column, Compare, Expression, NamedExpr, SparkExpr
from sqlext_planner.expressions.nodes import Literal as Constant
from sqlext_planner.relational.logical_plan import Field, LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Filter, Output, Project, Scan, SubqueryAlias
from sqlext_planner.window.nodes import CURRENT_ROW, Bound, WindowCall, WindowFrame, WindowGroup, WindowUnion

from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.syntax.parser import parse

HOUR = WindowFrame("range", Bound("preceding", 1, "h"), CURRENT_ROW)


def col(text: str) -> Column:
    """``col("a.k")`` is Column("a", "k"), ``col("s")`` is Column("", "s")."""
    relation, _, name = text.rpartition(".")
    return Column(relation, name)


def scan(table: str, columns: str = "k bigint, ts timestamp, v double", alias: str | None = None) -> Scan:
    """A scan with the columns listed as ``name type``."""
    relation = alias or table
    pairs = [item.split() for item in columns.split(",")]
    return Scan(table, relation, tuple(Field(Column(relation, name), dtype) for name, dtype in pairs))


def compare(left: str, op: str, right: str | int) -> Compare:
    """A comparison of a column with a column (text) or a number."""
    return Compare(op, col(left), col(right) if isinstance(right, str) else Constant(str(right)))


def project(child: LogicalPlan, *columns: str | NamedExpr) -> Project:
    items = (item if isinstance(item, NamedExpr) else NamedExpr(col(item), col(item)) for item in columns)
    return Project(tuple(items), child)


def named(expression: Expression, name: str) -> NamedExpr:
    return NamedExpr(expression, col(name))


def written(text: str, tables: Mapping[str, Mapping[str, str]]) -> Expression:
    """The expression of an item of SELECT over these tables."""
    plan = analyze(parse(f"SELECT {text} AS x FROM {', '.join(tables)}"), DictCatalog(tables))
    node = next(node for node in plan.walk() if isinstance(node, (Project, Aggregate)))
    return node.items[0].expression


def opaque(*parts: str | Expression, deterministic: bool = True) -> SparkExpr:
    return SparkExpr(parts, deterministic=deterministic)


def window_union(
    source: LogicalPlan,
    unions: tuple[LogicalPlan, ...] = (),
    *,
    call: str = "s",
    sources: tuple[int, ...] | None = None,
    frame: WindowFrame = HOUR,
    argument: str = "a.v",
    name: str = "w",
    key: str = "a.k",
    order: str | None = "a.ts",
) -> WindowUnion:
    """``sum(argument) OVER name AS call`` over the source and all unions."""
    group = WindowGroup(
        name,
        frame,
        tuple(range(len(unions))) if sources is None else sources,
        (WindowCall("sum", (col(argument),), (), col(call), "double"),),
    )
    return WindowUnion((col(key),), col(order) if order else None, (group,), source, unions)


def output(child: LogicalPlan) -> Output:
    return Output(tuple(column.name for column in child.output_columns), child)


__all__ = [
    "HOUR",
    "Filter",
    "SubqueryAlias",
    "col",
    "compare",
    "named",
    "opaque",
    "output",
    "project",
    "scan",
    "window_union",
]
