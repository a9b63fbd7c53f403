"""What runs in the drivers of `harness.Driver` about streams: queries that run beside the requests."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from sqlext import Session

from . import probes
from .streaming import DELAY, SCHEMA, wait_for_commit

#: The queries that were started, the newest last.
RUNNING: list[StreamingQuery] = []


def start(
    spark: SparkSession,
    sql: str,
    rows: str,
    out: str,
    files: int = 1,
    to_the_end: bool = False,
    settings: dict[str, str] | None = None,
) -> None:
    """Start a statement over the streams below `rows`, `files` files a micro-batch, into `out/sink`; its checkpoint is
    `out/checkpoint`. `to_the_end` ends it when all files are read."""
    frame = stream(spark, sql, rows, files, settings)
    writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{out}/checkpoint")
    writer = writer.option("path", f"{out}/sink").outputMode("append")
    if to_the_end:
        writer = writer.trigger(availableNow=True)
    RUNNING.append(writer.start())


def stream(
    spark: SparkSession,
    sql: str,
    rows: str,
    files: int = 1,
    settings: dict[str, str] | None = None,
    columns: list[str] | None = None,
) -> DataFrame:
    """The statement over streams, whose columns may be replaced."""
    for name in "ab":
        frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(f"{rows}/{name}")
        frame = frame.selectExpr(*(columns or ["*"]))
        frame.withWatermark("ts", DELAY).createOrReplaceTempView(name)
    return Session(spark, config=settings).sql(sql.format(a="a", b="b"))


def await_end(spark: SparkSession) -> dict[str, Any]:
    """Wait until the query ends: how many micro-batches it had, and its error."""
    query = RUNNING[-1]
    try:
        query.awaitTermination()
    except Exception as error:
        return {"batches": 0, **_told(error), "shown": str(query.exception())}
    return {"batches": 1 + max((p.batchId for p in query.recentProgress), default=-1)}


def _told(error: BaseException | None) -> dict[str, Any]:
    kinds = [kind.__name__ for kind in type(error).__mro__]
    return {"error": kinds[0], "kinds": kinds, "message": str(error)}


def compare(spark: SparkSession, sql: str, rows: str, out: str) -> dict[str, Any]:
    """How the sink differs from batch over the same rows: nothing in `wrong` if it does not. The last row of FROM
    closes windows, and is not answered itself."""
    found = spark.read.parquet(f"{out}/sink").toPandas()
    for name in "ab":
        spark.read.schema(SCHEMA).parquet(f"{rows}/{name}").createOrReplaceTempView(f"{name}_table")
    want = Session(spark).sql(sql.format(a="a_table", b="b_table")).toPandas()
    last = spark.read.schema(SCHEMA).parquet(f"{rows}/a").selectExpr("max_by(id, ts) AS id").collect()[0]["id"]
    want = want[want["id"] != last].sort_values("id", ignore_index=True)
    ids = found["id"].to_numpy()
    wrong = {
        "doubled": len(ids) - len(np.unique(ids)),
        "missing": len(np.setdiff1d(want["id"], ids)),
        "extra": len(np.setdiff1d(ids, want["id"])),
    }
    if not any(wrong.values()):
        found = found.sort_values("id", ignore_index=True)
        for name in want.columns:
            same = np.isclose(
                found[name].to_numpy(np.float64),
                want[name].to_numpy(np.float64),
                rtol=1e-12,
                atol=1e-12,
                equal_nan=True,
            )
            wrong[name] = int((~same).sum())
    return {"rows": len(found), "wrong": {name: count for name, count in wrong.items() if count}}


def compare_early(spark: SparkSession, batch: str, rows: str, out: str, other: str) -> dict[str, Any]:
    """The rows that another run of the query does not have, or that this one does not; how often a row comes twice;
    whether final rows are those of batch, but for the row that closes the others and its window. An id is that of a row
    or the start of a window."""
    found, again = (spark.read.parquet(f"{folder}/sink") for folder in (out, other))
    for name in "ab":
        spark.read.schema(SCHEMA).parquet(f"{rows}/{name}").createOrReplaceTempView(f"{name}_table")
    want = Session(spark).sql(batch.format(a="a_table", b="b_table")).toPandas().sort_values("id", ignore_index=True)
    last = spark.table("a_table").selectExpr("unix_micros(max(ts)) AS time", "max_by(id, ts) AS id").collect()[0]
    want = want[(want["id"] < last["time"] - 10**9) & (want["id"] != last["id"])].reset_index(drop=True)
    final = found.where("phase = 'final'").select(*want.columns).toPandas().sort_values("id", ignore_index=True)
    same = len(want) == len(final) and np.allclose(
        final.to_numpy(np.float64), want.to_numpy(np.float64), rtol=1e-12, atol=1e-12, equal_nan=True
    )
    return {
        "early": found.where("phase = 'early'").count(),
        "differ": [list(row) for one, two in ((found, again), (again, found)) for row in one.exceptAll(two).collect()],
        "doubled": found.count() - found.select("id", "phase").distinct().count(),
        "as_batch": bool(same),
    }


def kill_workers(
    spark: SparkSession, sql: str, rows: str, out: str, kills: int, seed: int, harm: str | None, caches: str
) -> dict[str, Any]:
    """Run a statement to the end; `kills` random Python processes of Spark are killed from the first commit on. A query
    that fails is started again. Every third time the chunk files below `caches` are "deleted" or "damaged" too
    (`harm`)."""
    rng, ended, tally = random.Random(seed), threading.Event(), {"kills": 0, "harmed": 0, "restarts": 0}

    def disturb() -> None:
        wait_for_commit(Path(out, "checkpoint"), 120)
        while tally["kills"] < kills and not ended.wait(rng.uniform(0.2, 3.0)):
            if tally["kills"] % 3 == 2 and harm is not None:
                tally["harmed"] += HARMS[harm](Path(caches), rng)
            if workers := probes.python_workers():
                tally["kills"] += probes.kill(rng.choice(workers))

    thread = threading.Thread(target=disturb)
    thread.start()
    errors = []
    while True:
        start(spark, sql, rows, out, files=1 if thread.is_alive() else 20, to_the_end=True)
        found = await_end(spark)
        if "error" not in found:
            break
        errors.append(found["message"][:300])
        tally["restarts"] += 1
    ended.set()
    thread.join()
    return {**found, **tally, "errors": errors}


def _delete(folder: Path, rng: random.Random) -> int:
    """Delete the folders of chunk files: how many files there were."""
    count = 0
    for cache in folder.rglob("sqlext-chunks"):
        count += sum(1 for _ in cache.rglob("*"))
        shutil.rmtree(cache, ignore_errors=True)
    return count


def _damage(folder: Path, rng: random.Random) -> int:
    """Cut all chunk files, overwrite them where they are, or put others in their places: how many files there were."""
    files = [path for cache in folder.rglob("sqlext-chunks") for path in cache.rglob("*")]
    for path in files:
        with contextlib.suppress(FileNotFoundError):
            size = path.stat().st_size
            match rng.randrange(4):
                case 0:
                    os.truncate(path, rng.randrange(size + 1))
                case 1:
                    with path.open("r+b") as file:
                        file.write(rng.randbytes(size))
                case 2:
                    path.unlink()
                    path.write_bytes(rng.randbytes(size))
                case _:
                    shutil.copyfile(rng.choice(files), path.with_suffix(".copy"))
                    path.with_suffix(".copy").replace(path)
    return len(files)


HARMS = {"deleted": _delete, "damaged": _damage}


def begin(spark: SparkSession, sql: str, rows: str, checkpoint: str) -> None:
    """Run a statement over streams for three micro-batches."""
    query = _without_sink(stream(spark, sql, rows), checkpoint).start()
    wait_for_commit(Path(checkpoint), 240, 3)
    query.stop()


def go_on(
    spark: SparkSession,
    sql: str,
    rows: str,
    checkpoint: str,
    columns: list[str] | None = None,
    conf: dict[str, str] | None = None,
    settings: dict[str, str] | None = None,
) -> dict[str, Any] | None:
    """Start a statement on a checkpoint that is there, with other columns of the streams, settings of Spark or of ours:
    None if it works, else its error as a user sees it in the two ways that Spark has."""
    before = {name: spark.conf.get(name) for name in conf or {}}
    try:
        for name, value in (conf or {}).items():
            spark.conf.set(name, value)
        query = _without_sink(stream(spark, sql, rows, 100, settings, columns), checkpoint)
        running = query.trigger(availableNow=True).start()
        try:
            running.awaitTermination()
        except Exception as error:
            return {"raised": _told(error), "shown": _told(running.exception())}
        return None
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _without_sink(frame: DataFrame, checkpoint: str) -> DataStreamWriter:
    return frame.writeStream.format("noop").option("checkpointLocation", checkpoint).outputMode("append")
