"""What runs in the drivers of `harness.Driver`: statements, and the faults that meet them.

Every function takes the Spark session and JSON values, and gives a JSON value.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from benchmarks.harness.memory import MemoryWatch
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
    spark: SparkSession,
    work: Callable[[], Any],
    disturb: Callable[[threading.Event], Iterator[int]],
    group: str | None = None,
) -> dict[str, Any]:
    """`work()` with `disturb` beside it: {"answer" or "error", "message", "disturbances", "failed", "seconds"}."""
    ended, done = threading.Event(), []
    thread = threading.Thread(target=lambda: done.extend(disturb(ended)))
    group = group or f"disturbed-{time.monotonic_ns()}"
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
    """How many tasks of a job group failed; a stage that ran again counts once for each time."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    infos = [info for stage in stages if (info := tracker.getStageInfo(stage)) is not None]
    return sum(info.numFailedTasks + info.currentAttemptId for info in infos)


def kill(process: psutil.Process) -> int:
    """SIGKILL; 1 if the process was there."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()
        return 1
    return 0


def python_workers() -> list[psutil.Process]:
    """The daemons and workers of Spark's Python."""
    return [process for process in _started() if "pyspark.daemon" in _command(process)]


def executors() -> list[psutil.Process]:
    """The JVMs of Spark's executors."""
    return [process for process in _started() if "CoarseGrainedExecutorBackend" in _command(process)]


def _started() -> list[psutil.Process]:
    """All processes of this one's session (a worker whose daemon was killed is no descendant)."""
    mine, found = os.getsid(0), []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError):
            if process.pid != os.getpid() and os.getsid(process.pid) == mine:
                found.append(process)
    return found


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def wide_answer(spark: SparkSession, sql: str, settings: Settings, folder: str) -> dict[str, int]:
    """Writes an answer as Parquet files; the peaks of the Python processes and of the JVMs meanwhile, in bytes."""
    with MemoryWatch() as watch:
        Session(spark, config=settings).sql(sql).write.parquet(folder)
    return {"process": watch.peak_process, "python": watch.peak_python, "jvm": watch.peak_jvm}


def fill_disk(spark: SparkSession, sql: str, settings: Settings) -> dict[str, Any]:
    """An attempt to compute all rows; the error's text, and the temporary folders of ours that are left 10 s later."""
    try:
        Session(spark, config=settings).sql(sql).write.format("noop").mode("overwrite").save()
    except Exception as error:
        return {"message": str(error), "left": _left_folders(spark, 10.0)}
    return {"message": None, "left": _left_folders(spark, 10.0)}


def change_file(spark: SparkSession, sql: str, settings: Settings, path: str, change: str) -> dict[str, Any]:
    """A query is planned, then a file that it reads changes, then it runs: its digest or its error."""
    frame = Session(spark, config=settings).sql(sql)
    file = Path(path)
    table = pq.read_table(file)
    if change == "deleted":
        file.unlink()
    elif change == "smaller row groups":
        pq.write_table(table, file, row_group_size=max(1, table.num_rows // 7))
    elif change == "larger row groups":
        pq.write_table(table, file, row_group_size=table.num_rows)
    elif change == "appended rows":
        pq.write_table(pa.concat_tables([table, table]), file, row_group_size=-(-table.num_rows // 2))
    elif change == "fewer rows":
        pq.write_table(table.slice(0, table.num_rows // 2), file)
    elif change == "other rows":
        # as many rows in as many row groups; the order differs, so that rows move between row groups
        turned = table.take(pa.array(range(table.num_rows - 1, -1, -1)))
        pq.write_table(turned, file, row_group_size=-(-table.num_rows // 2))
    else:
        raise ValueError(change)
    try:
        return {"answer": digest(frame.toArrow())}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


def cancel(spark: SparkSession, sql: str, settings: Settings, way: str, seconds: float, spills: bool) -> dict[str, Any]:
    """A statement is cancelled after `seconds`, or as soon as it has written to disk: how long it took to end, which of
    our folders are left, and the share of a core that Spark's Python still uses."""
    group = f"cancel-{time.monotonic_ns()}"
    cancelled: list[float] = []

    def disturb(ended: threading.Event) -> Iterator[int]:
        started = time.perf_counter()
        while time.perf_counter() - started < seconds or (spills and not spill_folders(spark)):
            if ended.wait(0.005):
                return
        cancelled.append(time.perf_counter())
        while not ended.is_set():
            _cancel(spark, way, group)
            yield 1
            ended.wait(1.0)  # Spark forgets a cancellation between two jobs of a query

    frame = Session(spark, config=settings).sql(sql)
    found = disturbed(spark, lambda: frame.write.format("noop").mode("overwrite").save(), disturb, group)
    lasted = time.perf_counter() - cancelled[0] if cancelled else None
    left = _left_folders(spark, 10.0)
    return {**found, "lasted": lasted, "left": left, "busy": _python_load()}


def _cancel(spark: SparkSession, way: str, group: str) -> None:
    match way:
        case "group":
            spark.sparkContext.cancelJobGroup(group)
        case "all":
            spark.sparkContext.cancelAllJobs()
        case _:
            spark.interruptAll()


def _python_load(seconds: float = 1.0, within: float = 10.0) -> float:
    """The least share of a core that all Python workers used together for `seconds`."""
    least, end = math.inf, time.perf_counter() + within
    while least > 0.05 and time.perf_counter() < end:
        before = _cpu_seconds()
        time.sleep(seconds)
        after = _cpu_seconds()
        least = min(least, sum(after[pid] - before.get(pid, 0.0) for pid in after) / seconds)
    return least


def _cpu_seconds() -> dict[int, float]:
    found = {}
    for process in python_workers():
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            found[process.pid] = times.user + times.system
    return found


def kill_executor(spark: SparkSession, sql: str, settings: Settings, seconds: float, seed: int) -> dict[str, Any]:
    """The digest of an answer during which the JVM of an executor is killed, at a random moment of `seconds`."""
    rng = random.Random(seed)

    def disturb(ended: threading.Event) -> Iterator[int]:
        if ended.wait(rng.uniform(0, seconds)):
            return
        while not (running := executors()):
            if ended.wait(0.05):
                return
        yield kill(rng.choice(running))

    frame = Session(spark, config=settings).sql(sql)
    return disturbed(spark, lambda: digest(frame.toArrow()), disturb)


def lose_shuffle_files(spark: SparkSession, sql: str, settings: Settings) -> dict[str, Any]:
    """The digest of a query that runs again after the files of its finished map stages are gone."""
    frame = Session(spark, config=settings).sql(sql)
    first = digest(frame.toArrow())
    root = Path(spark.sparkContext.getConf().get("spark.local.dir") or "")
    files = list(root.rglob("shuffle_*.data"))
    for file in files:
        file.unlink()
    found = disturbed(spark, lambda: digest(frame.toArrow()), lambda ended: iter(()))
    return {**found, "first": first, "removed": len(files)}


def slow_task(spark: SparkSession, sql: str, settings: Settings, table: str, marks: str, wait: float) -> dict[str, Any]:
    """The digest of an answer where the first attempt of one task that reads `table` takes `wait` seconds longer;
    `attempts` are the attempts of that task that began."""
    plain = spark.table(table)

    def slowed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0:
            Path(marks, str(context.attemptNumber())).touch()
            if context.attemptNumber() == 0:
                time.sleep(wait)
        yield from batches

    plain.mapInArrow(slowed, plain.schema).createOrReplaceTempView(table)
    try:
        found = answer(spark, sql, settings)
    finally:
        plain.createOrReplaceTempView(table)
    return {**found, "attempts": sorted(path.name for path in Path(marks).iterdir())}


def threads(
    spark: SparkSession, statements: list[str], settings: Settings, count: int, seconds: float
) -> dict[str, Any]:
    """Statements on one Session from `count` threads for `seconds`: how many ran, and those whose answer was not that
    of the same statement alone."""
    session = Session(spark, config=settings)
    alone = [_rows(session.sql(sql)) for sql in statements]
    end = time.perf_counter() + seconds
    ran, wrong = [0] * count, []

    def work(number: int) -> None:
        rng = random.Random(number)
        while time.perf_counter() < end:
            place = rng.randrange(len(statements))
            try:
                found = _rows(session.sql(statements[place]))
            except Exception as error:
                found = [f"{type(error).__name__}: {error}"]
            if found != alone[place]:
                wrong.append({"sql": statements[place], "found": str(found)[:500]})
            ran[number] += 1

    _run_together([lambda number=number: work(number) for number in range(count)])
    return {"ran": ran, "wrong": wrong, "rows": [len(rows) for rows in alone]}


def sessions(spark: SparkSession, sql: str, cases: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Sessions with other settings, compatibility modes and views at the same time: what each saw, all times.

    A case: `own` (whether it has a Spark session of its own), `settings`, `set` (statements run first), `compat`.
    """
    end = time.perf_counter() + seconds
    seen: list[set[str]] = [set() for _ in cases]
    ran = [0] * len(cases)
    made = []
    for case in cases:
        below = spark.newSession() if case["own"] else spark
        session = Session(below, compat=case["compat"], config=case["settings"])
        for statement in case["set"]:
            session.sql(statement)
        made.append(session)

    def work(number: int) -> None:
        while time.perf_counter() < end:
            try:
                plan = str(made[number].plan(sql).physical)
                frame = made[number].sql(sql)
                seen[number].add(json.dumps([plan, frame.schema.simpleString(), _rows(frame)]))
            except Exception as error:
                seen[number].add(f"{type(error).__name__}: {error}")
            ran[number] += 1

    _run_together([lambda number=number: work(number) for number in range(len(cases))])
    return {"seen": [sorted(found) for found in seen], "ran": ran}


def _run_together(works: list[Callable[[], None]]) -> None:
    running = [threading.Thread(target=work) for work in works]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def _rows(frame: DataFrame) -> list[str]:
    return sorted(str(tuple(row)) for row in frame.collect())


def spill_folders(spark: SparkSession) -> list[str]:
    """The temporary folders of our workers that are there now."""
    root = spark.sparkContext.getConf().get("spark.local.dir") or ""
    return [f"{at}/{name}" for at, names, _ in os.walk(root) for name in names if name.startswith("sqlext-")]


def _left_folders(spark: SparkSession, within: float) -> list[str]:
    """The temporary folders of our workers that stay."""
    end = time.perf_counter() + within
    while (left := spill_folders(spark)) and time.perf_counter() < end:
        time.sleep(0.1)
    return left
