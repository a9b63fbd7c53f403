"""What is known about the inputs of a multi-way join: rows, numbers of values of the keys, a sample of the keys."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.catalog import Catalog
from sqlext_planner.expressions.nodes import Column, Compare, conjuncts
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Distinct, Filter, Hint, Project, Scan, SubqueryAlias
from sqlext_planner.umjoin.nodes import MemberKind, UMJoin, input_name

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of a key sample, read and joined in a few milliseconds.
SAMPLE_ROWS = 32_768
#: The part of the rows that a filter's term is assumed to keep, as in System R: equality, anything else.
_KEPT = {"=": 0.1, "<=>": 0.1}
_KEPT_BY_OTHERS = 1 / 3


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


@dataclass(frozen=True)
class _Base:
    """The scan below an input: its columns by those of the input, and the part of its rows that filters keep."""

    scan: Scan
    columns: Mapping[Column, Column]
    kept: float
    #: Output columns that are unique together, if there is an aggregate or DISTINCT in between.
    unique: frozenset[Column] | None = None


def _facts(child: LogicalPlan, kind: MemberKind, keys: dict[int, Column], catalog: Catalog) -> InputFacts | str:
    base = _base(child)
    if base is None:
        return f"nothing is known about the input '{input_name(child)}'"
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


def _base(plan: LogicalPlan) -> _Base | None:
    match plan:
        case Scan():
            return _Base(plan, {column: column for column in plan.output_columns}, 1.0)
        case Filter(condition, child):
            below = _base(child)
            ops = [term.op if isinstance(term, Compare) else "" for term in conjuncts(condition)]
            return None if below is None else _with(below, below.columns, _product(ops))
        case Project(items, child):
            below = _base(child)
            mapping = {item.column: item.expression for item in items if isinstance(item.expression, Column)}
            return None if below is None else _renamed(below, mapping)
        case SubqueryAlias(child=child):
            below = _base(child)
            pairs = dict(zip(plan.output_columns, child.output_columns, strict=True))
            return None if below is None else _renamed(below, pairs)
        case Hint(child=child):
            return _base(child)
        case Distinct(child):
            below = _base(child)
            return (
                None if below is None else _Base(below.scan, below.columns, below.kept, frozenset(plan.output_columns))
            )
        case Aggregate(keys, None, items, child):
            below = _base(child)
            if below is None:
                return None
            mapping = {item.column: item.expression for item in items if isinstance(item.expression, Column)}
            found = {ours: below.columns[theirs] for ours, theirs in mapping.items() if theirs in below.columns}
            grouped = frozenset(ours for ours, theirs in mapping.items() if theirs in keys)
            kept = below.kept if keys else 0.0
            return _Base(below.scan, found, kept, grouped if len(grouped) == len(keys) else None)
    return None


def _with(base: _Base, columns: Mapping[Column, Column], kept: float) -> _Base:
    return _Base(base.scan, columns, base.kept * kept, base.unique)


def _renamed(base: _Base, mapping: Mapping[Column, Column]) -> _Base:
    columns = {ours: base.columns[theirs] for ours, theirs in mapping.items() if theirs in base.columns}
    unique = base.unique
    if unique is not None:
        back = {theirs: ours for ours, theirs in mapping.items()}
        unique = frozenset(back[column] for column in unique) if unique <= back.keys() else frozenset()
    return _Base(base.scan, columns, base.kept, unique)


def _product(ops: Sequence[str]) -> float:
    kept = 1.0
    for op in ops:
        kept *= _KEPT.get(op, _KEPT_BY_OTHERS)
    return kept
