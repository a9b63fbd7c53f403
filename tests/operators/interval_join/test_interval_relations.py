"""The table of relations: formulas, inverses, Allen's algebra, the authors' vectors; what follows from conditions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sqlext_operators.interval_join.conditions import Condition, consequences, split_equalities
from sqlext_operators.interval_join.passes import Pass, passes_for
from sqlext_operators.interval_join.relations import LEFT_PERIOD, RELATIONS, RIGHT_PERIOD

from tests.operators.interval_join.interval_data import CASES, COMPARE, FORMULAS, INF, holds, intervals, name_of, truth

#: The authors' vectors (docs/reference/periods.md, section 2): ids count from 1, "35" is (r3, s5).
R = [(1, 6), (1, 11), (7, 12), (9, 11)]
S = [(2, 3), (3, 13), (4, 6), (5, 7), (8, 10)]
VECTORS: list[tuple[str, dict[str, float], str]] = [
    ("iseql_start_preceding", {}, "11 12 13 14 21 22 23 24 25 35"),
    ("iseql_start_preceding", {"delta": 1}, "11 21 35"),
    ("iseql_end_following", {}, "11 13 21 23 24 25 35 45"),
    ("iseql_end_following", {"epsilon": 1}, "13 25 45"),
    ("iseql_left_overlap", {}, "12 13 14 22"),
    ("iseql_left_overlap", {"delta": 2}, "12 22"),
    ("iseql_right_overlap", {}, "45"),
    ("iseql_during", {}, "32 42"),
    ("iseql_during", {"delta": 4}, "32"),
    ("iseql_reverse_during", {}, "11 13 21 23 24 25 35"),
    ("iseql_reverse_during", {"delta": 4, "epsilon": 3}, "11 13 35"),
    ("iseql_before", {"delta": 2}, "15"),
    ("iseql_after", {"delta": 1}, "33 34"),
]

#: Relations as sets of Allen's (docs/reference/periods.md, sections 2 and 3).
ALLEN_SETS: list[tuple[str, dict[str, float], str]] = [
    ("iseql_before", {}, "before meets"),
    ("iseql_before", {"delta": 0}, "meets"),
    ("iseql_after", {}, "after met_by"),
    ("iseql_start_preceding", {}, "overlaps finished_by contains starts equals started_by"),
    ("iseql_start_preceding", {"delta": 0}, "starts equals started_by"),
    ("iseql_end_following", {}, "overlapped_by started_by contains finishes equals finished_by"),
    ("iseql_end_following", {"epsilon": 0}, "finishes equals finished_by"),
    ("iseql_left_overlap", {}, "overlaps starts finished_by equals"),
    ("iseql_left_overlap", {"delta": 0}, "starts equals"),
    ("iseql_left_overlap", {"epsilon": 0}, "finished_by equals"),
    ("iseql_left_overlap", {"delta": 0, "epsilon": 0}, "equals"),
    ("iseql_right_overlap", {}, "overlapped_by started_by finishes equals"),
    ("iseql_during", {}, "during starts finishes equals"),
    ("iseql_during", {"delta": 0, "epsilon": 0}, "equals"),
    ("iseql_reverse_during", {}, "contains started_by finished_by equals"),
    (
        "period_overlaps",
        {},
        "overlaps overlapped_by starts started_by during contains finishes finished_by equals",
    ),
    ("period_contains", {}, "contains started_by finished_by equals"),
    ("period_equals", {}, "equals"),
    ("period_precedes", {}, "before meets"),
    ("period_succeeds", {}, "after met_by"),
    ("period_immediately_precedes", {}, "meets"),
    ("period_immediately_succeeds", {}, "met_by"),
]

#: All pairs of non-empty periods of six instants.
PERIODS = np.array(list(itertools.combinations(range(6), 2)))
LEFT = PERIODS[:, None, :]
RIGHT = PERIODS[None, :, :]


def of_periods(name: str, values: dict[str, float]) -> Any:
    """bool[left, right] of a relation over PERIODS."""
    a, b, c, d = LEFT[..., 0], LEFT[..., 1], RIGHT[..., 0], RIGHT[..., 1]
    return truth(RELATIONS[name].conditions(**values), a=a, b=b, c=c, d=d)


def test_table_has_every_relation_that_the_specification_has() -> None:
    assert set(RELATIONS) == set(FORMULAS)


@pytest.mark.parametrize(("relation", "values"), CASES, ids=name_of)
def test_conditions_are_the_formula(relation: str, values: dict[str, float]) -> None:
    a, b, c, d = LEFT[..., 0], LEFT[..., 1], RIGHT[..., 0], RIGHT[..., 1]
    assert (of_periods(relation, values) == holds(relation, values, a, b, c, d)).all()


@pytest.mark.few
@pytest.mark.parametrize(("relation", "values"), CASES, ids=name_of)
def test_inverse_is_the_relation_with_the_sides_exchanged(relation: str, values: dict[str, float]) -> None:
    inverse = RELATIONS[relation].inverse
    if inverse is not None:
        assert (of_periods(relation, values) == of_periods(inverse, values).T).all()


def test_exactly_one_of_allens_relations_holds() -> None:
    assert (sum(of_periods(name, {}).astype(int) for name, row in RELATIONS.items() if row.strict) == 1).all()


@pytest.mark.parametrize(("relation", "values", "allen"), ALLEN_SETS, ids=name_of)
def test_relation_is_a_set_of_allens(relation: str, values: dict[str, float], allen: str) -> None:
    expected = np.logical_or.reduce([of_periods(f"allen_{name}", {}) for name in allen.split()])
    assert (of_periods(relation, values) == expected).all()


@pytest.mark.parametrize(("relation", "values", "pairs"), VECTORS, ids=name_of)
def test_authors_vectors(relation: str, values: dict[str, float], pairs: str) -> None:
    conditions = RELATIONS[relation].conditions(**values)
    found = [
        f"{i}{j}"
        for (i, (a, b)), (j, (c, d)) in itertools.product(enumerate(R, 1), enumerate(S, 1))
        if truth(conditions, a=a, b=b, c=c, d=d)
    ]
    assert " ".join(found) == pairs


def test_papers_example() -> None:
    """Example 1: before, delta 1 and without bound."""
    r, s = [(0, 1), (1, 3), (2, 5)], [(1, 3), (3, 4)]
    for values, expected in (({"delta": 1.0}, {(0, 0), (1, 1)}), ({}, {(0, 0), (1, 1), (0, 1)})):
        conditions = RELATIONS["iseql_before"].conditions(**values)
        found = {
            (i, j)
            for (i, (a, b)), (j, (c, d)) in itertools.product(enumerate(r), enumerate(s))
            if truth(conditions, a=a, b=b, c=c, d=d)
        }
        assert found == expected


def test_parameters_are_checked() -> None:
    assert RELATIONS["iseql_before"].conditions(delta=INF) == RELATIONS["iseql_before"].conditions()
    assert RELATIONS["iseql_before"].conditions(delta=None) == RELATIONS["iseql_before"].conditions()
    with pytest.raises(ValueError, match="allen_before takes no delta"):
        RELATIONS["allen_before"].conditions(delta=1)
    with pytest.raises(ValueError, match="takes no epsilon"):
        RELATIONS["iseql_before"].conditions(epsilon=1)
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError, match="delta is not negative"):
            RELATIONS["iseql_before"].conditions(delta=wrong)


def test_consequences_hold_and_are_not_weakened() -> None:
    """For all values of six instants: what is concluded holds wherever the conditions and the periods do."""
    rng = np.random.default_rng(4)
    grid = dict(zip("abcd", np.meshgrid(*[np.arange(5)] * 4), strict=True))
    for _ in range(300):
        conditions = tuple(
            Condition(str(rng.choice(["a", "b"])), rng.choice(list(COMPARE)), str(rng.choice(["c", "d"])), shift)
            for shift in rng.choice([0, 0, 0, 2], rng.integers(1, 4)).tolist()
        )
        left, right = (LEFT_PERIOD if rng.random() < 0.5 else None), (RIGHT_PERIOD if rng.random() < 0.5 else None)
        true = truth(conditions, **grid)
        true = true & (left is None or grid["a"] < grid["b"]) & (right is None or grid["c"] < grid["d"])
        found = consequences(conditions, left, right)
        assert truth(found, **grid)[true].all()
        for item in split_equalities(conditions):
            stronger = [
                other
                for other in found
                if (other.left, other.right, other.shift) == (item.left, item.right, item.shift)
                and other.is_lower == item.is_lower
                and (other.is_strict or not item.is_strict)
            ]
            assert stronger, (item, found)


def found_pairs(item: Pass, values: dict[str, Any]) -> Any:
    """bool[left, right] by the pass's window, bound for bound, and its residual."""
    return truth((*item.lowers, *item.uppers, *item.residual), **values)


@pytest.mark.few
@pytest.mark.parametrize(("relation", "values"), CASES, ids=name_of)
def test_passes_of_a_relation_are_disjoint_and_complete(relation: str, values: dict[str, float]) -> None:
    a, b, c, d = LEFT[..., 0], LEFT[..., 1], RIGHT[..., 0], RIGHT[..., 1]
    passes = RELATIONS[relation].passes(**values)
    assert len(passes) == (2 if relation == "period_overlaps" else 1)
    total = sum(found_pairs(item, {"a": a, "b": b, "c": c, "d": d}).astype(int) for item in passes)
    assert (total == holds(relation, values, a, b, c, d)).all()


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(40))
def test_passes_of_any_conditions_are_disjoint_and_complete(seed: int) -> None:
    """Random conjunctions with shifts, reversed and empty rows, periods that are known on either side or on none."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        conditions = tuple(
            Condition(
                str(rng.choice(["a", "b", "e"])),
                rng.choice(list(COMPARE)),
                str(rng.choice(["c", "d", "f"])),
                int(rng.choice([0, 0, -2, 3])),
            )
            for _ in range(rng.integers(1, 6))
        )
        left, right = (LEFT_PERIOD if rng.random() < 0.5 else None), (RIGHT_PERIOD if rng.random() < 0.5 else None)
        a, b = intervals(rng, (30, 1), -3 if left is None else 1)
        c, d = intervals(rng, (1, 30), -3 if right is None else 1)
        values = {"a": a, "b": b, "c": c, "d": d}
        values |= {"e": rng.integers(-6, 7, (30, 1)), "f": rng.integers(-6, 7, (1, 30))}
        passes = passes_for(conditions, left, right)
        assert 1 <= len(passes) <= 2
        for item in passes:
            assert item.lowers or item.uppers
            probed = {bound.right if item.window == "left" else bound.left for bound in item.lowers + item.uppers}
            assert probed == {item.probe}
        total = sum(np.broadcast_to(found_pairs(item, values), (30, 30)).astype(int) for item in passes)
        assert (total == truth(conditions, **values)).all(), (conditions, passes)


def test_without_conditions_there_is_no_pass() -> None:
    with pytest.raises(ValueError, match="has a condition"):
        passes_for(())


def test_passes_say_what_they_do() -> None:
    first, second = RELATIONS["period_overlaps"].passes()
    assert str(first) == "left windows over c: a <= c, b > c"
    assert str(second) == "right windows over a: a > c, a < d"
    (contains,) = RELATIONS["period_contains"].passes()
    assert str(contains).endswith("residual b >= d")
