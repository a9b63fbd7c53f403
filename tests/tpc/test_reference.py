"""The text that answers are judged by: without LIMIT, with the keys of ORDER BY."""

from __future__ import annotations

import pytest
from sqlext_planner.errors import UnsupportedError

from sqlext.tpc.compare import OrderKey, reference


def test_a_query_without_order_is_its_own_reference() -> None:
    asked = reference("SELECT a FROM t;\n", ["a"])
    assert (asked.sql, asked.keys, asked.limit, asked.is_query) == ("SELECT a FROM t", (), None, True)


def test_only_the_limit_of_the_whole_query_goes() -> None:
    asked = reference("SELECT a FROM (SELECT a FROM t LIMIT 5) ORDER BY a LIMIT 3;", ["a"])
    assert asked.sql == "SELECT a FROM (SELECT a FROM t LIMIT 5) ORDER BY a"
    assert (asked.limit, asked.is_query) == (3, True)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("a", OrderKey(0, False, True)),
        ("A DESC", OrderKey(0, True, False)),
        ("2 NULLS LAST", OrderKey(1, False, False)),
        ("n DESC NULLS FIRST", OrderKey(1, True, True)),
        ("count(*)", OrderKey(1, False, True)),
        ("t.a", OrderKey(0, False, True)),
    ],
)
def test_keys_that_the_result_holds(key: str, expected: OrderKey) -> None:
    asked = reference(f"SELECT t.a, count(*) AS n FROM t GROUP BY t.a ORDER BY {key}", ["a", "n"])
    assert (asked.keys, asked.is_query) == ((expected,), True)


def test_a_key_computed_from_the_result() -> None:
    asked = reference("SELECT * FROM t ORDER BY a - b, a LIMIT 1", ["a", "b"])
    assert asked.sql == "SELECT *, a - b AS sqlext_key_0 FROM (\nSELECT * FROM t ORDER BY a - b, a\n) AS sqlext_answer"
    assert asked.keys == (OrderKey(2), OrderKey(0))
    assert not asked.is_query


def test_a_key_that_only_the_select_can_compute() -> None:
    asked = reference("WITH w AS (SELECT 1 FROM u) SELECT a FROM t ORDER BY z DESC", ["a"])
    assert asked.sql == "WITH w AS (SELECT 1 FROM u) SELECT a, z AS sqlext_key_0\n FROM t ORDER BY z DESC"
    assert asked.keys == (OrderKey(1, True, False),)


def test_a_name_of_the_result_comes_before_one_of_the_tables() -> None:
    asked = reference("SELECT lower(a) AS a FROM t ORDER BY a", ["a"])
    assert (asked.keys, asked.is_query) == ((OrderKey(0),), True)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t ORDER BY a LIMIT 2 OFFSET 1",
        "SELECT a FROM t ORDER BY a LIMIT 1 + 1",
        "SELECT DISTINCT a FROM t ORDER BY z",
    ],
)
def test_what_cannot_be_judged(sql: str) -> None:
    with pytest.raises(UnsupportedError):
        reference(sql, ["a"])
