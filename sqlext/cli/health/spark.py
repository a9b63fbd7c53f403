"""What a running Spark tells: its workers and executors, Arrow, our operators, clock, settings."""

from __future__ import annotations

import time
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.session import cores, is_remote
from sqlext_planner.spark.streams import check_settings
from sqlext_planner.spark.versions import arrow_table
from sqlext_planner.spark.workers import FOR_STREAMS, check_workers

from sqlext.cli.health.findings import Check, Finding, Machine

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

#: Packages whose versions executors and driver should share.
_SHARED = ("pyarrow", "pandas", "numpy", "numba")
#: Seconds by which the clocks of two machines may differ before watermarks and file times suffer.
_CLOCKS = 5
#: Partitions of a shuffle to a core above which small statements mostly wait for the start of tasks.
_MANY_PARTITIONS = 50

_WINDOW = """SELECT id, sum(v) OVER w AS s
FROM VALUES (1, 1, 10, 1.5D), (2, 1, 12, 2.5D), (3, 2, 10, 4D) AS t(id, k, ts, v)
WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) ORDER BY id"""
_ANSWER = [(1, 1.5), (2, 4.0), (3, 4.0)]


def check_version(spark: SparkSession, machine: Machine) -> Iterator[Finding]:
    """Spark's version and where it runs."""
    where = str(spark.sparkContext.master) if not is_remote(spark) else "Spark Connect"
    yield Finding.ok(f"Spark {spark.version} on {where}, {cores(spark)} tasks at once")


def check_packages_of_workers(spark: SparkSession, machine: Machine) -> Iterator[Finding]:
    """The handshake that statements make too: one worker loads our operators. Raises ConfigurationError."""
    check_workers(spark, FOR_STREAMS)
    yield Finding.ok("a worker can load the operators, for tables and for streams")


def check_executors(spark: SparkSession, machine: Machine) -> Iterator[Finding]:
    """The versions of each host that has run a task, beside the driver's."""
    count = 2 * cores(spark)
    rows = spark.range(0, count, 1, count).mapInArrow(_versions(), "host string, python string, found string").collect()
    found = {(row.host, row.python, row.found) for row in rows}
    ours = " ".join(f"{name} {version(name)}" for name in _SHARED)
    for host, python, theirs in sorted(found):
        if theirs == ours:
            yield Finding.ok(f"{host}: Python {python}, {theirs}")
        else:
            yield Finding.warning(
                f"{host}: Python {python}, {theirs}; the driver has {ours}",
                "give the executors the driver's versions: sqlext bundle --kind venv",
            )


def _versions() -> Any:
    """A function for mapInArrow that says a worker's versions. It travels by value: a worker may lack our packages."""
    names = _SHARED

    def versions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import platform
        import socket
        from importlib.metadata import version as installed

        import pyarrow

        for _ in batches:
            pass
        found = " ".join(f"{name} {installed(name)}" for name in names)
        values = {"host": socket.gethostname(), "python": platform.python_version(), "found": found}
        yield pyarrow.RecordBatch.from_pylist([values])

    return versions


def check_arrow(spark: SparkSession, machine: Machine) -> Iterator[Finding]:
    """Values of the usual types go through Spark, a worker and back unchanged."""
    import pyarrow as pa

    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    kinds = "i bigint, x double, t string, d decimal(10,2), w timestamp, l array<int>"
    sent = [(1, 0.5, "ä", Decimal("1.25"), datetime(2024, 2, 29, 12, tzinfo=UTC), [1, None]), (None,) * 6]
    frame = spark.createDataFrame(sent, kinds)
    back = arrow_table(frame.mapInArrow(same, frame.schema)).to_pylist()
    moment = back[0]["w"].astimezone(UTC) if back and back[0]["w"] is not None else None
    whole = [tuple({**row, "w": moment if row["w"] is not None else None}.values()) for row in back]
    if sorted(whole, key=repr) != sorted(sent, key=repr):
        yield Finding.wrong(f"values come back from a worker as others: {back}", "reinstall pyarrow and pandas")
    else:
        yield Finding.ok(f"values of 6 types come back unchanged (pyarrow {pa.__version__})")


def check_window(spark: SparkSession, machine: Machine) -> Iterator[Finding]:
    """A statement of ours: its kernels compile, and the answer is right."""
    from sqlext.session import Session

    started = time.perf_counter()
    rows = [tuple(row) for row in Session(spark).sql(_WINDOW).collect()]
    seconds = time.perf_counter() - started
    if rows == _ANSWER:
        yield Finding.ok(f"a window over 3 rows is right, after {seconds:.1f} s")
    else:
        yield Finding.wrong(f"a window over 3 rows gives {rows}, and {_ANSWER} is right", "report this line as a bug")


def check_time(spark: SparkSession, machine: Machine) -> Iterator[Finding]:
    """The session's time zone, and the clocks."""
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    before = time.time()
    own = spark.sql("SELECT unix_micros(current_timestamp())").collect()[0][0] / 1e6
    apart = max(before - own, own - time.time())  # the first statement may take long
    remedy = "set spark.sql.session.timeZone to a region such as Europe/Berlin; pip install tzdata"
    if not zone.startswith(("+", "-")):
        try:
            zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError):
            yield Finding.wrong(f"Python does not know the session's time zone {zone}", remedy, "time-zone")
            return
    if apart > _CLOCKS:
        yield Finding.warning(
            f"the clocks of Spark and of this machine are {apart:.0f} s apart", "synchronise them (NTP)"
        )
    else:
        yield Finding.ok(f"the session's time zone is {zone}")


def check_answers(spark: SparkSession, machine: Machine) -> Iterator[Finding]:
    """Settings that change what statements answer, or how fast."""
    values = {name: str(spark.conf.get(f"spark.sql.{name}")) for name in ("ansi.enabled", "adaptive.enabled")}
    if values["ansi.enabled"] != "true":
        yield Finding.warning(
            "spark.sql.ansi.enabled is false: overflows and wrong casts give NULL, where Spark 4 reports them",
            "leave it out, unless old answers are wanted",
        )
    if values["adaptive.enabled"] != "true":
        yield Finding.warning(
            "spark.sql.adaptive.enabled is false: Spark plans its own joins without knowing sizes", "leave it out"
        )
    partitions, tasks = int(str(spark.conf.get("spark.sql.shuffle.partitions"))), max(1, cores(spark))
    if partitions > _MANY_PARTITIONS * tasks:
        yield Finding.warning(
            f"spark.sql.shuffle.partitions is {partitions}, and {tasks} tasks run at once: small statements wait",
            f"--conf spark.sql.shuffle.partitions={2 * tasks}; of streams: sqlext.stream_settings(cores={tasks})",
        )
    if values == {"ansi.enabled": "true", "adaptive.enabled": "true"}:
        yield Finding.ok(f"ANSI, adaptive plans, {partitions} partitions of shuffles")


def check_streams(spark: SparkSession, machine: Machine) -> Iterator[Finding]:
    """The state of streams: statements over tables need none of it."""
    try:
        check_settings(spark)
    except ConfigurationError as error:
        yield Finding.warning(f"{error.message}", error.help or "")
        return
    megabytes = spark.conf.get("spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB", "500")
    yield Finding.ok(f"state in RocksDB, at most {megabytes} MB on each executor")


CHECKS = (
    Check("Spark", check_version),
    Check("time", check_time),
    Check("settings", check_answers),
    Check("streams", check_streams),
    Check("workers", check_packages_of_workers, starts=True),
    Check("executors", check_executors),
    Check("Arrow", check_arrow),
    Check("a window", check_window),
)
