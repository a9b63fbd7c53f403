"""The table below a plan that renames columns, drops rows and groups them, but joins nothing.

With it, keys that are DOUBLE because values of text look so, which a user should know of: doubles make one of two
values.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlext_planner.catalog import Catalog
from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjuncts
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Distinct, Filter, Hint, Project, Scan, SubqueryAlias

#: The part of the rows that a filter's term is assumed to keep, as in System R: equality, anything else.
_KEPT = {"=": 0.1, "<=>": 0.1}
_KEPT_BY_OTHERS = 1 / 3


@dataclass(frozen=True)
class BaseTable:
    """The scan below a plan: its columns by those of the plan, and the part of its rows that filters keep.

    `unique` are columns of the plan that are unique together, if there is an aggregate or DISTINCT in between.
    """

    scan: Scan
    columns: Mapping[Column, Column]
    kept: float
    unique: frozenset[Column] | None = None


def base_table(plan: LogicalPlan) -> BaseTable | None:
    """The table below a plan; None if there is none, or several."""
    match plan:
        case Scan():
            return BaseTable(plan, {column: column for column in plan.output_columns}, 1.0)
        case Filter(condition, child):
            below = base_table(child)
            ops = [term.op if isinstance(term, Compare) else "" for term in conjuncts(condition)]
            return None if below is None else _with(below, below.columns, _product(ops))
        case Project(items, child):
            below = base_table(child)
            mapping = {item.column: item.expression for item in items if isinstance(item.expression, Column)}
            return None if below is None else _renamed(below, mapping)
        case SubqueryAlias(child=child):
            below = base_table(child)
            pairs = dict(zip(plan.output_columns, child.output_columns, strict=True))
            return None if below is None else _renamed(below, pairs)
        case Hint(child=child):
            return base_table(child)
        case Distinct(child):
            below = base_table(child)
            if below is None:
                return None
            return BaseTable(below.scan, below.columns, below.kept, frozenset(plan.output_columns))
        case Aggregate(keys, None, items, child):
            below = base_table(child)
            if below is None:
                return None
            mapping = {item.column: item.expression for item in items if isinstance(item.expression, Column)}
            found = {ours: below.columns[theirs] for ours, theirs in mapping.items() if theirs in below.columns}
            grouped = frozenset(ours for ours, theirs in mapping.items() if theirs in keys)
            kept = below.kept if keys else 0.0
            return BaseTable(below.scan, found, kept, grouped if len(grouped) == len(keys) else None)
    return None


def _with(base: BaseTable, columns: Mapping[Column, Column], kept: float) -> BaseTable:
    return BaseTable(base.scan, columns, base.kept * kept, base.unique)


def _renamed(base: BaseTable, mapping: Mapping[Column, Column]) -> BaseTable:
    columns = {ours: base.columns[theirs] for ours, theirs in mapping.items() if theirs in base.columns}
    unique = base.unique
    if unique is not None:
        back = {theirs: ours for ours, theirs in mapping.items()}
        unique = frozenset(back[column] for column in unique) if unique <= back.keys() else frozenset()
    return BaseTable(base.scan, columns, base.kept, unique)


def _product(ops: Sequence[str]) -> float:
    kept = 1.0
    for op in ops:
        kept *= _KEPT.get(op, _KEPT_BY_OTHERS)
    return kept


_LOG = logging.getLogger("sqlext")


def inferred_keys(node: LogicalPlan, keys: Iterable[Expression], catalog: Catalog | None) -> str:
    """A note for EXPLAIN about those of the keys that are inferred doubles, which is logged too; '' without one."""
    if catalog is None:
        return ""
    columns = sorted({column for key in keys for column in key.references}, key=str)
    inferred = dict.fromkeys(
        name for column in columns for child in node.children for name in _inferred(child, column, catalog)
    )
    if not inferred:
        return ""
    names = ", ".join(inferred)
    column = next(iter(inferred)).rpartition(".")[2]
    note = (
        f"the DOUBLE type of key {names} was inferred from text, and doubles make one of numbers that differ after 15 "
        f"digits: give a type, register(..., types='{column} string') or --read 'types={column} string'"
    )
    _LOG.info("%s", note)
    return f"; {note}"


def _inferred(node: LogicalPlan, column: Column, catalog: Catalog) -> Iterator[str]:
    """The columns of tables, as `table.column`, that a column of a plan is made of, if they are inferred doubles."""
    match node:
        case Scan(table) if column in node.output_columns:
            info = catalog.table(table)
            if info is not None and column.name in info.inferred_doubles:
                yield f"{table}.{column.name}"
        case SubqueryAlias(child=child) if column in node.output_columns:
            place = node.output_columns.index(column)
            yield from _inferred(child, child.output_columns[place], catalog)
        case Project(items, child):
            for item in items:
                if item.column == column:
                    for read in item.expression.references:
                        yield from _inferred(child, read, catalog)
        case _:
            for child in node.children:
                if column in child.output_columns:
                    yield from _inferred(child, column, catalog)
