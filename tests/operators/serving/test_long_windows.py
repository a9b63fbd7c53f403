"""A long window over condensed rows is what it is over the rows themselves: both ways are asked, with rows that come
late, several runs, ties, NULLs, and rows that go."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlext_operators.serving import condensed, steps, store
from sqlext_operators.serving.condensed import CondensedSlice, Recipe
from sqlext_operators.serving.long_windows import FARTHEST
from sqlext_operators.window.condense import PartialCall
from sqlext_planner.serving.lowering import ServingSettings

from sqlext.catalog.dictionary import DictCatalog
from sqlext.serving.deployment import Deployment

COLUMNS = {"k": "int", "ts": "timestamp", "i": "int", "b": "bigint", "x": "double", "c": "string", "d": "date"}
TABLES = {"asked": COLUMNS, "more": COLUMNS}
START = datetime(2026, 1, 1)
CALLS = (
    "sum(i) OVER w AS c0, sum(x) OVER w AS c1, avg(b) OVER w AS c2, avg(x) OVER w AS c3, min(d) OVER w AS c4, "
    "max(c) OVER w AS c5, count(*) OVER w AS c6, count(x) OVER w AS c7, distinct_count(c) OVER w AS c8, "
    "sum_where(b, i > 1) OVER w AS c9, min_where(x, i > 1) OVER w AS c10, count_where(x, i > 1) OVER w AS c11, "
    "sum_cate(i, c) OVER w AS c12, avg_cate(x, c) OVER w AS c13, max_cate(b, i) OVER w AS c14, "
    "count_cate(x, d) OVER w AS c15, min_cate_where(x, i > 1, c) OVER w AS c16, "
    "count_cate_where(x, i > 1, c) OVER w AS c17, lag(i, 1) OVER w AS c18, stddev(x) OVER w AS c19"
)
FRAMES = [
    "BETWEEN 40s PRECEDING AND CURRENT ROW",
    "BETWEEN 40s PRECEDING AND CURRENT ROW EXCLUDE CURRENT_ROW",
    "BETWEEN 40s PRECEDING AND CURRENT ROW EXCLUDE CURRENT_TIME",
    "BETWEEN 40s PRECEDING AND 5s PRECEDING",
    "BETWEEN 40s OPEN PRECEDING AND 5s FOLLOWING",
    "BETWEEN 40s PRECEDING AND CURRENT ROW INSTANCE_NOT_IN_WINDOW",
    "BETWEEN 40s PRECEDING AND CURRENT ROW EXCLUDE CURRENT_ROW INSTANCE_NOT_IN_WINDOW",
]


@pytest.fixture(autouse=True, params=[10.0, 0.6], ids=["small leaves", "larger leaves"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves of a few rows, so that few rows have several levels; or larger ones where many rows are left."""
    monkeypatch.setattr(condensed, "LEAF", 4)
    monkeypatch.setattr(condensed, "_FAN", 3)
    monkeypatch.setattr(condensed, "_MOST_LEFT", request.param)
    monkeypatch.setattr(condensed, "_LARGER", ((8, 2), (16, 2)))
    monkeypatch.setattr(store, "CONDENSED_FROM", 5)


def made(frame: str, *, ansi: bool = True) -> Deployment:
    sql = f"SELECT k, {CALLS} FROM asked WINDOW w AS (UNION more PARTITION BY k ORDER BY ts ROWS_RANGE {frame})"
    return Deployment(sql, DictCatalog(TABLES), request="asked", settings=ServingSettings(ansi, "UTC"), lateness=0)


NUMBERS = st.sampled_from([None, 0, 1, 2, 3, -7])
DOUBLES = st.sampled_from([None, 0.0, -0.0, 0.1, 1e17, -1e17, math.nan, math.inf, 3.25])
ROWS = st.fixed_dictionaries(
    {
        "k": st.sampled_from([1, 1, 1, 2, None]),
        "ts": st.integers(0, 60).map(lambda second: START + timedelta(seconds=second)),
        "i": NUMBERS,
        "b": NUMBERS,
        "x": DOUBLES,
        "c": st.sampled_from([None, "", "a", "b", "cc"]),
        "d": st.sampled_from([None, START.date()]),
    }
)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other)


@settings(deadline=None)
@given(data=st.data())
def test_condensed_rows_change_no_answer(data: st.DataObject) -> None:
    deployment = made(data.draw(st.sampled_from(FRAMES), "frame"), ansi=data.draw(st.booleans(), "ansi"))
    for _ in range(data.draw(st.integers(1, 4), "pushes")):
        rows = data.draw(st.lists(ROWS, max_size=40), "rows")
        deployment.push(data.draw(st.sampled_from(["asked", "more"]), "table"), rows)
        asked = data.draw(ROWS, "asked")
        found = outcome(deployment, asked, condensed_from=0)
        wanted = outcome(deployment, asked, condensed_from=1 << 60)
        assert found.keys() == wanted.keys()
        assert {name: (found[name], wanted[name]) for name in found if not same(found[name], wanted[name])} == {}


def outcome(deployment: Deployment, asked: dict[str, Any], condensed_from: int) -> dict[str, Any]:
    """The answer where keys with so many rows are condensed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "CONDENSED_FROM", condensed_from)
        return deployment.answer(asked)


@given(
    st.integers(0, 200).flatmap(
        lambda count: st.tuples(st.just(count), st.integers(0, count), st.integers(0, count), st.booleans())
    )
)
def test_a_cover_has_each_row_once(case: tuple[int, int, int, bool]) -> None:
    count, one, other, by_category = case
    start, stop = sorted((one, other))
    numbers = np.arange(count)
    rows = pa.RecordBatch.from_arrays([pa.array(numbers), pa.array(numbers % 3)], names=["x", "c"])
    recipe = Recipe((PartialCall("integer", "x", None), PartialCall("count", None, None)), "c" if by_category else None)
    slices = CondensedSlice(rows, recipe)
    total = seen = 0
    for place, part, is_condensed in slices.cover(start, stop):
        columns = part if is_condensed else recipe.columns(part)
        total += sum(value or 0 for value in columns.column(recipe.partials[0].column).to_pylist())
        seen += sum(columns.column(recipe.partials[1].column).to_pylist())
        assert start <= place < stop or start == stop
    assert (seen, total) == (stop - start, sum(range(start, stop)))


def test_a_million_rows_are_covered_by_few() -> None:
    assert condensed.LEAF == 4
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(condensed, "LEAF", 256)
        patch.setattr(condensed, "_FAN", 16)
        rows = pa.RecordBatch.from_arrays([pa.array(np.arange(1_000_000))], names=["x"])
        slices = CondensedSlice(rows, Recipe((PartialCall("integer", "x", None),)))
        assert sum(part.num_rows for _, part, _ in slices.cover(17, 999_998)) < 700
        assert slices.nbytes < 0.02 * rows.nbytes


def test_many_distinct_values_are_not_condensed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condensed, "_MOST_LEFT", 0.25)
    rows = pa.RecordBatch.from_arrays([pa.array(np.arange(1_000))], names=["x"])
    assert not CondensedSlice(rows, Recipe((PartialCall("distinct", "x", None),))).is_worth_it


SPECIFICATIONS = [
    "ROWS_RANGE BETWEEN 40s PRECEDING AND CURRENT ROW MAXSIZE 3",
    "ROWS_RANGE BETWEEN 40s PRECEDING AND CURRENT ROW MAXSIZE 3 EXCLUDE CURRENT_TIME",
    "ROWS_RANGE BETWEEN 40s PRECEDING AND 5s PRECEDING MAXSIZE 2",
    "ROWS_RANGE BETWEEN 40s PRECEDING AND CURRENT ROW MAXSIZE 2 INSTANCE_NOT_IN_WINDOW",
    "ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND 3s PRECEDING MAXSIZE 4",
    "ROWS BETWEEN 4 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING",
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT_TIME",
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT_ROW",
    "ROWS_RANGE BETWEEN 5s PRECEDING AND CURRENT ROW EXCLUDE CURRENT_TIME",
    "ROWS_RANGE BETWEEN 5s PRECEDING AND 5s FOLLOWING",
]


@settings(deadline=None)
@given(data=st.data())
def test_rows_beyond_the_reach_change_no_answer(data: st.DataObject) -> None:
    one, other = (data.draw(st.sampled_from(SPECIFICATIONS), "window") for _ in range(2))
    calls = "sum(i) OVER w AS a, count(*) OVER w AS b, max(c) OVER v AS c, count(x) OVER v AS d, lag(i, 2) OVER v AS e"
    windows = ", ".join(
        f"{name} AS (UNION more PARTITION BY k ORDER BY ts {text})" for name, text in (("w", one), ("v", other))
    )
    sql = f"SELECT k, {calls} FROM asked WINDOW {windows}"
    settings_ = ServingSettings(True, "UTC")
    deployment = Deployment(sql, DictCatalog(TABLES), request="asked", settings=settings_, lateness=None)
    for _ in range(data.draw(st.integers(1, 4), "pushes")):
        deployment.push(data.draw(st.sampled_from(["asked", "more"]), "table"), data.draw(st.lists(ROWS, max_size=20)))
        asked = data.draw(ROWS, "asked")
        found = deployment.answer(asked)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(steps.RequestReach, "span", lambda reach, time: store.Span(-FARTHEST, FARTHEST))
            assert found == deployment.answer(asked)
