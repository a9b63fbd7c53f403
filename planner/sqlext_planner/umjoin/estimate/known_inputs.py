"""What is known about the inputs of a multi-way join: rows, numbers of values of the keys, a sample of the keys."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.catalog import Catalog
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.relational.base_tables import base_table
from sqlext_planner.relational.logical_plan import LogicalPlan, relation_name
from sqlext_planner.umjoin.nodes import MemberKind, UMJoin

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of a key sample, read and joined in a few milliseconds.
SAMPLE_ROWS = 32_768


@dataclass(frozen=True)
class InputFacts:
    """One input: about how many rows it has, and for each of its key classes (by number) its column, the most values
    that it can have (None if unknown), and a sample of the keys before filters, if there is one."""

    kind: MemberKind
    rows: float
    table_rows: int
    keys: Mapping[int, Column]
    distinct: Mapping[int, float | None]
    table: str | None = None
    names: Mapping[int, str] | None = None

    def sample(self, catalog: Catalog) -> pa.Table | None:
        """Sampled rows of the key columns, named by the classes' numbers; None where the table gives none."""
        if self.table is None or not self.names:
            return None
        found = catalog.key_sample(self.table, list(dict.fromkeys(self.names.values())), SAMPLE_ROWS)
        if found is None:
            return None
        return found.select(list(self.names.values())).rename_columns([str(number) for number in self.names])


def input_facts(node: UMJoin, catalog: Catalog) -> list[InputFacts] | str:
    """The facts of every input in order, or why they are unknown, in words."""
    classes = {column: number for number, found in enumerate(node.key_classes) for column in found}
    facts = []
    for child, kind in zip(node.inputs, node.kinds, strict=True):
        keys: dict[int, Column] = {}
        for column in child.output_columns:
            if column in classes:
                keys.setdefault(classes[column], column)
        found = _facts(child, kind, keys, catalog)
        if isinstance(found, str):
            return found
        facts.append(found)
    return facts


def _facts(child: LogicalPlan, kind: MemberKind, keys: dict[int, Column], catalog: Catalog) -> InputFacts | str:
    base = base_table(child)
    if base is None:
        return f"nothing is known about the input '{relation_name(child)}'"
    names = {number: base.columns[column].name for number, column in keys.items() if column in base.columns}
    statistics = catalog.key_statistics(base.scan.table, list(names.values()))
    if statistics is None:
        return f"'{base.scan.table}' has no statistics"
    rows = max(1.0, statistics.rows * base.kept)
    known = dict(zip(names, statistics.distinct, strict=True))
    distinct: dict[int, float | None] = {number: known.get(number) for number in keys}
    if base.unique is not None:
        if base.unique == frozenset(keys.values()) and len(keys) == 1:
            values = distinct[next(iter(keys))]
            rows = min(rows, values) if values is not None else rows
        if base.unique <= frozenset(keys.values()):
            distinct = dict.fromkeys(keys, rows)
        names = {}
    elif len(names) < len(keys):
        names = {}
    table_rows = statistics.rows if base.unique is None else math.ceil(rows)
    return InputFacts(kind, rows, table_rows, keys, distinct, base.scan.table, names)
