"""Threads that share a Session, and Sessions that share a Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import THREAD_SECONDS, THREADS
from .harness import Driver
from .statements import SPILLING, STATEMENTS, write_tables

pytestmark = pytest.mark.slow

_ROWS = 2_000
_WINDOW = "(UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 500 PRECEDING AND CURRENT ROW)"
#: Statements of every feature, the ordinary ones too; each gives few rows.
MIXED = [
    *(statement.sql for statement in STATEMENTS.values()),
    f"WITH c AS (SELECT * FROM a WHERE v < 50) SELECT id, sum(v) OVER w AS s FROM c WINDOW w AS {_WINDOW}".replace(
        "UNION b", "UNION (SELECT * FROM b WHERE v < 50) u"
    ),
    "SELECT k, count(*) AS n FROM a GROUP BY k HAVING n > 3 ORDER BY k",
    "SELECT a.k, max(b.v) AS m FROM a JOIN b ON a.k = b.k GROUP BY a.k",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM p WHERE p.k = a.k AND PERIOD(p.ts, p.te) CONTAINS a.ts)",
    "SELECT count(*) AS n FROM a, b, p WHERE a.g = b.g AND b.g = p.g",
    "SELECT x.id, y.id AS other FROM a x, b y WHERE x.g = y.g AND x.v IN (SELECT v FROM p WHERE p.g = x.g)",
    "SELECT id, row_number() OVER (PARTITION BY k ORDER BY ts) AS place FROM a",
    "SELECT 1 AS one",
    "SHOW TABLES",
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tables(tmp_path_factory.mktemp("small"), _ROWS)


@pytest.fixture(scope="module")
def driver(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with Driver("local[2]", tmp_path_factory.mktemp("threads")) as driver:
        driver.run("register", folder=str(small))
        yield driver


@pytest.mark.parametrize(
    "settings",
    [{}, {**SPILLING, "sqlext.umjoin.strategy": "operator", "sqlext.intervalJoin.strategy": "exchange"}],
    ids=["defaults", "exchanges"],
)
def test_threads_share_a_session(driver: Driver, settings: dict[str, str]) -> None:
    found = driver.run("threads", statements=MIXED, settings=settings, count=THREADS, seconds=float(THREAD_SECONDS))
    assert not found["wrong"], found["wrong"][:5]
    assert min(found["ran"]) > 0
    assert all(found["rows"])


def test_sessions_with_other_settings_and_modes_do_not_see_each_other(driver: Driver) -> None:
    """Three on one Spark session, two with Spark sessions of their own, of which each has its own view `t`."""
    sql = (
        "SELECT t.id, u.id AS other, t.v + 0.5 AS half FROM t LAST JOIN "
        "(SELECT id, k, ts FROM t WHERE v > 10) u ORDER BY u.ts ON t.k = u.k"
    )

    def view(limit: int) -> str:
        return f"CREATE OR REPLACE TEMPORARY VIEW t AS SELECT id, k, ts, v FROM base WHERE id < {limit}"

    def case(own: bool, settings: dict[str, str], statements: list[str], compat: str | None = None) -> dict[str, Any]:
        return {"own": own, "settings": settings, "set": statements, "compat": compat}

    key = "sqlext.lastJoin.strategy"
    register = (
        "CREATE OR REPLACE TEMPORARY VIEW base AS SELECT id, id % 7 AS k, id AS ts, id % 50 AS v FROM range(1000)"
    )
    cases = [
        case(False, {key: "reduce"}, [register, view(300)]),
        case(False, {key: "exchange"}, []),
        case(False, {key: "exchange"}, [], "openmldb"),
        case(True, {}, [register, view(200), f"SET {key} = pairs"]),
        case(True, {"sqlext.exchange.partitions": "3"}, [register, view(100), f"SET {key} = exchange"], "openmldb"),
    ]
    found = driver.run("sessions", sql=sql, cases=cases, seconds=float(THREAD_SECONDS) / 2)
    assert min(found["ran"]) > 0, found["ran"]
    seen = []
    for texts in found["seen"]:
        assert len(texts) == 1, texts
        seen.append(json.loads(texts[0]))
    plans, schemas, rows = zip(*seen, strict=True)
    assert [len(answer) for answer in rows] == [300, 300, 300, 200, 100]
    assert rows[0] == rows[1]
    assert ["half:double" in schema for schema in schemas] == [False, False, True, False, True]
    for plan, strategy in zip(plans, ("reduce", "exchange", "exchange", "pairs", "exchange"), strict=True):
        assert f"strategies=('{strategy}',)" in plan, plan
