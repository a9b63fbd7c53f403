"""The soak: pushes whose times go on, so that old rows go, and requests beside them, minute by minute."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import typer

from benchmarks.harness.suite import Answer, Case, Contestant
from benchmarks.serving.data import START, Served, order_table, shop, write
from benchmarks.serving.load import Connections, Flow, Generator, Latencies, open_loop, request
from benchmarks.serving.servers import Pool, ServerProcess
from benchmarks.serving.started import measured_server
from sqlext.serving.arrow_bodies import ARROW, arrow_stream

#: Pushes a second, their rows, requests a second, users.
PUSHES, PUSH_ROWS, REQUESTS, USERS = 20, 1000, 100, 5000
#: How far a window goes back, and how late rows may come: so much is kept.
BEFORE, LATENESS = "2m", 60_000_000
#: Minutes until as many rows go as come, and a few more: they count for no trend.
FILLING = 5
#: Seconds of pushes, and of requests, before the first minute.
_WARM_SECONDS = 0.5
#: Microseconds of a minute of the data.
_MINUTE = 60_000_000
#: The most seconds after the end of a minute at which its answers are counted.
_AFTER = 5.0
#: At the end a minute of each server in turn, so often; of a minute that is so much before it, nothing counts: memory
#: of a server that was idle is slow at first on some machines.
TURNS, _AGAIN = 6, 0.1

ROWS, ARROW_MB, MEMORY, P50, P99, PUSH_P99, FAILED, MACHINE = (
    "rows",
    "Arrow MB",
    "MB",
    "p50 ms",
    "p99 ms",
    "push p99 ms",
    "failed",
    "machine ms",
)
#: p99 of the server after the soak, and of one that has as many rows but is new, by turns.
AGED, YOUNG = "aged p99 ms", "new p99 ms"


class MachineSpeed:
    """The milliseconds of a fixed piece of work in this process, which waits otherwise, once a second, on the cores
    that the server has too: to read latencies with. No check counts on it, as a busier server slows it."""

    def __init__(self) -> None:
        self._values = np.random.default_rng(3).random(20_000)
        self._taken: list[float] = []
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._measure, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def minute(self) -> float:
        """The median since the last call."""
        taken, self._taken = self._taken, []
        return float(np.median(taken)) if taken else float("nan")

    def _measure(self) -> None:
        while not self._ended.wait(1.0):
            begun = time.perf_counter()
            np.sort(self._values)
            sum(number * number for number in range(10_000))
            self._taken.append(1000 * (time.perf_counter() - begun))


def ask(random: np.random.Generator, now: int) -> bytes:
    """A request about a user at a time, up to which all rows are sent."""
    text = f'{{"input":{{"user_id":{random.integers(0, USERS)},"ts":{now // 1000}}}}}'
    return request("POST", "/deployments/shop", text.encode())


def push(random: np.random.Generator, schema: pa.Schema, first: int, span: int) -> bytes:
    """Rows of the next `span` microseconds."""
    times = first + random.integers(0, max(1, span), PUSH_ROWS)
    rows = order_table(random, times, USERS).cast(schema)
    return request("PUT", "/tables/orders", arrow_stream(schema, rows.to_batches()), ARROW)


@dataclass(frozen=True)
class SoakLoad:
    """Requests and pushes for so many minutes of `minute` seconds. A result is what was answered in each minute: of the
    requests, and of the pushes. What comes after the minute and a little more counts as failed. The data's times begin
    `past` minutes after those of a new server; `warm` seconds before the first minute do not count."""

    port: int
    minutes: int
    minute: float
    schema: pa.Schema
    past: float = 0.0
    warm: float = 0.0

    async def results(self) -> AsyncIterator[tuple[Latencies, Latencies]]:
        """A result for each minute."""
        random = np.random.default_rng(1)
        data_rate = _MINUTE / self.minute
        places = [(Latencies(), Latencies()) for _ in range(self.minutes)]
        between, start = round(data_rate / PUSHES), START + round(self.past * _MINUTE)

        def asked(number: int) -> bytes:
            return ask(random, start + round(number * data_rate / REQUESTS))

        def pushed(number: int) -> bytes:
            return push(random, self.schema, start + number * between, between)

        def record(which: int, due: float, seconds: float | None) -> None:
            if due >= self.warm:
                places[min(int((due - self.warm) / self.minute), self.minutes - 1)][which].add(seconds)

        seconds = self.warm + self.minutes * self.minute
        connections = Connections(self.port, 8), Connections(self.port, 1)
        flows = [
            asyncio.create_task(open_loop(connections[which], make, rate, seconds, partial(record, which)))
            for which, (make, rate) in enumerate(((asked, REQUESTS), (pushed, PUSHES)))
        ]
        begun = time.perf_counter() + self.warm
        for number, place in enumerate(places):
            end = begun + (number + 1) * self.minute + min(_AFTER, self.minute)
            await asyncio.sleep(max(0.0, end - time.perf_counter()))
            yield self._counted(place)
        await asyncio.gather(*flows)
        for one in connections:
            one.close()

    def _counted(self, place: tuple[Latencies, Latencies]) -> tuple[Latencies, Latencies]:
        results = []
        for part, rate in zip(place, (REQUESTS, PUSHES), strict=True):
            sent = round(rate * self.minute)
            results.append(Latencies(list(part.seconds), max(0, sent - len(part.seconds)), self.minute))
        return results[0], results[1]


@dataclass
class Soak(Contestant):
    """`sqlext serve` with a journal under the soak: rows kept, memory and latencies of each minute; then it is asked in
    turn with a new server, so that what age does is told from what the machine does."""

    name: str
    pool: Pool
    generator: Generator
    folder: Path
    minutes: int
    minute: float
    _series: dict[str, list[float]] = field(default_factory=dict)

    @cached_property
    def _served(self) -> Served:
        return Served(shop(BEFORE, LATENESS), {}, [])

    def prepare(self, case: Case) -> None:
        """A fresh server that has compiled what it needs."""
        self.pool.close()
        self._server(self.name)

    def _server(self, name: str) -> ServerProcess:
        def start() -> ServerProcess:
            deployment, data = write(self._served, self.folder)
            server, random = measured_server(deployment, data, with_journal=True), np.random.default_rng(2)
            first = push(random, self._schema, START, 1)
            for content in ([first], [ask(random, START)]):
                self.generator.measured(server.port, Flow(content, connections=1), seconds=_WARM_SECONDS)
            return server

        return self.pool.server("soak", name, start)

    @property
    def _schema(self) -> pa.Schema:
        return self._served.deployment.schemas["orders"]

    def run(self, case: Case) -> float:
        """The seconds of the soak; a line for each minute is printed as it ends."""
        server = self._server(self.name)
        self._series = {}
        load = SoakLoad(server.port, self.minutes, self.minute, self._schema)
        begun = time.monotonic()
        with MachineSpeed() as machine:
            for number, (asked, pushed) in enumerate(self.generator.results(load), 1):
                minute = {**_figures(server, asked, pushed), MACHINE: machine.minute()}
                for word, value in minute.items():
                    self._series.setdefault(word, []).append(value)
                shown = ", ".join(f"{value:,.4g} {word}" for word, value in minute.items())
                typer.echo(f"minute {number}: {shown}", err=True)
        self._take_turns(server)
        return time.monotonic() - begun

    def _take_turns(self, aged: ServerProcess) -> None:
        """A minute of the server and one of a new one with as many rows, some times, each a turn of both."""
        young = self._server(f"{self.name}, new")
        filling = min(FILLING, self.minutes)
        for _ in self.generator.results(SoakLoad(young.port, filling, self.minute, self._schema)):
            pass
        past = {AGED: float(self.minutes), YOUNG: float(filling)}
        for turn in range(1, TURNS + 1):
            pair = [(AGED, aged), (YOUNG, young)]
            for word, server in pair if turn % 2 else reversed(pair):
                warm = _AGAIN * self.minute
                load = SoakLoad(server.port, 1, self.minute, self._schema, past[word], warm)
                ((asked, pushed),) = self.generator.results(load)
                past[word] += 1 + _AGAIN
                self._series.setdefault(word, []).append(1000 * asked.percentile(99))
                self._series[FAILED][-1] += asked.failed + pushed.failed
            shown = ", ".join(f"{self._series[word][-1]:.4g} {word}" for word in (AGED, YOUNG))
            typer.echo(f"turn {turn}: {shown}", err=True)

    def answer(self, case: Case) -> Answer | None:
        """None: other tests compare its answers."""
        return None

    def details(self) -> dict[str, float]:
        """The figures of the last minute; of times the median of the minutes."""
        late = (P50, P99, PUSH_P99, MACHINE, AGED, YOUNG)
        return {
            word: float(np.median(values)) if word in late else sum(values) if word == FAILED else values[-1]
            for word, values in self._series.items()
        }

    def series(self) -> dict[str, list[float]]:
        """The figures by minute."""
        return self._series

    def interrupt(self) -> None:
        """End the load."""
        self.generator.stop()


def _figures(server: ServerProcess, asked: Latencies, pushed: Latencies) -> dict[str, float]:
    """Of a minute; memory is the most in it, as a journal's snapshot needs some for a while."""
    state: dict[str, Any] = server.asked("/deployments/shop")["kept"]
    memory = server.most_memory
    server.forget_most_memory()
    return {
        ROWS: float(state["rows"]),
        ARROW_MB: state["bytes"] / 1e6,
        MEMORY: memory / 1e6,
        P50: 1000 * asked.percentile(50),
        P99: 1000 * asked.percentile(99),
        PUSH_P99: 1000 * pushed.percentile(99),
        FAILED: float(asked.failed + pushed.failed),
    }


def settled(values: Sequence[float]) -> Sequence[float]:
    """The minutes after those that fill the tables, which are no more than half of them."""
    return values[min(FILLING, len(values) // 2) :]


def shortly(values: Sequence[float]) -> str:
    """The figures of the minutes."""
    return " ".join(f"{value:.3g}" if value < 100 else f"{value:.0f}" for value in values)
