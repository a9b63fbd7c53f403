"""An interval join over streams whose keys get other places gives what the batch operator gives, also after a kill."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.placement import Placement
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.passes import SIDES, Side, other_side
from sqlext_operators.interval_join.processor import join_batches
from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.interval_join.spec import Kind
from sqlext_operators.interval_join.stream_join import IntervalStreamSpec
from sqlext_operators.interval_join.stream_sides import StreamRows
from sqlext_planner.exchange.partitioning.choice import Demand
from sqlext_planner.exchange.partitioning.stream_placing import PlacedInputs, StreamPlacing

from tests.operators.interval_join.interval_data import CASES, named
from tests.operators.interval_join.test_interval_stream import (
    LAST,
    LONG,
    Row,
    batch_of,
    spec_of,
    tuples,
    values_of,
)
from tests.planner.exchange.partitioning.moving import BUCKETS, Step, everywhere, moved, placements
from tests.properties import examples

#: A point of the right side in a band around one of the left side; the watermarks are on the points.
BAND = (Condition("l0", "<=", "r0", -3), Condition("l0", ">=", "r0", 2))


def named_alternatives(name: str) -> tuple[tuple[Condition, ...], ...]:
    """The conditions of a relation with its first parameters."""
    parameters = next(parameters for relation, parameters in CASES if relation == name)
    return (named(RELATIONS[name].conditions(**parameters)),)


def bounded() -> list[tuple[tuple[tuple[Condition, ...], ...], str]]:
    """Alternatives, and the column of times of both sides, where each row finds matches until some time."""
    single = [(named(RELATIONS[relation].conditions(**parameters)),) for relation, parameters in CASES]
    several = [tuple(named(RELATIONS[name].conditions()) for name in ("allen_meets", "allen_during", "allen_starts"))]
    found = []
    for alternatives in (*single, *several, (BAND,)):
        for time in "01":
            spec = spec_of("inner", alternatives, (time, time))
            if all(all(spec.bounds(side) or ()) for side in SIDES):
                found.append((alternatives, time))
    return found


BOUNDED = bounded()


@dataclass(frozen=True)
class Case:
    spec: IntervalStreamSpec
    batches: tuple[tuple[int | None, tuple[Row, ...]], ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Every micro-batch has rows, so that all buckets have the same watermark; some are late or lack a value."""
    alternatives, time = draw(st.sampled_from(BOUNDED))
    kinds: list[tuple[Kind, Side]] = [
        ("inner", "left"),
        ("inner", "right"),
        ("left", "left"),
        ("semi", "left"),
        ("anti", "left"),
        ("right", "right"),
    ]
    kind, owned = draw(st.sampled_from(kinds))
    spec = spec_of(
        kind,
        alternatives,
        (time, time),
        keys=draw(st.integers(0, 3)) > 0,
        null_safe=draw(st.booleans()),
        empty=draw(st.sampled_from(["drop", "point"])),
        batch_rows=1000,
    )
    pace, delay = draw(st.integers(1, 6)), draw(st.integers(0, 6))
    batches: list[tuple[int | None, tuple[Row, ...]]] = []
    for n in range(draw(st.integers(4, 16))):
        watermark = pace * n - delay if n else None
        row = st.builds(
            lambda side, key, at, length, broken: Row(
                side, key, None if broken == 1 else at, None if broken == 2 else at + length, None
            ),
            st.sampled_from(SIDES),
            st.sampled_from([0, 0, 0, 1, 2, None]),
            st.integers((watermark or 0) - 3, pace * n + 2),
            st.integers(-1, 9),
            st.sampled_from([0] * 12 + [1, 2]),
        )
        batches.append((watermark, tuple(draw(st.lists(row, min_size=1, max_size=6)))))
    return Case(replace(spec, owned=owned), tuple(batches))


PLACES = st.lists(placements(LONG), min_size=1, max_size=4)


@given(case=cases(), places=PLACES, data=st.data())
@examples(70, share=8)
def test_joins_whose_keys_move_equal_batch(case: Case, places: list[Placement], data: st.DataObject) -> None:
    event(f"{check(case, places, data)} changes")


@pytest.mark.slow
@given(case=cases(), places=PLACES, data=st.data())
@examples(3000)
def test_thousands_of_joins_whose_keys_move_equal_batch(
    case: Case, places: list[Placement], data: st.DataObject
) -> None:
    event(f"{check(case, places, data)} changes")


def check(case: Case, places: list[Placement], data: st.DataObject | None = None) -> int:
    """How often keys have moved. Raises AssertionError where the stream differs from the batch, with kills anywhere."""
    join, owned = case.spec.join, SIDES.index(case.spec.owned or "left")
    name = "fragment" if data is None else data.draw(st.sampled_from(["hybrid", "fragment"]), "partitioner")
    placing = StreamPlacing(name, Demand())
    keys, orders = zip(*((join.side(side).keys, case.spec.side(side).time) for side in SIDES), strict=True)
    inputs = PlacedInputs(placing, keys, orders, owned, join.null_safe)
    steps: list[Step] = []
    taken: dict[Side, list[tuple[int, Row]]] = {"left": [], "right": []}
    before, first, late, timeless = None, 0, 0, 0
    for watermark, rows in (*case.batches, (LAST, ())):
        numbered = list(enumerate(rows, first))
        blocks = [
            Block(0, tag, first, batch_of(side, own))
            for tag, side in enumerate(SIDES)
            if (own := [(number, row) for number, row in numbered if row.side == side])
        ]
        steps.append((watermark, blocks))
        for number, row in numbered:
            time = values_of(row, row.side, number)[case.spec.side(row.side).time or ""]
            if time is None:
                timeless += 1
            elif before is not None and time < before:
                late += 1
            else:
                taken[row.side].append((number, row))
        before, first = watermark, first + len(rows)
    buckets = moved(case.spec, inputs, tuples, steps, places, data)
    sides = [batch_of(side, taken[side]) for side in SIDES]
    assert buckets.found == tuples(list(join_batches(join, *sides)))
    assert (buckets.progress.rows, buckets.progress.late, buckets.progress.timeless) == (first, late, timeless)
    assert not buckets.rows_left
    return buckets.changes


def rows_of(side: Side, key: int) -> list[Row]:
    return [Row(side, key, start, start + length, None) for start in range(4, 14) for length in range(1, 10)]


def time_of(spec: IntervalStreamSpec, row: Row) -> int:
    time = values_of(row, row.side, 0)[spec.side(row.side).time or ""]
    assert time is not None
    return time


def death_of(spec: IntervalStreamSpec, row: Row) -> int:
    return int(StreamRows(spec.join, row.side, batch_of(row.side, [(0, row)])).deaths(spec.bounds(row.side) or ())[0])


def last_match(spec: IntervalStreamSpec, row: Row) -> Row:
    """A row of the other side that matches a row and comes just before it cannot any more."""
    join = replace(spec.join, kind="inner")
    near = [item for item in rows_of(other_side(row.side), 0) if time_of(spec, item) == death_of(spec, row) - 1]
    for item in near:
        pair = {row.side: row, item.side: item}
        if list(join_batches(join, *(batch_of(side, [(0, pair[side])]) for side in SIDES))):
            return item
    raise LookupError


def with_last_match(spec: IntervalStreamSpec, side: Side, later_than: int = 0) -> tuple[Row, Row]:
    """A row of a side that dies after a time, and its last match."""
    for row in rows_of(side, 0):
        with suppress(LookupError):
            if death_of(spec, row) > later_than:
                return row, last_match(spec, row)
    raise AssertionError("no row has a last match")


#: Relations whose last matches are tried one by one, with the first of their parameters; and the band.
CHOSEN = ("period_overlaps", "period_contains", "allen_equals", "allen_meets", "iseql_left_overlap", "iseql_before")
LAST_MATCHES = [
    pytest.param(alternatives, time, owned, id=f"{name}-{time}-{owned}")
    for name, chosen in [(name, named_alternatives(name)) for name in CHOSEN] + [("band", (BAND,))]
    for alternatives, time in BOUNDED
    for owned in SIDES
    if alternatives == chosen
]


@pytest.mark.few
@pytest.mark.parametrize(("alternatives", "time", "owned"), LAST_MATCHES)
def test_a_row_is_owned_where_its_oldest_match_is(
    alternatives: tuple[tuple[Condition, ...], ...], time: str, owned: Side
) -> None:
    spec = replace(spec_of("inner", alternatives, (time, time), keys=True, batch_rows=1000), owned=owned)
    row, match = with_last_match(spec, other_side(owned))
    beside = Row(owned, 1, 5, 6, None)
    case = Case(spec, ((None, (row,)), (None, (beside,)), (None, (match,))))
    assert [check(case, [place]) for place in everywhere()] == [2] * BUCKETS


@pytest.mark.few
@pytest.mark.parametrize(("alternatives", "time", "owned"), LAST_MATCHES)
def test_the_last_match_of_a_row_is_copied_to_its_owner(
    alternatives: tuple[tuple[Condition, ...], ...], time: str, owned: Side
) -> None:
    spec = replace(spec_of("inner", alternatives, (time, time), keys=True, batch_rows=1000), owned=owned)
    first = min(rows_of(other_side(owned), 1), key=lambda row: death_of(spec, row))
    row, match = with_last_match(spec, owned, later_than=death_of(spec, first))
    mark = death_of(spec, row) - 1
    case = Case(spec, ((None, (first,)), (None, (row,)), (mark, (first,)), (mark, (match,)), (mark + 1, (match,))))
    for place in everywhere():
        assert check(case, [place]) > 2


def test_a_side_whose_rows_are_decided_is_owned() -> None:
    overlaps = (named(RELATIONS["period_overlaps"].conditions()),)
    for kind, owned in (("left", "right"), ("semi", "right"), ("full", "left")):
        with pytest.raises(ValueError, match="rows that are decided have one owner"):
            replace(spec_of(kind, overlaps, ("0", "0")), owned=owned)  # type: ignore[arg-type]
