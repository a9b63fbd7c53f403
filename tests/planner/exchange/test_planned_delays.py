"""What EXPLAIN says of operators over the results of operators on streams: how late their rows come."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlext_planner.catalog import TableInfo
from sqlext_planner.config import Config
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.exchange.chains import StreamExec

from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.pipeline import stage

COLUMNS = {"k": "int", "j": "int", "ts": "timestamp", "te": "timestamp", "v": "bigint"}


class Streams(DictCatalog):
    """Streams a, b and c with a watermark on ts, and a table t."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(("a", "b", "c", "t"), COLUMNS), streams=("a", "b", "c"))

    def table(self, name: str) -> TableInfo | None:
        info = super().table(name)
        return info if info is None or name == "t" else replace(info, watermark=("ts", 5_000))


def told(sql: str) -> list[str]:
    """What is said of each operator, the uppermost first."""
    plan = stage(sql, Streams(), Config()).physical
    assert plan is not None
    nodes = [node for node in plan.walk() if isinstance(node, StreamExec)]
    return ["; ".join(node.delays.details().values()) for node in nodes]


def less(seconds: str) -> str:
    return f"Spark's less {seconds}: rows of its inputs come so long after their time"


FRAME = "ROWS_RANGE BETWEEN 10s PRECEDING AND 4s FOLLOWING"
SUMMED = f"SELECT k, j, ts, te, sum(v) OVER w AS v FROM a WINDOW w AS (UNION b PARTITION BY k ORDER BY ts {FRAME})"
BAND = "b.ts BETWEEN a.ts - INTERVAL 3 SECONDS AND a.ts + INTERVAL 5 SECONDS"
UMJOIN = (
    f"SELECT /*+ UMJOIN */ a.k, a.ts, b.ts AS t2, c.ts AS t3 FROM a JOIN b ON a.k = b.k AND {BAND} "
    "JOIN c ON c.k = b.k AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 1 MINUTE"
)
SWEEP = f"SELECT /*+ SWEEP */ a.k, a.ts, b.ts AS t2 FROM a JOIN b ON a.k = b.k AND {BAND}"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (SUMMED, ["rows come out up to 4s after a.ts"]),
        (SUMMED.replace("4s FOLLOWING", "CURRENT ROW"), [""]),
        (
            f"SELECT sum(v) OVER w, count(v) OVER u FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {FRAME}), "
            f"u AS (UNION b PARTITION BY j ORDER BY ts {FRAME.replace('4s', '1m')})",
            [f"rows come out up to 64s after a.ts; {less('4s')}", "rows come out up to 4s after a.ts"],
        ),
        (
            "SELECT count(v) OVER u FROM (SELECT j, ts, v FROM b) WINDOW u AS "
            f"(UNION (SELECT j, ts, v FROM ({SUMMED}) WHERE v > 3) PARTITION BY j ORDER BY ts {FRAME})",
            [f"rows come out up to 8s after subquery.ts; {less('4s')}", "rows come out up to 4s after a.ts"],
        ),
        (
            f"SELECT count(*) OVER w FROM (SELECT k, t2 AS x FROM ({UMJOIN})) "
            "WINDOW w AS (PARTITION BY k ORDER BY x ROWS_RANGE BETWEEN 1s PRECEDING AND CURRENT ROW)",
            [
                f"rows come out up to 60s after subquery_2.x; {less('60s')}",
                "rows come out up to 65s after a.ts; rows come out up to 60s after b.ts; rows come out up to 3s after "
                "c.ts",
            ],
        ),
        (
            SWEEP.replace("a.k, a.ts", "a.v, a.ts").replace("FROM a", f"FROM ({SUMMED}) a"),
            [
                f"rows come out up to 9s after a_2.ts; rows come out up to 7s after b_2.ts; {less('4s')}",
                "rows come out up to 4s after a.ts",
            ],
        ),
        (SWEEP.replace("JOIN b", "LEFT JOIN t b"), [""]),
        (
            "SELECT a.ts, b.ts AS t2 FROM a JOIN b ON a.k = b.k AND PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)",
            [""],
        ),
        (
            "SELECT a.ts, b.ts AS t2 FROM a JOIN b ON a.k = b.k AND PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te) "
            "AND b.ts < a.ts + INTERVAL 1 MINUTE",
            ["rows come out up to 60s after a.ts"],
        ),
    ],
)
def test_explain_says_how_late_rows_come(sql: str, expected: list[str]) -> None:
    assert told(sql) == expected


def test_late_rows_are_not_read_by_another_operator() -> None:
    sql = (
        f"SELECT sum(v) OVER w, count(v) OVER u FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {FRAME}), "
        f"u AS (UNION b PARTITION BY j ORDER BY ts {FRAME})"
    )
    with pytest.raises(UnsupportedError, match="cannot read the late rows of a sqlext window") as caught:
        stage(sql, Streams(), Config(stream_late="rows"))
    assert caught.value.span is not None
    assert "sqlext.stream.late" in str(caught.value.help)
    # a subquery without the phase gives no late rows
    stage(
        f"SELECT count(v) OVER u FROM ({SUMMED}) WINDOW u AS (PARTITION BY j ORDER BY ts {FRAME})", Streams(), Config()
    )
