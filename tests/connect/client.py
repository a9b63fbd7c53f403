"""A client of a Spark Connect server, as a program: `python client.py URL FOLDER` writes a JSON object of what it saw.

It runs without Java. FOLDER has views.parquet and orders.parquet.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from sqlext import Session, SqlExtError, stream_settings
from sqlext import functions as fx

SCHEMA = "user_id bigint, ts timestamp, item string, price double"

STATEMENTS = {
    "window": """
        SELECT user_id, ts, sum(price) OVER w AS spent, topn_frequency(item, 2) OVER w AS often FROM views
        WINDOW w AS (UNION orders PARTITION BY user_id ORDER BY ts ROWS_RANGE BETWEEN 1d PRECEDING AND CURRENT ROW)""",
    "last join": """
        SELECT v.user_id, v.ts, o.price FROM views v
        LAST JOIN orders o ORDER BY o.ts ON v.user_id = o.user_id AND o.ts <= v.ts""",
    "interval join": """
        SELECT v.user_id, v.ts, o.price FROM views v
        LEFT JOIN orders o ON v.user_id = o.user_id AND PERIOD(v.ts, v.ts + INTERVAL 1 HOUR) CONTAINS o.ts""",
    "multi-way join": """
        SELECT /*+ UMJOIN(v, o, w) */ count(*) AS n, sum(o.price) > 0 AS paid
        FROM views v, orders o, views w WHERE v.user_id = o.user_id AND o.user_id = w.user_id""",
}
#: Like TPC-H's Q3: joins, a filter, an aggregate, the first rows.
ORDINARY = """
    SELECT v.user_id, o.item, sum(o.price * (1 - v.price / 1000)) AS revenue, count(*) AS n
    FROM views v JOIN orders o ON v.user_id = o.user_id JOIN views w ON w.item = o.item
    WHERE v.ts < TIMESTAMP '2024-05-02 00:00:00' AND o.price > 10
    GROUP BY v.user_id, o.item ORDER BY revenue DESC, user_id, item LIMIT 10"""
STREAM = """
    SELECT user_id, ts, count(price) OVER w AS n FROM view_stream
    WINDOW w AS (UNION order_stream PARTITION BY user_id ORDER BY ts
                 ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW)"""


def rows(frame: DataFrame) -> list[str]:
    """The rows as sorted texts."""
    return sorted(repr(tuple(row)) for row in frame.collect())


def streamed(session: Session, folder: Path) -> list[str]:
    """The rows of the statement over streams of the files in FOLDER/views and FOLDER/orders, read until their end."""
    spark = session.spark
    for name in ("view", "order"):
        stream = spark.readStream.schema(SCHEMA).parquet(str(folder / f"{name}s"))
        stream.withWatermark("ts", "1 minute").createOrReplaceTempView(f"{name}_stream")
    out = folder / "out"
    writer = session.sql(STREAM).writeStream.format("parquet").option("path", str(out))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return rows(spark.read.parquet(str(out)))


def told(run: Callable[[], object]) -> str:
    """What a call says that is refused."""
    try:
        run()
    except SqlExtError as error:
        return str(error)
    return "nothing"


def round_trips(spark: SparkSession, run: Callable[[], object]) -> int:
    """How many requests a call sends to the server."""
    client: Any = spark.client  # type: ignore[attr-defined]
    stub, count = client._stub, 0

    class Counting:
        def __getattr__(self, name: str) -> Any:
            nonlocal count
            count += name != "ReleaseExecute"
            return getattr(stub, name)

    client._stub = Counting()
    try:
        run()
    finally:
        client._stub = stub
    return count


def seconds(session: Session, times: int = 5) -> dict[str, float]:
    """Seconds from a text to its DataFrame, the least of some runs. (`spark.sql` alone for ORDINARY.)"""
    asked: dict[str, Callable[[], object]] = {
        "spark.sql": lambda: session.spark.sql(ORDINARY).schema,
        "ordinary": lambda: session.sql(ORDINARY).schema,
        **{name: lambda text=text: session.sql(text).schema for name, text in STATEMENTS.items()},
    }
    found = {}
    for name, ask in asked.items():
        taken = []
        for _ in range(times):
            start = time.perf_counter()
            ask()
            taken.append(time.perf_counter() - start)
        found[name] = round(min(taken), 4)
    return found


def seen(url: str, folder: Path) -> dict[str, Any]:
    spark = SparkSession.builder.remote(url).getOrCreate()
    for key, value in stream_settings(cores=2).items():
        spark.conf.set(key, value)
    session = Session()
    for name in ("views", "orders"):
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)
    found: dict[str, Any] = {"same session": session.spark is spark}
    found["rows"] = {name: rows(session.sql(text)) for name, text in STATEMENTS.items()}
    spark.table("views").write.parquet(str(folder / "views"))
    spark.table("orders").write.parquet(str(folder / "orders"))
    try:
        found["rows"]["stream"] = streamed(session, folder)
    except SqlExtError as error:
        if error.condition != "spark-version":
            raise
        found["no streams"] = error.message
    frame = spark.table("views")
    query = session.table(frame).window_union(
        "orders", partition_by=F.col("user_id"), order_by="ts", rows_range=("1d", 0)
    )
    query = query.select("user_id", "ts", spent=fx.sum("price"), often=fx.topn_frequency("item", 2))
    found["rows"]["python"] = rows(query.df())
    computed = session.table(frame).select("ts", most=fx.max(F.col("price") * 2).over(fx.window("item").rows(None)))
    found["computed"] = int(computed.df().count())
    text = STATEMENTS["window"]
    if not spark.version.startswith("3.5."):  # whose server, of 3.5.0, observes nothing on a later fix of Spark
        found["explained"] = str(session.sql("EXPLAIN ANALYZE " + text).collect()[0][0])
    found["refused"] = {
        "place": told(lambda: session.sql(text.replace("sum(price)", "sum(nothing)"))),
        "partitioner": told(
            lambda: session.sql(STREAM.replace("SELECT", "SELECT /*+ PARTITIONER(key) */")).writeStream
        ),
        "column": told(lambda: session.table(frame).last_join("orders", on=F.col("user_id") == F.col("item")).df()),
    }
    spark.conf.set("my.least", "50")
    least = "WHERE price > {} WINDOW".format
    texts = [text.replace("WINDOW", least(value)) for value in ("50", "${my.least}")]
    found["with a variable"] = [rows(session.sql(item)) for item in texts]
    found["round trips"] = {
        "spark.sql": round_trips(spark, lambda: spark.sql(ORDINARY)),
        "ordinary": round_trips(spark, lambda: session.sql(ORDINARY)),
        **{name: round_trips(spark, lambda text=text: session.sql(text)) for name, text in STATEMENTS.items()},
    }
    found["seconds"] = seconds(session)
    found["java"] = SparkContext._gateway is not None
    return found


if __name__ == "__main__":
    print(json.dumps(seen(sys.argv[1], Path(sys.argv[2]))))
