"""What EXPLAIN says of the places of keys on streams by `auto`: where they may change, and why not elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlext_planner.catalog import TableInfo
from sqlext_planner.config import Config
from sqlext_planner.exchange.chains import StreamExec

from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.pipeline import stage

COLUMNS = {"k": "int", "ts": "timestamp", "te": "timestamp", "v": "bigint"}
ADAPTS = "auto: by hash; a key with more rows than a bucket should have is spread while that pays"


class Streams(DictCatalog):
    """Streams a, b and c with a watermark on ts, and a table t."""

    def __init__(self, obstacle: str | None = None) -> None:
        super().__init__(dict.fromkeys(("a", "b", "c", "t"), COLUMNS), streams=("a", "b", "c"))
        self._obstacle = obstacle

    def table(self, name: str) -> TableInfo | None:
        info = super().table(name)
        return info if info is None or name == "t" else replace(info, watermark=("ts", 5_000))

    def placing_obstacle(self) -> str | None:
        return self._obstacle


def placing(sql: str, setting: str = "auto", obstacle: str | None = None) -> str | None:
    """What EXPLAIN shows of the operator on streams."""
    physical = stage(sql, Streams(obstacle), replace(Config(), partitioner=setting), lenient=True).physical
    (node,) = (node for node in physical.walk() if isinstance(node, StreamExec))  # type: ignore[union-attr]
    return node.details().get("partitioner")


def window(frame: str, union: str = "b", hint: str = "") -> str:
    return (
        f"SELECT {hint} k, count(*) OVER w AS n FROM a WINDOW w AS (UNION {union} PARTITION BY k ORDER BY ts {frame})"
    )


BOUNDED = "ROWS_RANGE BETWEEN 4s PRECEDING AND CURRENT ROW"
NEAR = "{0}.k = {1}.k AND {1}.ts BETWEEN {0}.ts AND {0}.ts + INTERVAL 2 SECONDS"
AB, AC = NEAR.format("a", "b"), NEAR.format("a", "c")
MOVING = {
    "window": window(f"{BOUNDED} INSTANCE_NOT_IN_WINDOW"),
    "interval join": f"SELECT /*+ SWEEP */ a.k, b.v FROM a LEFT JOIN b ON {AB}",
    "plain join": f"SELECT a.k, a.ts, b.v FROM a JOIN b ON {AB}",
    "multi-way join": f"SELECT /*+ UMJOIN */ a.k, b.v, c.v AS w FROM a JOIN b ON {AB} JOIN c ON {AC}",
}
STEADY = {
    "shown": (window(BOUNDED), "windows show rows of FROM"),
    "rows": (
        window("ROWS BETWEEN 4 PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW"),
        "a window has no bound in time",
    ),
    "table": (window(f"{BOUNDED} INSTANCE_NOT_IN_WINDOW", "t"), "tables are read once"),
    "full": (
        "SELECT a.k, b.v FROM a FULL JOIN b ON a.k = b.k AND PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)",
        "FULL JOIN keeps rows of both sides",
    ),
    "for ever": (
        "SELECT /*+ SWEEP */ a.k, b.v FROM a JOIN b ON a.k = b.k AND a.ts < b.ts",
        "rows of the left side find matches for ever",
    ),
    "two keys": (
        f"SELECT /*+ UMJOIN */ a.k FROM a JOIN b ON {AB} JOIN c ON b.v = c.v AND c.ts BETWEEN b.ts AND b.te",
        "its inputs share no key",
    ),
}


@pytest.mark.parametrize("name", MOVING)
def test_keys_move_where_the_statement_allows_it(name: str) -> None:
    assert placing(MOVING[name]) == ADAPTS
    assert placing(MOVING[name], "hash") is None
    assert placing(MOVING[name], obstacle="nobody listens") == "hash: nobody listens"
    assert str(placing(MOVING[name], "fragment")).startswith("fragment: by hash at first")


@pytest.mark.parametrize("name", STEADY)
def test_keys_stay_by_hash_and_the_line_says_why(name: str) -> None:
    sql, reason = STEADY[name]
    assert str(placing(sql)).startswith(f"hash: {reason}")
    assert placing(sql, "hash") is None


def test_the_hint_stands_above_the_setting() -> None:
    sql = window(f"{BOUNDED} INSTANCE_NOT_IN_WINDOW", hint="/*+ PARTITIONER(auto) */")
    assert placing(sql, "fragment") == placing(sql, "hash") == ADAPTS
    assert str(placing(window(BOUNDED, hint="/*+ PARTITIONER(auto) */"))).startswith("hash: ")
