"""The calls of a window union that are answered early, and the numbers of rows that come with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlext_operators.early.key_totals import Aggregate
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec


@dataclass(frozen=True)
class RowCall:
    """A call over the window at a place. `arg` is the column of its values, None for COUNT(*)."""

    place: int
    aggregate: Aggregate
    arg: str | None
    output: str

    @property
    def rows(self) -> str:
        """The result column with the number of rows that have a value."""
        return self.output if self.aggregate is Aggregate.COUNT else f"__rows {self.place} {self.arg}"


def row_calls(spec: WindowUnionSpec) -> tuple[RowCall, ...]:
    """The calls of all windows, in the order of their results. Raises ValueError for what is not estimated: other
    functions, and windows that count rows."""
    found = []
    for place, window in enumerate(spec.windows):
        if not is_estimated(window.frame):
            raise ValueError(f"no sum over time: {window.frame}")
        for call in window.calls:
            if call.constants or call.filtered or len(call.args) > 1:
                raise ValueError(f"not estimated: {call}")
            arg = call.args[0] if call.args else None
            found.append(RowCall(place, Aggregate(call.function), arg, call.output))
    return tuple(found)


def is_estimated(frame: Frame) -> bool:
    """Whether what a frame holds is a sum over time, of which a part is known early."""
    return frame.unit == "range" and frame.maxsize is None and frame.end is not None


def with_rows(operator: WindowOperatorSpec) -> WindowOperatorSpec:
    """The operator with the columns `RowCall.rows` behind the calls of each window."""
    windows = tuple(
        replace(window, calls=(*window.calls, *_counts(place, window)))
        for place, window in enumerate(operator.window.windows)
    )
    return replace(operator, window=replace(operator.window, windows=windows))


def _counts(place: int, window: Window) -> Iterator[Call]:
    args = dict.fromkeys(call.args for call in window.calls if call.function != Aggregate.COUNT)
    for arg in args:
        yield Call("count", arg, f"__rows {place} {arg[0]}")
