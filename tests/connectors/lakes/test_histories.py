"""Tables with a history: each statement gives the rows that it gives over a copy in plain Parquet, for the newest
version and for older ones, whoever is asked to read the files."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from tests.connectors.copies import Copies
from tests.connectors.lakes.histories import LAKEHOUSES, TABLES, History
from tests.connectors.lakes.statements import STATEMENTS, rows

#: Of each lakehouse. `SQLEXT_HISTORIES=100` makes 200 of both.
COUNT = int(os.environ.get("SQLEXT_HISTORIES", "2"))


@pytest.fixture(
    params=[(name, seed) for seed in range(COUNT) for name in LAKEHOUSES], ids=lambda value: f"{value[0]}-{value[1]}"
)
def history(request: pytest.FixtureRequest, lake: SparkSession) -> Iterator[History]:
    name, seed = request.param
    made = History(lake, LAKEHOUSES[name], seed)
    yield made
    made.drop()


def test_statements_over_a_history(session: Session, copies: Copies, history: History) -> None:
    versions = history.run()
    middle = history.seed % (len(versions) - 1)
    newest = [history.table(name) for name in TABLES]
    for place in (None, middle, 0):
        tables = (
            newest
            if place is None
            else [f"{table} VERSION AS OF {version}" for table, version in zip(newest, versions[place], strict=True)]
        )
        plain = [copies.of(table) for table in tables]
        for name, statement in STATEMENTS.items():
            wanted = rows(session, statement, *plain)
            for setting in ("auto", "true"):
                session.sql(f"SET sqlext.exchange.arrowScan = {setting}")
                assert rows(session, statement, *tables) == wanted, (name, setting, place, history.told)
            session.sql("SET sqlext.exchange.arrowScan = auto")
