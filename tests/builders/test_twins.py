"""Every statement of the docs has a twin in Python, with the same plan and the same rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError
from sqlext_planner.plan_format import tree_text

from sqlext import Session
from sqlext.builders import Query, Source
from sqlext.builders.queries import query_over
from sqlext.catalog import DictCatalog
from sqlext.cli.demo import write_tables
from sqlext.cli.source import split_statements
from sqlext.run.pipeline import StagedPlan, stage
from tests.builders.twins import STREAM_TWINS, TWINS, Twin, Twins

ROOT = Path(__file__).resolve().parent.parent.parent
ROWS = {"user_id": "bigint", "ts": "timestamp", "item": "string", "price": "double"}
LASTING = {"room": "int", "ts": "timestamp", "te": "timestamp"}
PRICED = {"item": "int", "ts": "timestamp", "price": "bigint"}
TABLES = {
    "views": ROWS,
    "orders": ROWS,
    "visits": {"user_id": "bigint", "item": "string", "ts": "timestamp", "te": "timestamp"},
    "offers": {"item": "string", "price": "double", "since": "timestamp", "until": "timestamp"},
    "spent": {"user_id": "bigint", "ts": "timestamp", "spent": "double"},
    "payments": ROWS,
    "grades": {"user_id": "bigint", "since": "timestamp", "grade": "string"},
    "bookings": LASTING,
    "repairs": LASTING,
    "stays": LASTING,
    "alarms": LASTING,
    "asks": PRICED,
    "bids": PRICED,
    "shifts": {"site": "string", "emp": "int", "ts": "int", "te": "int"},
    "clicks": {"user": "int", "ts": "timestamp", "amount": "bigint"},
}
STREAMS = ("asks", "bids", "clicks")
#: Words around a query, which Python has methods for: `df().createOrReplaceTempView`, `explain`.
AROUND = re.compile(r"\s*(?:CREATE OR REPLACE TEMP(?:ORARY)? VIEW (\w+) AS|EXPLAIN(?: ANALYZE)?)\s", re.IGNORECASE)
#: Words that Python has not: there is no function of that name.
SQL_ONLY = "STRICTLY OVERLAPS"


@dataclass(frozen=True)
class Planner:
    """Plans statements over the tables' columns alone."""

    @property
    def spark(self) -> Any:
        raise AssertionError("planning needs no Spark")

    sql = spark

    def plan(self, sqlQuery: str, **kwargs: Any) -> StagedPlan:  # noqa: N803 - as Session's
        assert not kwargs
        return stage(sqlQuery, DictCatalog(TABLES, STREAMS), Config(), None)

    def table(self, source: Source) -> Query:
        return query_over(self, source)


def statements(page: str) -> Iterator[str]:
    """The queries among the SQL of a page."""
    return (AROUND.sub("", text) for text in whole_statements(page))


def views(page: str) -> Iterator[tuple[str, str]]:
    """The views that a page creates, and their queries."""
    for text in whole_statements(page):
        around = AROUND.match(text)
        if around is not None and around[1] is not None:
            yield around[1], text[around.end() :]


def whole_statements(page: str) -> Iterator[str]:
    """The statements of a page that Python has words for."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in re.findall(r"^```sql\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for place in split_statements(block):
            if SQL_ONLY not in block:
                yield block[place.start : place.end]


def statements_in_python(page: str) -> Iterator[str]:
    """The statements in the Python of a page, with those that they are made of in their places."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    named: dict[str, str] = {}
    for name, sql in re.findall(r'^(\w+) = f?"""\s*(SELECT.*?)"""', blocks, re.MULTILINE | re.DOTALL):
        named[name] = sql
    for sql in re.findall(r'"""\s*(SELECT.*?)"""', blocks, re.DOTALL):
        yield re.sub(r"\{(\w+)\}", lambda place: named[place[1]], sql)


def pairs(found_twins: Mapping[str, Twins], of_page: Callable[[str], Iterator[str]]) -> list[Any]:
    found = []
    for page, twins in found_twins.items():
        written = list(of_page(page))
        assert len(written) == len(twins), f"{page} has {len(written)} statements and {len(twins)} twins"
        found += [
            pytest.param(sql, twin, id=f"{Path(page).name}-{number}")
            for number, (sql, twin) in enumerate(zip(written, twins, strict=True))
            if twin is not None
        ]
    return found


PAIRS = pairs(TWINS, statements)
STREAM_PAIRS = pairs(STREAM_TWINS, statements_in_python)


def optimized(plan: StagedPlan) -> str:
    """The optimized plan, in which windows without a name are called `w`."""
    assert plan.optimized is not None
    return named(re.sub(r"\[window \d+ ", "[w ", tree_text(plan.optimized)))


def named(text: str) -> str:
    """Text with windows by name in place of windows in parentheses."""
    return re.sub(r"OVER \([^()]*\)", "OVER w", text)


@pytest.mark.few(2)
@pytest.mark.parametrize(("sql", "twin"), PAIRS + STREAM_PAIRS)
def test_plans(sql: str, twin: Twin) -> None:
    planner = Planner()
    query = twin(planner.table)
    wrong = mistake(planner, sql)
    if wrong is None:
        assert optimized(query.plan()) == optimized(planner.plan(sql))
        return
    with pytest.raises(type(wrong)) as caught:
        query.plan()
    assert caught.value.message == wrong.message
    assert any(note.startswith("this text comes from ") for note in caught.value.notes)


def mistake(planner: Planner, sql: str) -> SqlExtError | None:
    """The error of a statement that the docs show as wrong."""
    try:
        planner.plan(sql)
    except SqlExtError as error:
        return error
    return None


@pytest.fixture(scope="module")
def shop(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """The tables of the docs in a session of Spark of their own."""
    folder = tmp_path_factory.mktemp("twins")
    write_tables(folder, 300, seed=1)
    session = Session(spark.newSession())
    for name in ("views", "orders"):
        session.register(name, folder / f"{name}.parquet")
    for name, sql in (view for page in TWINS for view in views(page)):
        session.sql(sql).createOrReplaceTempView(name)
    return session


@pytest.mark.slow
@pytest.mark.parametrize(("sql", "twin"), PAIRS)
def test_rows(sql: str, twin: Twin, shop: Session) -> None:
    try:
        wanted = shop.sql(sql)
    except SqlExtError as error:
        with pytest.raises(type(error)):
            twin(shop.table).df()
        return
    found = twin(shop.table).df()
    assert found.columns == list(map(named, wanted.columns))
    given, rows = ([repr(tuple(row)) for row in frame.collect()] for frame in (found, wanted))
    assert Counter(given) == Counter(rows)
