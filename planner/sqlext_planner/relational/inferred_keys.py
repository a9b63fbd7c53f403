"""Keys that are DOUBLE because values of text look so, which a user should know of: doubles make one of two values."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from sqlext_planner.catalog import Catalog
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project, Scan, SubqueryAlias

_LOG = logging.getLogger("sqlext")


def inferred_keys(node: LogicalPlan, keys: Iterable[Expression], catalog: Catalog | None) -> str:
    """A note for EXPLAIN about those of the keys that are inferred doubles, which is logged too; '' without one."""
    if catalog is None:
        return ""
    columns = sorted({column for key in keys for column in key.references}, key=str)
    found = dict.fromkeys(
        name for column in columns for child in node.children for name in _inferred(child, column, catalog)
    )
    if not found:
        return ""
    names = ", ".join(found)
    column = next(iter(found)).rpartition(".")[2]
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
