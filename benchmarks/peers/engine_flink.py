"""Flink: a window over the union of two streams, as an interval join with an aggregate, or as an OVER aggregate; joins
of several streams.

A request has `form` ("join" and "over": a window, or a join of two streams; "multi" and "binary": a join, with and
without Flink's multi-join; "empty": a job without a source), `folder` (CSV files: side, id, keys, times, v; one for
each reader), `lateness_ms`, `backend` ("rocksdb" or "hashmap"), `threads`, `memory_mb` (managed memory of the task
manager), `checkpoints` (an empty folder), `port` (of Flink's REST server), `stop` (a file: the job is cancelled as soon
as it exists) and `output` (a folder for the answers as CSV files; None drops them). For a window it has `window_ms`,
for a join `streams` (their names, in the order of the sides), `keys` (their key columns), `times` (`ms`, and `te` where
rows are periods), `columns` (what the join may read) and `query` (a SELECT of the ids of the streams' rows and a
total).

The answer has `seconds` (the job's own run time, without starting a cluster), `start_seconds` (all the time around it),
`read` (moments in seconds, each with the rows that went to the join or aggregate until then), `stopped`, `state_bytes`
(the largest checkpoint), and with an `output` rows and checksums.
"""

from __future__ import annotations

import csv
import json
import shutil
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment

SOURCE = """CREATE TABLE arrivals (
  side INT, {columns}, ts AS TO_TIMESTAMP_LTZ(ms, 3),
  WATERMARK FOR ts AS ts - INTERVAL '{lateness}' SECOND({digits}, 3)
) WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'csv')"""

COLUMNS = ("id", "k", "ms", "s", "n")

SINKS = {
    False: "CREATE TABLE answers ({columns}) WITH ('connector' = 'blackhole')",
    True: "CREATE TABLE answers ({columns}) WITH ('connector' = 'filesystem', 'path' = '{output}', 'format' = 'csv')",
}

#: A stream of its own. Without event time where no times bound the join: Flink refuses it there. (The source has it all
#: the same. Without a watermark the filter would go into the source, and each stream would read all rows for itself.)
STREAM = "CREATE TEMPORARY VIEW {name} AS SELECT {columns} FROM arrivals WHERE side = {side}"

#: The window time of a row is its own time plus nothing: a tumbling window of a millisecond closes when the watermark
#: has passed the row, and so each base row gives one final row.
JOIN = """INSERT INTO answers
SELECT id, k, ms, own + COALESCE(s, 0), 1 + n FROM (
  SELECT id, k, ms, own, SUM(pv) AS s, COUNT(pv) AS n FROM TABLE(TUMBLE(
    TABLE pairs, DESCRIPTOR(ts), INTERVAL '0.001' SECOND(1, 3)))
  GROUP BY id, k, ms, own, window_start, window_end)"""

PAIRS = """CREATE TEMPORARY VIEW pairs AS
SELECT b.id, b.k, b.ms, b.v AS own, b.ts, p.v AS pv
FROM (SELECT * FROM arrivals WHERE side = 0) b LEFT JOIN (SELECT * FROM arrivals WHERE side = 1) p
ON b.k = p.k AND p.ts BETWEEN b.ts - INTERVAL '{window}' SECOND({digits}, 3) AND b.ts"""

OVER = """INSERT INTO answers
SELECT id, k, ms, v + COALESCE(s, 0), 1 + n FROM (
  SELECT side, id, k, ms, v,
    SUM(CASE WHEN side = 1 THEN v END) OVER w AS s, COUNT(CASE WHEN side = 1 THEN v END) OVER w AS n
  FROM arrivals
  WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '{window}' SECOND({digits}, 3) PRECEDING
    AND CURRENT ROW)) WHERE side = 0"""


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """Run one job to the end of its bounded source."""
    begin = time.perf_counter()
    tables = environment(request)
    output = Path(request["output"]) if request.get("output") else None
    if output is not None:
        shutil.rmtree(output, ignore_errors=True)
    streams = request.get("streams")
    columns = [*streams, "total"] if streams else COLUMNS
    tables.execute_sql(SINKS[output is not None].format(columns=numbers(columns), output=output))
    statement = prepared(tables, request)
    if request.get("explain"):
        return {"plan": tables.explain_sql(statement)}
    client = tables.execute_sql(statement).get_job_client()
    started = time.perf_counter()
    watch = Watch(Path(request["checkpoints"]), request["port"], str(client.get_job_id()))
    stopped = wait(client, Path(request["stop"]))
    seconds = time.perf_counter() - started
    watch.stop()
    if not stopped:
        seconds = client.get_job_execution_result().result().get_net_runtime() / 1_000
    answer: dict[str, Any] = {
        "seconds": seconds,
        "start_seconds": time.perf_counter() - begin - seconds,
        "stopped": stopped,
    }
    answer |= {"read": watch.read, "state_bytes": watch.largest}
    if output is None or stopped:
        return answer | {"rows": None, "checksums": {}}
    return answer | (join_sums(output, streams) if streams else window_sums(output))


def wait(client: Any, stop: Path) -> bool:
    """Wait for the end of a job; cancel it when the file `stop` exists. Whether it was cancelled."""
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.1):
            if stop.exists():
                client.cancel().result()
                return

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    try:
        client.get_job_execution_result().result()
    except Exception:
        if not stop.exists():
            raise
        return True
    finally:
        done.set()
        looker.join()
    return False


def environment(request: dict[str, Any]) -> TableEnvironment:
    """A streaming environment with the settings of the request; its cluster starts with the job."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "parallelism.default": str(request["threads"]),
        "taskmanager.numberOfTaskSlots": str(request["threads"]),
        "taskmanager.memory.managed.size": f"{request['memory_mb']}mb",
        "state.backend.type": request["backend"],
        "table.local-time-zone": "UTC",
        "table.exec.mini-batch.enabled": "false",
        "pipeline.object-reuse": "true",
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.dir": f"file://{request['checkpoints']}",
        "table.optimizer.multi-join.enabled": str(request["form"] == "multi").lower(),
        "rest.port": str(request["port"]),
        "metrics.fetcher.update-interval": "500 ms",
    }
    for name, value in settings.items():
        tables.get_config().set(name, value)
    return tables


def prepared(tables: TableEnvironment, request: dict[str, Any]) -> str:
    """Create the source and the views; the INSERT statement of the request's form."""
    if request["form"] == "empty":
        return "INSERT INTO answers VALUES (1, 1, 1, 1, 1)"
    columns = numbers(["id", *request.get("keys", ["k"]), *request.get("times", ["ms"]), "v"])
    lateness = interval("lateness", request["lateness_ms"])
    tables.execute_sql(SOURCE.format(folder=request["folder"], columns=columns, **lateness))
    for side, name in enumerate(request.get("streams", ())):
        tables.execute_sql(STREAM.format(name=name, columns=", ".join(request["columns"]), side=side))
    if "query" in request:
        return f"INSERT INTO answers {request['query']}"
    words = interval("window", request["window_ms"])
    if request["form"] == "over":
        return OVER.format(**words)
    tables.execute_sql(PAIRS.format(**words))
    return JOIN


def numbers(names: Iterable[str]) -> str:
    """Columns of whole numbers."""
    return ", ".join(f"{name} BIGINT" for name in names)


def interval(name: str, ms: int) -> dict[str, str]:
    """`name` as seconds with three digits after the point, and the number of digits before it."""
    seconds, rest = divmod(ms, 1_000)
    return {name: f"{seconds}.{rest:03d}", "digits": str(len(str(seconds)))}


def answers(folder: Path) -> Iterator[list[int]]:
    """The answers in CSV files."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open(newline="") as lines:
                for line in csv.reader(lines):
                    yield [int(cell) for cell in line]


def window_sums(folder: Path) -> dict[str, Any]:
    """The number of rows and the checksums of a window's answers (see CHECKSUMS in benchmarks/stream/sql.py)."""
    rows = ids = times = total = count = mix = tie = 0
    for number, key, ms, s, n in answers(folder):
        rows += 1
        ids += number
        times += ms % 1009 * (key + 1)
        total += s
        count += n
        mix += n * (number % 1009)
        tie += s * (number % 1009)
    return {
        "rows": rows,
        "checksums": {"id": ids, "ts": times, "s": total, "n": count, "mix": mix, "tie": tie},
    }


def join_sums(folder: Path, streams: list[str]) -> dict[str, Any]:
    """The number of rows and the checksums of a join's answers (see joined_values in benchmarks/stream/sql.py)."""
    names = [*(first + second for first, second in pairwise(streams)), "total"]
    rows, found = 0, dict.fromkeys(names, 0)
    for *ids, total in answers(folder):
        rows += 1
        for name, first, second in zip(names, [*ids[:-1], total], [*ids[1:], ids[-1]], strict=True):
            found[name] += first * (second % 1009)
    return {"rows": rows, "checksums": found}


class Watch:
    """What is seen of a running job: its largest checkpoint (bytes), and the rows that its source sent on by moments
    (seconds)."""

    def __init__(self, folder: Path, port: int, job: str) -> None:
        self.folder = folder
        self.address = f"http://localhost:{port}/jobs/{job}"
        self.largest = 0
        self.read: list[tuple[float, int]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the watch."""
        self._stop.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._stop.wait(0.25):
            for checkpoint in self.folder.glob("*/chk-*"):
                self.largest = max(self.largest, size(checkpoint))
            try:
                with urllib.request.urlopen(self.address, timeout=2) as answer:
                    vertices = json.load(answer)["vertices"]
            except (OSError, ValueError, KeyError):
                continue  # the cluster starts, or ends
            if len(vertices) > 1:  # in the order of the plan: the source, then the operators with the state
                self.read.append((time.perf_counter(), int(vertices[0]["metrics"]["write-records"])))


def size(folder: Path) -> int:
    """Bytes of all files below a folder that may vanish at any moment."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total
