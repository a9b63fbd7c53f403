"""What planning says of interval joins over streams: when rows come out, how long they are kept, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlext_planner.catalog import TableInfo
from sqlext_planner.config import Config
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.interval_join.stream_execution import IntervalStreamExec

from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.pipeline import stage

COLUMNS = {"k": "int", "ts": "timestamp", "te": "timestamp", "v": "bigint"}


class Streams(DictCatalog):
    """Streams a and b with a watermark on ts, c with one that only Spark knows, and a table t."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(("a", "b", "c", "t"), COLUMNS), streams=("a", "b", "c"))

    def table(self, name: str) -> TableInfo | None:
        info = super().table(name)
        return info if info is None or name not in ("a", "b") else replace(info, watermark=("ts", 5_000))


def kept(sql: str) -> str:
    """The reason of the one node of ours."""
    (node,) = (node for node in stage(sql, Streams(), Config()).physical.walk() if node.is_extension)
    assert isinstance(node, IntervalStreamExec)
    return node.why


JOINED = "a.k = b.k AND PERIOD(a.ts, a.te)"
PAIR = "a pair is emitted with the later of its rows"
OPEN_PAIR = "a pair is emitted as soon as its conditions hold whatever the open ends will be"
FOR_GOOD = "rows are kept for good: the state grows without a bound"
UNKNOWN = "the watermark lets no match come any more"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            f"SELECT a.v, b.v AS w FROM a JOIN b ON {JOINED} OVERLAPS PERIOD(b.ts, b.te)",
            [PAIR, "left rows are kept until a.te <= watermark", "right rows are kept until b.te <= watermark"],
        ),
        (
            f"SELECT a.v FROM a LEFT JOIN b ON {JOINED} BEFORE PERIOD(b.ts, b.te) WITHIN 90 SECONDS AND a.v > 3",
            [
                PAIR,
                "a left row without a match is emitted when a.te + 90s < watermark",
                "left rows are kept until a.te + 90s < watermark",
                "right rows are kept until b.ts <= watermark",
            ],
        ),
        (
            "SELECT /*+ SWEEP */ a.v FROM a LEFT SEMI JOIN (SELECT k, ts + INTERVAL 0 SECONDS AS x, ts AS y FROM b) d "
            "ON a.k = d.k AND d.y BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS",
            [
                "a left row is emitted with its first match",
                "left rows are kept until a.ts + 10s < watermark",
                "right rows are kept until d.y < watermark",
            ],
        ),
        (
            f"SELECT a.v FROM a LEFT ANTI JOIN b ON {JOINED} MEETS PERIOD(b.ts, b.te)",
            [
                "a left row without a match is emitted when a.te < watermark",
                "left rows are kept until a.te < watermark",
                "right rows are kept until b.ts <= watermark",
            ],
        ),
        (
            "SELECT a.v, b.v AS w FROM a JOIN b ON PERIOD(a.ts, a.te) PRECEDES PERIOD(b.ts, b.te)",
            [
                PAIR,
                f"left {FOR_GOOD}",
                "right rows are kept until b.ts <= watermark",
                "without equal keys one task has all rows",
            ],
        ),
        (
            "SELECT /*+ PARTITIONER(broadcast) */ a.v, b.v AS w "
            "FROM a JOIN b ON PERIOD(a.ts, a.te) PRECEDES PERIOD(b.ts, b.te)",
            [PAIR, f"left {FOR_GOOD}", "right rows are kept until b.ts <= watermark"],
        ),
        (
            f"SELECT a.v FROM a LEFT JOIN t b ON {JOINED} OVERLAPS PERIOD(b.ts, b.te)",
            [
                PAIR,
                "a left row without a match is emitted when it comes",
                "left rows are not kept",
                "the right rows are those of a table",
            ],
        ),
        (
            f"SELECT a.v FROM a JOIN c b ON {JOINED} OVERLAPS PERIOD(b.ts, b.te)",
            [PAIR, f"left rows are kept until {UNKNOWN}", "right rows are kept until b.te <= watermark"],
        ),
        (
            f"SELECT count(*) AS n FROM a JOIN b ON {JOINED} OVERLAPS PERIOD(b.ts, b.te)",
            [PAIR, "left rows are kept until a.te <= watermark", "right rows are kept until b.te <= watermark"],
        ),
        (
            "SELECT a.v FROM a JOIN b ON a.k = b.k AND PERIOD(a.ts, a.te OPEN) OVERLAPS PERIOD(b.ts, b.te OPEN)",
            [
                OPEN_PAIR,
                "closed left rows are kept until a.te <= watermark and a.ts < watermark",
                "closed right rows are kept until b.te <= watermark and b.ts < watermark",
                "open left rows are kept until they are closed; a.te may be NULL in a result",
                "open right rows are kept until they are closed; b.te may be NULL in a result",
            ],
        ),
        (
            "SELECT a.v FROM a LEFT SEMI JOIN b ON a.k = b.k "
            "AND PERIOD(a.ts, a.te OPEN BY a.v) EQUALS PERIOD(b.ts, b.te)",
            [
                "a left row is emitted with its first match",
                "closed left rows are kept until a.ts < watermark",
                "right rows are kept until (b.ts < watermark or b.te < watermark) and b.te < watermark",
                "open left rows are kept until they are closed; a.te may be NULL in a result",
            ],
        ),
    ],
)
def test_explain_says_when_rows_come_out_and_go(sql: str, expected: list[str]) -> None:
    assert kept(sql).split("; ") == [part for text in expected for part in text.split("; ")]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            f"SELECT b.v FROM t a LEFT JOIN [[b]] ON {JOINED} OVERLAPS PERIOD(b.ts, b.te)",
            "a LEFT JOIN of a table on the left and the stream 'b' needs all rows of the table",
        ),
        (
            f"SELECT a.v FROM [[a]] FULL JOIN t b ON {JOINED} OVERLAPS PERIOD(b.ts, b.te)",
            "a FULL JOIN of a table on the right and the stream 'a' needs all rows of the table",
        ),
        (
            f"SELECT a.v FROM t a LEFT ANTI JOIN [[b]] ON {JOINED} OVERLAPS PERIOD(b.ts, b.te)",
            "an ANTI JOIN of a table on the left and the stream 'b' needs rows without a match of the table",
        ),
    ],
)
def test_what_is_never_decided_is_refused_at_the_stream(sql: str, message: str) -> None:
    start, end = sql.index("[["), sql.index("]]") - len("[[")
    with pytest.raises(UnsupportedError, match=message) as caught:
        stage(sql.replace("[[", "").replace("]]", ""), Streams(), Config())
    assert caught.value.span is not None
    assert (caught.value.span.start, caught.value.span.end) == (start, end)
    assert caught.value.help


NEAR = "a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS"
OVERLAPPING = "a.k = b.k AND a.ts < b.te AND b.ts < a.te"


@pytest.mark.parametrize(
    ("on", "left", "right"),
    [
        (NEAR, "left rows are kept until a.ts + 10s < watermark", "right rows are kept until b.ts < watermark"),
        (OVERLAPPING, "left rows are kept until a.te <= watermark", "right rows are kept until b.te <= watermark"),
    ],
)
def test_plain_inequalities_that_bound_both_times_are_ours(on: str, left: str, right: str) -> None:
    sql = f"SELECT a.v, b.v AS w FROM a JOIN b ON {on} AND a.v <> b.v"
    why = kept(sql)
    assert "the times of both streams bound each other" in why
    assert left in why
    assert right in why
    assert not stage(sql, Streams(), Config()).passthrough
    for config in (Config(streams="spark"), Config(interval_join_strategy="spark")):
        assert stage(sql, Streams(), config).passthrough


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (f"SELECT a.v, count(*) FROM a JOIN b ON {NEAR} GROUP BY a.v", "what reads its rows keeps state in Spark"),
        (
            f"SELECT a.v FROM a JOIN (SELECT DISTINCT k, ts FROM b) b ON {NEAR}",
            "is not a stream alone: other operators keep state for it",
        ),
        (
            "SELECT a.v FROM a JOIN c ON a.k = c.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS",
            "the event times of its streams do not bound each other",
        ),
        (f"SELECT a.v FROM a LEFT JOIN b ON {NEAR}", ""),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k AND b.ts > a.ts", ""),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k", ""),
        (f"SELECT /*+ NO_SWEEP */ a.v FROM a JOIN b ON {NEAR}", ""),
    ],
)
def test_sparks_join_stays(sql: str, why: str) -> None:
    staged = stage(sql, Streams(), Config())
    assert staged.passthrough
    assert ("Spark's join of streams" in str(staged)) == bool(why)
    assert why in str(staged)
    assert why in str(stage(f"EXPLAIN {sql}", Streams(), Config()))
