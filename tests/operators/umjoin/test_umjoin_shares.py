"""The shares of a hypercube against all others. Needs no Spark."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_planner.umjoin.execute.exchanged import choose_shares, moved


def every(number_of_classes: int, cells: int) -> list[tuple[int, ...]]:
    parts = [part for part in range(1, cells + 1) if cells % part == 0]
    found = itertools.product(parts, repeat=number_of_classes)
    return [shares for shares in found if math.prod(shares) == cells]


def copies(sizes: list[float], classes: list[list[int]], shares: tuple[int, ...]) -> float:
    """The bytes moved, as the definition says it."""
    return sum(
        size * math.prod(share for place, share in enumerate(shares) if place not in own)
        for size, own in zip(sizes, classes, strict=True)
    )


@given(data=st.data())
def test_no_shares_move_less(data: st.DataObject) -> None:
    number = data.draw(st.integers(1, 4))
    own = st.lists(st.integers(0, number - 1), min_size=1, unique=True)
    classes = data.draw(st.lists(own, min_size=2, max_size=5))
    sizes = [float(data.draw(st.integers(0, 1000))) for _ in classes]
    cells = data.draw(st.sampled_from([1, 2, 3, 6, 8, 12, 16]))
    shares = choose_shares(sizes, classes, number, cells)
    assert math.prod(shares) == cells
    assert moved(sizes, classes, shares) == copies(sizes, classes, shares)
    assert copies(sizes, classes, shares) == min(copies(sizes, classes, item) for item in every(number, cells))


def test_a_triangle_is_a_cube() -> None:
    assert choose_shares([1, 1, 1], [[0, 1], [1, 2], [2, 0]], 3, 64) == (4, 4, 4)


def test_a_big_input_is_not_copied() -> None:
    assert choose_shares([100, 1, 1], [[0, 1], [1, 2], [2, 0]], 3, 16) == (4, 4, 1)


def test_one_class_of_all_inputs_gets_all_places() -> None:
    assert choose_shares([5, 3, 1], [[0, 1], [0], [1, 0]], 2, 12) == (12, 1)


def test_a_dominated_class_has_one_place() -> None:
    assert choose_shares([1, 1, 1], [[0, 1, 2], [1, 2], [2]], 3, 8) == (1, 1, 8)
    assert choose_shares([1, 1, 9], [[0, 1], [0, 1], []], 2, 4) == (4, 1)


def test_many_cells_and_classes_are_no_matter() -> None:
    chain = [[place, place + 1] for place in range(7)]
    shares = choose_shares([10.0, 7, 9, 3, 5, 8, 6], chain, 8, 4096)
    assert math.prod(shares) == 4096


def test_cells_need_a_class() -> None:
    assert choose_shares([1], [[]], 0, 1) == ()
    with pytest.raises(ValueError, match="4 cells of 0 key classes"):
        choose_shares([1], [[]], 0, 4)
