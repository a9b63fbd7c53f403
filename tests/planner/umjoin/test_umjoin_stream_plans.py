"""What planning says of multi-way joins over streams: which shapes, kinds and hints our operator takes, and what it
refuses at the hint."""

from __future__ import annotations

from itertools import product

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError
from sqlext_planner.umjoin.execute.stream_execution import UMJoinStreamExec

from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.pipeline import stage

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
