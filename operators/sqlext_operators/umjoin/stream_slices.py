"""Slices of time as one more key of a join, so that rows far apart in time never meet.

The rows of one input, the anchor, are each in one slice. A row of another input is copied to every slice in which a row
of the anchor may be that the bounds allow beside it. So a joined row is found once, in the slice of its anchor's row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sqlext_operators.arrays import Int64s

#: The shortest span of bounds is about so many slices: a row has some copies more than that, and meets few rows that
#: the bounds exclude.
_FINE = 4
#: No row has many more copies than this.
_MOST_COPIES = 16


@dataclass(frozen=True)
class Span:
    """A row of an input is at most `back` before and `ahead` after the anchor's row, in units of the time columns."""

    back: int
    ahead: int

    @property
    def width(self) -> int:
        """How long the span is; 0 for one that excludes every row."""
        return max(0, self.back + self.ahead + 1)


def slice_width(spans: list[Span]) -> int:
    """The width of slices for these spans, one at least."""
    widths = [span.width for span in spans]
    return max(1, min(widths) // _FINE, max(widths) // _MOST_COPIES)


def copies(times: Int64s, span: Span, width: int, low: int, high: int) -> tuple[Int64s, Int64s]:
    """(rows, slices), int64[n] each: every row with each slice, from `low` to `high`, that it may have matches in."""
    first = np.maximum((times - span.ahead) // width, low)
    last = np.minimum((times + span.back) // width, high)
    counts = np.maximum(last - first + 1, 0)
    rows = np.repeat(np.arange(len(times)), counts)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    return rows, first[rows] + np.arange(len(rows)) - starts[rows]
