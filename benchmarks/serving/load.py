"""Requests in an open loop: each has its time, whatever became of those before, and its latency counts from then.

They are sent by a process of its own (`Generator`), so that nothing that the measuring process does delays them.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Protocol

import numpy as np
from sqlext_planner.errors import ConfigurationError

#: Connections that are open; a request waits for a free one, and its latency has this time in it.
CONNECTIONS = 32
#: Seconds from the start of a job to its first request.
_LEAD = 0.1


@dataclass
class Latencies:
    """Seconds of each request that was answered with 200, how many were not, and the seconds from the first request to
    the last answer."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0
    elapsed: float = 0.0

    def percentile(self, part: float) -> float:
        """A percentile in seconds; NaN without an answer."""
        return float(np.percentile(self.seconds, part)) if self.seconds else float("nan")

    def add(self, seconds: float | None) -> None:
        """One more request; None if it was not answered with 200."""
        if seconds is None:
            self.failed += 1
        else:
            self.seconds.append(seconds)

    def details(self, words: str = "") -> dict[str, float]:
        """The figures of the report, milliseconds but for those of numbers."""
        return {f"{words}p{part} ms": 1000 * self.percentile(part) for part in (50, 99)} | {
            f"{words}answers/s": len(self.seconds) / self.elapsed if self.elapsed else 0.0,
            f"{words}failed": float(self.failed),
        }


def request(method: str, path: str, body: bytes = b"", content: str = "application/json") -> bytes:
    """An HTTP request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: {content}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Connections:
    """Connections to a server, so many at once. One that broke is replaced."""

    def __init__(self, port: int, count: int) -> None:
        self._port = port
        self._free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter] | None] = asyncio.Queue()
        for _ in range(count):
            self._free.put_nowait(None)

    async def send(self, content: bytes) -> int:
        """The status of the answer to a request, 0 if there was none."""
        connection = await self._free.get()
        try:
            if connection is None:
                connection = await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = connection
            writer.write(content)
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            lengths = [int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:")]
            await reader.readexactly(lengths[0])
            return int(lines[0].split()[1])
        except (OSError, asyncio.IncompleteReadError, IndexError, ValueError):
            if connection is not None:
                connection[1].close()
            connection = None
            return 0
        finally:
            self._free.put_nowait(connection)

    def close(self) -> None:
        """Close them."""
        while not self._free.empty():
            connection = self._free.get_nowait()
            if connection is not None:
                connection[1].close()


async def open_loop(
    connections: Connections,
    make: Callable[[int], bytes],
    rate: float,
    seconds: float,
    record: Callable[[float, float | None], None],
) -> None:
    """Send `rate` requests a second, those that `make` gives for 0, 1, ... `record` gets the seconds from the start at
    which a request was due, and its latency (None: no answer)."""
    start = time.perf_counter() + _LEAD
    under_way: set[asyncio.Task[None]] = set()

    async def one(number: int, content: bytes) -> None:
        status = await connections.send(content)
        due = number / rate
        record(due, time.perf_counter() - start - due if status == 200 else None)

    for number in range(max(1, round(rate * seconds))):
        content = make(number)
        wait = start + number / rate - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(one(number, content))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)


async def closed_loop(
    connections: Connections, requests: Sequence[bytes], first: int, start: float, until: float
) -> Latencies:
    """Send requests one behind the other until a time; those before `start` do not count."""
    answered = Latencies()
    number = first
    while (begun := time.perf_counter()) < until:
        status = await connections.send(requests[number % len(requests)])
        if begun >= start:
            answered.add(time.perf_counter() - begun if status == 200 else None)
        number += 1
    return answered


class Job(Protocol):
    """What the generator does: results as they come."""

    def results(self) -> AsyncIterator[Any]:
        """Send the requests."""


@dataclass(frozen=True)
class Flow:
    """Requests that are sent in turn: `rate` a second; without a rate each connection sends one as soon as its last one
    is answered."""

    requests: Sequence[bytes]
    rate: float | None = None
    connections: int = CONNECTIONS


@dataclass(frozen=True)
class Load:
    """Flows to a server at the same time. The result is the latencies of each; requests of the first `warm` seconds,
    before the others, do not count."""

    port: int
    flows: Sequence[Flow]
    seconds: float
    warm: float = 0.0

    async def results(self) -> AsyncIterator[list[Latencies]]:
        """One result, at the end."""
        yield list(await asyncio.gather(*(self._sent(flow) for flow in self.flows)))

    async def _sent(self, flow: Flow) -> Latencies:
        begun = time.perf_counter() + self.warm
        answered = Latencies()
        connections = Connections(self.port, flow.connections)
        if flow.rate is not None:

            def make(number: int) -> bytes:
                return flow.requests[number % len(flow.requests)]

            def record(due: float, seconds: float | None) -> None:
                if due >= self.warm:
                    answered.add(seconds)

            await open_loop(connections, make, flow.rate, self.warm + self.seconds, record)
        else:
            loops = [
                closed_loop(connections, flow.requests, first, begun, begun + self.seconds)
                for first in range(flow.connections)
            ]
            for part in await asyncio.gather(*loops):
                answered.seconds += part.seconds
                answered.failed += part.failed
        answered.elapsed = time.perf_counter() - begun
        connections.close()
        return answered


class Generator:
    """The process that sends requests; it starts with the first job."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def measured(self, port: int, *flows: Flow, seconds: float, warm: float = 0.0) -> list[Latencies]:
        """The latencies of flows that run at the same time for so many seconds, after `warm` ones that do not count."""
        (found,) = self.results(Load(port, flows, seconds, warm))
        return list(found)

    def results(self, job: Job) -> Iterator[Any]:
        """The results of a job as they come. Raises ConfigurationError if the process ends or the job fails."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump(job, process.stdin)
            process.stdin.flush()
            while True:
                kind, value = pickle.load(process.stdout)
                if kind == "error":
                    raise ConfigurationError(f"the requests could not be sent: {value}", condition="benchmark")
                if kind == "end":
                    return
                yield value
        except (EOFError, BrokenPipeError, pickle.UnpicklingError) as error:
            self.stop()
            raise ConfigurationError("the process that sends requests has ended", condition="benchmark") from error

    def stop(self) -> None:
        """End it at once, also while it sends; the next job starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for end in (process.stdin, process.stdout):
                if end is not None:
                    end.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = [sys.executable, "-m", "benchmarks.serving.generator"]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ)
        return self._process


async def serve_jobs(jobs: IO[bytes], results: IO[bytes]) -> None:
    """What the process does: jobs until there are no more."""

    def tell(kind: str, value: Any) -> None:
        pickle.dump((kind, value), results)
        results.flush()

    while True:
        try:
            job: Job = pickle.load(jobs)
        except EOFError:
            return
        try:
            async for value in job.results():
                tell("result", value)
            tell("end", None)
        except Exception as error:  # the other process reports it
            tell("error", f"{type(error).__name__}: {error}")
