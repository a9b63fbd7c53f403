"""What is around a call over our windows, in plans: modifiers, ranks, orders; and what streams refuse of it."""

from __future__ import annotations

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError
from sqlext_planner.window.nodes import WindowUnion

from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.pipeline import stage

COLUMNS = {"k": "int", "s": "string", "ts": "timestamp", "v": "int", "x": "double", "c": "boolean"}
CATALOG = DictCatalog(dict.fromkeys("tuls", COLUMNS), streams="ls")
FRAME = "ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW"


def union(item: str, table: str = "t", definition: str = f"PARTITION BY k ORDER BY ts {FRAME}") -> WindowUnion:
    """The window node of a statement with one item."""
    plan = stage(f"SELECT {item} AS r FROM {table} WINDOW w AS ({definition})", CATALOG, Config()).optimized
    assert plan is not None
    (node,) = plan.collect(WindowUnion)
    return node


@pytest.mark.parametrize(
    ("item", "shown", "dtype"),
    [
        ("sum(v) FILTER (WHERE x > 1) OVER w", "sum(t.v) FILTER (WHERE t.x > 1) AS r", "bigint"),
        ("count(DISTINCT s) OVER w", "distinct_count(t.s) FILTER (WHERE (t.s) IS NOT NULL) AS r", "bigint"),
        ("avg(DISTINCT v) FILTER (WHERE c) OVER w", "distinct_avg(t.v) FILTER (WHERE t.c) AS r", "double"),
        ("max(DISTINCT s) OVER w", "max(t.s) AS r", "string"),
        ("first_value(v) IGNORE NULLS OVER w", "first_value(t.v, True) AS r", "int"),
        ("last_value(v IGNORE NULLS) OVER w", "last_value(t.v, True) AS r", "int"),
        ("first_value(v) RESPECT NULLS OVER w", "first_value(t.v, False) AS r", "int"),
        ("lag(v, 2) IGNORE NULLS OVER w", "lag(t.v, 2) FILTER (WHERE (t.v) IS NOT NULL) AS r", "int"),
        ("lead(x, 1, 0) OVER w", "lead(t.x, CAST(0 AS double), 1) AS r", "double"),
    ],
)
def test_modifiers(item: str, shown: str, dtype: str) -> None:
    (group,) = union(item).windows
    assert [(str(call), call.dtype) for call in group.calls] == [(shown, dtype)]


def test_ranks_share_the_exchange_and_count_over_frames_of_their_own() -> None:
    node = union("rank() OVER w + dense_rank() OVER w + ntile(2) OVER w + sum(v) OVER w")
    frames = {str(window.frame) for window in node.windows}
    assert f"{FRAME}" in frames
    assert "ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND 0 OPEN PRECEDING" in frames
    assert "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING" in frames


def test_orders_and_groups() -> None:
    node = union("sum(v) OVER w", definition=f"ORDER BY v * 2, s DESC, x NULLS LAST {FRAME}")
    assert node.label().startswith("WindowUnion: PARTITION BY 1 ORDER BY t.v * 2, t.s DESC, t.x ASC NULLS LAST [")
    merged = stage(
        f"SELECT sum(v) OVER a, sum(v) OVER b, sum(v) OVER c FROM t WINDOW a AS (ORDER BY ts, v {FRAME}), "
        f"b AS (ORDER BY ts, v ROWS_RANGE BETWEEN 2h PRECEDING AND CURRENT ROW), c AS (ORDER BY ts {FRAME})",
        CATALOG,
        Config(),
    ).optimized
    assert merged is not None
    assert sorted(len(found.windows) for found in merged.collect(WindowUnion)) == [1, 2]


def test_an_unused_window_is_nothing() -> None:
    plan = stage(f"SELECT v FROM t WINDOW w AS (PARTITION BY k ORDER BY ts {FRAME})", CATALOG, Config()).optimized
    assert plan is not None
    assert not list(plan.collect(WindowUnion))


@pytest.mark.parametrize(
    ("item", "definition", "message"),
    [
        ("lead(v) OVER w", "PARTITION BY k ORDER BY ts", "reads a row after the current one"),
        ("lag(v) IGNORE NULLS OVER w", "PARTITION BY k ORDER BY ts", "looks for a row with a value"),
        ("ntile(2) OVER w", "PARTITION BY k ORDER BY ts", "never complete"),
        ("dense_rank() OVER w", "PARTITION BY k ORDER BY ts", "needs all rows of each key"),
        ("sum(v) OVER w", "PARTITION BY k ORDER BY ts, v", "keeps rows of one time in the order in which they came"),
        (
            "sum(v) OVER w",
            "PARTITION BY k ORDER BY ts + INTERVAL 1 HOUR",
            "ordered by the column that has the watermark",
        ),
    ],
)
def test_what_streams_refuse(item: str, definition: str, message: str) -> None:
    with pytest.raises(SqlExtError, match=message) as error:
        stage(f"SELECT {item} FROM l WINDOW w AS (UNION s {definition} {FRAME})", CATALOG, Config())
    assert error.value.span is not None
    assert error.value.help


@pytest.mark.parametrize(
    "item", ["row_number() OVER w", "rank() OVER w", "sum(v) FILTER (WHERE c) OVER w", "count(DISTINCT s) OVER w"]
)
def test_what_streams_take(item: str) -> None:
    assert stage(f"SELECT {item} FROM l WINDOW w AS (ORDER BY ts {FRAME})", CATALOG, Config()).physical is not None
