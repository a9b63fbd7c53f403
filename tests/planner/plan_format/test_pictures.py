"""The little pictures: every relation has one that follows from its formula, every frame shows which rows are in it."""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.window.spec import Frame
from sqlext_planner.expressions.nodes import Compare, conjunction
from sqlext_planner.periods.predicates import Amount
from sqlext_planner.periods.relation_sets import LEFT, LINE, EndReach, Placements
from sqlext_planner.plan_format.pictures.frames import frame_picture, frame_samples, members
from sqlext_planner.plan_format.pictures.join_graph import class_name
from sqlext_planner.plan_format.pictures.plan_pictures import pictures_of
from sqlext_planner.plan_format.pictures.relations import Drawn, amount_words, relation_picture
from sqlext_planner.umjoin.nodes import UMJoin
from sqlext_planner.window.nodes import Bound, WindowFrame, WindowGroup

from tests.operators.window import reference
from tests.planner.plans import col, scan

HOUR = Bound("preceding", 1, "h")
NOW = Bound("preceding", 0)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", RELATIONS)
def test_every_relation_has_a_picture(name: str) -> None:
    row = RELATIONS[name]
    unbounded = tuple(term for term in row.terms if not isinstance(term.shift, tuple))
    amounts = tuple((parameter, "10 min") for parameter in row.parameters)
    for terms, bounds in ((row.terms, amounts), (unbounded, ())):
        picture = relation_picture(Drawn(row, terms, ("one", "two"), amounts=bounds))
        assert picture.svg().count("\N{LESS-THAN OR EQUAL TO} 10 min") == len(bounds)
        assert row.doc in picture.caption
        c, d = Placements(terms).typical
        assert 0 <= c < d <= LINE


@pytest.mark.parametrize("name", [name for name, row in RELATIONS.items() if row.strict])
def test_the_bars_of_allens_relations_have_that_relation_and_no_other(name: str) -> None:
    places = Placements(RELATIONS[name].terms)
    assert places.allen == (name.removeprefix("allen_"),)
    c, d = places.typical
    values = {**LEFT, "c": c, "d": d}
    holding = [
        row.name
        for row in RELATIONS.values()
        if row.strict and all(eval(str(term).replace(" = ", " == "), {}, values) for term in row.terms)
    ]
    assert holding == [name]


def test_ranges_are_open_closed_or_without_end() -> None:
    meets, overlaps = (Placements(RELATIONS[name].terms) for name in ("allen_meets", "period_overlaps"))
    assert meets.reach("c").is_exact
    assert (overlaps.reach("c").low, overlaps.reach("c").high, overlaps.reach("c").with_high) == (
        None,
        LEFT["b"],
        False,
    )
    during = Placements(RELATIONS["period_contains"].terms)
    assert during.reach("c") == EndReach(LEFT["a"], LEFT["b"], with_high=False)
    assert len(overlaps.allen) == 9
    assert {"before", "after", "meets", "met_by"}.isdisjoint(overlaps.allen)


def test_a_point_and_an_open_end() -> None:
    row = RELATIONS["period_contains"]
    terms = (Condition("a", "<=", "c"), Condition("b", ">", "c"))
    picture = relation_picture(Drawn(row, terms, ("p", "t"), frozenset("b"), point=True))
    assert "t may be from the start of r and before the end of r" in picture.words
    assert "first-line" in picture.svg()
    assert "t = [c" not in picture.caption


def test_amounts_in_words() -> None:
    assert [amount_words(Amount(value, True)) for value in (90_000_000, 600_000_000, 1)] == [
        "90 s",
        "10 min",
        "1 \xb5s",
    ]
    assert amount_words(Amount(2.5, False)) == "2.5"


@pytest.mark.parametrize(
    ("frame", "inside", "left_out"),
    [
        (WindowFrame("range", HOUR, NOW), {-100, -69, -40, -15, 0}, set()),
        (WindowFrame("range", Bound("preceding", 1, "h", True), NOW), {-69, -40, -15, 0}, set()),
        (WindowFrame("range", HOUR, NOW, maxsize=2), {0}, {-100, -69, -40, -15}),
        (WindowFrame("range", HOUR, NOW, instance_not_in_window=True), {0}, {-100, -69, -40, -15, 0}),
        (WindowFrame("range", Bound("preceding", 2, "h"), HOUR), {-100, -69}, set()),
    ],
)
def test_which_rows_of_from_are_in_the_frame(frame: WindowFrame, inside: set[int], left_out: set[int]) -> None:
    rows = frame_samples(frame, "timestamp", 0).rows
    assert {row.place for row in rows if row.state == "in"} == inside
    assert {row.place for row in rows if row.state in ("excluded", "oversize")} == left_out
    assert [row.place for row in rows if row.is_current] == [0]


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2)), min_size=1, max_size=9),
    st.sampled_from(["rows", "range"]),
    st.tuples(st.none() | st.integers(-3, 3), st.none() | st.integers(-3, 3)),
    st.sampled_from([None, 1, 2, 5]),
    st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    st.integers(0, 8),
)
def test_rows_in_a_frame_are_those_of_the_operators_twin(
    rows: list[tuple[int, int]],
    unit: Literal["rows", "range"],
    bounds: tuple[int | None, int | None],
    maxsize: int | None,
    flags: tuple[bool, bool, bool, bool],
    current: int,
) -> None:
    rows.sort(key=lambda row: (row[0], -row[1]))
    frame = Frame(unit, *bounds, bounds[0] is not None and bounds[0] > 0, flags[0], maxsize, *flags[1:])
    twin = [reference.SequenceRow(order, source, ()) for order, source in rows]
    place = current % len(rows)
    assert members(frame, rows, place) == reference.members(frame, twin, place)


def test_attributes_leave_rows_out() -> None:
    plain = WindowFrame("range", HOUR, NOW)
    states = {
        name: [(row.lane, row.place) for row in frame_samples(frame, "timestamp", 1).rows if row.state == "excluded"]
        for name, frame in {
            "time": WindowFrame("range", HOUR, NOW, exclude_current_time=True),
            "row": WindowFrame("range", HOUR, NOW, exclude_current_row=True),
            "plain": plain,
        }.items()
    }
    assert states["plain"] == []
    assert sorted(states["time"]) == [(0, 0), (1, 0)]  # the equal row of FROM and that of the source
    assert states["row"] == [(0, 0)]


def test_rows_count_in_all_lanes_and_are_drawn_smaller() -> None:
    frame = WindowFrame("rows", Bound("preceding", 3), Bound("preceding", 1))
    found = frame_samples(frame, "timestamp", 2)
    current = next(row.place for row in found.rows if row.is_current)
    assert [row.place - current for row in found.rows if row.state == "in"] == [-3, -2, -1]
    assert not found.smaller
    assert frame_samples(WindowFrame("rows", Bound("preceding", 100), NOW), "timestamp", 0).smaller
    everything = frame_samples(WindowFrame("rows", Bound("preceding", None), NOW), None, 0)
    assert (everything.start, everything.smaller) == (None, False)


@pytest.mark.parametrize("unit", ["rows", "range"])
def test_a_frame_has_a_lane_for_each_source(unit: str) -> None:
    bounds = [Bound("preceding", None), HOUR if unit == "range" else Bound("preceding", 2), NOW]
    bounds += [Bound("following", 2), Bound("following", None)]
    for start, end in combinations(bounds, 2):
        group = WindowGroup("w", WindowFrame(unit, start, end), (0,), ())
        picture = frame_picture(group, ["views", "<orders>"], "timestamp", "views.ts")
        assert f">{start}<" in picture.svg()
        assert f">{end}<" in picture.svg()
        assert "&lt;orders&gt;" in picture.svg()
        assert "rows of views" in picture.words


def test_the_join_graph_has_every_key_column() -> None:
    inputs = (scan("a", "k_x int"), scan("b", "k_x int, l_y int"), scan("c", "m_y int"))
    terms = tuple(Compare("=", col(left), col(right)) for left, right in (("a.k_x", "b.k_x"), ("b.l_y", "c.m_y")))
    node = UMJoin(inputs, ("inner", "inner", "inner"), conjunction(terms), (None, None, None))
    picture = next(iter(pictures_of(node)))
    assert picture.words == "3 inputs (a, b, c) meet in 2 key classes: a.k_x = b.k_x; b.l_y = c.m_y"
    assert picture.svg().count('class="edge') == 4
    assert [class_name(names) for names in (["k_x", "k_x"], ["l_y", "m_y"], ["k", "l"])] == ["k_x", "y", "k"]
