"""`python -m benchmarks serving`: latency of answers at fixed rates, beside an echo of the same body by the same
server; windows over many rows; pushes while requests go on; and what else could answer."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from sqlext_planner.serving.lowering import ServingSettings

from benchmarks.serving.data import START, Served, bodies_of, febench, long_window, write
from benchmarks.serving.load import Latencies, closed_loop, open_loop, request
from benchmarks.serving.peers import ROWS_AVERAGE, ROWS_RATIO, WINDOWS, DuckDbPeer, RedisPeer
from sqlext.catalog import DictCatalog
from sqlext.serving.arrow_bodies import ARROW, arrow_stream
from sqlext.serving.bodies import batch_of_objects, parsed_json
from sqlext.serving.deployment import Deployment
from sqlext.serving.values import zone_of

#: Requests that are not measured: code is compiled and blocks are made.
_WARM = 100
LONG_CALLS: Mapping[str, str] = {
    "count": "count(v) OVER w AS a",
    "sum": "sum(v) OVER w AS a",
    "avg": "avg(v) OVER w AS a",
    "min": "min(v) OVER w AS a",
    "max": "max(n) OVER w AS a",
    "distinct_count": "distinct_count(n) OVER w AS a",
    "where forms": ", ".join(
        f"{name}_where(v, n > 500) OVER w AS {name}_" for name in ("count", "sum", "avg", "min", "max")
    ),
    "cate forms": ", ".join(f"{name}_cate(v, c) OVER w AS {name}_" for name in ("count", "sum", "avg", "min", "max")),
    "cate_where forms": ", ".join(
        f"{name}_cate_where(v, n > 500, c) OVER w AS {name}_" for name in ("count", "sum", "avg", "min", "max")
    ),
    "stddev": "stddev(v) OVER w AS a",
    "median": "median(v) OVER w AS a",
}
_PUSHED, _PUSH_ROWS = 20, 1000


@dataclass
class Running:
    """A server that is ready: its port, process, and the seconds until it was."""

    port: int
    process: subprocess.Popen[str]
    seconds: float

    @property
    def memory(self) -> int:
        """The process's memory."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def kept(self, name: str) -> dict[str, Any]:
        """What a deployment keeps."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/deployments/{name}") as answer:
            found: dict[str, Any] = json.load(answer)["kept"]
            return found

    def answer(self, name: str, body: bytes) -> dict[str, Any]:
        """One answer."""
        post = urllib.request.Request(f"http://127.0.0.1:{self.port}/deployments/{name}", body, method="POST")
        with urllib.request.urlopen(post) as answer:
            found: dict[str, Any] = json.load(answer)["output"]
            return found


@contextmanager
def running(served: Served, journal: bool = False) -> Iterator[Running]:
    """A server of a deployment over its tables, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="sqlext-serving-") as folder:
        deployment, data = write(served, Path(folder))
        log = str(Path(folder) / "journal") if journal else "-"
        command = [sys.executable, "-m", "benchmarks.serving.server", "0", log, str(data), str(deployment)]
        begun = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            while not _is_ready(port):
                if process.poll() is not None:
                    raise RuntimeError("the server has ended")
                time.sleep(0.05)
            yield Running(port, process, time.monotonic() - begun)
        finally:
            process.terminate()
            process.wait(60)


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
            return True
    except OSError:
        return False


def measured(server: Running, path: str, bodies: Sequence[bytes], rate: float, seconds: float) -> Latencies:
    """The latencies of requests at a rate."""
    requests = [request("POST", path, body) for body in bodies]
    return asyncio.run(open_loop(server.port, requests, rate, seconds))


def warmed(server: Running, name: str, bodies: Sequence[bytes]) -> None:
    """Ask until the code is compiled and what is condensed is there."""
    for path in (f"/deployments/{name}", "/echo"):
        measured(server, path, bodies, 50, _WARM / 50)


def line(what: str, found: Latencies, echo: Latencies | None = None) -> str:
    """A line of the report."""
    cells = [f"p{part} {found.percentile(part):7.2f} ms" for part in (50, 99)] + [f"{len(found.seconds):6} answers"]
    if found.failed:
        cells.append(f"{found.failed} failed")
    if echo is not None:
        ratios = [found.percentile(part) / echo.percentile(part) for part in (50, 99)]
        cells.append(" and ".join(f"{ratio:.1f}" for ratio in ratios) + " times the echo's")
    return f"{what:>34}: {', '.join(cells)}"


def scripts(names: Sequence[str], rows: int, rates: Sequence[float], seconds: float) -> Iterator[str]:
    """Each script at each rate, beside the echo at the same rate."""
    for name in names:
        served = febench(name, rows)
        with running(served) as server:
            deployment = served.deployment.name
            warmed(server, deployment, served.bodies)
            kept = server.kept(deployment)
            memory = f"{server.memory / 1e6:,.0f} MB of the process"
            yield (
                f"{name}: {kept['rows']:,} rows kept in {kept['bytes'] / 1e6:,.0f} MB of Arrow, {memory}, "
                f"ready after {server.seconds:.1f} s"
            )
            for rate in rates:
                echo = measured(server, "/echo", served.bodies, rate, seconds)
                found = measured(server, f"/deployments/{deployment}", served.bodies, rate, seconds)
                again = measured(server, "/echo", served.bodies, rate, seconds)
                echo = Latencies(echo.seconds + again.seconds, echo.failed + again.failed)
                yield line(f"{name} at {rate:g} a second", found, echo)
                yield line("echo", echo)


def long_windows(rows: Sequence[int], calls: Sequence[str], seconds: float) -> Iterator[str]:
    """Windows of 30 days that hold so many rows: latency one request behind the other, in the process."""
    for name in calls:
        medians = []
        for count in rows:
            served = long_window(count, LONG_CALLS[name])
            for table, found in served.tables.items():
                served.deployment.load(table, found)
            asked = [parsed_json(body)["input"] for body in served.bodies]
            schema = served.deployment.schemas["asked"]
            batches = [batch_of_objects([row], schema, "asked", zone_of("UTC")) for row in asked]
            for batch in batches[:20]:
                served.deployment.answers(batch)
            taken: list[float] = []
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                begun = time.perf_counter()
                served.deployment.answers(batches[len(taken) % len(batches)])
                taken.append(time.perf_counter() - begun)
            medians.append(1000 * float(np.median(taken)))
            if count == max(rows):
                ratio = served.deployment.kept_bytes / sum(table.nbytes for table in served.tables.values())
        told = ", ".join(f"{count:,} rows {median:.2f} ms" for count, median in zip(rows, medians, strict=True))
        yield f"{name:>34}: {told}; {medians[-1] / medians[0]:.1f} times; {ratio:.2f} of the tables' Arrow bytes kept"


def pushes(rows: int, rate: float, seconds: float) -> Iterator[str]:
    """Pushes in batches of 1,000, one behind the other, while requests go on; with a journal."""
    served = febench("Q1", rows)
    schema = served.deployment.schemas["train"]
    table = served.tables["train"].cast(schema)
    bodies = []
    for number in range(_PUSHED):
        batches = table.slice(number * _PUSH_ROWS, _PUSH_ROWS).combine_chunks().to_batches()
        bodies.append(request("PUT", "/tables/train", arrow_stream(schema, batches), ARROW))
    with running(served, journal=True) as server:
        name = served.deployment.name
        warmed(server, name, served.bodies)

        async def both() -> tuple[Latencies, tuple[int, float]]:
            ended = asyncio.Event()
            pushing = asyncio.create_task(closed_loop(server.port, bodies, ended))
            asked = [request("POST", f"/deployments/{name}", body) for body in served.bodies]
            found = await open_loop(server.port, asked, rate, seconds)
            ended.set()
            return found, await pushing

        found, (count, taken) = asyncio.run(both())
        yield line(f"Q1 at {rate:g} a second while", found)
        yield f"{'pushes':>34}: {count * _PUSH_ROWS / taken:,.0f} rows a second"


SOAK_SQL = """SELECT user_id, sum(price) OVER w AS spent, count(*) OVER w AS n, distinct_count(item) OVER w AS items
FROM views
WINDOW w AS (UNION orders PARTITION BY user_id ORDER BY ts ROWS_RANGE BETWEEN 2m PRECEDING AND CURRENT ROW)"""
#: Of the soak: pushes a second; times go on as the clock does.
_SOAK_PUSHES = 20


def soak(seconds: float, rate: float = 100) -> Iterator[str]:
    """Pushes of 1,000 rows whose times go on, so that old ones go, while requests come: rows, memory, latency by
    minute."""
    columns = {"user_id": "bigint", "ts": "timestamp", "item": "string", "price": "double"}
    catalog = DictCatalog({"views": columns, "orders": columns})
    settings = ServingSettings(True, "UTC")
    deployment = Deployment(SOAK_SQL, catalog, request="views", settings=settings, name="soak", lateness=60_000_000)
    schema = deployment.schemas["orders"]
    random = np.random.default_rng(1)
    items = pa.array([f"item{number}" for number in range(1000)])

    def pushed(number: int) -> bytes:
        times = START + number * 1_000_000 // _SOAK_PUSHES + random.integers(0, 1_000_000 // _SOAK_PUSHES, _PUSH_ROWS)
        values = [
            pa.array(random.integers(0, 5000, _PUSH_ROWS)),
            pa.array(times).cast(schema.field("ts").type),
            items.take(pa.array(random.integers(0, 1000, _PUSH_ROWS))),
            pa.array(random.random(_PUSH_ROWS)),
        ]
        return request("PUT", "/tables/orders", arrow_stream(schema, [pa.record_batch(values, schema=schema)]), ARROW)

    with running(Served(deployment, {}, []), journal=True) as server:
        number = 0
        for minute in range(max(1, round(seconds / 60))):
            pushes = [pushed(number + place) for place in range(int(_SOAK_PUSHES * 60))]
            now = START + number * 1_000_000 // _SOAK_PUSHES + 30_000_000
            number += len(pushes)
            rows = pa.table(
                {
                    "user_id": pa.array(random.integers(0, 5000, 500)),
                    "ts": pa.array(np.full(500, now)).cast(schema.field("ts").type),
                }
            )
            asked = [request("POST", "/deployments/soak", body) for body in bodies_of(rows, "UTC")]

            async def both(pushes: list[bytes] = pushes, asked: list[bytes] = asked) -> tuple[Latencies, Latencies]:
                return await asyncio.gather(
                    open_loop(server.port, asked, rate, 60, connections=8),
                    open_loop(server.port, pushes, _SOAK_PUSHES, 60, connections=1),
                )

            found, stored = asyncio.run(both())
            kept = server.kept("soak")
            told = f"{kept['rows']:,} rows, {kept['bytes'] / 1e6:.0f} MB of Arrow, {server.memory / 1e6:.0f} MB in all"
            yield f"minute {minute + 1}: {told}; {line('answers', found).strip()}; {line('pushes', stored).strip()}"


def rivals(rows: int, requests: int = 300) -> Iterator[str]:
    """Others, in this process and one request behind the other; the features are compared with ours."""
    served = febench("Q1", rows)
    train = served.tables["train"]
    asked = train.slice(train.num_rows - requests).to_pylist()
    ours = served.deployment
    ours.load("train", train)
    answers = []
    for place in range(20):
        answers.append(ours.answers(_one(ours, train, train.num_rows - requests + place))[0].row)
    taken = []
    for place in range(requests):
        batch = _one(ours, train, train.num_rows - requests + place)
        begun = time.perf_counter()
        ours.answers(batch)
        taken.append(time.perf_counter() - begun)
    yield line("ours, in the process", Latencies(taken))
    for name, make in (("DuckDB, in the process", DuckDbPeer), ("Redis and Python", RedisPeer)):
        try:
            peer = make(train)
        except (ImportError, FileNotFoundError) as error:
            yield f"{name:>34}: left out, {error}"
            continue
        for row, answer in zip(asked, answers, strict=False):
            _check_same(peer.answer(row), answer)
        taken = []
        for row in asked:
            begun = time.perf_counter()
            peer.answer(row)
            taken.append(time.perf_counter() - begun)
        peer.close()
        yield line(name, Latencies(taken))


def _one(deployment: Any, train: pa.Table, place: int) -> pa.RecordBatch:
    row = train.slice(place, 1).cast(deployment.schemas["train"])
    return row.combine_chunks().to_batches()[0]


def _check_same(found: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    for name in (*WINDOWS, ROWS_AVERAGE, ROWS_RATIO):
        one, other = found[name], answer[name]
        if one != other and not (one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9)):
            raise AssertionError(f"{name}: {one}, where we have {other}")
