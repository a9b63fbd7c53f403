"""What planning says of multi-way joins over streams: which shapes, kinds and hints our operator takes, and what it
refuses at the hint."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from sqlext_planner.catalog import TableInfo
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError
from sqlext_planner.umjoin.execute.stream_execution import UMJoinStreamExec

from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.pipeline import StagedPlan, stage

COLUMNS = {"k": "int", "ts": "timestamp", "v": "bigint", "s": "string"}
CATALOG = DictCatalog(dict.fromkeys("abcd", COLUMNS), streams=("a", "b", "c", "d"))
HINTS = ("UMJOIN", "UMJOIN(a, b, c)", "UMJOIN(b, c)", "UMJOIN(C, A)")


def near(first: str, second: str) -> str:
    return f"{second}.ts BETWEEN {first}.ts - INTERVAL 5 SECONDS AND {first}.ts + INTERVAL 10 SECONDS"


#: The condition between a and b, and that of c.
KEYS = (f"a.k = b.k AND {near('a', 'b')}", f"c.k = a.k AND {near('a', 'c')}")
BANDS = (near("a", "b"), f"c.k = a.k AND c.v = b.v AND {near('a', 'c')} AND {near('b', 'c')}")
ONE_END = ("a.ts <= b.ts", f"c.k = a.k AND c.v = b.v AND {near('a', 'c')}")

LONELY = "b is joined with the other inner inputs neither on equal columns nor on times"


def operator(sql: str) -> UMJoinStreamExec:
    """The node of ours."""
    (node,) = (node for node in stage(sql, CATALOG, Config(), lenient=True).physical.walk() if node.is_extension)  # type: ignore[union-attr]
    assert isinstance(node, UMJoinStreamExec)
    return node


@pytest.mark.parametrize("kind", ["", "LEFT", "LEFT SEMI", "LEFT ANTI"])
def test_a_hint_may_name_the_right_side_of_any_join(kind: str) -> None:
    ab, ac = KEYS
    for hint, join in product(HINTS, ("{0} c ON {1}", "{0} d c ON {1}", "{0} (SELECT * FROM c WHERE v > 1) c ON {1}")):
        joined = join.format(f"{kind} JOIN", ac)
        node = operator(f"SELECT /*+ {hint} */ a.k, b.v FROM a JOIN b ON {ab} {joined}")
        assert len(node.inputs) == 3


def test_sides_joined_by_times_alone_are_ours_where_a_semi_join_has_their_keys() -> None:
    ab, ac = BANDS
    for hint in HINTS:
        assert operator(f"SELECT /*+ {hint} */ a.k, b.v FROM a JOIN b ON {ab} LEFT SEMI JOIN c ON {ac}").kinds == (
            "inner",
            "inner",
            "semi",
        )
    more = f"JOIN d ON d.v = b.v AND {near('b', 'd')} LEFT SEMI JOIN c ON c.k = a.k AND c.s = d.s AND {near('a', 'c')}"
    assert len(operator(f"SELECT /*+ UMJOIN */ a.k FROM a JOIN b ON {near('a', 'b')} {more}").inputs) == 4


@pytest.mark.parametrize(
    ("between", "of_c", "kind", "message"),
    [
        (*ONE_END, "LEFT SEMI", LONELY),
        ("true", ONE_END[1], "LEFT SEMI", LONELY),
        (*BANDS, "LEFT", "no two of its inputs are joined on equal columns"),
        (*BANDS, "LEFT ANTI", "no two of its inputs are joined on equal columns"),
    ],
)  # fmt: skip
def test_sides_that_only_another_input_joins_are_refused_at_the_hint(
    between: str, of_c: str, kind: str, message: str
) -> None:
    sql = f"SELECT /*+ UMJOIN */ a.k, b.v FROM a JOIN b ON {between} {kind} JOIN c ON {of_c}"
    with pytest.raises(SqlExtError, match=message) as caught:
        stage(sql, CATALOG, Config(), lenient=True)
    assert caught.value.condition == "hint-not-followed"
    assert caught.value.span is not None
    assert sql[caught.value.span.start : caught.value.span.end] == "UMJOIN"


@pytest.mark.parametrize("words", ["EXISTS (SELECT 1 FROM c WHERE {0})", "a.k IN (SELECT k FROM c WHERE {0})"])
@pytest.mark.parametrize("negated", ["", "NOT "])
def test_a_stream_in_a_subquery_is_refused_at_it_for_a_hint_and_sparks_without(words: str, negated: str) -> None:
    """Spark analyses such a statement first, and allows no stream there. A setting gives way."""
    where = negated + words.format(KEYS[1])
    for hint in ("/*+ UMJOIN */", "/*+ UMJOIN(a, b) */", "/*+ SWEEP */"):
        sql = f"SELECT {hint} a.k FROM a JOIN b ON {KEYS[0]} WHERE {where}"
        with pytest.raises(SqlExtError, match="over the stream 'c' in EXISTS, IN or another subquery") as caught:
            stage(sql, CATALOG, Config(), lenient=True)
        assert caught.value.condition == "hint-not-followed"
        assert caught.value.span is not None
        assert sql[caught.value.span.start : caught.value.span.end] == "c"
    sql = f"SELECT a.k FROM a JOIN b ON {KEYS[0]} WHERE {where}"
    for explained in ("", "EXPLAIN "):
        assert stage(explained + sql, CATALOG, Config(umjoin_strategy="operator"), lenient=True).passthrough


def test_a_name_that_is_in_a_subquery_alone_is_told() -> None:
    sql = f"SELECT /*+ UMJOIN(a, b, c) */ a.k FROM a JOIN b ON {KEYS[0]} WHERE EXISTS (SELECT 1 FROM c WHERE {KEYS[1]})"
    with pytest.raises(SqlExtError, match="'c' in the hint UMJOIN is not a relation of this FROM"):
        stage(sql, CATALOG, Config(), lenient=True)


class Marked(DictCatalog):
    """Streams a, b, c, d with a watermark on ts, and a table t."""

    def __init__(self, obstacle: str | None = None, tasks: int = 2) -> None:
        super().__init__(dict.fromkeys("abcdt", COLUMNS), streams=tuple("abcd"))
        self._obstacle, self._tasks = obstacle, tasks

    def cores(self) -> int:
        return self._tasks

    def table(self, name: str) -> TableInfo | None:
        info = super().table(name)
        return info if info is None or name == "t" else replace(info, watermark=("ts", 5_000))

    def stream_obstacle(self) -> str | None:
        return self._obstacle


def planned(sql: str, config: Config | None = None, obstacle: str | None = None, tasks: int = 2) -> StagedPlan:
    return stage(sql, Marked(obstacle, tasks), config or Config(), lenient=True)


SHARED = "FROM a JOIN b ON a.k = b.k JOIN c ON c.k = b.k"
SEVERAL = "FROM a JOIN b ON a.k = b.k JOIN c ON c.v = b.v"
ONCE = "the operator keeps its {} inputs once, Spark's joins keep them once and the results of {}"


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (f"SELECT a.v {SHARED}", ONCE.format(3, "1 join")),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k LEFT SEMI JOIN c ON c.k = b.k", ONCE.format(3, "1 join")),
        (f"SELECT a.v {SHARED} JOIN d ON d.k = a.k WHERE a.v > b.v", ONCE.format(4, "2 joins")),
        (f"SELECT x FROM (SELECT a.v + 1 AS x {SHARED}) WHERE x > 2", ONCE.format(3, "1 join")),
        (f"SELECT a.v {SHARED} UNION ALL SELECT v FROM d", ONCE.format(3, "1 join")),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k JOIN t ON t.k = b.k", "its 2 inputs once, Spark's joins keep"),
        (f"SELECT a.v FROM (SELECT * FROM a WHERE v > 1) a JOIN b USING (k) JOIN c ON c.k = b.k AND {near('b', 'c')}",
         ONCE.format(3, "1 join")),
        ("SELECT a.ts, b.ts AS t2 FROM a JOIN b ON a.k = b.k JOIN c ON c.v = b.v",
         "and refuse them: the result of a join has two event times"),
        (f"SELECT a.ts {SEVERAL}",
         "its 3 inputs 1.33 times each in 2 tasks, since they share no key, Spark's joins keep them once and the "
         "results of 1 join, and a row costs them 4 times as much"),
    ],
)  # fmt: skip
def test_plain_sql_is_ours_where_it_keeps_no_more(sql: str, why: str) -> None:
    staged = planned(sql)
    assert not staged.passthrough
    assert staged.extensions == ("UMJoinStreamExec",)
    assert why in str(staged)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        (f"SELECT a.k, count(*) {SHARED} GROUP BY a.k", "what reads its rows keeps state in Spark"),
        (f"SELECT DISTINCT a.v {SHARED}", "what reads its rows keeps state in Spark"),
        (f"SELECT a.v {SHARED} UNION SELECT v FROM d", "what reads its rows keeps state in Spark"),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k JOIN (SELECT DISTINCT k, ts FROM c) x ON x.k = b.k",
         "x is not a stream alone: other operators keep state for it"),
        (f"SELECT a.v FROM a JOIN b ON a.k = b.k LEFT JOIN c ON c.k = b.k AND {near('b', 'c')}",
         "its rows would wait until the watermark has passed all matches"),
        (f"SELECT a.v FROM a JOIN b ON a.k = b.k LEFT ANTI JOIN c ON c.k = b.k AND {near('b', 'c')}",
         "its rows would wait until the watermark has passed all matches"),
        (f"SELECT a.v FROM a JOIN b ON {near('a', 'b')} JOIN c ON c.k > b.k AND c.s = a.s",
         "no column of b must be equal to another input's"),
    ],
)  # fmt: skip
def test_sparks_joins_stay_and_explain_says_why(sql: str, why: str) -> None:
    staged = planned(sql)
    assert staged.passthrough
    assert "UMJoinCascadeExec" in str(staged)
    assert why in str(staged)
    told = planned(f"EXPLAIN {sql}")
    assert not told.passthrough
    assert why in str(told)


def test_sparks_joins_stay_where_rows_would_be_kept_in_many_tasks() -> None:
    assert not planned(f"SELECT a.ts {SEVERAL}", tasks=32).passthrough
    staged = planned(f"SELECT a.ts {SEVERAL}", tasks=64)
    assert staged.passthrough
    assert "the operator keeps its 3 inputs 5.67 times each in 64 tasks" in str(staged)


def test_settings_come_before_what_is_kept() -> None:
    shared, several = f"SELECT a.v {SHARED}", f"SELECT a.ts {SEVERAL}"
    assert planned(shared, Config(streams="spark")).passthrough
    assert planned(shared, Config(umjoin_strategy="cascade")).passthrough
    assert planned(shared, Config(umjoin_strategy="cascade", streams="ours")).passthrough
    assert not planned(several, Config(streams="ours"), tasks=64).passthrough
    assert not planned(several, Config(umjoin_strategy="operator", streams="spark")).passthrough
    assert not planned(several.replace("SELECT", "SELECT /*+ UMJOIN */"), Config(streams="spark")).passthrough
    obstacle = "a setting of Spark's does not suit"
    for config in (Config(), Config(streams="ours")):
        assert f"Spark's joins of streams; {obstacle}" in str(planned(shared, config, obstacle))


def test_it_is_ours_below_our_operators_which_know_how_late_its_rows_come() -> None:
    joined = f"SELECT a.k, a.ts {SHARED} AND {near('a', 'c')} AND {near('a', 'b')}"
    for sql, above in (
        (f"SELECT d.k, t.v FROM ({joined}) d LAST JOIN t ON d.k = t.k", "LastJoinExec"),
        (f"SELECT k, count(*) OVER (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1m PRECEDING AND CURRENT ROW) AS n "
         f"FROM ({joined})", "WindowStreamExec"),
    ):  # fmt: skip
        assert planned(sql).extensions == (above, "UMJoinStreamExec")


def test_two_streams_are_no_group() -> None:
    staged = planned("SELECT a.v FROM a JOIN b ON a.k = b.k")
    assert staged.passthrough
    assert "UMJoin" not in str(staged)


def test_times_that_nobody_knows_bound_nothing() -> None:
    ab, ac = BANDS
    sql = f"SELECT a.k, b.v FROM a JOIN b ON {ab} LEFT SEMI JOIN c ON {ac}"
    config = Config(streams="ours")
    assert "UMJoinStreamExec" not in str(stage(sql, CATALOG, config, lenient=True))
    assert LONELY in str(stage(sql, CATALOG, config, lenient=True))
