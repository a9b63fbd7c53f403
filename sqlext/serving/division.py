"""By which column of the request table a deployment's rows can be divided among processes: one that is in the key of
every window and LAST JOIN, so that all rows that an answer reads are in one part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.keys import row_hashes
from sqlext_operators.expressions.nodes import TaskColumn
from sqlext_operators.serving.steps import BranchStep, Items, LastJoinStep, ProjectStep, ServingSpec, Step, WindowStep


@dataclass(frozen=True)
class Division:
    """The request table's column, and by place of an input the kept column that has its value."""

    column: str
    inputs: Mapping[int, str]

    def parts(self, batch: pa.RecordBatch, column: str, count: int) -> list[Int64s]:
        """The places of the rows of each of `count` parts, by the values of a column."""
        number = (row_hashes(batch, (column,)) >> np.uint64(33)).astype(np.int64) % count
        return [np.flatnonzero(number == part) for part in range(count)]


def division(spec: ServingSpec) -> Division | None:
    """How rows can be divided; None if no column is in every key."""
    every_key: list[dict[str, dict[int, str]]] = list(_keys(spec, spec.steps, {}))
    if not every_key:
        return None
    for column in every_key[0]:
        inputs: dict[int, str] = {}
        for keys in every_key:
            inputs.update(keys.get(column, {}))
        kind = spec.tables[spec.request].field(column).type
        same = all(spec.inputs[place].kept.schema.field(name).type == kind for place, name in inputs.items())
        if same and all(column in keys for keys in every_key) and len(inputs) == len(spec.inputs):
            return Division(column, inputs)
    return None


def _keys(spec: ServingSpec, steps: Sequence[Step], known: Mapping[str, str]) -> Iterator[dict[str, dict[int, str]]]:
    """For each step that reads rows the request table's columns that are in its key, with the column of each input.
    `known` are columns of the table under the names that the first step reads; empty: under their own."""
    for place, step in enumerate(steps):
        if isinstance(step, BranchStep):
            yield from _keys(spec, step.steps, known)
            continue
        before = steps[:place]
        if isinstance(step, LastJoinStep):
            for side, served in zip(step.join.rights, step.rights, strict=True):
                by_column: dict[str, dict[int, str]] = {}
                for ours, theirs in zip(step.join.keys, side.keys, strict=True):
                    column = _table_column(before, step.wire, ours, known)
                    if column is not None:
                        by_column.setdefault(column, {})[served.source] = theirs
                yield by_column
        elif isinstance(step, WindowStep):
            by_column = {}
            inputs = [*step.unions, *(() if step.own is None else (step.own,))]
            for name in step.window.keys:
                column = _table_column(before, step.wire, name, known)
                if column is not None:
                    by_column.setdefault(column, {}).update(dict.fromkeys(inputs, name))
            yield by_column
            if step.own is not None and step.before:
                item = spec.inputs[step.own]
                stored = {name: item.source_of(name) for name in item.kept.schema.names}
                yield from _keys(spec, step.before, {name: column for name, column in stored.items() if column})


def _table_column(steps: Sequence[Any], wire: Items, name: str, known: Mapping[str, str]) -> str | None:
    """The request table's column that a column of the wire is; None if it is computed."""
    expression: Any = dict(wire).get(name, TaskColumn(name, pa.null()))
    for step in reversed([step for step in steps if isinstance(step, ProjectStep)]):
        if not isinstance(expression, TaskColumn):
            return None
        expression = dict(step.columns).get(expression.name)
    if not isinstance(expression, TaskColumn):
        return None
    return known.get(expression.name) if known else expression.name
