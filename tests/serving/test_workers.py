"""A deployment in several processes answers as one, and is divided only where all rows that an answer reads are in one
part."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from sqlext_planner.errors import SqlExtError
from sqlext_planner.serving.lowering import ServingSettings

from sqlext.catalog import DictCatalog
from sqlext.serving.deployment import Deployment
from sqlext.serving.division import division
from sqlext.serving.journal import Journal
from sqlext.serving.service import Service
from sqlext.serving.workers import Divided
from tests.serving.servers import served, spent
from tests.serving.test_deployments import STATEMENTS, TABLES, drawn
from tests.told import bugs_noted

WINDOW = "ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW"
DIVIDED = {
    STATEMENTS["a union"]: "k",
    STATEMENTS["two keys and two windows"]: "k",
    STATEMENTS["a LAST JOIN up to now"]: "k",
    STATEMENTS["windows over joined rows"]: "k",
    STATEMENTS["windows below a join"]: "k",
    STATEMENTS["features of the same row, joined by its id"]: "k",
    f"SELECT sum(v) OVER a AS x, sum(v) OVER b AS y FROM sv_views WINDOW a AS (PARTITION BY k {WINDOW}), "
    f"b AS (PARTITION BY c {WINDOW})": None,
    f"SELECT sum(v) OVER a AS x FROM sv_views WINDOW a AS ({WINDOW})": None,
    f"SELECT sum(v) OVER a AS x FROM sv_views WINDOW a AS (PARTITION BY k + 1 {WINDOW})": None,
    "SELECT a.id, n.name FROM sv_views a LAST JOIN sv_names n ON a.id = n.rank": "id",
    f"SELECT a.id, n.name, sum(v) OVER w AS s FROM sv_views a LAST JOIN sv_names n ON a.id = n.rank "
    f"WINDOW w AS (PARTITION BY a.k {WINDOW.replace('ts', 'a.ts')} INSTANCE_NOT_IN_WINDOW)": None,
    "SELECT id, v + 1 AS w FROM sv_views": None,
}


def made(sql: str) -> Deployment:
    return Deployment(sql, DictCatalog(TABLES), settings=ServingSettings(True, "UTC"), lateness=None)


@pytest.mark.parametrize("sql", list(DIVIDED))
def test_rows_are_divided_by_a_column_of_every_key(sql: str) -> None:
    found = division(made(sql).spec)
    assert (None if found is None else found.column) == DIVIDED[sql]


@pytest.mark.parametrize("title", ["two keys and two windows", "windows over joined rows"])
def test_several_processes_answer_as_one(title: str) -> None:
    alone = made(STATEMENTS[title])
    found = division(alone.spec)
    assert found is not None
    several = Divided(alone.saved, found, 3)
    try:
        for seed in range(5):
            data, requests = drawn(random.Random(seed))
            for name, rows in data.items():
                if name in alone.spec.tables:
                    assert alone.push(name, rows) == several.push(name, rows)
            assert several.answer_many(requests) == alone.answer_many(requests)
        assert several.kept_rows == alone.kept_rows > 0
        inputs = range(len(alone.spec.inputs))
        assert [several.kept_of(place)[0] for place in inputs] == [alone.kept_of(place)[0] for place in inputs]
        assert several.explain().splitlines()[0] == alone.explain().splitlines()[0]
        again = made(STATEMENTS[title])
        for place, state in enumerate(several.state()):
            again.restore(place, state)
        assert again.answer_many(requests) == alone.answer_many(requests)
    finally:
        several.close()


def test_errors_come_through() -> None:
    sql = "SELECT sum(CAST(id AS bigint) * 4611686018427387904) OVER w AS s FROM sv_views"
    alone = made(f"{sql} WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND 0 PRECEDING)")
    found = division(alone.spec)
    assert found is not None
    several = Divided(alone.saved, found, 2)
    try:
        row = {"id": 1, "k": 1}
        several.push("sv_views", [row, row])
        with pytest.raises(SqlExtError, match="overflow"):
            several.answer(row)
        assert several.answer({"id": 0, "k": 2}) == {"s": 0}
    finally:
        several.close()


def test_a_server_with_processes_keeps_its_rows(tmp_path: Path) -> None:
    asked = {"user_id": 1, "ts": "2024-05-01T12:00:00", "price": 0}

    def service() -> Service:
        deployment = spent()
        found = division(deployment.spec)
        assert found is not None
        return Service([Divided(deployment.saved, found, 2, lambda: running[-1].lost())], Journal(tmp_path, 1))

    running: list[Service] = []
    for turn in range(2):
        running.append(service())
        with served(service=running[-1]) as client:
            client.push([{"user_id": user, "ts": "2024-05-01T11:30:00", "price": 1} for user in range(10)])
            assert client.ask(asked).json["output"]["n"] == turn + 2
            assert [row["n"] for row in client.ask([asked, {**asked, "user_id": 7}]).json["output"]] == [turn + 2] * 2


def test_a_process_that_ends_ends_the_server() -> None:
    deployment = spent()
    found = division(deployment.spec)
    assert found is not None
    running: list[Service] = []
    divided = Divided(deployment.saved, found, 2, lambda: running[0].lost())
    running.append(Service([divided]))
    with bugs_noted(), served(service=running[0]) as client:
        process: Any = divided._workers[0]._process
        os.kill(process.pid, signal.SIGKILL)
        end = time.monotonic() + 20
        while running[0].state != "failed" and time.monotonic() < end:
            time.sleep(0.05)
        assert client.get("/readyz").status == 503
    assert running[0].failure is not None
