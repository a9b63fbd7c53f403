"""Requests that wait at the same time are answered together, each as if it came alone. Without Spark."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from sqlext_planner.errors import AnalysisError, SqlExtError
from sqlext_planner.serving.lowering import ServingSettings

from sqlext.catalog import DictCatalog
from sqlext.serving.deployment import Answer, Deployment
from sqlext.serving.values import to_batch
from sqlext.serving.waiting import WaitingRequests
from tests.serving.test_deployments import TABLES

START = datetime(2024, 5, 1, tzinfo=UTC)
WINDOW = "UNION sv_orders PARTITION BY a.k ORDER BY a.ts ROWS_RANGE BETWEEN"
#: Short and long windows, with rows that can be condensed and that cannot; joins; a division that may fail.
STATEMENT = f"""SELECT a.id, 12 / a.id AS part, n.name, sum(a.v) OVER short AS s, median(a.v) OVER short AS m,
    count(a.v) OVER far AS c, avg(a.v) OVER far AS mean, max_cate(a.v, a.c) OVER far AS most,
    distinct_count(a.v) OVER capped AS d, b.v AS same
FROM sv_views a LAST JOIN sv_names n ORDER BY n.seen ON a.k = n.k AND n.seen <= a.ts
LAST JOIN (SELECT id, c, v FROM sv_views) b ON a.id = b.id AND a.c = b.c
WINDOW short AS ({WINDOW} 20m PRECEDING AND CURRENT ROW), far AS ({WINDOW} 30d PRECEDING AND CURRENT ROW),
    capped AS ({WINDOW} 30d PRECEDING AND CURRENT ROW MAXSIZE 40)"""


def made() -> Deployment:
    """Keys with a few rows, with more than are answered together, and with so many that they are condensed."""
    settings = ServingSettings(True, "UTC")
    deployment = Deployment(STATEMENT, DictCatalog(TABLES), settings=settings, lateness=None)
    rng = random.Random(5)
    for key, count in ((0, 0), (1, 5), (2, 2_500), (3, 9_000)):
        rows = [
            {"id": -1, "k": key, "c": rng.choice(["a", "b", None]), "ts": moment(rng), "v": rng.randrange(9) / 2}
            for _ in range(count)
        ]
        deployment.push("sv_orders", rows)
        deployment.push("sv_views", rows[:50])
        names = [{"k": key, "name": f"n{number}", "seen": moment(rng), "rank": 1} for number in range(3)]
        deployment.push("sv_names", names)
    return deployment


def moment(rng: random.Random) -> datetime:
    return START + timedelta(minutes=rng.randrange(1_000))


def asked(count: int) -> list[dict[str, Any]]:
    rng = random.Random(count)
    return [
        {
            "id": number + 1,
            "k": rng.choice([None, 0, 1, 2, 3]),
            "c": rng.choice(["a", "b", None]),
            "ts": None if number % 9 == 8 else moment(rng),
            "v": 1.5,
        }
        for number in range(count)
    ]


@pytest.mark.parametrize("count", [2, 3, 40, 100])
def test_rows_are_answered_as_if_each_came_alone(count: int) -> None:
    deployment, rows = made(), asked(count)
    alone = [deployment.answer(row) for row in rows]
    assert list(map(repr, deployment.answer_many(rows))) == list(map(repr, alone))
    assert len({repr(row) for row in alone}) > count // 2
    # all of one kind
    for key in range(4):
        some = [row | {"k": key} for row in rows[:3]]
        assert list(map(repr, deployment.answer_many(some))) == [repr(deployment.answer(row)) for row in some]


Waiting = Future[tuple[list[Answer], str] | pa.RecordBatch]


def test_each_request_gets_its_own_answer_or_error(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = made()
    calls: list[int] = []
    answers = Deployment.answers

    def counted(self: Deployment, batch: pa.RecordBatch) -> list[Answer]:
        calls.append(batch.num_rows)
        return answers(self, batch)

    monkeypatch.setattr(Deployment, "answers", counted)
    waiting = WaitingRequests(deployment, 2)

    def batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
        return to_batch(rows, deployment.schemas["sv_views"], "sv_views")

    def add(read: Callable[[], pa.RecordBatch]) -> Waiting:
        return waiting.add(read, lambda answers: ",".join(str(answer.row["id"]) for answer in answers))

    def unreadable() -> pa.RecordBatch:
        raise AnalysisError("no rows", condition="row-value", help="send rows")

    rows = asked(8)
    futures = [add(partial(batch, [row])) for row in rows]
    few, many, none = add(lambda: batch(rows[:2])), add(lambda: batch(rows[:3])), add(lambda: batch([]))
    wrong, gone = add(unreadable), add(lambda: batch(rows[:1]))
    gone.cancel()
    for _ in range(len(futures) + 5):
        waiting.answer()
    assert calls == [10]
    assert [future.result()[1] for future in futures] == [str(row["id"]) for row in rows]
    assert (few.result()[1], none.result()) == ("1,2", ([], ""))
    rows_back = many.result()
    assert isinstance(rows_back, pa.RecordBatch)
    assert rows_back.num_rows == 3
    assert isinstance(wrong.exception(), AnalysisError)
    calls.clear()
    divided_by_zero = add(lambda: batch([rows[0] | {"id": 0}]))
    others = [add(partial(batch, [row])) for row in rows[:3]]
    waiting.answer()
    assert calls == [4, 1, 1, 1, 1]
    assert isinstance(divided_by_zero.exception(), SqlExtError)
    assert [future.result()[1] for future in others] == ["1", "2", "3"]
    first = others[0].result()
    assert isinstance(first, tuple)
    assert [answer.row["id"] for answer in first[0]] == [1]
