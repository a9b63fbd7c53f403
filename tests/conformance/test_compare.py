"""The comparison that judges the cases."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from .cases import ConformanceCase, TableData
from .compare import difference, same_value


@pytest.mark.parametrize(
    ("actual", "expected", "same"),
    [
        (None, None, True),
        (None, 0, False),
        (0, None, False),
        (1, 1, True),
        (2**60, 2**60 + 1, False),
        (1.000001, 1.0, True),
        (1.0001, 1.0, False),
        (1e9 + 1, 1e9, True),
        (1.0, 1, True),
        (Decimal("2.5"), 2.5, True),
        (math.nan, math.nan, True),
        (math.nan, 1.0, False),
        (True, True, True),
        (True, False, False),
        ("a", "a", True),
        ("a", "b", False),
        (math.inf, math.inf, True),
    ],
)
def test_values(actual: Any, expected: Any, same: bool) -> None:
    assert same_value(actual, expected) is same


def test_rows_are_multisets() -> None:
    assert difference([(1, "a"), (1, "a"), (2, None)], [(2, None), (1, "a"), (1, "a")]) is None
    wrong = difference([(1,), (1,)], [(1,), (2,)])
    assert wrong == "2 rows, 1 of them wrong; got [1]; expected [2]"
    assert difference([(1,)], [(1,), (1,)]) == "1 rows, 0 of them wrong; expected [1]"


def test_placeholders_and_databases() -> None:
    table = TableData(None, (("id", "int"),), ())
    case = ConformanceCase(
        key="k",
        description="",
        sql="SELECT {0}.id FROM db1.{0} LAST JOIN db2.{1} ON {0}.id = db.t.id JOIN db.`t` ON true",
        database="db",
        inputs=(table, table, TableData("t", (), ())),
        columns=None,
        expected=None,
        order=None,
        succeeds=True,
        message=None,
        features=frozenset(),
        functions=frozenset(),
        suspect=None,
        long_window=False,
    )
    assert case.statement(["a", "b", "t"]) == "SELECT a.id FROM a LAST JOIN b ON a.id = t.id JOIN `t` ON true"
