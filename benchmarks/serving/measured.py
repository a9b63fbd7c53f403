"""What is measured of ours alone: pushes beside requests, warm starts, and windows over many rows of a key."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness.suite import Answer, Case, Contestant, short
from benchmarks.serving import started
from benchmarks.serving.contestants import Works, check_answered
from benchmarks.serving.data import Served, long_window, push_bodies, warm_shop, write
from benchmarks.serving.load import Flow, Generator, request
from benchmarks.serving.options import ServingOptions
from benchmarks.serving.servers import Pool, ServerProcess
from sqlext.serving.arrow_bodies import ARROW
from sqlext.serving.bodies import batch_of_objects, parsed_json
from sqlext.serving.values import zone_of

#: Of the pushes: how many different ones there are, and their rows.
_PUSHES, PUSH_ROWS = 20, 1000
RATE, TIMES_ARROW = "rows/s", "times Arrow"
_WARM_SECONDS = 2.0


@dataclass
class Pushes(Contestant):
    """Pushes of 1,000 rows, one behind the other, while Q1 is asked at a rate. `seconds` is the median of a push."""

    name: str
    pool: Pool
    works: Works
    generator: Generator
    options: ServingOptions
    _begun: set[str] = field(default_factory=set)
    _details: Mapping[str, float] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """A server for the case."""
        self._server(case)

    def _server(self, case: Case) -> ServerProcess:
        def start() -> ServerProcess:
            return started.measured_server(*self.works.written("Q1"), with_journal=bool(case.parameters["journal"]))

        return self.pool.server(case.name, "ours", start)

    def run(self, case: Case) -> float:
        """The median seconds of a push."""
        server, served = self._server(case), self.works.served("Q1")
        arrow = case.parameters["format"] == "Arrow"
        kind = (ARROW,) if arrow else ()
        bodies = push_bodies(served, "train", _PUSHES, PUSH_ROWS, arrow=arrow)
        pushes = [request("PUT", "/tables/train", body, *kind) for body in bodies]
        path = f"/deployments/{served.deployment.name}"
        asked = [request("POST", path, body) for body in served.bodies]
        seconds = self.options.seconds
        if case.name not in self._begun:
            self._begun.add(case.name)
            seconds = min(_WARM_SECONDS, seconds)
        answered, pushed = self.generator.measured(
            server.port,
            Flow(asked, float(self.options.push_rate)),
            Flow(pushes, connections=self.options.pushers),
            seconds=seconds,
        )
        check_answered("ours", answered)
        check_answered("ours", pushed)
        details = answered.details()
        failed = {"failed": answered.failed + pushed.failed, "push p99 ms": 1000 * pushed.percentile(99)}
        rate = len(pushed.seconds) * PUSH_ROWS / pushed.elapsed
        self._details = {RATE: rate} | details | failed | {"MB": server.memory / 1e6}
        return pushed.percentile(50)

    def answer(self, case: Case) -> Answer | None:
        """None: rows were pushed twice."""
        return None

    def details(self) -> Mapping[str, float]:
        """Rows a second, latencies of the requests, memory."""
        return self._details

    def interrupt(self) -> None:
        """End the load."""
        self.generator.stop()


@dataclass
class WarmStart(Contestant):
    """`sqlext serve --data` from its start until it is ready, and its memory after a thousand answers."""

    name: str
    pool: Pool
    root: Path
    _details: Mapping[str, float] = field(default_factory=dict)
    _served: tuple[int, Served] | None = None

    def prepare(self, case: Case) -> None:
        """The files."""
        self.pool.close()
        rows = int(case.parameters["rows"])
        if self._served is None or self._served[0] != rows:
            served = warm_shop(rows)
            write(served, self._folder(rows))
            # The rows themselves are not needed any longer.
            self._served = rows, Served(served.deployment, {}, served.bodies)

    def _folder(self, rows: int) -> Path:
        return self.root / f"serving-warm-{rows}"

    def run(self, case: Case) -> float:
        """The seconds until it is ready."""
        assert self._served is not None
        rows, served = self._served
        server = started.sqlext_serve(*write(served, self._folder(rows)))
        try:
            for body in served.bodies:
                server.asked(f"/deployments/{served.deployment.name}", body)
            state = server.asked(f"/deployments/{served.deployment.name}")["kept"]
            self._details = {
                "rows": float(state["rows"]),
                "Arrow MB": state["bytes"] / 1e6,
                "MB": server.memory / 1e6,
                "most MB": server.most_memory / 1e6,
                TIMES_ARROW: server.memory / max(1, state["bytes"]),
            }
            return server.seconds
        finally:
            server.stop()

    def answer(self, case: Case) -> Answer | None:
        """All rows are there."""
        return Answer(int(self._details["rows"]), {})

    def details(self) -> Mapping[str, float]:
        """Rows, and the memory of the process beside the Arrow bytes that it keeps."""
        return self._details


#: A window over many rows may take at most twice as long as one over few for these.
_AGGREGATES = ("count", "sum", "avg", "min", "max")
LONG: Mapping[str, str] = {
    "count": "count(v)",
    "sum": "sum(v)",
    "avg": "avg(v)",
    "min": "min(v)",
    "max": "max(v)",
    "distinct_count": "distinct_count(n)",
    **{f"{name}_where": f"{name}_where(v, n > 500)" for name in _AGGREGATES},
    **{f"{name}_cate": f"{name}_cate(v, c)" for name in _AGGREGATES},
    **{f"{name}_cate_where": f"{name}_cate_where(v, n > 500, c)" for name in _AGGREGATES},
}
#: These read the rows of their window.
OTHERS: Mapping[str, str] = {
    "first_value": "first_value(v)",
    "nth_value": "nth_value(v, 3)",
    "count_if": "count_if(n > 500)",
    "bit_or": "bit_or(n)",
    "max_by": "max_by(n, v)",
    "var_samp": "var_samp(v)",
    "stddev": "stddev(v)",
    "skewness": "skewness(v)",
    "corr": "corr(v, n)",
    "median": "median(v)",
    "percentile": "percentile(v, 0.9)",
    "approx_count_distinct": "approx_count_distinct(n)",
    "mode": "mode(c)",
    "topn_frequency": "topn_frequency(c, 3)",
    "top_n_key_sum_cate_where": "top_n_key_sum_cate_where(v, n > 500, c, 3)",
    "drawdown": "drawdown(v)",
    "ew_avg": "ew_avg(v, 0.5)",
    "collect_set": "collect_set(c)",
}
FUNCTIONS = {**LONG, **OTHERS}


@dataclass
class LongWindow(Contestant):
    """One request behind the other in this process, over a key with many rows. `seconds` is the median of a request."""

    name: str
    seconds: float
    _deployed: tuple[str, Served] | None = None
    _medians: dict[str, dict[int, float]] = field(default_factory=dict)
    _details: Mapping[str, float] = field(default_factory=dict)

    def prepare(self, case: Case) -> None:
        """The deployment with its rows."""
        if self._deployed is None or self._deployed[0] != case.name:
            self._deployed = None
            call = FUNCTIONS[str(case.parameters["function"])]
            served = long_window(int(case.parameters["rows"]), f"{call} OVER w AS a")
            for table, rows in served.tables.items():
                served.deployment.load(table, rows)
            self._deployed = case.name, served

    def run(self, case: Case) -> float:
        """The median seconds of a request."""
        assert self._deployed is not None
        deployment = self._deployed[1].deployment
        read = partial(batch_of_objects, schema=deployment.schemas["asked"], table="asked", zone=zone_of("UTC"))
        batches = [read([parsed_json(body)["input"]]) for body in self._deployed[1].bodies]
        deployment.answers(batches[0])
        taken: list[float] = []
        end = time.perf_counter() + self.seconds
        while not taken or time.perf_counter() < end:
            begun = time.perf_counter()
            deployment.answers(batches[len(taken) % len(batches)])
            taken.append(time.perf_counter() - begun)
        median, p99 = (float(np.percentile(taken, part)) for part in (50, 99))
        by_rows = self._medians.setdefault(str(case.parameters["function"]), {})
        by_rows[int(case.parameters["rows"])] = median
        fewest = min(by_rows)
        self._details = {"p50 ms": 1000 * median, "p99 ms": 1000 * p99, "answers/s": len(taken) / sum(taken)}
        self._details |= {f"times {short(fewest)} rows": median / by_rows[fewest]}
        return median

    def answer(self, case: Case) -> Answer | None:
        """None: other tests compare its answers."""
        return None

    def details(self) -> Mapping[str, float]:
        """Latencies, and how many times that over the fewest rows."""
        return self._details
