"""Real data sets against range joins in DuckDB (an oracle that shares nothing with ours but the files)."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sqlext import Session

pytestmark = pytest.mark.tidied

Shared = Callable[[str], Path]


def same_tables(got: pa.Table, expected: pa.Table) -> None:
    """Equal column by column after sorting by the first column, floats to 1e-9."""
    assert got.num_rows == expected.num_rows
    got, expected = (table.sort_by(table.column_names[0]) for table in (got, expected))
    for name in expected.column_names:
        for number, (a, b) in enumerate(zip(got[name].to_pylist(), expected[name].to_pylist(), strict=True)):
            same = math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) if isinstance(a, float) and b is not None else a == b
            assert same, f"row {number}, {name}: {a!r} instead of {b!r}"


def numbered(spark: SparkSession, duck: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    """Register a table on both sides; `id` is its input order."""
    duck.register(name, table)
    spark.createDataFrame(table).createOrReplaceTempView(name)


@pytest.mark.parametrize("length", [1_000, 5_000])
def test_trades_and_orders(spark: SparkSession, session: Session, shared: Shared, length: int) -> None:
    """Stock exchange data of AllianceDB: trades as FROM, orders as UNION, 93,601 stocks, bursts of equal times."""
    duck = duckdb.connect(config={"threads": 2})
    for name, file in (("trades", "stock_cj_60s_1t.txt"), ("orders", "stock_sb_60s_1t.txt")):
        path = shared(f"data/streams/{file}")
        table = duck.execute(
            "SELECT CAST(row_number() OVER () AS INT) AS id, CAST(column0 AS BIGINT) AS stock, "
            "CAST(column1 AS BIGINT) AS ts "
            f"FROM read_csv('{path}', delim='|', header=false, parallel=false)"
        ).to_arrow_table()
        numbered(spark, duck, f"real_{name}", table)
    got = session.sql(
        f"""
        SELECT id, count(*) OVER w AS n, min(id) OVER w AS low, max(ts) OVER w2 AS last
        FROM real_trades
        WINDOW w AS (UNION real_orders PARTITION BY stock ORDER BY ts
                     ROWS_RANGE BETWEEN {length} PRECEDING AND CURRENT ROW),
               w2 AS (UNION real_orders PARTITION BY stock ORDER BY ts
                      ROWS_RANGE BETWEEN {length} PRECEDING AND 1 PRECEDING INSTANCE_NOT_IN_WINDOW)
    """
    )
    expected = duck.execute(f"""
        WITH rows AS (SELECT *, true AS is_from FROM real_trades UNION ALL SELECT *, false FROM real_orders)
        SELECT t.id, count(*) AS n, min(r.id) AS low,
               max(r.ts) FILTER (NOT r.is_from AND r.ts < t.ts) AS last
        FROM real_trades t JOIN rows r ON r.stock = t.stock AND r.ts BETWEEN t.ts - {length} AND t.ts
             AND (NOT r.is_from OR r.ts < t.ts OR r.id <= t.id)
        GROUP BY t.id
    """).to_arrow_table()
    same_tables(got.toArrow(), expected)


def test_logistics_with_a_hot_key(spark: SparkSession, session: Session, shared: Shared) -> None:
    """PECJ's logistics streams: 66 keys, the top one 9 %; the line number over 20 is the time."""
    duck = duckdb.connect(config={"threads": 2})
    for name in ("tr", "ts"):
        path = shared(f"data/streams/logistics_{name}.csv")
        table = duck.execute(
            "SELECT CAST(row_number() OVER () AS INT) AS id, key, value, "
            "CAST(row_number() OVER () // 20 AS BIGINT) AS at "
            f"FROM read_csv('{path}', parallel=false, types={{'key': 'BIGINT', 'value': 'BIGINT'}})"
        ).to_arrow_table()
        numbered(spark, duck, f"logistics_{name}", table)
    got = session.sql("""
        SELECT id, count(*) OVER w AS n, sum(value) OVER w AS s, min(value) OVER w AS low, avg(value) OVER w AS a,
               distinct_count(value) OVER w AS d, max_where(value, value % 2 = 0) OVER w AS even
        FROM logistics_tr
        WINDOW w AS (UNION logistics_ts PARTITION BY key ORDER BY at ROWS_RANGE BETWEEN 60 PRECEDING AND 0 PRECEDING
                     INSTANCE_NOT_IN_WINDOW)
    """)
    expected = duck.execute("""
        SELECT t.id, count(*) AS n, CAST(sum(r.value) AS BIGINT) AS s, min(r.value) AS low, avg(r.value) AS a,
               count(DISTINCT r.value) AS d, max(r.value) FILTER (r.value % 2 = 0) AS even
        FROM logistics_tr t
        JOIN (SELECT *, true AS is_from FROM logistics_tr UNION ALL SELECT *, false FROM logistics_ts) r
             ON r.key = t.key AND CASE WHEN r.is_from THEN r.id = t.id ELSE r.at BETWEEN t.at - 60 AND t.at END
        GROUP BY t.id
    """).to_arrow_table()
    same_tables(got.toArrow(), expected)


#: Items over the functions that exist; the windows are those of FEBench's own script for Q1.
COVID = """
SELECT Id,
  min(`Fatalities`) over train_Province_State_Date_0s_2d_200 as c7,
  min(`Fatalities`) over train_Province_State_Date_0s_7d_200 as c8,
  min(`Fatalities`) over train_Country_Region_Date_0s_2d_100 as c10,
  min(`Fatalities`) over train_Country_Region_Date_0s_5d_200 as c11,
  avg(`Fatalities`) over train_Province_State_Date_0s_2d_200 as c12,
  avg(`Fatalities`) over train_Province_State_Date_0s_5d_200 as c13,
  sum(`Fatalities`) over train_Province_State_Date_0s_7d_100 as c14,
  avg(`Fatalities`) over train_Country_Region_Date_0s_2d_100 as c15,
  max(`Fatalities`) over train_Country_Region_Date_0s_5d_200 as c16,
  max(`Fatalities`) over train_Country_Region_Date_0s_14d_200 as c17,
  avg(`Fatalities`) over train_Country_Region_Date_0_10_ as c18,
  count(`Country_Region`) over train_Province_State_Date_0s_14d_100 as c20,
  count(`Country_Region`) over train_Province_State_Date_0s_64d_100 as c21
FROM train
"""

#: (column, aggregate, partition column, days, MAXSIZE) of COVID.
COVID_WINDOWS = [
    ("c7", "min", "Province_State", 2, 200),
    ("c8", "min", "Province_State", 7, 200),
    ("c10", "min", "Country_Region", 2, 100),
    ("c11", "min", "Country_Region", 5, 200),
    ("c12", "avg", "Province_State", 2, 200),
    ("c13", "avg", "Province_State", 5, 200),
    ("c14", "sum", "Province_State", 7, 100),
    ("c15", "avg", "Country_Region", 2, 100),
    ("c16", "max", "Country_Region", 5, 200),
    ("c17", "max", "Country_Region", 14, 200),
    ("c20", "count", "Province_State", 14, 100),
    ("c21", "count", "Province_State", 64, 100),
]


def test_febench_q1_on_covid_data(spark: SparkSession, shared: Shared) -> None:
    """Ties (every province of a country has the same dates), NULL provinces as one group, MAXSIZE that bites."""
    path, script = shared("data/febench/q1_covid.csv"), shared("data/febench/Q1_deploy.sql").read_text()
    duck = duckdb.connect(config={"threads": 2})
    table = duck.execute(
        "SELECT CAST(Id AS INT) AS Id, Province_State, Country_Region, CAST(Date AS TIMESTAMPTZ) AS Date, Fatalities, "
        f"row_number() OVER () AS place FROM read_csv('{path}', parallel=false, types={{'Date': 'TIMESTAMP'}})"
    ).to_arrow_table()
    numbered(spark, duck, "train", table)
    windows = script[script.index("window train_") :].rstrip().rstrip(";")
    got = Session(spark, compat="openmldb").sql(COVID + windows).toArrow()
    assert got.num_rows == table.num_rows
    for column, function, key, days, maxsize in COVID_WINDOWS:
        duck.execute(
            "CREATE OR REPLACE TABLE seq AS SELECT Id, Date, Fatalities, "
            f"dense_rank() OVER (ORDER BY {key} NULLS FIRST) AS k, "
            f"row_number() OVER (PARTITION BY {key} ORDER BY Date, place) AS i FROM train"
        )
        expected = duck.execute(f"""
            SELECT t.Id, {function}(r.Fatalities) AS {column}
            FROM seq t
            JOIN seq r ON r.k = t.k AND r.i BETWEEN t.i - {maxsize - 1} AND t.i
                           AND r.Date > t.Date - INTERVAL {days} DAY
            GROUP BY t.Id
        """).to_arrow_table()
        same_tables(got.select(["Id", column]), expected)
    ten_rows = duck.execute("""
        SELECT Id, avg(Fatalities) OVER w AS c18 FROM train
        WINDOW w AS (PARTITION BY Country_Region ORDER BY Date, place ROWS BETWEEN 9 PRECEDING AND CURRENT ROW)
    """).to_arrow_table()
    same_tables(got.select(["Id", "c18"]), ten_rows)
