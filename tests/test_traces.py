"""How much of the product a statement goes through before its DataFrame exists, counted by tracing the calls.

A newcomer who follows one statement with a debugger opens these files. docs/architecture.md walks through them.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from sqlext import Session

PACKAGES = ("sqlext", "sqlext_planner", "sqlext_operators")
TIMES = [datetime.datetime(2024, 1, 1, 0, 0, second, tzinfo=datetime.UTC) for second in range(6)]
EVENTS = pa.table({"k": [1, 2, 1, 2, 1, 2], "ts": pa.array(TIMES, pa.timestamp("us", tz="UTC")), "v": [0.5] * 6})
PERIODS = pa.table({"k": [1, 2, 1, 2], "ts": [0, 1, 2, 3], "te": [4, 5, 6, 7]})
#: The statement, and how many of our files and functions it may go through. Comprehensions are no functions.
STATEMENTS = {
    "WINDOW UNION": (
        "SELECT k, ts, sum(v) OVER w AS s FROM traced_a WINDOW w AS (UNION traced_b PARTITION BY k ORDER BY ts "
        "ROWS_RANGE BETWEEN 3s PRECEDING AND CURRENT ROW)",
        75,
        600,
    ),
    "interval join": (
        "SELECT p.k, p.ts, q.te FROM traced_p AS p JOIN traced_q AS q "
        "ON p.k = q.k AND PERIOD(p.ts, p.te) OVERLAPS PERIOD(q.ts, q.te)",
        65,
        600,
    ),
    "LAST JOIN": (
        "SELECT a.k, b.v FROM traced_a AS a LAST JOIN traced_b AS b ORDER BY b.ts ON a.k = b.k AND b.ts <= a.ts",
        55,
        600,
    ),
    "plain": ("SELECT k, sum(v) AS s FROM traced_a GROUP BY k", 40, 200),
}


@pytest.fixture(scope="module")
def tables(session: Session, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("traced")
    for name, table in {"a": EVENTS, "b": EVENTS, "p": PERIODS, "q": PERIODS}.items():
        pq.write_table(table, folder / f"{name}.parquet")
        session.register(f"traced_{name}", folder / f"{name}.parquet")
    yield session
    for name in "abpq":
        session.spark.catalog.dropTempView(f"traced_{name}")


def functions_called(session: Session, sql: str) -> set[tuple[str, str]]:
    """File and name of each function of ours that one `Session.sql` calls, when it has been called before."""
    called: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code  # what dataclasses write for themselves is in no file
        is_ours = frame.f_globals.get("__name__", "").partition(".")[0] in PACKAGES
        if event == "call" and is_ours and code.co_filename != "<string>":
            called.add((code.co_filename, code.co_qualname))

    for number in range(2):
        session.sql(f"{sql} -- {number}")
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        session.sql(f"{sql} -- traced")
    finally:
        sys.setprofile(before)
    return {(file, name) for file, name in called if not name.endswith("comp>") and not name.endswith("genexpr>")}


@pytest.mark.parametrize(("sql", "files", "functions"), STATEMENTS.values(), ids=STATEMENTS)
def test_a_statement_goes_through_few_files(tables: Session, sql: str, files: int, functions: int) -> None:
    called = functions_called(tables, sql)
    opened = sorted({Path(file).name for file, _ in called})
    assert len({file for file, _ in called}) <= files, opened
    assert len(called) <= functions, len(called)
