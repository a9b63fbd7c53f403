"""What a server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from sqlext.serving.deployment import Answer
from sqlext.serving.service import Service, Stored

_SECONDS = (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


class Meters:
    """Counters of one server. `working` tells how many requests are worked on or wait."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, service: Service, working: Callable[[], int]) -> None:
        self._service, self._working = service, working
        self._kept: Mapping[str, Mapping[str, Any]] = {}
        self._registry = registry = CollectorRegistry()
        registry.register(self)
        self._requests = Counter("sqlext_requests", "Requests", ["route", "status"], registry=registry)
        self._seconds = Histogram(
            "sqlext_request_seconds", "Their times", ["route"], registry=registry, buckets=_SECONDS
        )
        self._answers = Counter("sqlext_answers", "Rows that were answered", ["deployment"], registry=registry)
        self._partial = Counter(
            "sqlext_partial_answers", "Answers that lack rows that are gone", ["deployment"], registry=registry
        )
        self._stored = Counter("sqlext_stored_rows", "Rows that were stored", ["table"], registry=registry)
        self._repeated = Counter("sqlext_repeated_pushes", "Pushes that came again", ["table"], registry=registry)

    def requested(self, route: str, status: int, seconds: float) -> None:
        """A request was answered; `route` is empty for an address that is none."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def answered(self, deployment: str, answers: Sequence[Answer]) -> None:
        """Rows were answered."""
        self._answers.labels(deployment).inc(len(answers))
        self._partial.labels(deployment).inc(sum(one.is_partial for one in answers))

    def stored(self, table: str, stored: Stored) -> None:
        """A push was acknowledged."""
        if stored.is_repeated:
            self._repeated.labels(table).inc()
        else:
            self._stored.labels(table).inc(stored.rows)

    def text(self, kept: Mapping[str, Mapping[str, Any]]) -> bytes:
        """All of it; `kept` is what the deployments keep now."""
        self._kept = kept
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing: what `collect` gives is asked for when it is read."""
        return []

    def collect(self) -> Iterator[Metric]:
        """What is, and is not counted."""
        ready = self._service.state == "ready"
        yield GaugeMetricFamily("sqlext_ready", "1: requests are answered", value=float(ready))
        yield GaugeMetricFamily("sqlext_working_requests", "Requests in work or waiting", value=self._working())
        for what in ("rows", "bytes"):
            gauge = GaugeMetricFamily(f"sqlext_kept_{what}", f"Kept {what}", labels=["deployment"])
            for name, kept in self._kept.items():
                gauge.add_metric([name], kept[what])
            yield gauge
        journal = self._service.journal
        if journal is not None:
            yield GaugeMetricFamily("sqlext_journal_bytes", "Bytes behind the last snapshot", value=journal.bytes)
            failed = self._service.failed_snapshots
            yield GaugeMetricFamily("sqlext_failed_snapshots", "Snapshots that could not be written", value=failed)
