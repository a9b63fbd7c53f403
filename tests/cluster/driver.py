"""A user's program: five statements, with their rows as JSON. Run by `spark-submit`, or with --master as a notebook is.

python driver.py OUT TABLES [--master URL] [--python PATH] [--conf KEY=VALUE ...] [--add-py-file ZIP] [--refused]

A program that starts Spark itself names the executors' Python in PYSPARK_PYTHON: spark.pyspark.python is read by
spark-submit only.
With --add-py-file the first statement is tried before the file is added, and the error is in the answer; with --refused
that is all.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sqlext import Session, SqlExtError, stream_settings

WINDOW = """SELECT id, count(v) OVER w AS n, sum(v) OVER w AS s, distinct_count(v) OVER w AS d
FROM a WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW)"""
INTERVAL = """SELECT a.id, b.id AS other FROM a JOIN b ON a.k = b.k
AND PERIOD(a.ts, a.ts + INTERVAL 5 SECONDS) OVERLAPS PERIOD(b.ts, b.ts + INTERVAL 7 SECONDS)"""
LAST = "SELECT a.id, b.v FROM a LAST JOIN b ORDER BY b.ts ON a.k = b.k AND b.ts <= a.ts"
UMJOIN = "SELECT a.id, b.id AS i, c.id AS j FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k AND c.v = a.v"

STATEMENTS = {
    "window": (WINDOW, {}),
    "window, files read by tasks": (WINDOW, {"sqlext.exchange.arrowScan": "true"}),
    "interval join": (INTERVAL, {"sqlext.intervalJoin.strategy": "exchange"}),
    "interval join, broadcast": (INTERVAL, {"sqlext.intervalJoin.strategy": "broadcast"}),
    "last join": (LAST, {"sqlext.lastJoin.strategy": "exchange"}),
    "umjoin": (UMJOIN, {"sqlext.umjoin.strategy": "operator"}),
}


def main() -> None:
    options = _options()
    if options.python is not None:
        os.environ["PYSPARK_PYTHON"] = options.python
    builder: Any = SparkSession.builder.appName("cluster")
    builder = builder if options.master is None else builder.master(options.master)
    for text in options.conf:
        builder = builder.config(*text.split("=", 1))
    for key, value in stream_settings(cores=2).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for path in options.tables.glob("*.parquet"):
        spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)
    answer: dict[str, Any] = {"seconds": {}}
    if options.add_py_file is not None or options.refused:
        answer["before"] = _refused(spark)
    if options.add_py_file is not None:
        spark.sparkContext.addPyFile(options.add_py_file)
    if not options.refused:
        _answer(answer, spark, options.tables)
    options.out.write_text(json.dumps(answer))
    spark.stop()


def _answer(answer: dict[str, Any], spark: SparkSession, tables: Path) -> None:
    """The rows of every statement, and the seconds that it took."""
    for name, (text, settings) in STATEMENTS.items():
        run = _rows(lambda text=text, settings=settings: Session(spark, config=settings).sql(text))
        answer[name], answer["seconds"][name] = _timed(run)
        if name == "window":  # what compiling costs
            answer["seconds"][f"{name}, again"] = _timed(run)[1]
    answer["stream"], answer["seconds"]["stream"] = _timed(lambda: _streamed(spark, tables))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("tables", type=Path)
    parser.add_argument("--master")
    parser.add_argument("--python")
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("--add-py-file")
    parser.add_argument("--refused", action="store_true")
    return parser.parse_args()


def _rows(frame: Callable[[], DataFrame]) -> Callable[[], list[list[Any]]]:
    return lambda: sorted((list(row) for row in frame().collect()), key=str)


def _timed(run: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.monotonic()
    return run(), round(time.monotonic() - begin, 2)


def _refused(spark: SparkSession) -> dict[str, Any]:
    """The error of the first statement."""
    try:
        Session(spark).sql(WINDOW).collect()
    except SqlExtError as error:
        return {"kind": type(error).__name__, "message": error.message, "help": error.help}
    return {}


def _streamed(spark: SparkSession, tables: Path) -> list[list[Any]]:
    """The same window over the tables as streams: their final rows."""
    streams = {}
    for name in ("a", "b"):
        rows = spark.read.parquet(str(tables / f"{name}.parquet"))
        with_files = spark.readStream.schema(rows.schema).parquet(str(tables / f"{name}.parquet*"))
        streams[name] = with_files.withWatermark("ts", "1 second")
    text = WINDOW.replace("FROM a", "FROM {a}").replace("UNION b", "UNION {b}")
    with tempfile.TemporaryDirectory() as folder:
        frame = Session(spark, config={"sqlext.exchange.partitions": "2"}).sql(text, **streams)
        writer = frame.writeStream.format("memory").queryName("streamed").option("checkpointLocation", folder)
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
    return sorted((list(row) for row in spark.table("streamed").collect()), key=str)


if __name__ == "__main__":
    main()
