"""Evaluates all windows of a specification over a partition that is one piece, such as the rows that a request reaches.

A call that several windows have over the same rows is evaluated once, over the frames of all of them: most of the time
that a short window takes does not depend on how many frames there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sqlext_operators.errors import TaskError, about
from sqlext_operators.exchange.profile import measured
from sqlext_operators.sequences.sequence import Piece
from sqlext_operators.window.evaluators.base import Evaluator
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.processor import Buffer, WindowState
from sqlext_operators.window.spec import Call, WindowUnionSpec


class OnePieceProcessor:
    """The window-union operator over a partition that comes in one piece: its results are those of
    `WindowUnionProcessor`. `arg_types` are the types of the argument columns. Raises as it does."""

    def __init__(self, spec: WindowUnionSpec, arg_types: Mapping[str, pa.DataType]) -> None:
        self._windows = [WindowState(window, arg_types, spec) for window in spec.windows]
        shared: dict[object, _SharedCall] = {}
        for place, state in enumerate(self._windows):
            for call, evaluator in zip(state.window.calls, state.evaluators, strict=True):
                # an evaluator of an unbounded window may count on frames that lose no row
                alone = place if state.unbounded else None
                same = state.rows_key, alone, replace(call, output=""), repr(call.constants)
                shared.setdefault(same, _SharedCall(state, evaluator)).add(place, call)
        self._calls = list(shared.values())

    def process(self, piece: Piece) -> dict[str, pa.Array]:
        """The columns of the calls, by their outputs, a value for each FROM row of the piece in sequence order."""
        buffer = Buffer(piece, 0)
        row = buffer.from_rows()
        rows = row, piece.group[row], piece.order[row]
        fresh = np.ones(len(row), np.bool_)
        np.not_equal(rows[1][1:], rows[1][:-1], out=fresh[1:])
        frames = [state.frames(buffer, rows, fresh) for state in self._windows]
        together: dict[tuple[int, ...], Frames] = {}
        repeated: dict[tuple[int, int], Any] = {}
        columns: dict[str, pa.Array] = {}
        for call in self._calls:
            windows = tuple(call.windows)
            if windows not in together:
                together[windows] = Frames.joined([frames[place] for place in windows], repeated)
            columns.update(call.results(buffer, together[windows], len(row)))
        return columns


class _SharedCall:
    """A call of one or more windows over the same rows, with one evaluator."""

    def __init__(self, state: WindowState, evaluator: Evaluator) -> None:
        self._state, self._evaluator = state, evaluator
        self._calls: list[Call] = []
        #: The places of its windows.
        self.windows: list[int] = []

    def add(self, window: int, call: Call) -> None:
        """One more window that has the call."""
        self.windows.append(window)
        self._calls.append(call)

    def results(self, buffer: Buffer, frames: Frames, count: int) -> dict[str, pa.Array]:
        """The columns of `count` values for each window, by the calls' outputs; `frames` are those of all windows."""
        names = [call.output for call in self._calls]
        try:
            column = self._column(buffer, frames, names[0])
        except TaskError:
            for place, name in enumerate(names):  # it is about the first of them that has it alone
                self._column(buffer, frames[place * count : (place + 1) * count], name)
            raise
        if len(names) == 1:
            return {names[0]: column}
        return {name: column.slice(place * count, count) for place, name in enumerate(names)}

    def _column(self, buffer: Buffer, frames: Frames, name: str) -> pa.Array:
        evaluator = self._evaluator
        with about(name), measured("evaluate", name, type(evaluator).__name__):
            evaluator.forget()
            self._state.load_call(self._calls[0], evaluator, buffer)
            return evaluator.evaluate(frames)
