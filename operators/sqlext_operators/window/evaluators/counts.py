"""count and count_where: differences of prefix counts."""

from __future__ import annotations

import pyarrow as pa

from sqlext_operators.columns.flat import usable
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.evaluators.prefix import PrefixCounts
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.definition import CallSite


class Count(Evaluator):
    """Number of rows with a value (and a true condition); without a value argument, of all rows (``*``)."""

    def __init__(self, site: CallSite) -> None:
        super().__init__(site)
        self.counts = PrefixCounts()

    def load(self, rows: Rows) -> None:
        self.counts.load(usable(rows.args, self.site.condition), rows.candidates)

    def evaluate(self, frames: Frames) -> pa.Array:
        return pa.array(self.counts.totals(frames))

    def reset(self) -> None:
        self.counts.carry = 0

    def fold(self, start: int, end: int) -> None:
        self.counts.fold(start, end)


def count(site: CallSite) -> Evaluator:
    """The evaluator of count and count_where."""
    return Count(site)
