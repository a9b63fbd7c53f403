"""Each statement of the manual over tables of a lakehouse that have a history: its rows are those over a copy in plain
Parquet, for the newest version and for older ones, whoever is asked to read the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError

from sqlext import Session
from sqlext.cli.demo import write_tables
from tests.builders.test_twins import statements, views
from tests.builders.twins import TWINS
from tests.connectors.copies import Copies
from tests.connectors.lakes.histories import LAKEHOUSES, Lakehouse

NAMES = ("views", "orders")
STATEMENTS = [
    pytest.param(sql, id=f"{Path(page).name}-{number}") for page in TWINS for number, sql in enumerate(statements(page))
]
#: Of the versions that `changed` gives: None is the newest. To Iceberg, that of before the deletes has the first name.
PLACES = (None, 1, 2)

pytestmark = pytest.mark.slow


def changed(spark: SparkSession, lakehouse: Lakehouse, name: str, path: Path) -> list[int]:
    """Make a table of the rows of a file, rename a column, delete rows, change some, and put some back; its versions
    after each. No two rows have the same time, so that no answer depends on an order among equals.
    """
    table, late = f"{lakehouse.schema}.shop_{name}", NAMES.index(name)
    rows = f"""SELECT user_id, item, ts + make_dt_interval(0, 0, 0, (2 * place + {late}) * 1e-6) AS ts, price AS paid
        FROM (SELECT *, row_number() OVER (ORDER BY ts, user_id, item, price) AS place FROM parquet.`{path}`)"""
    spark.sql(f"DROP TABLE IF EXISTS {table}")
    spark.sql(f"CREATE TABLE {table} {lakehouse.create.format(key='user_id')} AS {rows}")
    versions = []
    for statement in (
        f"ALTER TABLE {table} RENAME COLUMN paid TO price",
        f"DELETE FROM {table} WHERE user_id % 4 = 1",
        f"UPDATE {table} SET price = price + 1, item = concat('new ', item) WHERE user_id % 5 = 2",
        f"INSERT INTO {table} (user_id, item, ts, price) SELECT * FROM ({rows}) WHERE user_id % 8 = 1",
    ):
        spark.sql(statement)
        versions.append(lakehouse.version(spark, table))
    return versions


@pytest.fixture(scope="module", params=LAKEHOUSES)
def histories(
    request: pytest.FixtureRequest, lake: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[str, list[int]]]:
    """The tables of the manual with their versions."""
    folder = tmp_path_factory.mktemp("shop")
    write_tables(folder, 200, seed=1)
    lakehouse = LAKEHOUSES[request.param]
    return {
        name: (f"{lakehouse.schema}.shop_{name}", changed(lake, lakehouse, name, folder / f"{name}.parquet"))
        for name in NAMES
    }


@pytest.fixture(scope="module", params=PLACES, ids=lambda place: "newest" if place is None else f"version {place}")
def shops(
    request: pytest.FixtureRequest,
    lake: SparkSession,
    histories: dict[str, tuple[str, list[int]]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Session, Session]]:
    """A session over a version of the tables, and one over copies of its rows."""
    ours, plain = Session(lake.newSession()), Session(lake.newSession())
    with Copies(plain.spark, tmp_path_factory.mktemp("copies")) as copies:
        for name, (table, versions) in histories.items():
            table += "" if request.param is None else f" VERSION AS OF {versions[request.param]}"
            for session, source in ((ours, table), (plain, copies.of(table))):
                session.spark.sql(f"SELECT * FROM {source}").createOrReplaceTempView(name)
        for session in (ours, plain):
            for name, sql in (view for page in TWINS for view in views(page)):
                session.sql(sql).createOrReplaceTempView(name)
        yield ours, plain


@pytest.mark.parametrize("sql", STATEMENTS)
def test_rows_of_the_manual(sql: str, shops: tuple[Session, Session]) -> None:
    ours, plain = shops
    try:
        wanted = rows(plain, sql)
    except SqlExtError as error:  # the manual shows it as wrong
        with pytest.raises(type(error)):
            rows(ours, sql)
        return
    for setting in ("auto", "true"):
        ours.sql(f"SET sqlext.exchange.arrowScan = {setting}")
        assert rows(ours, sql) == wanted, setting


def rows(session: Session, sql: str) -> Counter[str]:
    """The rows of a statement in any order. Sums of doubles depend on the order in which they are added."""
    return Counter(repr([_shown(value) for value in row]) for row in session.sql(sql).collect())


def _shown(value: Any) -> Any:
    match value:
        case float():
            return f"{value:.9g}"
        case list() | tuple():
            return [_shown(item) for item in value]
    return value
