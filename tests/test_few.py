"""A few cases of a product show each value of each parameter."""

from __future__ import annotations

import itertools

import pytest

from tests.few import covering


def test_each_value_is_there_and_no_case_could_go() -> None:
    product = [tuple(zip("abc", case, strict=True)) for case in itertools.product(range(4), range(7), range(2))]
    kept = [product[number] for number in covering(product)]
    assert len(kept) == 7
    assert {pair for case in kept for pair in case} == {pair for case in product for pair in case}


@pytest.mark.few
@pytest.mark.parametrize("first", range(3))
@pytest.mark.parametrize("second", "abcd")
def test_cases_of_this_are_slow_but_for_few(first: int, second: str, request: pytest.FixtureRequest) -> None:
    ours = {item for item in request.session.items if item.nodeid.startswith(request.node.nodeid.partition("[")[0])}
    assert len([item for item in ours if not item.get_closest_marker("slow")]) == 4


@pytest.mark.few(3)
@pytest.mark.parametrize("number", range(7))
def test_every_third_case(number: int, request: pytest.FixtureRequest) -> None:
    assert (number % 3 == 0) != bool(request.node.get_closest_marker("slow"))
