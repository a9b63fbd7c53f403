"""How interval joins are partitioned: every partitioner gives the rows of the unpartitioned join, tiles are placed
evenly, and the plan says what each of them costs. Needs no Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.exchange.placed import PlacedRows
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.spec import IntervalJoinSpec, Kind
from sqlext_operators.interval_join.tiles import TileRouter, Tiles
from sqlext_planner.batches import BATCHES
from sqlext_planner.config import PARTITIONERS as NAMES
from sqlext_planner.config import Config
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.exchange.partitioning.choice import Partitioning
from sqlext_planner.exchange.partitioning.loads import Loads, Sample, with_keys
from sqlext_planner.exchange.partitioning.partitioners import PARTITIONERS
from sqlext_planner.exchange.partitioning.plans import Exchange, Partitioner, PartitionerOptions, PartitionPlan, Refused
from sqlext_planner.interval_join.choice import BROADCAST_SIDES
from sqlext_planner.interval_join.execution import IntervalJoinExec
from sqlext_planner.interval_join.nodes import SIDES
from sqlext_planner.interval_join.partitioning import Routing
from sqlext_planner.interval_join.tiles import JoinSample, TilePartitioner, join_demand
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.strategies import plan_physical

from sqlext.analyzer.queries import analyze
from sqlext.catalog import FileCatalog
from sqlext.syntax.parser import parse
from tests.operators.interval_join.exchanges import (
    KINDS,
    PARTITIONS,
    agree,
    arrived,
    conditions_of,
    rows_of,
    spec_of,
)
from tests.properties import examples

TEAMS = ("fragment", "dynamic", "hybrid", "broadcast")
NO_AMOUNTS = (None, None)
RELATIONS: dict[str, tuple[Condition, ...]] = {
    "overlap": conditions_of("period_overlaps", NO_AMOUNTS),
    "during": conditions_of("allen_during", NO_AMOUNTS),
    "before": conditions_of("allen_before", NO_AMOUNTS),
    "meets": conditions_of("allen_meets", NO_AMOUNTS),
    "left overlap": conditions_of("iseql_left_overlap", (2, 3)),
    "near": conditions_of("iseql_before", (5, None)),
    "band": (Condition("l0", "<=", "r0", 2), Condition("l0", ">=", "r0", -3)),
    "point": (Condition("l0", "<=", "r0", 0), Condition("l1", ">", "r0", 0)),
}


def sample_of(spec: IntervalJoinSpec, left: pa.RecordBatch, right: pa.RecordBatch, weight: float = 1.0) -> JoinSample:
    tables = {}
    for side, rows in zip(SIDES, (left, right), strict=True):
        own = spec.side(side)
        table = pa.Table.from_batches([rows]).select([*own.keys, *own.values])
        tables[side] = with_keys(table, own.keys, spec.null_safe)
    return JoinSample.of(spec, tables, dict.fromkeys(SIDES, weight))


def plan_of(name: str, sample: JoinSample, owner: str, partitions: int) -> PartitionPlan | Refused:
    order = sorted(SIDES, key=lambda side: side != owner)
    samples = [Sample(sample.hashes[side], None, len(sample.hashes[side]) * sample.weights[side]) for side in order]
    exchange = Exchange(
        Loads.of(samples, least_share=0.001),
        join_demand(sample.spec.kind, sample),
        partitions,
        PartitionerOptions(slots=16),
    )
    own: dict[str, Partitioner] = {**PARTITIONERS, "time_range": TilePartitioner(sample, partitions).plan}
    return own[name](exchange)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", NAMES)
@given(
    kind=st.sampled_from(KINDS),
    relation=st.sampled_from(sorted(RELATIONS)),
    flags=st.tuples(st.booleans(), st.booleans()),
    counts=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    seed=st.integers(0, 1000),
    memory=st.sampled_from([1, 1 << 20]),
    data=st.data(),
)
@examples(60, share=8)
def test_every_partitioner_agrees_with_the_twin(
    name: str,
    kind: Kind,
    relation: str,
    flags: tuple[bool, bool],
    counts: tuple[int, int],
    seed: int,
    memory: int,
    data: st.DataObject,
) -> None:
    """Few times, so that rows lie on the cuts."""
    spec = spec_of(kind, [RELATIONS[relation]], keys=True, null_safe=flags[0], periods=flags[1])
    left, right = rows_of("l", counts[0], seed, pa.int64()), rows_of("r", counts[1], seed, pa.int64())
    sample = sample_of(spec, left, right)
    copied = BROADCAST_SIDES[kind] or SIDES
    owner = data.draw(st.sampled_from([side for side in SIDES if any(side != other for other in copied)]))
    plan = plan_of(name, sample, owner, PARTITIONS)
    if kind == "full" and name in TEAMS:
        assert isinstance(plan, Refused)
        assert plan.reason.startswith("FULL JOIN keeps rows of both sides")
        return
    assert isinstance(plan, PartitionPlan)
    found = Partitioning(name, PARTITIONS, plan.placement, plan.copies, plan.moved, plan.balance, lines={})
    routing = Routing.planned(found, owner, PARTITIONS)
    routers = [routing.router(spec, side) for side in SIDES]
    seed -= 0 if routing.tiles is not None else seed % 2
    agree(spec, left, right, arrived(spec, left, right, routing.tiles, routers, seed, memory, 64))


def skewed(side: str, count: int, seed: int, longest: int = 40) -> pa.RecordBatch:
    """58 % of the rows have one key."""
    random = np.random.default_rng([seed, ord(side)])
    keys = np.where(random.random(count) < 0.58, 0, random.integers(1, 200, count))
    starts = random.integers(0, 100_000, count)
    arrays = [pa.array(np.arange(count)), pa.array(keys).cast(pa.string()), pa.array(starts)]
    arrays.append(pa.array(starts + random.integers(1, longest, count)))
    return pa.RecordBatch.from_arrays(arrays, names=[f"{side}{name}" for name in ("id", "k", "0", "1")])


def rows_in_partitions(
    routers: list[TileRouter], sides: list[pa.RecordBatch], partitions: int
) -> npt.NDArray[np.int64]:
    routes = [router.route(rows, partitions) for router, rows in zip(routers, sides, strict=True)]
    return sum(np.bincount(found.pids, minlength=partitions) for found in routes)  # type: ignore[return-value]


@pytest.mark.parametrize("partitions", [4, 8, 16, 64])
@pytest.mark.parametrize("longest", [40, 40_000])
def test_tiles_placed_by_their_work_leave_less_in_the_largest_partition(partitions: int, longest: int) -> None:
    """By the hash of (key, tile) some partitions get several tiles of a hot key, and others none."""
    spec = spec_of("count", [RELATIONS["overlap"]], keys=True, null_safe=False, periods=True)
    sides = [skewed(side, 40_000, partitions, longest) for side in ("l", "r")]
    sample = sample_of(spec, *(rows.take(pa.array(np.arange(0, 40_000, 4))) for rows in sides), weight=4.0)
    plan = plan_of("time_range", sample, "left", partitions)
    assert isinstance(plan, PartitionPlan)
    assert plan.placement is not None
    tiles = Tiles.of_placement(plan.placement)
    assert tiles is not None
    hashed = rows_in_partitions([TileRouter(spec, side, tiles) for side in SIDES], sides, partitions)
    placed = PlacedRows(plan.placement)
    largest = rows_in_partitions([TileRouter(spec, side, tiles, placed) for side in SIDES], sides, partitions)
    assert largest.sum() == hashed.sum() == pytest.approx(plan.moved, rel=0.03)
    assert largest.max() < 0.75 * hashed.max()
    assert plan.balance == pytest.approx(largest.max() / largest.mean(), rel=0.15)
    assert [split.pieces for split in plan.splits] == [partitions]


def test_pairs_are_work() -> None:
    """Of two keys with as many rows, the one with rows on both sides makes the pairs."""
    spec = spec_of("inner", [RELATIONS["before"]], keys=True, null_safe=False, periods=True)
    count = 3_000
    sides = []
    for side, keys in (("l", ["both", "ours"]), ("r", ["both", "theirs"])):
        rows = skewed(side, count, 1)
        names = pa.array([keys[place % 2] for place in range(count)])
        sides.append(pa.table(rows).set_column(1, f"{side}k", names).combine_chunks().to_batches()[0])
    sample = sample_of(spec, *sides)
    assert sample.matching_share() == pytest.approx(0.5, abs=0.02)
    assert join_demand("inner", sample).pair_cost == pytest.approx(0.05, abs=0.002)
    assert join_demand("inner", None).pair_cost == 0
    counted = replace(sample, spec=replace(spec, kind="semi"))
    assert join_demand("semi", counted).pair_cost == 0
    plan = plan_of("time_range", sample, "left", 4)
    assert isinstance(plan, PartitionPlan)
    assert len(plan.splits) == 1
    assert plan.splits[0].work == pytest.approx(count + 0.05 * (count / 2) ** 2, rel=0.05)
    assert plan.balance < 1.9


def test_empty_periods_do_not_stop_the_sample() -> None:
    spec = replace(spec_of("inner", [RELATIONS["overlap"]], keys=True, null_safe=False, periods=True), empty="error")
    sample = sample_of(spec, rows_of("l", 40, 1, pa.int64()), rows_of("r", 40, 1, pa.int64()))
    assert isinstance(plan_of("time_range", sample, "left", 4), PartitionPlan)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> FileCatalog:
    folder: Path = tmp_path_factory.mktemp("interval_partitioning")
    for name, count in (("a", 3_000), ("b", 6_000)):
        rows = skewed(name, count, 1, 2_000)
        moments = rows.column(2).cast(pa.timestamp("s", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))
        columns = {"k": rows.column(1), "ts": rows.column(2), "te": rows.column(3), "t": moments, "v": rows.column(0)}
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", row_group_size=500)
    return FileCatalog(folder)


OVERLAP = "PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)"
FORCED = {"sqlext.intervalJoin.strategy": "exchange", "sqlext.exchange.partitions": "8"}


def node(sql: str, catalog: FileCatalog, **more: str) -> IntervalJoinExec:
    config = Config.from_mapping(FORCED | {f"sqlext.{key}".replace("_", "."): value for key, value in more.items()})
    physical = plan_physical(RuleExecutor(BATCHES).optimize(analyze(parse(sql), catalog)).final, config, catalog)
    (found,) = physical.collect(IntervalJoinExec)
    return found


def statement(on: str, kind: str = "JOIN", hint: str = "", items: str = "a.v") -> str:
    return f"SELECT {hint} {items} FROM a {kind} b ON {on}"


def lines(found: IntervalJoinExec) -> dict[str, str]:
    shown = found.details()
    return {name.removeprefix("partitioner "): str(text) for name, text in shown.items() if name[:4] == "part"}


def moved(line: str) -> int:
    return int(line.removeprefix("moves ").split()[0])


def test_explain_says_what_every_partitioner_moves(catalog: FileCatalog) -> None:
    found = lines(node(statement(f"a.k = b.k AND {OVERLAP}", hint="/*+ PARTITIONER(fragment) */"), catalog))
    assert list(found) == list(PARTITIONERS)
    assert all(" of 9000 rows, max/avg work " in line for line in found.values())
    assert moved(found["hash"]) == moved(found["key"]) == 9_000
    assert moved(found["broadcast"]) == 72_000
    assert 9_000 < moved(found["time_range"]) < moved(found["fragment"]) < moved(found["hybrid"]) < 72_000
    assert "; split: k = 0 x8" in found["time_range"]
    assert [name for name, line in found.items() if line.endswith("(chosen)")] == ["fragment"]


def test_the_side_whose_rows_are_decided_is_owned(catalog: FileCatalog) -> None:
    owners = {}
    for kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"):
        found = node(statement(f"a.k = b.k AND {OVERLAP}", kind, "/*+ PARTITIONER(fragment) */"), catalog)
        assert found.partitioning is not None
        owners[kind] = found.owner
    assert owners.pop("JOIN") == "right"  # the larger one
    assert owners.pop("RIGHT JOIN") == "right"
    assert set(owners.values()) == {"left"}
    count = statement(f"a.k = b.k AND {OVERLAP}", hint="/*+ PARTITIONER(fragment) */", items="count(*) AS n")
    assert node(count, catalog).node.kind == "count"


@pytest.mark.parametrize(
    ("on", "kind", "name", "reason"),
    [
        *((f"a.k = b.k AND {OVERLAP}", "FULL JOIN", name, "FULL JOIN keeps rows of both sides") for name in TEAMS),
        *((OVERLAP, "JOIN", name, "the join has no keys: time_range cuts") for name in ("key", *TEAMS[:3])),
        (OVERLAP, "FULL JOIN", "broadcast", "FULL JOIN keeps rows of both sides"),
        ("a.v = b.v AND a.k >= b.k AND a.k <= b.k", "JOIN", "time_range", "a type that cannot be cut into ranges"),
    ],
)
def test_a_hint_that_cannot_be_followed(catalog: FileCatalog, on: str, kind: str, name: str, reason: str) -> None:
    sql = statement(on, kind, f"/*+ SWEEP, PARTITIONER({name}) */")
    with pytest.raises(UnsupportedError, match=reason) as error:
        node(sql, catalog)
    assert error.value.message.startswith(f"the hint PARTITIONER({name}) cannot be followed: ")
    assert error.value.span is not None
    assert sql[error.value.span.start : error.value.span.end] == f"PARTITIONER({name})"
    unhinted = node(statement(on, kind, "/*+ SWEEP */"), catalog, exchange_partitioner=name)
    assert lines(unhinted)["hash"].endswith("(chosen)")


def test_a_join_without_keys_has_one_key(catalog: FileCatalog) -> None:
    found = node(statement(OVERLAP, hint="/*+ PARTITIONER(time_range) */"), catalog)
    assert found.partitioning is not None
    assert found.partitioning.placement is None  # tiles in turn
    shown = lines(found)
    assert "max/avg work 8.00" in shown["hash"]
    assert moved(shown["hash"]) == 9_000
    assert moved(shown["broadcast"]) == 72_000
    assert "; split: all rows x8 (chosen)" in shown["time_range"]
    assert "max/avg work 1." in shown["time_range"]


def test_computed_values_are_sampled_when_it_runs(catalog: FileCatalog) -> None:
    on = "a.k = b.k AND PERIOD(a.ts, a.te + a.v) OVERLAPS PERIOD(b.ts, b.te)"
    found = node(statement(on, hint="/*+ PARTITIONER(time_range) */"), catalog)
    assert found.partitioning is not None
    assert found.partitioning.placement is None
    assert "compared values are computed: tiles by a sample when it runs" in lines(found)["time_range"]
    assert "; split: k = 0 x8" in lines(found)["time_range"]


def test_distances_are_those_of_the_types(catalog: FileCatalog) -> None:
    on = "a.k = b.k AND b.t BETWEEN a.t - INTERVAL 100 SECONDS AND a.t + INTERVAL 200 SECONDS"
    near = lines(node(statement(on, hint="/*+ SWEEP, PARTITIONER(time_range) */"), catalog))
    far = lines(node(statement(on.replace("00 S", "000 S"), hint="/*+ SWEEP, PARTITIONER(time_range) */"), catalog))
    assert 9_000 < moved(near["time_range"]) < 9_100 < moved(far["time_range"])


def test_the_cheapest_is_chosen_for_many_rows(catalog: FileCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = statement(f"a.k = b.k AND {OVERLAP}")
    assert node(sql, catalog).partitioning is None
    monkeypatch.setattr("sqlext_planner.exchange.partitioning.choice._LEAST_ROWS", 1_000)
    monkeypatch.setattr(FileCatalog, "cores", lambda self: 8)
    assert lines(node(sql, catalog))["time_range"].endswith("(chosen)")
    other = lines(node(statement(f"a.v = b.v AND {OVERLAP}"), catalog))
    assert other["hash"].endswith("(chosen)")
    (unknown,) = lines(node(statement(f"a.k || 'x' = b.k AND {OVERLAP}"), catalog)).values()
    assert unknown == "time_range: types of 'b' are not known"


def test_a_hint_asks_for_an_exchange(catalog: FileCatalog) -> None:
    sql = statement(f"a.k = b.k AND {OVERLAP}", hint="/*+ PARTITIONER(key) */")
    found = node(sql, catalog, intervalJoin_strategy="auto")
    assert (found.strategy, found.why) == ("exchange", "one exchange, for the hint PARTITIONER(key)")
    assert lines(found)["key"].endswith("(chosen)")
    broadcast = node(sql, catalog, intervalJoin_strategy="broadcast")
    assert broadcast.partitioning is None
    assert node(sql.replace("/*+ PARTITIONER(key) */", ""), catalog, intervalJoin_strategy="auto").partitioning is None
