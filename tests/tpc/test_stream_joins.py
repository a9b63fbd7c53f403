"""The joins of TPC-H's queries over streams of its tables, as one operator: the rows are those of the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sqlext import Session
from sqlext.tpc import BENCHMARKS
from tests.sql.streams import stream_conf, streamed

BENCHMARK = BENCHMARKS["tpch"]
#: Micro-batches that bring a table's rows, or as many as it has rows.
FILES = 3
#: Columns and the FROM of a query with the terms that join; filters as the query's, where they are cheap.
JOINS = {
    3: (
        "c_custkey, o_orderkey, l_linenumber",
        "customer, orders, lineitem WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey "
        "AND c_mktsegment = 'BUILDING' AND o_orderdate < DATE'1995-03-15' AND l_shipdate > DATE'1995-03-15'",
    ),
    5: (
        "o_orderkey, l_linenumber, s_name, n_name, r_name",
        "customer, orders, lineitem, supplier, nation, region WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey "
        "AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey "
        "AND n_regionkey = r_regionkey",
    ),
    7: (
        "o_orderkey, l_linenumber, n1.n_name AS supplier, n2.n_name AS customer",
        "supplier, lineitem, orders, customer, nation n1, nation n2 WHERE s_suppkey = l_suppkey "
        "AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey "
        "AND c_nationkey = n2.n_nationkey AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') "
        "OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))",
    ),
    9: (
        "o_orderkey, l_linenumber, ps_supplycost, n_name",
        "part, supplier, lineitem, partsupp, orders, nation WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey "
        "AND ps_partkey = l_partkey AND p_partkey = l_partkey AND o_orderkey = l_orderkey "
        "AND s_nationkey = n_nationkey AND p_name LIKE '%green%'",
    ),
}


@pytest.fixture(scope="module")
def tpch(
    spark: SparkSession, tables: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """Streams of all tables, their rows in the order of the generator."""
    root, folder = tables("tpch"), tmp_path_factory.mktemp("tpch_streams")
    session = Session(spark.newSession())
    own = session.spark
    own.conf.set("sqlext.umjoin.strategy", "operator")
    with stream_conf(own):
        for name in BENCHMARK.tables:
            rows = pq.read_table(root / f"{name}.parquet")
            size = -(-rows.num_rows // FILES)
            (folder / name).mkdir()
            for number in range(FILES):
                pq.write_table(rows.slice(number * size, size), folder / name / f"{number}.parquet")
            schema = own.read.parquet(str(folder / name)).schema
            stream = own.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / name))
            stream.createOrReplaceTempView(name)
        yield session


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("number", [pytest.param(n, marks=[] if n == 5 else pytest.mark.slow) for n in JOINS])
def test_streams_of_tpch_join_as_its_tables(
    tpch: Session, spark: SparkSession, tables: Callable[[str], Path], tmp_path: Path, number: int
) -> None:
    items, clause = JOINS[number]
    frame = tpch.sql(f"SELECT {items} FROM {clause}")
    plan = tpch.sql(f"EXPLAIN SELECT {items} FROM {clause}").collect()[0][0]
    assert plan.count("UMJoinStreamExec") == 1
    batch = Session(spark.newSession()).spark
    for name in BENCHMARK.tables:
        batch.read.parquet(str(tables("tpch") / f"{name}.parquet")).createOrReplaceTempView(name)
    wanted = sorted(map(tuple, batch.sql(f"SELECT {items} FROM {clause}").collect()))
    assert wanted
    assert sorted(streamed(frame, tmp_path)) == wanted
