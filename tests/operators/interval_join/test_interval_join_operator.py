"""The exchange of an interval join without Spark: scatter to partitions and tiles, any order of arrival, any memory
budget, and the broadcast of a side, against the twin."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.columns.empty_periods import EmptyPeriodError
from sqlext_operators.columns.keys import hash_keys
from sqlext_operators.columns.reshape import renamed
from sqlext_operators.errors import RowOverflowError
from sqlext_operators.exchange.operator import run_operator
from sqlext_operators.exchange.placed import Part, PlacedRows
from sqlext_operators.exchange.placement import KeyPlace, Placement
from sqlext_operators.interval_join.operator import IntervalOperatorSpec, broadcast_interval_join
from sqlext_operators.interval_join.output import MOST_ROWS, CandidateOutput
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.interval_join.spec import ROW, IntervalBroadcastSpec, IntervalJoinSpec, IntervalSide, Kind
from sqlext_operators.interval_join.tiles import TILE, TileRouter, Tiles, tile_bounds

from tests.operators.exchange.placements import placements
from tests.operators.interval_join.exchanges import (
    KINDS,
    PARTITIONS,
    SIDES,
    TESTED,
    Rows,
    agree,
    arrived,
    conditions_of,
    inner_spec,
    numbers,
    rows_of,
    schema_of,
    spec_of,
    tuples,
    wires_of,
    with_test,
)
from tests.properties import examples


def exchanged(
    spec: IntervalJoinSpec,
    left: pa.RecordBatch,
    right: pa.RecordBatch,
    tiles: Tiles | None,
    seed: int,
    memory: int,
    block: int,
) -> Rows:
    """The join by way of all partitions; blocks arrive in random order."""
    return arrived(spec, left, right, tiles, [TileRouter(spec, side, tiles) for side in SIDES], seed, memory, block)


@given(
    st.sampled_from(KINDS),
    st.sampled_from(sorted(RELATIONS)),
    st.tuples(st.sampled_from([0, 1, 2, 5, None]), st.sampled_from([0, 1, 3, None])),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.tuples(st.integers(0, 40), st.integers(0, 40)),
    st.one_of(st.none(), st.lists(st.integers(-9, 17), max_size=4, unique=True).map(sorted)),
    st.sampled_from([None, ["a"], []]),
    st.integers(0, 1000),
    st.sampled_from([1, 300, 1 << 20]),
    st.sampled_from([64, 4096]),
    st.sampled_from([pa.int64(), pa.timestamp("us"), pa.float64(), pa.decimal128(12, 2)]),
)
@examples(200, share=8)
def test_exchange_agrees_with_twin(
    kind: Kind,
    relation: str,
    amounts: tuple[int | None, int | None],
    flags: tuple[bool, bool, bool],
    counts: tuple[int, int],
    cuts: list[int] | None,
    hot: list[str] | None,
    seed: int,
    memory: int,
    block: int,
    type_: pa.DataType,
) -> None:
    keys, null_safe, periods = flags
    spec = spec_of(kind, [conditions_of(relation, amounts)], keys=keys, null_safe=null_safe, periods=periods, seed=seed)
    left, right = rows_of("l", counts[0], seed, type_), rows_of("r", counts[1], seed, type_)
    tiles = None
    if cuts is not None:
        hashes = None if hot is None or not keys else tuple(hash_keys([pa.array(hot, pa.string())]).tolist())
        sample = numbers([-100, *cuts], type_)
        bounds = tuple(cut for value in sample[1:] for cut in tile_bounds([pa.array([sample[0], value])], 2))
        tiles = Tiles(bounds, hashes)
    agree(spec, left, right, exchanged(spec, left, right, tiles, seed, memory, block))


@given(
    st.sampled_from([kind for kind in KINDS if kind != "full"]),
    st.sampled_from(sorted(RELATIONS)),
    st.tuples(st.booleans(), st.booleans()),
    st.integers(0, 1000),
    st.sampled_from([1, 300, 1 << 20]),
    st.booleans(),
    st.data(),
)
@examples(150, share=8)
def test_a_placement_agrees_with_twin(
    kind: Kind,
    relation: str,
    flags: tuple[bool, bool],
    seed: int,
    memory: int,
    hybrid: bool,
    data: st.DataObject,
) -> None:
    """The side whose rows are decided is split, the other one copied."""
    spec = spec_of(kind, [conditions_of(relation, (2, 2))], keys=flags[0], null_safe=flags[1], periods=True, seed=seed)
    left, right = rows_of("l", 30, seed, pa.int64()), rows_of("r", 30, seed, pa.int64())
    keys = [pa.array(["a", "b", None])] if flags[0] else []
    placed = PlacedRows(data.draw(placements(keys, None, PARTITIONS)))
    split: Side = "right" if spec.decides("right") or (kind == "inner" and seed % 2) else "left"
    owned: Part = "both" if hybrid else "owned"
    routers = [TileRouter(spec, side, None, placed, owned if side == split else "copies") for side in SIDES]
    agree(spec, left, right, arrived(spec, left, right, None, routers, seed - seed % 2, memory, 64))


@given(
    st.sampled_from(KINDS),
    st.sampled_from(sorted(RELATIONS)),
    st.booleans(),
    st.sets(st.integers(-9, 17), min_size=1, max_size=PARTITIONS - 1).map(sorted),
    st.permutations(range(PARTITIONS)),
    st.sampled_from([["a"], ["a", "b"], [None, "b"]]),
    st.integers(0, 1000),
    st.sampled_from([1, 1 << 20]),
)
@examples(150, share=8)
def test_placed_tiles_agree_with_twin(
    kind: Kind,
    relation: str,
    null_safe: bool,
    cuts: list[int],
    team: list[int],
    hot: list[str | None],
    seed: int,
    memory: int,
) -> None:
    spec = spec_of(kind, [conditions_of(relation, (2, 2))], keys=True, null_safe=null_safe, periods=True)
    left, right = rows_of("l", 30, seed, pa.int64()), rows_of("r", 30, seed, pa.int64())
    keys = sorted(hash_keys([pa.array(hot, pa.string())]).tolist())
    places = tuple(KeyPlace(key, tuple(team[: len(cuts) + 1]), tuple(cuts)) for key in keys)
    placement = Placement(PARTITIONS, ((team[0],), (team[1],), (2,), (0,)), places)
    tiles = Tiles.of_placement(placement)
    assert tiles == Tiles(tuple(cuts), tuple(keys))
    routers = [TileRouter(spec, side, tiles, PlacedRows(placement)) for side in SIDES]
    agree(spec, left, right, arrived(spec, left, right, tiles, routers, seed, memory, 64))


def test_tiles_of_a_placement() -> None:
    alike = Placement(3, ((0,),), (KeyPlace(1, (2,)), KeyPlace(4, (2, 0), (7,)), KeyPlace(5, (1, 2), (7,))))
    assert Tiles.of_placement(alike) == Tiles((7,), (4, 5))
    assert Tiles.of_placement(Placement(3, ((0,),), (KeyPlace(1, (2,)),))) is None
    with pytest.raises(ValueError, match="same tiles"):
        Tiles.of_placement(Placement(3, ((0,),), (KeyPlace(4, (2, 0), (7,)), KeyPlace(5, (1, 2), (8,)))))
    spec = spec_of("inner", [conditions_of("period_overlaps", (None, None))], keys=True, null_safe=False, periods=True)
    router = TileRouter(spec, "left", Tiles.of_placement(alike), PlacedRows(alike))
    with pytest.raises(ValueError, match="3 places do not fit into 2 partitions"):
        router.route(rows_of("l", 5, 1, pa.int64()), 2)


@given(st.sampled_from(KINDS), st.integers(0, 1000), st.booleans(), st.sampled_from([1, 1 << 20]))
@examples(60)
def test_several_alternatives_over_tiles(kind: Kind, seed: int, keys: bool, memory: int) -> None:
    random_ = random.Random(seed)
    names = random_.sample([name for name in sorted(RELATIONS) if name.startswith("allen_")], 4)
    alternatives = [conditions_of(name, (None, None)) for name in names]
    spec = spec_of(kind, alternatives, keys=keys, null_safe=False, periods=True)
    left, right = rows_of("l", 40, seed, pa.int64()), rows_of("r", 40, seed, pa.int64())
    tiles = Tiles(tuple(sorted(random_.sample(range(-9, 17), 3))))
    agree(spec, left, right, exchanged(spec, left, right, tiles, seed, memory, 256))


@given(
    st.sampled_from(KINDS),
    st.sampled_from(["left", "right"]),
    st.sampled_from(sorted(RELATIONS)),
    st.booleans(),
    st.tuples(st.integers(0, 30), st.integers(0, 60)),
    st.integers(0, 1000),
)
@examples(100)
def test_broadcast_agrees_with_twin(
    kind: Kind, small: Side, relation: str, keys: bool, counts: tuple[int, int], seed: int
) -> None:
    spec = spec_of(kind, [conditions_of(relation, (2, 2))], keys=keys, null_safe=True, periods=True, seed=seed)
    left, right = rows_of("l", counts[0], seed, pa.int32()), rows_of("r", counts[1], seed, pa.int32())
    held, big = (left, right) if small == "left" else (right, left)
    if spec.decides(small):
        with pytest.raises(ValueError, match="cannot be broadcast"):
            IntervalBroadcastSpec(spec, small, big.schema)
        return
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, held.schema) as writer:
        writer.write_batch(held)
    broadcast = IntervalBroadcastSpec(inner_spec(spec), small, big.schema, batch_rows=5)
    half = big.num_rows // 2
    positions = [str(place) for place in range(big.num_columns)]
    tasks = [big.slice(0, half // 2), big.slice(half // 2, half - half // 2)], [big.slice(half)]
    found: Rows = []
    for number, task in enumerate(tasks):
        batches = [renamed(part, positions) for part in task]
        joined = list(broadcast_interval_join(broadcast, sink.getvalue().to_pybytes(), number, batches))
        assert all(0 < batch.num_rows <= 5 for batch in joined)
        found += [row for batch in with_test(spec, "all", joined) for row in tuples(batch)]
    agree(spec, left, right, found)


def test_rows_that_match_nothing_are_dropped_or_spread() -> None:
    rows = rows_of("l", 300, 3, pa.int64())
    tiles = Tiles((0, 5))
    alternatives = [conditions_of("period_overlaps", (None, None))]
    for kind in KINDS:
        spec = spec_of(kind, alternatives, keys=True, null_safe=False, periods=True)
        for cut in (None, tiles):
            routes = TileRouter(spec, "left", cut).route(rows, PARTITIONS)
            sent = range(300) if routes.rows is None else sorted(set(routes.rows.tolist()))
            values = rows.to_pylist()
            usable = [i for i, row in enumerate(values) if None not in row.values() and row["l0"] < row["l1"]]
            assert list(sent) == (list(range(300)) if spec.keeps("left") else usable)
            if spec.keeps("left") and routes.rows is None:
                idle = np.delete(routes.pids, usable)
                assert np.bincount(idle, minlength=PARTITIONS).min() > len(idle) // 6


@pytest.mark.few
@pytest.mark.parametrize("kind", TESTED)
@pytest.mark.parametrize("relation", ["period_overlaps", "allen_overlaps", "period_contains"])
@pytest.mark.parametrize("keys", [False, True])
@pytest.mark.parametrize("memory", [1, 1 << 20])
def test_candidates_of_rows_in_several_tiles(kind: Kind, relation: str, keys: bool, memory: int) -> None:
    """Whose residual someone else tests: seeds of rest 2."""
    tiles, undecided = Tiles((-2, 3, 8)), 0
    for seed in (2, 5, 8, 11):
        spec = spec_of(
            kind, [conditions_of(relation, (None, None))], keys=keys, null_safe=False, periods=True, seed=seed
        )
        assert spec.candidates
        left, right = rows_of("l", 40, seed, pa.int64()), rows_of("r", 40, seed, pa.int64())
        agree(spec, left, right, exchanged(spec, left, right, tiles, seed, memory, 256))
        for side, rows in zip(SIDES, (left, right), strict=True):
            routes = TileRouter(spec, side, tiles).route(rows, 3)
            if routes.added is not None and spec.decides(side):
                undecided += len(routes.added(0)[ROW].drop_null())
    assert undecided > 20 or kind == "right"  # whose rows some windows need in one tile only


def test_numbers_of_more_rows_than_fit_are_refused() -> None:
    spec = spec_of(
        "full", [conditions_of("period_overlaps", (None, None))], keys=False, null_safe=False, periods=True, seed=2
    )
    output = CandidateOutput(spec, schema_of("l", pa.int64()), schema_of("r", pa.int64()), 100)
    assert output.numbers_for("left", MOST_ROWS) == 0
    assert output.numbers_for("right", 5) == 0
    with pytest.raises(RowOverflowError, match="more than 2,147,483,648 rows of one side") as caught:
        output.numbers_for("left", 1)
    assert caught.value.help


def test_only_rows_in_several_tiles_are_undecided() -> None:
    spec = spec_of("left", [conditions_of("period_overlaps", (None, None))], keys=False, null_safe=False, periods=True)
    starts, ends = pa.array([0, 0, 9, 5]), pa.array([2, 30, 11, 6])
    rows = pa.RecordBatch.from_arrays(
        [pa.array(range(4)), pa.array(["a"] * 4), starts, ends], names=["lid", "lk", "l0", "l1"]
    )
    routes = TileRouter(spec, "left", Tiles((10, 20))).route(rows, 3)
    assert routes.rows is not None
    assert routes.added is not None
    assert routes.rows.tolist() == [0, 1, 1, 1, 2, 2, 3]
    added = routes.added(100)
    assert added[TILE].to_pylist() == [0, 0, 1, 2, 0, 1, 0]
    assert added[ROW].to_pylist() == [None, 202, 202, 202, 204, 204, None]
    assert routes.pids.tolist() == [0, 0, 1, 2, 0, 1, 0]


def test_many_copies_are_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows over all of 40 tiles: the copies of a flush would take 40 times its memory."""
    monkeypatch.setattr("sqlext_operators.exchange.scatter._COPIED_BYTES", 1)
    spec = spec_of("left", [conditions_of("period_overlaps", (None, None))], keys=True, null_safe=False, periods=True)
    schema = schema_of("l", pa.int64())
    left = pa.RecordBatch.from_arrays(
        [pa.array(range(60)), pa.array(["a", "b", None] * 20), pa.array([-9] * 60), pa.array([50] * 60)], schema=schema
    )
    right = rows_of("r", 60, 5, pa.int64())
    tiles = Tiles(tuple(range(-8, 31)))
    routes = TileRouter(spec, "left", tiles).route(left, PARTITIONS)
    assert routes.done is not None
    assert 1 <= routes.done < 10
    assert len(routes.pids) <= 120
    agree(spec, left, right, exchanged(spec, left, right, tiles, 0, 1 << 20, 1 << 20))


def test_tiles_are_equally_full() -> None:
    random_ = np.random.default_rng(1)
    sample = pa.array(random_.integers(0, 1 << 40, 10_000))
    tiles = Tiles(tile_bounds([sample, sample.slice(0, 3000)], 8))
    counts = np.bincount(tiles.of(sample.to_numpy()), minlength=8)
    assert tiles.count == 8
    assert counts.min() > 1000
    assert tile_bounds([pa.array([7] * 50)], 8) == ()
    assert tile_bounds([pa.array([None, None], pa.int64())], 8) == ()
    with pytest.raises(ValueError, match="type string cannot be cut"):
        tile_bounds([pa.array(["a"])], 2)


def test_strings_are_not_routed_by_tile() -> None:
    spec = spec_of("inner", [conditions_of("period_overlaps", (None, None))], keys=True, null_safe=False, periods=True)
    rows = rows_of("l", 5, 1, pa.string())
    with pytest.raises(ValueError, match="type string cannot be cut"):
        TileRouter(spec, "left", Tiles((1,))).route(rows, 2)
    left, right = rows_of("l", 40, 1, pa.string()), rows_of("r", 40, 1, pa.string())
    agree(spec, left, right, exchanged(spec, left, right, None, 1, 1, 64))


def test_empty_periods_stop_the_scatter_where_asked() -> None:
    overlaps = conditions_of("period_overlaps", (None, None))
    side = IntervalSide((), ("l0", "l1"), (("l0", "l1"),), ("lid",))
    other = IntervalSide((), ("r0", "r1"), (("r0", "r1"),), ("rid",))
    spec = IntervalJoinSpec("inner", side, other, (), (overlaps,), "error")
    rows = pa.RecordBatch.from_pydict({"lid": [1, 2, 3], "l0": [1, 5, 8], "l1": [2, 5, 7]})
    with pytest.raises(EmptyPeriodError, match=r"2 of 3 rows have an empty or reversed period, such as \[5, 5\)"):
        TileRouter(spec, "left").route(rows, 2)


def test_files_are_removed_when_the_consumer_stops_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    spec = spec_of("left", [conditions_of("period_overlaps", (None, None))], keys=True, null_safe=True, periods=True)
    left, right = rows_of("l", 60, 1, pa.int64()), rows_of("r", 60, 2, pa.int64())
    wires = wires_of(0, left, TileRouter(spec, "left"), 64) + wires_of(1, right, TileRouter(spec, "right"), 64)
    gather = IntervalOperatorSpec(spec, left.schema, right.schema, memory_bytes=1)
    batches = run_operator(gather, 0, wires)
    next(batches)
    assert len(list(tmp_path.iterdir())) == 1
    batches.close()  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []
