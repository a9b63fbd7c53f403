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
    found["rows"]["stream"] = streamed(session, folder)
    frame = spark.table("views")
    query = session.table(frame).window_union(
        "orders", partition_by=F.col("user_id"), order_by="ts", rows_range=("1d", 0)
    )
    query = query.select("user_id", "ts", spent=fx.sum("price"), often=fx.topn_frequency("item", 2))
    found["rows"]["python"] = rows(query.df())
    computed = session.table(frame).select("ts", most=fx.max(F.col("price") * 2).over(fx.window("item").rows(None)))
    found["computed"] = computed.df().count()
    text = STATEMENTS["window"]
    found["explained"] = str(session.sql("EXPLAIN ANALYZE " + text).collect()[0][0])
    found["refused"] = {
        "place": told(lambda: session.sql(text.replace("sum(price)", "sum(nothing)"))),
        "partitioner": told(
            lambda: session.sql(STREAM.replace("SELECT", "SELECT /*+ PARTITIONER(key) */")).writeStream
        ),
        "column": told(lambda: session.table(frame).last_join("orders", on=F.col("user_id") == F.col("item")).df()),
    }
    found["round trips"] = {
        "plain": round_trips(spark, lambda: session.sql("SELECT item, count(*) FROM views GROUP BY item")),
        "spark.sql": round_trips(spark, lambda: spark.sql("SELECT item, count(*) FROM views GROUP BY item")),
        **{name: round_trips(spark, lambda text=text: session.sql(text)) for name, text in STATEMENTS.items()},
    }
    found["seconds"] = {}
    for name, text in STATEMENTS.items():
        start = time.perf_counter()
        for _ in range(3):
            session.sql(text)
        found["seconds"][name] = (time.perf_counter() - start) / 3
    found["java"] = SparkContext._gateway is not None
    return found


if __name__ == "__main__":
    print(json.dumps(seen(sys.argv[1], Path(sys.argv[2]))))
