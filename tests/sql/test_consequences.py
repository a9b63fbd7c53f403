"""The consequences that docs/reference/windows.md, section 3 lists, one small example each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import Row

from sqlext import Session

pytestmark = pytest.mark.tidied

Query = Callable[[str], list[int | float | None]]

#: (id, ts, v) of key 'a'; two FROM rows share ts 10, both unions have a row there too.
BASE = [(1, 10, 1), (2, 10, 2), (3, 12, 4), (4, 20, 8)]
FIRST = [(101, 10, 100), (102, 11, 200)]
SECOND = [(201, 10, 1000), (202, 12, 2000), (203, 30, 4000)]


@pytest.fixture(scope="module")
def over(spark: SparkSession, session: Session) -> Query:
    """``over("sum(v) OVER (UNION first ...)")``: the values in the order of id; `P` stands for the partitioning."""
    for name, rows in (("base", BASE), ("first", FIRST), ("second", SECOND)):
        frame = spark.createDataFrame([("a", *row) for row in rows], "k string, id int, ts bigint, v bigint")
        frame.createOrReplaceTempView(f"consequence_{name}")

    def run(item: str) -> list[int | float | None]:
        text = item.replace("P ", "PARTITION BY k ORDER BY ts ")
        for name in ("first", "second"):
            text = text.replace(f" {name}", f" consequence_{name}")
        rows: list[Row] = session.sql(f"SELECT id, {text} AS x FROM consequence_base").collect()
        return [row["x"] for row in sorted(rows, key=lambda row: row["id"])]

    return run


CASES = {
    "a FROM row sees the ties before it, not those after it": (
        "count(*) OVER (P ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)",
        [1, 2, 3, 1],
    ),
    "it sees all union rows of its own time": (
        "sum(v) OVER (UNION first P ROWS_RANGE BETWEEN 0 PRECEDING AND CURRENT ROW)",
        [101, 103, 4, 8],
    ),
    "rows with a later key are never seen": (
        "sum(v) OVER (UNION second P ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        [1001, 1003, 3007, 3015],
    ),
    "both ends are inclusive": (
        "sum(v) OVER (UNION first P ROWS_RANGE BETWEEN 8 PRECEDING AND 8 PRECEDING)",
        [None, None, None, 4],
    ),
    "0 OPEN PRECEDING drops the current row and all ties": (
        "sum(v) OVER (UNION first P ROWS_RANGE BETWEEN 2 PRECEDING AND 0 OPEN PRECEDING)",
        [None, None, 303, None],
    ),
    "an open start leaves the far end out": (
        "sum(v) OVER (UNION first P ROWS_RANGE BETWEEN 2 OPEN PRECEDING AND CURRENT ROW)",
        [101, 103, 204, 8],
    ),
    "n PRECEDING AND CURRENT ROW are n + 1 rows, union rows count too": (
        "sum(v) OVER (UNION first P ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        [101, 3, 204, 12],
    ),
    "INSTANCE_NOT_IN_WINDOW keeps the current row": (
        "sum(v) OVER (UNION first P ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW)",
        [101, 102, 304, 8],
    ),
    "without UNION it leaves the current row alone": (
        "sum(v) OVER (P ROWS_RANGE BETWEEN 50 PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW)",
        [1, 2, 4, 8],
    ),
    "with EXCLUDE CURRENT_ROW only union rows are left": (
        "sum(v) OVER (UNION first P ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW "
        "EXCLUDE CURRENT_ROW INSTANCE_NOT_IN_WINDOW)",
        [100, 100, 300, None],
    ),
    "EXCLUDE CURRENT_TIME drops others of the same time before ROWS are counted": (
        "sum(v) OVER (UNION second P ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE CURRENT_TIME)",
        [1, 2, 6, 12],
    ),
    "MAXSIZE keeps the newest, FROM rows win over union rows at equal keys": (
        "sum(v) OVER (UNION first P ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW MAXSIZE 2)",
        [101, 3, 204, 8],
    ),
    "MAXSIZE counts before EXCLUDE CURRENT_ROW drops": (
        "sum(v) OVER (UNION first P ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW MAXSIZE 1 EXCLUDE CURRENT_ROW)",
        [100, 1, 200, None],
    ),
    "EXCLUDE CURRENT_ROW has no effect on a history frame": (
        "sum(v) OVER (P ROWS_RANGE BETWEEN 5 PRECEDING AND 1 PRECEDING EXCLUDE CURRENT_ROW)",
        [None, None, 3, None],
    ),
    "the first listed union is the newest at equal keys": (
        "sum(v) OVER (UNION first, second P ROWS_RANGE BETWEEN 0 PRECEDING AND CURRENT ROW MAXSIZE 2)",
        [101, 3, 2004, 8],
    ),
    "and the other way round": (
        "sum(v) OVER (UNION second, first P ROWS_RANGE BETWEEN 0 PRECEDING AND CURRENT ROW MAXSIZE 2)",
        [1001, 3, 2004, 8],
    ),
    "an empty window counts 0": (
        "count(*) OVER (P ROWS_RANGE BETWEEN 2 PRECEDING AND 2 PRECEDING)",
        [0, 0, 2, 0],
    ),
    "lag ignores the frame": ("lag(v, 0) OVER (P ROWS_RANGE BETWEEN 9 PRECEDING AND 8 PRECEDING)", [1, 2, 4, 8]),
    "lag walks the sequence with its union rows": (
        "lag(v, 1) OVER (UNION first P ROWS BETWEEN 9 PRECEDING AND 5 PRECEDING)",
        [100, 1, 200, 4],
    ),
    "lag skips what INSTANCE_NOT_IN_WINDOW takes away": (
        "lag(v, 1) OVER (UNION first P ROWS BETWEEN 9 PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW)",
        [100, 100, 200, 200],
    ),
    "lag means the same in an expression": (
        "lag(v, 0) OVER (UNION first P ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) + 0",
        [1, 2, 4, 8],
    ),
    "first_value is the oldest row": (
        "first_value(v) OVER (UNION first P ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)",
        [100, 100, 100, 8],
    ),
    "FOLLOWING takes later ties and later rows": (
        "sum(v) OVER (P ROWS_RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING)",
        [7, 7, 4, 8],
    ),
    "0 FOLLOWING is CURRENT ROW": ("sum(v) OVER (P ROWS_RANGE BETWEEN CURRENT ROW AND 0 FOLLOWING)", [1, 3, 4, 8]),
    "FOLLOWING counts union rows too": (
        "sum(v) OVER (UNION second P ROWS_RANGE BETWEEN 1 FOLLOWING AND 10 FOLLOWING)",
        [2012, 2012, 8, 4000],
    ),
    "ROWS FOLLOWING counts places of the sequence": (
        "sum(v) OVER (UNION first P ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)",
        [202, 204, 8, None],
    ),
    "a unit on an integer column is milliseconds": (
        "count(*) OVER (P ROWS_RANGE BETWEEN 2ms PRECEDING AND CURRENT ROW)",
        [1, 2, 3, 1],
    ),
    "without ORDER BY the window runs in input order, unions first": (
        "sum(v) OVER (UNION first PARTITION BY k ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        [301, 303, 307, 315],
    ),
    "without ORDER BY a ROWS frame counts in input order": (
        "sum(v) OVER (UNION first PARTITION BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        [201, 3, 6, 12],
    ),
    "UNION with the FROM table itself doubles its rows": (
        "count(*) OVER (UNION consequence_base P ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)",
        [3, 4, 6, 2],
    ),
}


@pytest.mark.few(3)
@pytest.mark.parametrize(("item", "expected"), CASES.values(), ids=CASES.keys())
def test_consequence(over: Query, item: str, expected: list[int | None]) -> None:
    assert over(item) == expected


def test_a_row_without_a_time_sees_the_rows_without_one_behind_it(session: Session, spark: SparkSession) -> None:
    """A frame that starts FOLLOWING: of a NULL time, both of its ends are NULL, and it holds the NULL rows behind."""
    rows = [("a", 1, None, 1), ("a", 2, None, 2), ("a", 3, None, 4), ("a", 4, 10, 8), ("a", 5, 12, 16)]
    spark.createDataFrame(rows, "k string, id int, ts bigint, v bigint").coalesce(1).createOrReplaceTempView("no_time")
    text = """SELECT id, sum(v) OVER (PARTITION BY k ORDER BY ts
        ROWS_RANGE BETWEEN 1 FOLLOWING AND {} FOLLOWING) AS x FROM no_time"""
    seen = {end: {row["id"]: row["x"] for row in session.sql(text.format(end)).collect()} for end in ("3", "UNBOUNDED")}
    assert seen["3"] == {1: 2 + 4, 2: 4, 3: None, 4: 16, 5: None}
    assert seen["UNBOUNDED"] == {1: 2 + 4 + 24, 2: 4 + 24, 3: 24, 4: 16, 5: None}
