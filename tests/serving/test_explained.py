"""What EXPLAIN DEPLOYMENT, `deployment.explain()` and `sqlext deploy` say: what is kept, and what an answer costs."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError
from sqlext_planner.serving.lowering import ServingSettings

from sqlext import Session
from sqlext.catalog import DictCatalog
from sqlext.serving.deployment import Deployment
from tests.command_line import in_this_process
from tests.test_docs import ROOT

TABLES = {
    "visits": {"user_id": "bigint", "shop": "string", "ts": "timestamp", "price": "decimal(10,2)"},
    "buys": {"user_id": "bigint", "shop": "string", "ts": "timestamp", "price": "decimal(10,2)"},
    "shops": {"shop": "string", "opened": "timestamp", "size": "int"},
}
SETTINGS = ServingSettings(ansi=True, time_zone="UTC")

#: The one of docs/serving.md: a window over a union, and a LAST JOIN.
SPENT = """SELECT v.user_id, sum(price) OVER w AS spent, s.size
FROM visits v LAST JOIN shops s ORDER BY s.opened ON v.shop = s.shop AND s.opened <= v.ts
WINDOW w AS (UNION buys PARTITION BY v.user_id ORDER BY v.ts
             ROWS_RANGE BETWEEN 30d PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW)"""
#: Windows of two keys, by number and by time with MAXSIZE, over the request table too.
MANY = """SELECT user_id, count(price) OVER a AS n, top(price, 2) OVER b AS top2, lag(price, 1) OVER b AS before
FROM visits
WINDOW a AS (PARTITION BY shop ORDER BY ts ROWS_RANGE BETWEEN 36h PRECEDING AND 5m FOLLOWING),
       b AS (UNION buys PARTITION BY user_id ORDER BY ts ROWS_RANGE BETWEEN 2h PRECEDING AND CURRENT ROW MAXSIZE 9)"""

SPENT_TEXT = """\
Deployment spent: a row of visits
  input 0: buys [user_id, ts, price] by user_id in order of ts
      (kept: rows up to 30d 15m before the newest)
      (now: 0 rows, 32 bytes a row)
  input 1: shops [size, shop, opened] by shop in order of opened
      (kept: rows up to 15m before the newest, and the last row of each key before that)
      (now: 0 rows, 12 bytes a row and the values of shop)
  step 1: columns: v.user_id, v.shop, v.ts, v.price
  step 2: LAST JOIN: reads the last row of its key in input 1 up to its time
  step 3: windows over input 0: sum AS spent
      (reads of its key: the rows of the 30d before it)
      (where a key has 1,024 rows or more, from condensed rows: spent)
  result: user_id, spent, size"""

MANY_TEXT = """\
Deployment many: a row of visits
  input 0: buys [user_id, ts, price] by user_id in order of ts
      (kept: rows up to 2h before the newest, and the last row of each key before that)
      (now: 0 rows, 32 bytes a row)
  input 1: visits [user_id, ts, price] by user_id in order of ts
      (kept: rows up to 2h before the newest, and the last row of each key before that)
      (now: 0 rows, 32 bytes a row)
  input 2: visits [shop, ts, price] by shop in order of ts
      (kept: rows up to 1d 12h before the newest)
      (now: 0 rows, 24 bytes a row and the values of shop)
  step 1: columns: visits.user_id, visits.shop, visits.ts, visits.price
  step 2: windows over input 2: count AS n
      (reads of its key: the rows of the 1d 12h before it, those of the 5m after it)
      (where a key has 1,024 rows or more, from condensed rows: n)
  step 3: windows over inputs 0, 1: top AS top2, lag AS before
      (reads of its key: at most 9 rows of the 2h before it, the last row)
  result: user_id, n, top2, before"""

#: Name: statement, lateness, text.
GOLDEN = {
    "spent": (SPENT, 900_000_000, SPENT_TEXT),
    "many": (MANY, 0, MANY_TEXT),
}


def deployed(name: str) -> Deployment:
    sql, lateness, _ = GOLDEN[name]
    return Deployment(sql, DictCatalog(TABLES), settings=SETTINGS, name=name, lateness=lateness)


@pytest.mark.parametrize("name", list(GOLDEN))
def test_the_text(name: str) -> None:
    assert deployed(name).explain() == GOLDEN[name][2]


def test_the_page_shows_it() -> None:
    assert f"```text\n{GOLDEN['spent'][2]}\n```" in (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")


def test_the_command_prints_it_and_the_folder_has_it(tmp_path: Path) -> None:
    (tmp_path / "many.sql").write_text(MANY)
    (tmp_path / "tables.json").write_text(json.dumps(TABLES))
    words = ("--schema", tmp_path / "tables.json", "--conf", "spark.sql.session.timeZone=UTC")
    done = in_this_process("deploy", tmp_path / "many.sql", "-o", tmp_path / "d", *words)
    text = GOLDEN["many"][2]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{text}\nWritten to {tmp_path / 'd'}. Answer from it: sqlext serve {tmp_path / 'd'}\n"
    assert (tmp_path / "d" / "plan.txt").read_text().startswith(f"{text}\n")


@pytest.mark.spark
@pytest.mark.tidied
def test_the_statement_gives_it(spark: SparkSession) -> None:
    session = Session(spark)
    for table, columns in TABLES.items():
        schema = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        spark.createDataFrame([], schema).createOrReplaceTempView(table)
    (row,) = session.sql(f"-- what is kept?\nexplain Deployment\n{MANY}").collect()
    assert row.plan == GOLDEN["many"][2].replace("Deployment many", "Deployment deployment")
    with pytest.raises(SqlExtError, match="it has no WHERE") as caught:
        session.sql("EXPLAIN DEPLOYMENT SELECT user_id FROM visits WHERE price > 1")
    assert "query:1:53" in str(caught.value)


def test_columns_that_are_computed_are_counted() -> None:
    sql = """SELECT count_where(price, price > 5) OVER w AS n FROM visits
    WINDOW w AS (UNION buys PARTITION BY user_id % 8 ORDER BY ts
    ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW)"""
    text = Deployment(sql, DictCatalog(TABLES), settings=SETTINGS).explain()
    assert "input 0: buys [ts, price, 2 computed] by a computed column in order of ts\n" in text


def test_kept_rows_and_times_of_steps() -> None:
    deployment = deployed("spent")
    start = datetime(2024, 5, 1)
    rows = [{"user_id": 1, "shop": "a", "ts": start + timedelta(minutes=n), "price": n} for n in range(2000)]
    deployment.push("buys", rows)
    deployment.push("shops", [{"shop": "a", "opened": start, "size": 3}])
    text = deployment.explain({"user_id": 1, "shop": "a", "ts": start + timedelta(days=2), "price": 1})
    assert "2,000 rows, 32 bytes a row" in text
    assert "(now: 1 row, " in text
    assert len(re.findall(r"^  (?:step \d|result), \d+\.\d\d ms: ", text, re.MULTILINE)) == len(deployment.spec.steps)
    with pytest.raises(SqlExtError, match="has no column 'nothing'"):
        deployment.explain({"nothing": 1})
