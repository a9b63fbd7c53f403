"""Operations over periods in FROM: what is parsed, what is written back, and that their words stay free."""

from __future__ import annotations

import pytest
import sqlglot

from sqlext.syntax.dialect import SqlExt
from sqlext.syntax.nodes import PeriodTable
from sqlext.syntax.parser import parse
from sqlext.syntax.spans import span_of

OPERATIONS = [
    "NORMALIZE(t PERIOD(a, b))",
    "NORMALIZE(db.t AS x PARTITION BY x.k, UPPER(c) AS big PERIOD CLOSED (a, b OPEN)) AS n",
    "GAPS((SELECT * FROM t) AS x PARTITION BY k PERIOD(p)) AS g(k, since, until)",
    "CONCURRENT(t PARTITION BY k PERIOD(a, b)) AS c CROSS JOIN u",
    "NORMALIZE(t PARTITION BY k PERIOD(a, b) EXCEPT (SELECT * FROM u) PARTITION BY j PERIOD(a, b))",
    "NORMALIZE((SELECT * FROM GAPS(t PARTITION BY k PERIOD(a, b))) PERIOD(a, b))",
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_round_trip(operation: str) -> None:
    text = f"SELECT * FROM {operation} WHERE k > 1"
    tree = sqlglot.parse_one(text, read=SqlExt)
    assert tree.sql(SqlExt) == text
    assert parse(text).uses_extension


def test_the_place_of_an_operation() -> None:
    text = "SELECT * FROM u JOIN normalize ( t x partition by k period (a, b) ) n ON n.k = u.k"
    node = next(sqlglot.parse_one(text, read=SqlExt).find_all(PeriodTable))
    place = span_of(node)
    assert text[place.start : place.end] == "normalize ( t x partition by k period (a, b) )"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT normalize, gaps AS concurrent FROM gaps, concurrent normalize",
        "SELECT * FROM normalize(1, 2)",
        "SELECT * FROM gaps(TABLE(t) PARTITION BY k)",
        "SELECT * FROM normalize(period(1, 2), period(3, 4)) AS p",
        "SELECT * FROM t period(a, b)",
        "SELECT normalize(a), gaps(b, period) FROM t GROUP BY concurrent(a)",
    ],
)
def test_words_stay_free(text: str) -> None:
    assert not parse(text).uses_extension
    assert parse(text).ast is None or not list(parse(text).ast.find_all(PeriodTable))
