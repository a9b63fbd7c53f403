"""Periods that come as two rows, beside a side whose rows have one owner each: the pairs are those of one bucket."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.placement import Placement
from sqlext_operators.exchange.stream_placement import StreamPlacement
from sqlext_operators.interval_join.passes import SIDES, other_side
from sqlext_planner.exchange.partitioning.choice import Demand
from sqlext_planner.exchange.partitioning.stream_placing import PlacedInputs, StreamPlacing

from tests.operators.interval_join.test_open_periods import LAST, OVERLAPS, Case, Twin, batch_of, cases, spec_of, tuples
from tests.planner.exchange.partitioning.moving import BUCKETS, Buckets
from tests.properties import examples

EVERYWHERE = StreamPlacement.first(Placement(BUCKETS, (tuple(range(BUCKETS)),)))


@given(case=cases())
@examples(100, share=8)
def test_every_step_gives_what_one_bucket_gives(case: Case) -> None:
    opened = [side for side in SIDES if case.spec.side(side).open is not None]
    assume(len(opened) == 1 and not case.spec.join.decides(opened[0]))
    spec, twin = replace(case.spec, owned=other_side(opened[0])), Twin(case.spec)
    keys, orders = zip(*((spec.join.side(side).keys, spec.side(side).time) for side in SIDES), strict=True)
    placing = StreamPlacing("broadcast", Demand())
    inputs = PlacedInputs(placing, keys, orders, SIDES.index(other_side(opened[0])), spec.join.null_safe)
    buckets, expected = Buckets(spec, inputs, lambda batches: tuples(list(batches))), Counter[Any]()
    before, number, first = None, 0, 0
    for number, (watermark, rows) in enumerate((*case.batches, (LAST, ()))):
        numbered = list(enumerate(rows, first))
        expected += twin.step(numbered, before, watermark)
        # blocks without rows too: every bucket is called in each step
        chosen = {side: [item for item in numbered if item[1].side == side] for side in SIDES}
        blocks = [Block(0, tag, first, batch_of(side, chosen[side])) for tag, side in enumerate(SIDES)]
        assert not buckets.step(number, blocks, watermark, EVERYWHERE, kept=True)
        assert buckets.found == expected
        first += len(rows)
        if watermark is not None:
            before = max(watermark, before or watermark)
    assert buckets.progress.late == twin.late


def test_the_two_rows_of_a_period_may_have_two_owners() -> None:
    with pytest.raises(ValueError, match="two rows of an open period may have two owners"):
        replace(spec_of("inner", OVERLAPS, (True, False)), owned="left")
