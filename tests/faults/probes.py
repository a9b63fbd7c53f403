"""What runs in the drivers of `harness.Driver`: statements, and the faults that meet them.

Every function takes the Spark session and JSON values, and gives a JSON value.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession

from sqlext import Session

from .harness import digest

Settings = Mapping[str, str]


def register(spark: SparkSession, folder: str) -> None:
    """Make every folder of Parquet files in `folder` a view."""
    for path in Path(folder).iterdir():
        Session(spark).register(path.name, path)


def answer(spark: SparkSession, sql: str, settings: Settings) -> dict[str, Any]:
    """The digest of an answer, and the seconds that it took."""
    started = time.perf_counter()
    found = digest(Session(spark, config=settings).sql(sql).toArrow())
    return {**found, "seconds": time.perf_counter() - started}


def kill_workers(
    spark: SparkSession, sql: str, settings: Settings, seconds: float, kills: int, seed: int, folder: str | None = None
) -> dict[str, Any]:
    """The digest of an answer during which `kills` Python processes of Spark are killed, at random moments of the
    `seconds` that it takes undisturbed; `failed` are the tasks that failed. The kills stop when the answer is there.
    With a folder the answer is written there."""
    rng = random.Random(seed)
    moments = sorted(rng.uniform(0, seconds) for _ in range(kills))

    def disturb(ended: threading.Event) -> Iterator[int]:
        started = time.perf_counter()
        for moment in moments:
            if ended.wait(max(0.0, started + moment - time.perf_counter())):
                return
            while not (workers := python_workers()):
                if ended.wait(0.02):
                    return
            yield kill(rng.choice(workers))

    frame = Session(spark, config=settings).sql(sql)
    return disturbed(spark, lambda: frame.write.parquet(folder) if folder else digest(frame.toArrow()), disturb)


def disturbed(
    spark: SparkSession, work: Callable[[], Any], disturb: Callable[[threading.Event], Iterator[int]]
) -> dict[str, Any]:
    """`work()` with `disturb` beside it: {"answer" or "error", "message", "disturbances", "failed", "seconds"}."""
    ended, done = threading.Event(), []
    thread = threading.Thread(target=lambda: done.extend(disturb(ended)))
    group = f"disturbed-{time.monotonic_ns()}"
    spark.sparkContext.setJobGroup(group, group)
    started = time.perf_counter()
    thread.start()
    try:
        found: dict[str, Any] = {"answer": work()}
    except Exception as error:
        found = {"error": type(error).__name__, "message": str(error)}
    finally:
        ended.set()
        thread.join()
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    return {
        **found,
        "disturbances": sum(done),
        "failed": failed_tasks(spark, group),
        "seconds": time.perf_counter() - started,
    }


def failed_tasks(spark: SparkSession, group: str) -> int:
    """How many tasks of a job group failed."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    return sum(info.numFailedTasks for stage in stages if (info := tracker.getStageInfo(stage)) is not None)


def kill(process: psutil.Process) -> int:
    """SIGKILL; 1 if the process was there."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()
        return 1
    return 0


def python_workers() -> list[psutil.Process]:
    """The Python processes below this one: Spark's daemons and their workers."""
    return [process for process in _descendants() if "pyspark" in _command(process) and "java" not in _command(process)]


def executors() -> list[psutil.Process]:
    """The executors' JVMs below this process."""
    return [process for process in _descendants() if "CoarseGrainedExecutorBackend" in _command(process)]


def _descendants() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def spill_folders(spark: SparkSession) -> list[str]:
    """The temporary folders of our workers that are there now."""
    root = Path(spark.conf.get("spark.local.dir") or "")
    return [os.fspath(path) for path in root.rglob("sqlext-*") if path.is_dir()]
