"""regr_avgx and regr_avgy: avg over the rows in which both values are there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.flat import valid_mask
from sqlext_operators.window.evaluators.base import Evaluator, Rows
from sqlext_operators.window.evaluators.filtered import Filtered
from sqlext_operators.window.evaluators.sums import average
from sqlext_operators.window.functions.definition import CallSite


class PairMean(Filtered):
    """The mean of argument `place`."""

    def __init__(self, site: CallSite, inner: Evaluator, place: int) -> None:
        super().__init__(inner)
        self.site = site
        self._place = place

    def load(self, rows: Rows) -> None:
        masks = [mask for mask in map(valid_mask, rows.args) if mask is not None]
        both = np.logical_and.reduce([np.ones(rows.count, np.bool_), *masks])
        super().load(replace(rows, args=(rows.args[self._place], pa.array(both))))


def pair_mean(site: CallSite, place: int) -> Evaluator:
    """The evaluator for the type of that argument."""
    return PairMean(site, average(replace(site, types=(site.types[place],))), place)
