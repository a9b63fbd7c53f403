"""Pairs and counts of every relation against the formula, many tables at a time as key groups; the kernels alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.interval_join.codes import periods_of, plain_codes
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.kernels.matches import cut_slices
from sqlext_operators.interval_join.kernels.tiles import count_tiles, fill_tiles
from sqlext_operators.interval_join.matches import Buffers, PassMatches, values_used
from sqlext_operators.interval_join.passes import Pass, passes_for
from sqlext_operators.interval_join.relations import LEFT_PERIOD, RELATIONS, RIGHT_PERIOD
from sqlext_operators.interval_join.rows import CodedRows
from sqlext_operators.interval_join.spec import IntervalSide

from tests.operators.interval_join.interval_data import CASES, holds, intervals, name_of, truth
from tests.properties import examples

#: Tables that one call joins: 128 cases x (pairs, left counts, right counts) x 300 tables = 115,200 comparisons.
TABLES = 300
LEFT_ROWS = 8
RIGHT_ROWS = 9


class Tables:
    """TABLES pairs of small tables, rows shuffled over all of them; `periods` says which rows may match."""

    def __init__(self, rng: np.random.Generator, columns: tuple[dict[str, Any], dict[str, Any]], periods: Any) -> None:
        self.order = [rng.permutation(TABLES * count) for count in (LEFT_ROWS, RIGHT_ROWS)]
        sides = []
        for values, count, order, period in zip(columns, (LEFT_ROWS, RIGHT_ROWS), self.order, periods, strict=True):
            rows = pa.RecordBatch.from_pydict({name: value.ravel()[order] for name, value in values.items()})
            group = np.repeat(np.arange(TABLES), count)[order]
            side = IntervalSide(values=tuple(values), periods=(period,) if period else ())
            valid = periods_of(side, rows, "drop")
            sides.append(CodedRows(rows, group, TABLES, dict.fromkeys(values, plain_codes), valid))
        self.left, self.right = sides

    def matches(self, item: Pass, conditions: tuple[Condition, ...]) -> PassMatches:
        used = values_used(conditions)
        if item.window == "left":
            return PassMatches(item, self.left, self.right, used)
        return PassMatches(item, self.right, self.left, used[::-1])

    def pairs(self, passes: tuple[Pass, ...], conditions: tuple[Condition, ...], capacity: int) -> Any:
        """int64[table, left row, right row]: how often each pair was found."""
        found = np.zeros((TABLES, LEFT_ROWS, RIGHT_ROWS), np.int64)
        buffers = Buffers.of(capacity)
        for item in passes:
            for count in self.matches(item, conditions).pairs(buffers):
                assert 0 < count <= capacity
                ours, theirs = buffers.window[:count], buffers.probe[:count]
                left, right = (ours, theirs) if item.window == "left" else (theirs, ours)
                one, other = self.order[0][left], self.order[1][right]
                assert (one // LEFT_ROWS == other // RIGHT_ROWS).all()
                np.add.at(found, (one // LEFT_ROWS, one % LEFT_ROWS, other % RIGHT_ROWS), 1)
        return found

    def counts(self, passes: tuple[Pass, ...], conditions: tuple[Condition, ...], *, exactly: bool) -> tuple[Any, Any]:
        """(int64[table, left row], int64[table, right row]): matches of each row."""
        left, right = np.zeros(len(self.left), np.int64), np.zeros(len(self.right), np.int64)
        for item in passes:
            ours, theirs = (left, right) if item.window == "left" else (right, left)
            if exactly:
                self.matches(item, conditions).add_counts(ours, theirs, exactly=True)
            else:
                self.matches(item, conditions).add_counts(ours, None, exactly=False)
                self.matches(item, conditions).add_counts(None, theirs, exactly=False)
        in_order = np.empty_like(left), np.empty_like(right)
        for place, counts in enumerate((left, right)):
            in_order[place][self.order[place]] = counts
        return in_order[0].reshape(TABLES, LEFT_ROWS), in_order[1].reshape(TABLES, RIGHT_ROWS)


def check(
    tables: Tables, passes: tuple[Pass, ...], conditions: tuple[Condition, ...], expected: Any, rows: int
) -> None:
    """Pairs, exact counts and whether there is a match, of all rows."""
    assert (tables.pairs(passes, conditions, rows) == expected).all()
    left, right = tables.counts(passes, conditions, exactly=True)
    assert (left == expected.sum(axis=2)).all()
    assert (right == expected.sum(axis=1)).all()
    left, right = tables.counts(passes, conditions, exactly=False)
    assert ((left > 0) == expected.any(axis=2)).all()
    assert ((right > 0) == expected.any(axis=1)).all()


@pytest.mark.few
@pytest.mark.parametrize(("relation", "values"), CASES, ids=name_of)
def test_relation_on_random_tables(relation: str, values: dict[str, float]) -> None:
    rng = np.random.default_rng(sum(map(ord, relation + name_of(values))))
    a, b = intervals(rng, (TABLES, LEFT_ROWS))
    c, d = intervals(rng, (TABLES, RIGHT_ROWS))
    tables = Tables(rng, ({"a": a, "b": b}, {"c": c, "d": d}), (LEFT_PERIOD, RIGHT_PERIOD))
    a, b, c, d = a[:, :, None], b[:, :, None], c[:, None, :], d[:, None, :]
    expected = holds(relation, values, a, b, c, d) & (a < b) & (c < d)
    conditions = RELATIONS[relation].conditions(**values)
    check(tables, RELATIONS[relation].passes(**values), conditions, expected, int(rng.integers(1, 3000)))


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(60))
def test_any_conditions_on_random_tables(seed: int) -> None:
    """Without periods: reversed and empty rows match as the inequalities say; up to five residual comparisons."""
    rng = np.random.default_rng(seed)
    conditions = tuple(
        Condition(
            str(rng.choice(["a", "b", "e"])),
            rng.choice(["<", "<=", "=", ">=", ">"]),
            str(rng.choice(["c", "d", "f"])),
            int(rng.choice([0, 0, -2, 3])),
        )
        for _ in range(rng.integers(1, 7))
    )
    sides = []
    for names, rows in (("abe", LEFT_ROWS), ("cdf", RIGHT_ROWS)):
        sides.append({name: rng.integers(-6, 7, (TABLES, rows)) for name in names})
    tables = Tables(rng, (sides[0], sides[1]), (None, None))
    values = {name: column[:, :, None] for name, column in sides[0].items()}
    values |= {name: column[:, None, :] for name, column in sides[1].items()}
    expected = np.broadcast_to(truth(conditions, **values), (TABLES, LEFT_ROWS, RIGHT_ROWS))
    check(tables, passes_for(conditions), conditions, expected, int(rng.integers(1, 3000)))


@pytest.mark.parametrize(
    ("relation", "moved"),
    [
        ("period_overlaps", (0, 0)),
        ("period_contains", (400, -400)),
        ("iseql_during", (-400, 400)),
        ("iseql_left_overlap", (400, 400)),
    ],
)
def test_billions_of_pairs_are_counted(relation: str, moved: tuple[int, int]) -> None:
    """6 to 10 billion pairs: at 1 ns each, going through them would take as many seconds."""
    rows = 100_000
    rng = np.random.default_rng(1)
    a, b = np.sort(rng.integers(0, 1000, rows)), rng.integers(2000, 3000, rows)
    c, d = a + moved[0], rng.permutation(b) + moved[1]
    sides = []
    for period, values in ((LEFT_PERIOD, (a, b)), (RIGHT_PERIOD, (c, d))):
        batch = pa.RecordBatch.from_pydict(dict(zip(period, values, strict=True)))
        valid = periods_of(IntervalSide(values=period, periods=(period,)), batch, "drop")
        sides.append(CodedRows(batch, np.zeros(rows, np.int64), 1, dict.fromkeys(period, plain_codes), valid))
    used = values_used(RELATIONS[relation].conditions())
    left, right = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    for item in RELATIONS[relation].passes():
        if item.window == "left":
            PassMatches(item, sides[0], sides[1], used).add_counts(left, right, exactly=True)
        else:
            PassMatches(item, sides[1], sides[0], used[::-1]).add_counts(right, left, exactly=True)
    assert left.sum() == right.sum() > 6_000_000_000
    for row in rng.integers(0, rows, 20):
        assert left[row] == np.count_nonzero(holds(relation, {}, a[row], b[row], c, d))
        assert right[row] == np.count_nonzero(holds(relation, {}, a, b, c[row], d[row]))


EDGES = [-(1 << 63), -(1 << 63) + 1, -1, 0, 1, (1 << 63) - 2, (1 << 63) - 1]


@given(
    st.lists(st.sampled_from(EDGES), max_size=12).map(sorted),
    st.lists(st.sampled_from(EDGES), max_size=12),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
@examples(500)
def test_slices_are_cut_as_binary_search_cuts_them(
    rank: list[int], values: list[int], flags: tuple[bool, bool, bool]
) -> None:
    lower, strict, ordered = flags
    low, high = np.zeros(len(values), np.int64), np.full(len(values), len(rank), np.int64)
    cut_slices(np.array(rank, np.int64), np.array(values, np.int64), lower, strict, ordered, low, high)
    side = "right" if strict == lower else "left"
    found = np.searchsorted(np.array(rank, np.int64), np.array(values, np.int64), side=side)  # type: ignore[call-overload]
    assert (low if lower else high).tolist() == found.tolist()
    assert (high if lower else low).tolist() == [len(rank) if lower else 0] * len(values)


@given(st.lists(st.lists(st.tuples(st.integers(0, 6), st.integers(-1, 6)), min_size=3, max_size=3), max_size=6))
@examples(300)
def test_tiles_are_the_union_of_the_ranges(ranges: list[list[tuple[int, int]]]) -> None:
    bounds = np.array(ranges, np.int64).reshape(len(ranges), 3, 2)
    first, last = np.ascontiguousarray(bounds[:, :, 0].T), np.ascontiguousarray(bounds[:, :, 1].T)
    counts = np.empty(len(ranges), np.int64)
    count_tiles(first, last, counts)
    rows, tiles = np.empty(int(counts.sum()), np.int64), np.empty(int(counts.sum()), np.int32)
    fill_tiles(first, last, rows, tiles)
    expected = [{tile for low, high in row for tile in range(low, high + 1)} for row in ranges]
    assert counts.tolist() == [len(tiles) for tiles in expected]
    found: list[set[int]] = [set() for _ in ranges]
    for row, tile in zip(rows.tolist(), tiles.tolist(), strict=True):
        assert tile not in found[row]
        found[row].add(tile)
    assert found == expected
    assert rows.tolist() == sorted(rows.tolist())
