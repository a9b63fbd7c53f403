"""An open loop of requests: each has its time, whatever became of those before, and its latency counts from then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

#: Connections that are open; a request waits for a free one, and its latency has this time in it.
CONNECTIONS = 32


@dataclass
class Latencies:
    """Seconds of each request that was answered with 200, and how many were not."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0

    def percentile(self, part: float) -> float:
        """A percentile in milliseconds; NaN without an answer."""
        return 1000 * float(np.percentile(self.seconds, part)) if self.seconds else float("nan")


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:"))
        return int(lines[0].split()[1]), await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


def request(method: str, path: str, body: bytes = b"", content: str = "application/json") -> bytes:
    """An HTTP request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: {content}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def open_loop(
    port: int, requests: Sequence[bytes], rate: float, seconds: float, connections: int = CONNECTIONS
) -> Latencies:
    """Send `rate` requests a second, the given ones in turn."""
    free: asyncio.Queue[_Connection] = asyncio.Queue()
    for _ in range(connections):
        free.put_nowait(_Connection(*await asyncio.open_connection("127.0.0.1", port)))
    found = Latencies()
    start = time.perf_counter() + 0.1

    async def one(number: int) -> None:
        due = start + number / rate
        connection = await free.get()
        try:
            status, _ = await connection.send(requests[number % len(requests)])
            if status == 200:
                found.seconds.append(time.perf_counter() - due)
            else:
                found.failed += 1
        except (OSError, asyncio.IncompleteReadError, StopIteration):
            found.failed += 1
        finally:
            free.put_nowait(connection)

    tasks = []
    for number in range(int(rate * seconds)):
        wait = start + number / rate - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(one(number)))
    await asyncio.gather(*tasks)
    while not free.empty():
        free.get_nowait().close()
    return found


async def closed_loop(port: int, requests: Sequence[bytes], until: asyncio.Event) -> tuple[int, float]:
    """Send requests one behind the other until an event: how many were answered with 200, and in how many seconds."""
    connection = _Connection(*await asyncio.open_connection("127.0.0.1", port))
    start, count = time.perf_counter(), 0
    while not until.is_set():
        status, _ = await connection.send(requests[count % len(requests)])
        if status != 200:
            raise RuntimeError(f"a push was answered with {status}")
        count += 1
    connection.close()
    return count, time.perf_counter() - start
