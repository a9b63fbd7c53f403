"""The endpoint iterators against their plain twins, however the index is cut, and the errata of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.interval_join.codes import GREATEST, LEAST
from sqlext_operators.interval_join.sweep.batch import sweep_join
from sqlext_operators.interval_join.sweep.events import FINISHED, EndpointChunk, EndpointIndex, Mark, select
from sqlext_operators.interval_join.sweep.expressions import (
    AMONG_ENDS,
    AT_END,
    AT_START,
    ENDS,
    GENERAL_BEFORE,
    INDEX,
    P_END,
    P_START,
    STARTS,
    EndpointExpression,
    EndpointFilter,
    Merge,
    Shifted,
)
from sqlext_operators.interval_join.sweep.kernels.events import EARLY_START, END, START, EventArrays

from tests.operators.interval_join.sweep import reference
from tests.operators.interval_join.sweep.sweep_data import DELTAS, EPSILONS, columns, pairs

EXPRESSIONS = [INDEX, STARTS, ENDS, P_START, P_END, GENERAL_BEFORE, AT_END, AT_START, AMONG_ENDS]
EXPRESSIONS += [
    EndpointFilter(Shifted(INDEX, 3, START), START),
    Merge(EndpointFilter(P_END, END), Shifted(STARTS, -2, EARLY_START)),
]

INTERVALS = st.lists(
    st.tuples(st.integers(-9, 9), st.integers(1, 9)).map(lambda row: (row[0], row[0] + row[1])), max_size=9
)


def _index(rows: list[reference.Interval]) -> EndpointIndex:
    return EndpointIndex(*columns(rows), np.arange(len(rows)))


def _order(events: EventArrays) -> list[tuple[int, int]]:
    return list(zip(events.times.tolist(), events.codes.tolist(), strict=True))


def _set(events: EventArrays) -> list[reference.Event]:
    return sorted(zip(events.times.tolist(), events.codes.tolist(), events.ids.tolist(), strict=True))


@given(
    rows=INTERVALS,
    expression=st.sampled_from(EXPRESSIONS),
    delta=st.sampled_from(DELTAS),
    epsilon=st.sampled_from(EPSILONS),
    cuts=st.lists(st.integers(-12, 20), max_size=4),
)
def test_they_hand_on_what_the_twins_do(
    rows: list[reference.Interval], expression: EndpointExpression, delta: float, epsilon: float, cuts: list[int]
) -> None:
    expression = expression.given({"delta": delta, "epsilon": epsilon})
    expected = sorted(reference.events_of(expression, rows))
    whole, mark = expression.open().push(_index(rows), FINISHED)
    assert _set(whole) == expected
    assert _order(whole) == sorted(_order(whole))
    assert mark[0] == FINISHED[0]
    assert _cut(expression, _index(rows).events, sorted(set(cuts))) == _order(whole)


def _cut(expression: EndpointExpression, events: EventArrays, cuts: list[int]) -> list[tuple[int, int]]:
    """The events in the order in which pushes that are cut at these times hand them on."""
    iterator = expression.open()
    found: list[tuple[int, int]] = []
    reached: Mark = (float("-inf"), EARLY_START)
    marks: list[Mark] = [(cut, EARLY_START) for cut in cuts]
    start = 0
    for mark in [*marks, FINISHED]:
        stop = len(events.times) if mark == FINISHED else int(np.searchsorted(events.times, mark[0]))
        handed, further = iterator.push(EndpointChunk(select(events, slice(start, stop))), mark)
        assert all(event >= reached for event in _order(handed))  # what is before a mark has been handed on
        found += _order(handed)
        reached = further
        start = stop
    return found


def test_order_of_the_index() -> None:
    events = _index([(1, 3), (3, 4), (0, 1), (2, 3)]).events
    assert _order(events) == [(0, 2), (1, 1), (1, 2), (2, 2), (3, 1), (3, 1), (3, 2), (4, 1)]


def test_merging_does_not_lose_the_last_window() -> None:
    """Erratum 4: the paper's iterator is finished before its last event, the authors' before join finds no row here."""
    assert pairs(sweep_join("iseql_before", *columns([(1, 3)]), *columns([(4, 6)]), delta=5)) == [(0, 0)]
    events, _ = GENERAL_BEFORE.given({"delta": 5}).open().push(_index([(1, 3)]), FINISHED)
    assert len(events.times) == 2


def test_first_end_and_second_start_keep_events_of_the_other_type() -> None:
    """Erratum 2: as printed they drop them and never assign their endpoint."""
    rows = [(0, 10), (1, 3)]
    first, _ = P_START.given({"delta": 4}).open().push(_index(rows), FINISHED)
    assert _set(first) == [(0, 2, 0), (1, 2, 1), (3, 1, 1), (4, 3, 0)]
    second, _ = P_END.given({"epsilon": 4}).open().push(_index(rows), FINISHED)
    assert _set(second) == [(1, 2, 1), (3, 1, 1), (6, 0, 0), (10, 1, 0)]


def test_finishes_does_not_match_ends_that_follow() -> None:
    """Erratum 1: a window from b to b + 1, as the prose has it, would match d = b + 1."""
    left, right = columns([(2, 5)]), columns([(0, 5), (0, 6), (0, 4), (2, 5), (3, 5)])
    assert pairs(sweep_join("allen_finishes", *left, *right)) == [(0, 0)]


@pytest.mark.parametrize("relation", ["iseql_before", "iseql_start_preceding"])
def test_a_window_beyond_the_ends_of_int64_saturates(relation: str) -> None:
    """Erratum 6: b + delta + 1 would wrap around."""
    left, right = columns([(5, GREATEST - 2)]), columns([(GREATEST - 1, GREATEST), (6, GREATEST)])
    expected = [(0, 0)] if relation == "iseql_before" else [(0, 1)]
    for delta in (3, GREATEST, 2**70, float("inf")):
        assert pairs(sweep_join(relation, *left, *right, delta=delta)) == expected


def test_the_parameters_shorten_the_windows_themselves() -> None:
    """Erratum 3: the authors' code filters by delta and epsilon after the join; here no candidate is beyond them."""
    rows = [(k, 1000) for k in range(50)]
    events, _ = P_START.given({"delta": 2}).open().push(_index(rows), FINISHED)
    ends = {key: time for time, code, key in _set(events) if code != START}
    assert ends == {key: start + 2 for key, (start, _) in enumerate(rows)}
    late, _ = P_END.given({"epsilon": 3}).open().push(_index(rows), FINISHED)
    assert {time for time, code, _ in _set(late) if code != END} == {997}


@pytest.mark.parametrize(
    "rows", [[], [(5, 5)], [(7, 2)], [(5, 5), (1, 4)], [(LEAST, LEAST), (GREATEST, LEAST), (LEAST, GREATEST)]]
)
def test_degenerate_intervals_do_not_leak_into_the_active_set(rows: list[reference.Interval]) -> None:
    """Section 6: END(t) comes before START(t), so an empty interval would stay active for ever. Erratum 5: no rows."""
    others = [(3, 8), (6, 20), (2, 4), (5, 5)]
    for relation in ("iseql_start_preceding", "iseql_end_following", "period_overlaps", "allen_during"):
        expected = reference.pairs_of(relation, rows, others)
        assert pairs(sweep_join(relation, *columns(rows), *columns(others))) == expected
        turned = reference.pairs_of(relation, others, rows)
        assert pairs(sweep_join(relation, *columns(others), *columns(rows))) == turned
