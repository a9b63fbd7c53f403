"""Windows of standard SQL over streams, without Spark: what becomes of them, what EXPLAIN says, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlext_planner.catalog import TableInfo
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError
from sqlext_planner.exchange.chains import StreamExec
from sqlext_planner.plan_format import tree_text

from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.pipeline import StagedPlan, stage

COLUMNS = {"k": "int", "ts": "timestamp", "v": "bigint", "x": "double", "s": "string", "d": "decimal(38,2)"}
W = "(PARTITION BY k ORDER BY ts)"


class Streams(DictCatalog):
    """Streams a and b with a watermark on ts, 5 seconds late, and a table t."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(("a", "b", "t"), COLUMNS), streams=("a", "b"))

    def table(self, name: str) -> TableInfo | None:
        info = super().table(name)
        return info if info is None or name == "t" else replace(info, watermark=("ts", 5_000))


def staged(sql: str, config: Config | None = None, *, lenient: bool = True) -> StagedPlan:
    return stage(sql, Streams(), config or Config(), lenient=lenient)


def operators(sql: str) -> list[StreamExec]:
    """The operators of a statement's plan, the uppermost first."""
    physical = staged(sql).physical
    assert physical is not None
    return [node for node in physical.walk() if isinstance(node, StreamExec)]


GOLDEN = """\
OutputExec: k, l, d, z
  ProjectExec: a.k, l_before AS l, CAST(dense_rank_before AS INT) AS d, z
    FilterExec: has_row IS NOT NULL
      WindowStreamExec: PARTITION BY a.k ORDER BY a.ts [window 1 (ROWS BETWEEN 4 PRECEDING AND CURRENT ROW): \
sum(a.v) AS z, window 1 (ROWS BETWEEN CURRENT ROW AND CURRENT ROW): lag(l, 1) AS l_before, \
lag(dense_rank, 1) AS dense_rank_before, lag(true, 1) AS has_row] PAYLOAD [a.k] OF 1 ROWS BEFORE
          (why: a row is emitted when 1 more row of its key has come, with a.ts < watermark; rows are kept for the \
watermark's delay of 5s; the newest 4 rows of each key stay)
          (partitioner: hash: a window has no bound in time: its rows are counted, or it has no start \
or no end, so that a bucket that gets a key later lacks rows)
        WindowStreamExec: PARTITION BY a.k ORDER BY a.ts [w (RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW): \
count(*) FILTER (WHERE is_new) AS dense_rank] PAYLOAD [a.k, a.ts, a.v, l]
            (why: a row is emitted when a.ts < watermark; rows are kept for the watermark's delay of 5s; what is older \
stays condensed, a few rows for each key)
            (partitioner: hash: a window has no bound in time: its rows are counted, or it has no start \
or no end, so that a bucket that gets a key later lacks rows)
          ProjectExec: a.k, a.ts, a.v, l, NOT (before <=> a.ts) AS is_new
            WindowStreamExec: PARTITION BY a.k ORDER BY a.ts [w (RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW): \
collect_list(a.s) AS l, w (ROWS BETWEEN CURRENT ROW AND CURRENT ROW): lag(a.ts, 1) AS before] \
PAYLOAD [a.k, a.ts, a.v]
                (why: a row is emitted when a.ts < watermark; rows are kept for the watermark's delay of 5s; the \
newest 1 rows of each key stay; all rows of each key stay, for collect_list())
                (partitioner: hash: a window has no bound in time: its rows are counted, or it has no start \
or no end, so that a bucket that gets a key later lacks rows)
              ScanExec: a [k, ts, v, s]"""


def test_the_steps_of_a_plan_and_what_explain_says_of_them() -> None:
    plan = staged(
        "SELECT k, collect_list(s) OVER w AS l, dense_rank() OVER w AS d, sum(v) OVER (PARTITION BY k ORDER BY ts "
        "ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING) AS z FROM a WINDOW w AS (PARTITION BY k ORDER BY ts)"
    )
    assert plan.physical is not None
    assert not plan.passthrough
    assert tree_text(plan.physical) == GOLDEN


@pytest.mark.parametrize(
    ("call", "steps"),
    [
        (f"sum(v) OVER {W}", 1),
        (f"row_number() OVER {W}, rank() OVER {W}, lag(v) OVER {W}, count(*) OVER (PARTITION BY k ORDER BY ts)", 1),
        (f"lead(v) OVER {W}", 1),
        (f"last_value(v) OVER {W}", 1),
        (f"dense_rank() OVER {W}, first_value(v) OVER {W}, nth_value(s, 2) OVER {W}", 2),
        (f"sum(v) OVER {W}, lead(v) OVER {W}", 2),
        (f"sum(v) OVER {W}, sum(v) OVER (PARTITION BY s ORDER BY ts)", 2),
        ("sum(v) OVER (PARTITION BY k, s ORDER BY ts), sum(x) OVER (PARTITION BY s, k ORDER BY ts)", 1),
        (f"first_value(v) OVER {W}, lead(v) OVER {W}", 3),
    ],
)
def test_windows_of_the_same_keys_are_one_operator(call: str, steps: int) -> None:
    assert len(operators(f"SELECT {call} FROM a")) == steps


def test_what_is_kept_for_windows_without_a_start() -> None:
    def kept(call: str) -> str:
        return operators(f"SELECT {call} FROM a")[0].why

    assert "condensed" in kept(f"sum(v) OVER {W}")
    assert "all rows of each key stay, for stddev()" in kept(f"stddev(v) OVER {W}")
    assert "all rows of each key stay, for last_value()" in kept(f"last_value(v) IGNORE NULLS OVER {W}")
    assert "all rows" not in kept(f"last_value(v) OVER {W}")
    assert "all rows" not in kept("stddev(v) OVER (PARTITION BY k ORDER BY ts ROWS 3 PRECEDING)")
    frame = "PARTITION BY k ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING"
    assert "all rows of each key stay, for sum()" in kept(f"sum(v) OVER ({frame})")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT h FROM (SELECT k, sum(v) OVER {W} AS h FROM (SELECT * FROM a WHERE v > 0)) WHERE h > 3",
        f"WITH c AS (SELECT k, ts, v + 1 AS v FROM a) SELECT sum(v) OVER {W} FROM c",
        "SELECT sum(a.v) OVER (PARTITION BY a.k ORDER BY a.ts) FROM a LEFT JOIN t ON a.k = t.k",
        f"SELECT k, row_number() OVER {W} AS n FROM a QUALIFY n = 1",
        f"EXPLAIN SELECT rank() OVER {W} FROM a",
        f"CREATE TEMP VIEW w AS SELECT rank() OVER {W} FROM a",
        f"SELECT sum(v) OVER w FROM a WINDOW w AS {W}",
        "SELECT sum(a.v) OVER (PARTITION BY a.k ORDER BY a.ts) FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts "
        "AND a.ts + INTERVAL 1 MINUTE",
    ],
)
def test_plain_windows_over_streams_are_ours(sql: str) -> None:
    plan = staged(sql)
    assert "WindowStreamExec" in plan.extensions
    assert not plan.passthrough


def test_a_window_that_nobody_reads_is_no_reason_for_a_refusal() -> None:
    """Spark would look at it all the same."""
    plan = staged(f"SELECT k FROM (SELECT k, sum(v) OVER {W} AS s FROM a)")
    assert not plan.passthrough
    assert not plan.extensions


def test_windows_over_tables_stay_sparks() -> None:
    assert staged(f"SELECT sum(v) OVER {W} FROM t").passthrough
    # beside a stream too
    plan = staged(f"SELECT * FROM (SELECT k, sum(v) OVER {W} AS s FROM t) JOIN b USING (k)")
    assert plan.passthrough
    assert plan.refused is None


def test_the_setting_gives_back_sparks_refusal() -> None:
    for sql in (f"SELECT sum(v) OVER {W} FROM a", "SELECT sum(v) OVER (PARTITION BY k) FROM a"):
        plan = staged(sql, Config(streams="spark"))
        assert plan.passthrough
        assert plan.refused is None


#: What a stream cannot have, the place in [[ ]], what the message and the help say.
REFUSED = [
    ("[[sum(v) OVER (PARTITION BY k)]]", "holds its whole partition", "order it by"),
    ("[[sum(v) OVER ()]]", "holds its whole partition", "order it by"),
    ("sum(v) OVER (PARTITION BY k ORDER BY [[ts DESC]])", "DESC", "order ascending"),
    ("sum(v) OVER (PARTITION BY k ORDER BY ts, [[v]])", "has one key", "watermark"),
    (
        "sum(v) OVER (PARTITION BY k ORDER BY [[v + 1]])",
        "ordered by the column that has the watermark",
        "withWatermark",
    ),
    ("sum(v) OVER (PARTITION BY k ORDER BY [[s]])", "cannot be ordered by a column of type string", "timestamp"),
    ("sum(v) OVER (PARTITION BY [[x]] ORDER BY ts)", "cannot be partitioned by", "type"),
    ("sum(v) OVER (PARTITION BY [[rand()]] ORDER BY ts)", "gives another key|cannot be partitioned", "col|key"),
    (
        "sum(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND [[UNBOUNDED FOLLOWING]])",
        "never complete",
        "FOLLOWING",
    ),
    (
        "sum(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN [[INTERVAL 1 MONTH PRECEDING]] AND CURRENT ROW)",
        "months",
        "30 DAYS",
    ),
    ("[[ntile(3) OVER (PARTITION BY k ORDER BY ts)]]", "number of all rows", "row_number"),
    ("[[percent_rank() OVER (PARTITION BY k ORDER BY ts)]]", "number of all rows", "row_number"),
    ("[[cume_dist() OVER (PARTITION BY k ORDER BY ts)]]", "number of all rows", "row_number"),
    ("[[lag(v) IGNORE NULLS]] OVER (PARTITION BY k ORDER BY ts)", "IGNORE NULLS", "last_value"),
    ("[[lead(v) IGNORE NULLS]] OVER (PARTITION BY k ORDER BY ts)", "IGNORE NULLS", "leave out"),
    ("[[lag(v, -1)]] OVER (PARTITION BY k ORDER BY ts)", "at least 0", "lag"),
    ("[[my_function(v)]] OVER (PARTITION BY k ORDER BY ts)", "is not computed over a plain window", "foreachBatch"),
    (
        "lead(v) OVER (PARTITION BY k ORDER BY ts), [[lead(v) OVER (PARTITION BY s ORDER BY ts)]]",
        "only windows of one PARTITION BY",
        "RANGE",
    ),
    ("count(*), [[row_number() OVER (ORDER BY count(*))]]", "aggregates has no event time", "subquery"),
]


@pytest.mark.parametrize(("items", "message", "help"), REFUSED)
def test_what_a_stream_cannot_have_is_refused_at_its_place(items: str, message: str, help: str) -> None:
    text = f"SELECT {items} FROM a"
    start, end = text.index("[["), text.index("]]") - len("[[")
    sql = text.replace("[[", "").replace("]]", "")
    plan = staged(sql)
    assert plan.passthrough  # Spark's own errors come first
    assert plan.refused is not None
    for statement in (sql, f"EXPLAIN {sql}", f"CREATE TEMP VIEW w AS {sql}"):
        with pytest.raises(SqlExtError, match=message) as caught:
            staged(statement, lenient=statement is not sql)
        shift = len(statement) - len(sql)
        assert caught.value.span is not None
        assert (caught.value.span.start - shift, caught.value.span.end - shift) == (start, end)
        assert caught.value.help
        assert any(word in caught.value.help for word in help.split("|"))
