"""Who answers requests in an open loop: ours, an echo by the same server, and what people put in place of ours."""

from __future__ import annotations

import json
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlext_planner.errors import ConfigurationError

from benchmarks.harness.suite import Answer, Case, Contestant, Number
from benchmarks.serving import started
from benchmarks.serving.data import USER_COLUMNS, Served, asked_users, febench, lookup, write
from benchmarks.serving.load import Flow, Generator, Latencies, request
from benchmarks.serving.options import ServingOptions
from benchmarks.serving.servers import Pool, ServerProcess

#: Seconds of the first run of a case: code is compiled, and what is condensed is made.
_WARM_SECONDS = 2.0
#: Seconds of requests before each other run: a machine may have taken memory away that was idle meanwhile.
_AGAIN_SECONDS = 1.0
#: Requests whose answers are compared.
_COMPARED = 50
LOOKUP = "lookup"
#: What the peers compute of Q1: all but the columns of the row itself.
Q1_FEATURES = (
    "train_Fatalities_log_6",
    "train_Fatalities_window_min_7",
    "train_Fatalities_window_min_8",
    "train_combine_9",
    "train_Fatalities_window_min_10",
    "train_Fatalities_window_min_11",
    "train_Fatalities_window_avg_12",
    "train_Fatalities_window_avg_13",
    "train_Fatalities_window_sum_14",
    "train_Fatalities_window_avg_15",
    "train_Fatalities_window_max_16",
    "train_Fatalities_window_max_17",
    "train_Fatalities_window_avg_18",
    "train_Province_State_window_top1_ratio_19",
    "train_Country_Region_window_count_20",
    "train_Country_Region_window_count_21",
    "train_Date_dayofweek_22",
    "train_Date_isweekday_23",
)
#: What is compared, by the set of cases; all columns in others.
COMPARED: Mapping[str, Sequence[str]] = {"rivals": Q1_FEATURES, "lookup": ("user_id", *USER_COLUMNS)}


@dataclass
class Works:
    """Deployments with their tables, made when they are first asked for; only the last one stays in memory."""

    options: ServingOptions
    root: Path
    _name: str = ""
    _served: Served | None = None

    def served(self, name: str) -> Served:
        """A script, or the look-up."""
        if self._served is None or name != self._name:
            self._served = None
            self._served = lookup(self.options.users) if name == LOOKUP else febench(name, self.options.rows)
            self._name = name
        return self._served

    def folder(self, name: str) -> Path:
        """Where its files are."""
        return self.root / f"serving-{name}-{self.options.users if name == LOOKUP else self.options.rows}"

    def written(self, name: str) -> tuple[Path, Path]:
        """The folders of the deployment and of its tables."""
        return write(self.served(name), self.folder(name))


@dataclass(frozen=True)
class Target:
    """Where requests go, their bodies, how an answer is read (None: it is not), and processes behind the server."""

    server: ServerProcess
    path: str
    bodies: Sequence[bytes]
    features: Callable[[Any], Mapping[str, Any]] | None
    behind: Sequence[ServerProcess] = ()


@dataclass
class OpenLoop(Contestant):
    """Requests at the rate of the case. `seconds` of the report is the median latency."""

    name: str
    pool: Pool
    works: Works
    generator: Generator
    seconds: float
    _begun: set[str] = field(default_factory=set)
    _details: Mapping[str, float] = field(default_factory=dict)

    @abstractmethod
    def target(self, case: Case) -> Target:
        """Where the requests of a case go; the server is started if it is not running."""

    def prepare(self, case: Case) -> None:
        """Start the server."""
        self.target(case)

    def run(self, case: Case) -> float:
        """The median latency in seconds; the first run of a case sends requests one behind the other."""
        target = self.target(case)
        requests = [request("POST", target.path, body) for body in target.bodies]
        seconds, flow = self.seconds, Flow(requests, float(case.parameters["rate"]))
        warm = min(_AGAIN_SECONDS, seconds)
        if case.name not in self._begun:
            self._begun.add(case.name)
            seconds, warm, flow = min(_WARM_SECONDS, seconds), 0.0, Flow(requests, connections=1)
        (latencies,) = self.generator.measured(target.server.port, flow, seconds=seconds, warm=warm)
        check_answered(self.name, latencies)
        memory = sum(server.memory for server in (target.server, *target.behind))
        self._details = latencies.details() | {"MB": memory / 1e6}
        return latencies.percentile(50)

    def answer(self, case: Case) -> Answer | None:
        """Sums over the answers to the first requests."""
        target = self.target(case)
        if target.features is None:
            return None
        rows = [target.features(target.server.asked(target.path, body)) for body in target.bodies[:_COMPARED]]
        return Answer(len(rows), sums(rows, COMPARED.get(str(case.parameters["set"]))))

    def details(self) -> Mapping[str, float]:
        """Latencies, answers, memory."""
        return self._details

    def interrupt(self) -> None:
        """End the load."""
        self.generator.stop()


def check_answered(name: str, latencies: Latencies) -> None:
    """Raises ConfigurationError if no request was answered."""
    if not latencies.seconds:
        raise ConfigurationError(f"{name} answered none of {latencies.failed} requests", condition="benchmark")


def sums(rows: Iterable[Mapping[str, Any]], names: Sequence[str] | None = None) -> dict[str, Number]:
    """The sum of each column times the place of its row, and the places of NULLs. Texts count by a checksum."""
    totals: dict[str, Number] = {"NULL": 0}
    for place, row in enumerate(rows, 1):
        for name in names or row:
            value = row[name]
            if value is None:
                totals["NULL"] += place
            else:
                totals[name] = totals.get(name, 0) + place * _number(value)
    return totals


def _number(value: Any) -> Number:
    if isinstance(value, int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    return zlib.crc32(text.encode()) % 100_003


def _output(answer: Any) -> Mapping[str, Any]:
    output: Mapping[str, Any] = answer["output"]
    return output


@dataclass
class Ours(OpenLoop):
    """`sqlext serve`."""

    def target(self, case: Case) -> Target:
        """The deployment."""
        work = str(case.parameters["work"])
        served = self.works.served(work)

        def start() -> ServerProcess:
            return started.measured_server(*self.works.written(work))

        server = self.pool.server(work, "ours", start)
        return Target(server, f"/deployments/{served.deployment.name}", served.bodies, _output)


@dataclass
class Echo(Ours):
    """The same server gives a body back."""

    def target(self, case: Case) -> Target:
        """The address /echo."""
        ours = super().target(case)
        return Target(ours.server, "/echo", ours.bodies, None)


@dataclass
class Service(OpenLoop):
    """DuckDB in the process of a web service, or Redis behind one: benchmarks/peers/serving_peer.py."""

    peers: Path = Path()
    _place: Path = Path()

    def target(self, case: Case) -> Target:
        """The service, with its database."""
        work = str(case.parameters["work"])
        kind = "lookup" if work == LOOKUP else "q1"
        file = self.works.folder(work) / "data" / ("users.parquet" if work == LOOKUP else "train.parquet")

        def start() -> ServerProcess:
            self.works.written(work)
            places = [str(self._place)] if behind else []
            return started.peer_server(self.peers, self.name, kind, file, *places)

        behind: tuple[ServerProcess, ...] = ()
        if self.name == "redis":
            behind = (self.pool.server(work, "redis-server", self._database),)
        server = self.pool.server(work, self.name, start)
        return Target(server, "/features", self.works.served(work).bodies, _output, behind)

    def _database(self) -> ServerProcess:
        self._place = started.redis_place()
        return started.redis_database(self._place)


@dataclass
class Feast(OpenLoop):
    """`feast serve` over its SQLite store; looks up one row."""

    peers: Path = Path()

    def target(self, case: Case) -> Target:
        """The server's look-up of a user."""
        names = [f"users:{name}" for name in USER_COLUMNS]

        def start() -> ServerProcess:
            _, data = self.works.written(LOOKUP)
            return started.feast_server(self.peers, self.works.folder(LOOKUP) / "feast", data / "users.parquet")

        server = self.pool.server(LOOKUP, self.name, start)
        bodies = [
            json.dumps({"features": names, "entities": {"user_id": [user]}}).encode()
            for user in asked_users(self.works.options.users)
        ]
        return Target(server, "/get-online-features", bodies, _first_row)


def _first_row(answer: Any) -> Mapping[str, Any]:
    values = (column["values"][0] for column in answer["results"])
    return dict(zip(answer["metadata"]["feature_names"], values, strict=True))
