"""A window over streams whose keys get other places gives what the batch operator gives, also after a kill."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sqlext_operators.exchange.placement import Placement
from sqlext_operators.window.spec import Frame, Window
from sqlext_operators.window.stream import WindowStreamSpec
from sqlext_planner.exchange.partitioning.choice import Demand
from sqlext_planner.exchange.partitioning.stream_placing import PlacedInputs, StreamPlacing

from tests.operators.window.test_window_stream import LAST, Case, Row, blocks_of, in_batch, results, spec_of
from tests.operators.window.window_data import ALL_CALLS, COLUMNS
from tests.planner.exchange.partitioning.moving import Step, moved, placements
from tests.properties import examples


@st.composite
def bounded_windows(draw: st.DrawFn, number: int) -> Window:
    """A window with a start and an end in time."""
    end = draw(st.integers(-2, 3))
    frame = Frame(
        "range",
        draw(st.integers(-8, min(end, 0))),
        end,
        end_following=end > 0,
        maxsize=draw(st.none() | st.integers(1, 3)),
        exclude_current_row=draw(st.booleans()),
        exclude_current_time=draw(st.booleans()),
        instance_not_in_window=draw(st.booleans()),
    )
    sources = tuple(sorted(draw(st.sets(st.integers(1, 3)))))
    chosen = draw(
        st.lists(st.sampled_from([c for c in ALL_CALLS if c.function not in ("lag", "lead")]), min_size=1, max_size=2)
    )
    return Window(frame, sources, tuple(replace(c, output=f"w{number}_{i}") for i, c in enumerate(chosen)))


@st.composite
def moving_cases(draw: st.DrawFn) -> Case:
    """Streams with so many micro-batches that keys move more than once; a few keys, many ties."""
    found = [draw(bounded_windows(n)) for n in range(draw(st.integers(1, 2)))]
    columns = tuple(dict.fromkeys(name for window in found for call in window.calls for name in call.args))
    value = st.tuples(*(COLUMNS[name][1] | st.none() for name in columns))
    pace, delay = draw(st.integers(1, 6)), draw(st.integers(0, 6))
    batches: list[tuple[int | None, tuple[Row, ...]]] = []
    for n in range(draw(st.integers(4, 16))):
        watermark = pace * n - delay if n else None
        low = 0 if watermark is None else watermark
        row = st.builds(Row, st.integers(0, 3), st.none() | st.integers(0, 2), st.integers(low, pace * n + 2), value)
        batches.append((watermark, tuple(draw(st.lists(row, max_size=6)))))
    return Case(spec_of(found, 4), columns, tuple(batches))


@given(case=moving_cases(), places=st.lists(placements(pa.int32()), min_size=1, max_size=4), data=st.data())
@examples(60, share=8)
def test_streams_whose_keys_move_equal_batch(case: Case, places: list[Placement], data: st.DataObject) -> None:
    event(f"{check(case, places, data)} changes")


@pytest.mark.slow
@given(case=moving_cases(), places=st.lists(placements(pa.int32()), min_size=1, max_size=4), data=st.data())
@examples(2000)
def test_thousands_of_streams_whose_keys_move_equal_batch(
    case: Case, places: list[Placement], data: st.DataObject
) -> None:
    event(f"{check(case, places, data)} changes")


def check(case: Case, places: list[Placement], data: st.DataObject) -> int:
    """How often keys have moved. Raises AssertionError where the stream differs from the batch, with kills anywhere."""
    shows = any(not window.frame.instance_not_in_window for window in case.spec.window.windows)
    copied = shows or data.draw(st.booleans(), "copied")
    name = "hybrid" if copied else data.draw(st.sampled_from(["auto", "fragment"]), "partitioner")
    placing = StreamPlacing(name, Demand(owned_copies=shows))
    inputs = PlacedInputs(placing, (("k",),) * case.spec.inputs, ("ts",) * case.spec.inputs)
    spec = WindowStreamSpec(case.spec, condense_from=1000, copies=copied)
    steps: list[Step] = []
    first = 0
    for watermark, rows in (*case.batches, (LAST, ())):
        steps.append((watermark, blocks_of(case.columns, rows, case.spec.inputs, first)))
        first += len(rows)
    buckets = moved(spec, inputs, results, steps, places, data)
    assert buckets.found == in_batch(case)
    assert buckets.progress.rows == first
    assert buckets.progress.late == buckets.progress.timeless == 0
    assert not buckets.rows_left
    return buckets.changes
