"""The comparison of answers: what it must accept, and that nothing wrong gets past it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlext.tpc.compare import OrderKey, difference, same_rows

ASC, DESC = OrderKey(0), OrderKey(0, descending=True, nulls_first=False)


def table(*rows: tuple[Any, ...], types: Sequence[pa.DataType] = (pa.int64(), pa.string())) -> pa.Table:
    """The rows as a table of columns c0, c1, ..."""
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(types)]
    return pa.table(columns, names=[f"c{place}" for place in range(len(types))])


ROWS = ((1, "a"), (2, "b"), (2, "c"), (3, "d"))


def test_the_same_rows_are_right() -> None:
    assert difference(table(*ROWS), table(*ROWS), [ASC]) == ""
    assert same_rows(table(*ROWS), table(*ROWS))


def test_any_order_is_right_without_order_by() -> None:
    assert difference(table(*reversed(ROWS)), table(*ROWS)) == ""
    assert not same_rows(table(*reversed(ROWS)), table(*ROWS))


def test_rows_that_tie_come_in_any_order() -> None:
    assert difference(table((1, "a"), (2, "c"), (2, "b"), (3, "d")), table(*ROWS), [ASC]) == ""


def test_wrong_order() -> None:
    told = difference(table((2, "b"), (1, "a"), (2, "c"), (3, "d")), table(*ROWS), [ASC])
    assert told == "row 2 comes too late in the order: (1, a)"
    assert difference(table(*ROWS), table(*ROWS), [DESC]).startswith("row 2 comes too late")


def test_limit_cuts_ties_anywhere() -> None:
    for tie in ("b", "c"):
        assert difference(table((1, "a"), (2, tie)), table(*ROWS), [ASC], 2) == ""
    assert difference(table((1, "a"), (2, "c"), (2, "b")), table(*ROWS), [ASC], 3) == ""


def test_a_wrong_tie() -> None:
    told = difference(table((1, "a"), (2, "x")), table(*ROWS), [ASC], 2)
    assert told == "row 2: (2, x) is not among the expected rows"


def test_a_tie_taken_twice() -> None:
    told = difference(table((1, "a"), (2, "b"), (2, "b")), table(*ROWS), [ASC], 3)
    assert told == "row 2: (2, b) comes 2 times, not 1" or told == "row 3: (2, b) comes 2 times, not 1"


def test_a_row_that_limit_must_not_leave_out() -> None:
    told = difference(table((2, "b"), (2, "c")), table(*ROWS), [ASC], 2)
    assert told == "rows that come before row 1 in the order are missing; row 1 is (2, b)"
    assert "missing" in difference(table((1, "a"), (3, "d")), table(*ROWS), [ASC], 2)


def test_null_is_not_zero() -> None:
    assert "(NULL, a)" in difference(table((None, "a")), table((0, "a")))
    assert "(0, a)" in difference(table((0, "a")), table((None, "a")))
    floats = (pa.float64(), pa.string())
    assert difference(table((None, "a"), types=floats), table((0.0, "a"), types=floats))
    assert difference(table((1, None)), table((1, "")))
    assert difference(table((None, None)), table((None, None))) == ""


def test_a_duplicate_row() -> None:
    assert difference(table(*ROWS, ROWS[0]), table(*ROWS)) == "5 rows instead of 4"
    assert "comes 2 times, not 1" in difference(table(ROWS[0], ROWS[0], *ROWS[2:]), table(*ROWS))
    assert difference(table(ROWS[0], ROWS[0]), table(ROWS[0], ROWS[0])) == ""


def test_too_few_rows_for_the_limit() -> None:
    assert difference(table((1, "a")), table(*ROWS), [ASC], 2) == "1 rows instead of 2"
    assert difference(table(), table(), [ASC], 10) == ""


def test_nulls_sort_where_order_by_says() -> None:
    first, last = (None, "n"), (5, "v")
    assert difference(table(first, last), table(first, last), [OrderKey(0)]) == ""
    assert difference(table(last, first), table(first, last), [OrderKey(0)]) != ""
    assert difference(table(last, first), table(first, last), [OrderKey(0, nulls_first=False)]) == ""
    assert difference(table(last, first), table(first, last), [DESC]) == ""
    assert difference(table(first, last), table(first, last), [OrderKey(0, descending=True)]) == ""


def test_floats_to_a_relative_billionth() -> None:
    kinds = (pa.float64(),)

    def told(own: float, other: float) -> str:
        return difference(table((own,), types=kinds), table((other,), types=kinds))

    assert told(1e20 / 3, 1e20 / 3 * (1 + 5e-10)) == ""
    assert told(0.1 + 0.2, 0.3) == ""
    assert told(1.0, 1.0 + 1e-8) != ""
    assert told(math.nan, math.nan) == told(0.0, -0.0) == told(math.inf, math.inf) == ""
    assert told(math.nan, math.inf) != "" != told(math.inf, -math.inf)
    assert told(math.inf, 1e308) != "" != told(math.nan, 1.0)


def test_rounding_decides_no_order() -> None:
    """Two sums that differ in the last digit tie, whichever of them the other engine found to be smaller."""
    kinds = (pa.float64(), pa.string())
    own = table((0.3, "a"), (0.1 + 0.2, "b"), types=kinds)
    other = table((0.3, "b"), (0.1 + 0.2, "a"), types=kinds)
    assert difference(own, other, [ASC]) == difference(other, own, [ASC]) == ""


def test_decimals_dates_and_bytes_exactly() -> None:
    kinds = (pa.decimal128(20, 10), pa.binary())
    one = Decimal("1.0000000001")
    assert difference(table((one, b"\x00"), types=kinds), table((Decimal(1), b"\x00"), types=kinds)) != ""
    assert difference(table((one, b"\x00"), types=kinds), table((one, b"\x00\x00"), types=kinds)) != ""
    assert difference(table((one, b"\x00"), types=kinds), table((one, b"\x00"), types=kinds)) == ""


def test_decimals_sort_as_numbers() -> None:
    kinds = (pa.decimal128(20, 2),)
    rows = [(Decimal("-10.00"),), (Decimal("-9.50"),), (Decimal("2.00"),), (Decimal("10.00"),)]
    assert difference(table(*rows, types=kinds), table(*reversed(rows), types=kinds), [ASC]) == ""


def test_nested_values_are_compared() -> None:
    kinds = (pa.list_(pa.int64()),)
    assert difference(table(([1, None],), types=kinds), table(([1, None],), types=kinds)) == ""
    assert difference(table(([1, 0],), types=kinds), table(([1, None],), types=kinds)) != ""


def test_a_key_that_is_no_column() -> None:
    """Equal rows with different keys: the answer takes those with the smallest keys."""
    kinds = (pa.int64(), pa.int64())
    reference = table((7, 1), (8, 2), (7, 3), (9, 3), types=kinds)
    key = [OrderKey(1)]
    for right in ([7, 8, 7, 9], [7, 8, 9, 7]):
        assert difference(table(*((value,) for value in right), types=kinds[:1]), reference, key) == ""
    assert difference(table((7,), (7,), (8,), (9,), types=kinds[:1]), reference, key) != ""
    assert difference(table((7,), (8,), (9,), types=kinds[:1]), reference, key, 3) == ""
    assert difference(table((7,), (9,), (8,), types=kinds[:1]), reference, key, 3) != ""


VALUES = st.one_of(st.none(), st.integers(0, 2))


@given(
    rows=st.lists(st.tuples(VALUES, VALUES), max_size=5),
    answer=st.lists(st.tuples(VALUES), max_size=4),
    limit=st.one_of(st.none(), st.integers(0, 5)),
    descending=st.booleans(),
    nulls_first=st.booleans(),
)
def test_against_all_permutations(
    rows: list[tuple[Any, ...]],
    answer: list[tuple[Any, ...]],
    limit: int | None,
    descending: bool,
    nulls_first: bool,
) -> None:
    """The twin: some ordering of all rows that ORDER BY allows begins with the answer."""

    def rank(row: tuple[Any, ...]) -> float:
        if row[1] is None:
            return -math.inf if nulls_first else math.inf
        return float(-row[1] if descending else row[1])

    wanted = sorted(map(rank, rows))
    right = any(
        [(row[0],) for row in order[:limit]] == answer
        for order in permutations(rows)
        if list(map(rank, order)) == wanted
    )
    kinds = (pa.int64(), pa.int64())
    key = OrderKey(1, descending, nulls_first)
    told = difference(table(*answer, types=kinds[:1]), table(*rows, types=kinds), [key], limit)
    assert (told == "") == right


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string(), pa.decimal128(9, 2), pa.list_(pa.int8())])
def test_columns_of_nulls_and_of_nothing(kind: pa.DataType) -> None:
    assert difference(table((None,), types=[kind]), table((None,), types=[kind])) == ""
    assert difference(table(types=[kind]), table(types=[kind])) == ""
    assert same_rows(table(types=[kind]), table(types=[kind]))
