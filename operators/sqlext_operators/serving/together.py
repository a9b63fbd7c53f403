"""Several request rows answered in one go, each as if it came alone.

What is computed of each row is computed once for all. Windows are computed once over the rows that each request row
reaches, which are a group of their own for the operator: most of the time that a short window takes does not depend on
how many rows there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.batches import take_rows, whole
from sqlext_operators.columns.codes import NULL_ORDER, order_with_nulls
from sqlext_operators.serving.long_windows import Part, Stores, piece_of, processed
from sqlext_operators.serving.steps import (
    BranchStep,
    LastJoinStep,
    ProjectStep,
    ServingSpec,
    Step,
    WindowStep,
)
from sqlext_operators.serving.store import KeptRows

#: Request rows that reach more rows are answered alone: nothing is gained then, and the others need not wait.
_FEW = 2_048


class Requests:
    """Rows of the request table, and the rows of the inputs as each of them sees them. `missed` says by row whether it
    has asked for rows that may be gone."""

    def __init__(self, spec: ServingSpec, rows: pa.RecordBatch, kept: Sequence[KeptRows]) -> None:
        self.rows, self._kept = rows, kept
        self._stores = [spec.asked(rows.slice(place, 1), kept) for place in range(rows.num_rows)]
        self.missed = [False] * rows.num_rows

    @contextmanager
    def of(self, place: int) -> Iterator[Stores]:
        """The rows as the row at a place sees them."""
        for store in self._kept:
            store.missed = False
        yield self._stores[place]
        self.missed[place] |= any(store.missed for store in self._kept)


def answered_together(steps: Sequence[Step], requests: Requests) -> pa.RecordBatch:
    """What steps make of request rows: a row for each. Raises as they do, for whichever row."""
    rows = requests.rows
    for step in steps:
        if isinstance(step, ProjectStep):
            rows = step.run(rows)
        elif isinstance(step, WindowStep):
            rows = _windows(step, rows, requests)
        elif isinstance(step, BranchStep):
            rows = _branch(step, rows, requests)
        else:
            rows = _joined(step, rows, requests)
    return rows


def _joined(step: LastJoinStep, rows: pa.RecordBatch, requests: Requests) -> pa.RecordBatch:
    joined = []
    for place in range(rows.num_rows):
        with requests.of(place) as stores:
            joined.append(step.run(rows.slice(place, 1), stores))
    return whole(joined[0].schema, joined)


def _branch(step: BranchStep, rows: pa.RecordBatch, requests: Requests) -> pa.RecordBatch:
    return step.beside(rows, answered_together(step.steps, requests), requests.rows)


def _windows(step: WindowStep, rows: pa.RecordBatch, requests: Requests) -> pa.RecordBatch:
    asked, ordered = step.asked(rows), step.window.order
    times = [0] * rows.num_rows if ordered is None else order_with_nulls(asked.column(ordered)).tolist()
    alone: dict[int, pa.RecordBatch] = {}
    parts: list[Part] = []
    groups: list[Int64s] = []
    for place, time in enumerate(times):
        row = asked.slice(place, 1)
        key = row.select(list(step.window.keys)) if step.window.keys else row
        with requests.of(place) as stores:
            if step.long.calls and time != NULL_ORDER and step.has_many(key, stores):
                alone[place] = step.run(rows.slice(place, 1), stores)
                continue
            reached = step.parts(step.request_reach, row, key, time, stores)
        if sum(len(order) for _, order, _ in reached) > _FEW:
            results = processed(step.__dict__, "_of 0", step.window, piece_of(reached, step.arguments))
            alone[place] = step.beside(rows.slice(place, 1), results)
            continue
        groups += [np.full(len(order), place) for _, order, _ in reached]
        parts += reached
    if not parts:
        return whole(alone[0].schema, alone.values())
    piece = piece_of(parts, step.arguments, np.concatenate(groups))
    results = processed(step.__dict__, "_of 0", step.window, piece)
    if not alone:
        return step.beside(rows, results)
    others = np.setdiff1d(np.arange(rows.num_rows), list(alone))
    answered = [step.beside(take_rows(rows, others), results), *alone.values()]
    return take_rows(whole(answered[0].schema, answered), np.argsort([*others.tolist(), *alone], kind="stable"))
