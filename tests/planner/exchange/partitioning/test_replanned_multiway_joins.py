"""A multi-way join over streams whose keys get other places gives what brute force gives, also after a kill."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sqlext_operators.exchange.placement import Placement
from sqlext_operators.umjoin.spec import Kind, MultiwayInput, MultiwayJoinSpec
from sqlext_operators.umjoin.stream import MultiwayStreamSpec
from sqlext_operators.umjoin.stream_bounds import StreamTimes, TimeBound
from sqlext_planner.exchange.partitioning.choice import Demand
from sqlext_planner.exchange.partitioning.stream_placing import PlacedInputs, StreamPlacing

from tests.operators.umjoin.test_multiway_stream import LAST, Case, Model, Row, blocks_of, schema_of
from tests.planner.exchange.partitioning.moving import BUCKETS, Step, everywhere, moved, placements
from tests.properties import examples

KINDS: tuple[Kind, ...] = ("inner", "left", "semi", "anti")
PLACES = st.lists(placements(pa.int64()), min_size=1, max_size=4)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Inputs that share a key, with bounds from one to the next and back. Every micro-batch has rows, so that all
    buckets have the same watermark; some are late, or lack a key or a time."""
    member = st.sampled_from(["inner", "inner", "left", "semi", "anti"])
    kinds = ["inner", *draw(st.lists(member, min_size=1, max_size=3))]
    kinds = list(draw(st.permutations(kinds)))
    inner = [i for i, kind in enumerate(kinds) if kind == "inner"]
    inputs, bounds = [], []
    for i, kind in enumerate(kinds):
        own = (0, 1) if kind == "inner" and draw(st.booleans()) else (0,)
        payload = ("no",) if kind in ("inner", "left") else ()
        inputs.append(MultiwayInput(kind, own, tuple(f"k{c}" for c in own), payload))  # type: ignore[arg-type]
        if i != inner[0]:
            near = draw(st.sampled_from([j for j in inner if j < i] if kind == "inner" else inner))
            bounds += [TimeBound(near, i, draw(st.integers(-1, 5))), TimeBound(i, near, draw(st.integers(-1, 5)))]
    count = 1 + max(c for item in inputs for c in item.classes)
    spec = MultiwayStreamSpec(
        MultiwayJoinSpec(tuple(inputs), count),
        StreamTimes(tuple(kinds), ("t",) * len(kinds), tuple(bounds)),  # type: ignore[arg-type]
        tuple(map(schema_of, inputs)),
        owned=draw(st.sampled_from(inner)),
    )
    rng = random.Random(draw(st.integers(0, 1 << 30)))  # lists of hypothesis are short: few rows would match
    number, pace, delay = itertools.count(), draw(st.integers(1, 5)), draw(st.integers(0, 5))
    batches: list[tuple[int | None, tuple[Row, ...]]] = []
    most = 12 if len(inputs) < 4 else 8
    for n in range(draw(st.integers(4, 14))):
        watermark = pace * n - delay if n else None
        rows = []
        for _ in range(rng.randint(1, most)):
            tag = rng.randrange(len(inputs))
            time = None if rng.random() < 0.05 else rng.randint((watermark or 0) - 2, pace * n + 2)
            rows.append(
                Row(tag, next(number), time, tuple(rng.choice([0, 0, 0, 1, 2, None]) for _ in inputs[tag].keys))
            )
        batches.append((watermark, tuple(rows)))
    return Case(spec, tuple(batches))


@given(case=cases(), places=PLACES, data=st.data())
@examples(60, share=8)
def test_joins_whose_keys_move_equal_brute_force(case: Case, places: list[Placement], data: st.DataObject) -> None:
    event(f"{check(case, places, data)} changes")


@pytest.mark.slow
@given(case=cases(), places=PLACES, data=st.data())
@examples(2000)
def test_thousands_of_joins_whose_keys_move_equal_brute_force(
    case: Case, places: list[Placement], data: st.DataObject
) -> None:
    event(f"{check(case, places, data)} changes")


def tuples(batches: Iterable[pa.RecordBatch]) -> Counter[Any]:
    return Counter(
        row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )


def check(case: Case, places: list[Placement], data: st.DataObject | None = None) -> int:
    """How often keys have moved. Raises AssertionError where the stream differs from brute force."""
    spec = case.spec
    assert spec.owned is not None
    name = "fragment" if data is None else data.draw(st.sampled_from(["hybrid", "fragment"]), "partitioner")
    placing = StreamPlacing(name, Demand())
    inputs = PlacedInputs(placing, (("k0",),) * len(spec.schemas), spec.times.columns, spec.owned, (False,))
    model, steps, count = Model(spec), list[Step](), 0
    for watermark, rows in (*case.batches, (LAST, ())):
        steps.append((watermark, blocks_of(spec, rows)))
        model.add(rows, watermark)
        count += len(rows)
    buckets = moved(spec, inputs, tuples, steps, places, data)
    assert buckets.found == model.joined()
    progress = buckets.progress
    assert (progress.rows, progress.late, progress.timeless) == (count, model.late, model.timeless)
    assert not buckets.rows_left
    return buckets.changes


def chain_of(kinds: Sequence[Kind], ahead: int, back: int) -> MultiwayStreamSpec:
    """Inputs joined by a key; a row is at most `ahead` after the one of the input before it, and at most `back` before
    it. The rows of the first one are owned."""
    payload = [("no",) if kind in ("inner", "left") else () for kind in kinds]
    items = tuple(MultiwayInput(kind, (0,), ("k0",), own) for kind, own in zip(kinds, payload, strict=True))
    bounds = [bound for i in range(1, len(kinds)) for bound in (TimeBound(i - 1, i, ahead), TimeBound(i, i - 1, back))]
    times = StreamTimes(kinds, ("t",) * len(kinds), tuple(bounds))
    return MultiwayStreamSpec(MultiwayJoinSpec(items, 1), times, tuple(map(schema_of, items)), owned=0)


CHAINS = pytest.mark.parametrize("kinds", [(*inner, last) for inner in (["inner"], ["inner"] * 2) for last in KINDS])


@pytest.mark.parametrize("back", [2, 4])
@CHAINS
def test_a_row_is_owned_where_its_oldest_match_is(kinds: tuple[Kind, ...], back: int) -> None:
    """The match comes, its key gets another place, and a row comes that is as new as it may be."""
    last, start = len(kinds) - 1, 20
    oldest, newest = Row(last, 1, start, (0,)), Row(0, 2, start + back * last, (0,))
    between = [Row(1, 3, start + back, (0,))] if last == 2 else []
    case = Case(
        chain_of(kinds, 3, back), ((None, (oldest,)), (None, (Row(0, 4, 1, (1,)),)), (None, (newest, *between)))
    )
    assert [check(case, [place]) for place in everywhere()] == [2] * BUCKETS


@CHAINS
def test_the_last_match_of_a_row_is_copied_to_its_owner(kinds: tuple[Kind, ...]) -> None:
    """The row comes, its key gets another place, and a match comes at the last moment."""
    last, start = len(kinds) - 1, 20
    row, match = Row(0, 1, start, (0,)), Row(last, 2, start + 3 * last, (0,))
    between = [Row(1, 3, start + 3, (0,))] if last == 2 else []
    mark, beside = start + 3 * last, Row(last, 4, 1, (1,))
    batches = ((None, (beside,)), (None, (row, *between)), (mark, (beside,)), (mark, (match,)), (mark + 1, (beside,)))
    for place in everywhere():
        assert check(Case(chain_of(kinds, 3, 2), batches), [place]) > 2
