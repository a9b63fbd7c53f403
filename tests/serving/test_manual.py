"""Each statement of the manual's windows and LAST JOINs as a deployment: its answers are the rows of batch."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError

from sqlext import Session
from sqlext.cli.demo import write_tables
from sqlext.serving.verify import verify
from tests.builders.test_twins import statements, views

PAGES = ("README.md", "docs/windows.md", "docs/last-join.md")
#: What the pages show and no server answers, by page and place, with words of the reason.
REFUSED = {
    ("README.md", 1): "an interval join cannot be answered",
    ("README.md", 2): "Aggregate cannot be answered",
    ("docs/windows.md", 1): "begins at the first row of its key",
    ("docs/windows.md", 4): "DESC in a window",
    ("docs/windows.md", 6): "begins at the first row of its key",
    ("docs/windows.md", 7): "Limit cannot be answered",
    ("docs/windows.md", 9): "Limit cannot be answered",
    ("docs/last-join.md", 2): "it has no WHERE",
    ("docs/last-join.md", 4): "it has no WHERE",
    ("docs/last-join.md", 5): "it has no WHERE",
    ("docs/last-join.md", 6): "Join cannot be answered",
    ("docs/last-join.md", 7): "a sqlext window cannot be kept row by row",
    ("docs/last-join.md", 9): "belongs to the right side",
    ("docs/last-join.md", 10): "does not compare the same two times",
}
PLACES = [(page, number) for page in PAGES for number, _ in enumerate(statements(page))]


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """The tables of the manual in a session of their own, with the views that its pages make of them."""
    folder = tmp_path_factory.mktemp("shop")
    write_tables(folder, 300, seed=1)
    session = Session(spark.newSession())
    for name in ("views", "orders"):
        session.register(name, folder / f"{name}.parquet")
    for page in PAGES:
        for name, sql in views(page):
            session.sql(sql).createOrReplaceTempView(name)
    return session


@pytest.mark.spark
@pytest.mark.parametrize(("page", "place"), PLACES)
def test_answers_are_the_rows_of_batch(shop: Session, page: str, place: int) -> None:
    sql = list(statements(page))[place]
    reason = REFUSED.get((page, place))
    if reason is not None:
        with pytest.raises(SqlExtError, match=reason):
            shop.deploy(sql)
        return
    found = verify(shop, shop.deploy(sql), 40)
    assert str(found) == "40 of 40 rows equal", found.differences[:3]
