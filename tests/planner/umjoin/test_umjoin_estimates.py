"""What is known of a multi-way join's sizes, and which way is chosen by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlext_planner.batches import BATCHES
from sqlext_planner.catalog import KeyStatistics
from sqlext_planner.config import Config
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.umjoin.estimate import input_facts, uniform_rows
from sqlext_planner.umjoin.nodes import UMJoin
from sqlext_planner.umjoin.strategies import (
    JoinSizes,
    Obstacles,
    cascade_seconds,
    choose,
    join_sizes,
    operator_seconds,
)

from sqlext.analyzer.context import AnalyzerOptions
from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog, FileCatalog
from sqlext.explain.plan_operators import umjoins_json
from sqlext.run.pipeline import stage
from sqlext.syntax.parser import parse

ROWS = 20_000
STAR = "FROM a, b, c WHERE a.k = b.k AND b.k = c.k"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a, b, c: k of 2,000 values, skewed in c; dim: each k once; edges: a dense graph; texts: keys as strings."""
    folder = tmp_path_factory.mktemp("umjoin")
    random = np.random.default_rng(3)

    def write(table: str, **columns: object) -> None:
        pq.write_table(pa.table(columns), folder / f"{table}.parquet", row_group_size=5_000)

    write("a", k=random.integers(0, 2_000, ROWS), v=random.integers(0, 9, ROWS))
    write("b", k=random.integers(0, 2_000, ROWS), v=random.integers(0, 9, ROWS))
    write("c", k=np.minimum(random.geometric(0.01, ROWS), 1_999), v=random.integers(0, 9, ROWS))
    write("dim", k=random.permutation(2_000), name=[str(i) for i in range(2_000)])
    write("edges", src=random.zipf(1.5, ROWS) % 500, dst=random.zipf(1.5, ROWS) % 500)
    write("texts", k=[str(i % 50) for i in range(ROWS)], v=range(ROWS))
    return folder


def joined(sql: str, data: Path) -> tuple[UMJoin, FileCatalog]:
    catalog = FileCatalog(data)
    plan = RuleExecutor(BATCHES).optimize(analyze(parse(sql), catalog, AnalyzerOptions())).final
    (node,) = plan.collect(UMJoin)
    return node, catalog


def sizes_of(sql: str, data: Path) -> JoinSizes:
    found = join_sizes(*joined(sql, data))
    assert isinstance(found, JoinSizes), found
    return found


def true_rows(data: Path, *tables: str) -> float:
    counts = [np.bincount(pq.read_table(data / f"{t}.parquet").column("k").to_numpy(), minlength=2_000) for t in tables]
    return float(np.prod(counts, axis=0).sum())


def test_samples_show_how_many_rows_every_step_makes(data: Path) -> None:
    sizes = sizes_of(f"SELECT a.v {STAR}", data)
    assert sizes.inputs == (ROWS, ROWS, ROWS)
    assert sizes.steps == pytest.approx([true_rows(data, "a", "b"), true_rows(data, "a", "b", "c")], rel=0.01)
    assert sizes.result == sizes.steps[-1]


def test_filters_are_taken_to_keep_a_part(data: Path) -> None:
    whole = sizes_of(f"SELECT a.v {STAR}", data)
    sizes = sizes_of(f"SELECT a.v {STAR} AND a.v = 3", data)
    assert sizes.inputs == (ROWS / 10, ROWS, ROWS)
    assert sizes.result == pytest.approx(whole.result / 10, rel=0.01)


def test_strings_are_seen_through_their_values(data: Path) -> None:
    sizes = sizes_of("SELECT x.v FROM texts x, texts y, texts z WHERE x.k = y.k AND y.k = z.k", data)
    assert sizes.steps == pytest.approx([ROWS**2 / 50, ROWS**3 / 50**2], rel=0.01)


def test_a_cycle_has_no_more_rows_than_its_bound(data: Path) -> None:
    sql = "SELECT a.src FROM edges a, edges b, edges c WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src"
    sizes = sizes_of(sql, data)
    table = pq.read_table(data / "edges.parquet")
    adjacency = np.zeros((500, 500))
    np.add.at(adjacency, (table.column("src").to_numpy(), table.column("dst").to_numpy()), 1)
    paths = adjacency @ adjacency
    assert sizes.steps[0] == pytest.approx(paths.sum(), rel=0.01)
    assert sizes.result <= sizes.steps[0]
    assert sizes.result <= 100 * np.trace(paths @ adjacency)


@pytest.mark.parametrize("lie", [0.001, 0.3, 1000.0])
def test_the_files_of_a_sample_are_believed_before_statistics(data: Path, lie: float) -> None:
    node, catalog = joined(f"SELECT a.v {STAR}", data)
    right, told = join_sizes(node, catalog), catalog.key_statistics

    def wrong(name: str, columns: Sequence[str]) -> KeyStatistics | None:
        found = told(name, columns)
        return found and replace(found, rows=round(found.rows * lie))

    catalog.key_statistics = wrong  # type: ignore[method-assign]
    assert join_sizes(node, catalog) == right


def test_foreign_keys_need_no_sample(data: Path) -> None:
    node, catalog = joined("SELECT a.v FROM a, dim d, dim e WHERE a.k = d.k AND d.k = e.k", data)
    catalog.key_sample = None  # type: ignore[method-assign, assignment]
    assert join_sizes(node, catalog) == "because of foreign keys, no join has more rows than one of the tables"


def test_without_samples_values_are_taken_to_be_uniform(data: Path) -> None:
    node, catalog = joined(f"SELECT a.v {STAR}", data)
    facts = input_facts(node, catalog)
    assert not isinstance(facts, str)
    assert uniform_rows(facts) == pytest.approx([ROWS**2 / 2_000, ROWS**3 / 2_000**2], rel=0.01)


def test_what_is_not_known_is_said(data: Path) -> None:
    node, _ = joined(f"SELECT a.v {STAR}", data)
    assert "no data for an estimate" in choose(node, Obstacles(None, None), node, Config(), None).why
    schemas = DictCatalog({name: {"k": "bigint", "v": "bigint"} for name in "abc"})
    assert join_sizes(node, schemas) == "'a' has no statistics"
    texts, catalog = joined("SELECT x.v FROM texts x, texts y, (SELECT 1 AS k, v FROM a ORDER BY v LIMIT 2) z WHERE "
                            "x.k = y.k AND y.v = z.v", data)  # fmt: skip
    assert join_sizes(texts, catalog) == "nothing is known about the input 'z'"


def test_an_aggregate_has_each_key_once(data: Path) -> None:
    sql = "SELECT a.v FROM a, (SELECT k, count(*) AS n FROM b GROUP BY k) s, dim d WHERE a.k = s.k AND s.k = d.k"
    assert join_sizes(*joined(sql, data)) == "because of foreign keys, no join has more rows than one of the tables"


def test_the_rivals_are_kept_with_their_costs(data: Path) -> None:
    node, catalog = joined(f"SELECT a.v {STAR}", data)
    choice = choose(node, Obstacles("there is no aggregate above", None), node, Config(), catalog)
    rivals = {rival.name: rival for rival in choice.rivals}
    assert [rival.name for rival in choice.rivals if rival.chosen] == [choice.strategy]
    assert f"cascade {rivals['cascade'].cost}" in choice.why
    assert f"operator {rivals['operator'].cost}" in choice.why
    assert (rivals["factorised"].cost, rivals["factorised"].note) == ("", "not possible: there is no aggregate above")
    assert choice.facts["estimated"].rows == sizes_of(f"SELECT a.v {STAR}", data).result


def test_the_cores_are_those_that_the_query_runs_on(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node, catalog = joined(f"SELECT a.v {STAR}", data)
    prices = []
    for cores in (2, 200):
        monkeypatch.setattr(catalog, "cores", lambda cores=cores: cores)
        why = choose(node, Obstacles(None, None), node, Config(), catalog).why
        prices.append(float(why.partition("cascade ")[2].partition(" s")[0]))
    assert prices[0] == pytest.approx(100 * prices[1], rel=0.1)


@pytest.mark.parametrize("steps", [(1e3, 1e3), (1e9, 1e9)])
def test_costs_grow_with_what_is_made(steps: tuple[float, ...]) -> None:
    sizes = JoinSizes((1e5, 1e5, 1e5), steps)
    assert cascade_seconds(sizes, 2) == pytest.approx(cascade_seconds(sizes, 1) / 2)
    assert (cascade_seconds(sizes, 2) > operator_seconds(sizes, 0, 2)) == (steps[0] == 1e9)


def strategies(sql: str, data: Path, **settings: str) -> list[str]:
    config = Config.from_mapping({f"sqlext.umjoin.{key}": value for key, value in settings.items()})
    return [item["strategy"] for item in umjoins_json(stage(sql, FileCatalog(data), config))]


def test_small_joins_stay_a_cascade(data: Path) -> None:
    assert strategies("SELECT count(*) FROM a, dim d, dim e WHERE a.k = d.k AND d.k = e.k", data) == ["cascade"]


def test_many_rows_are_not_made_to_be_counted(data: Path) -> None:
    four = "FROM c a, c b, c d, c e WHERE a.k = b.k AND b.k = d.k AND d.k = e.k"
    assert strategies(f"SELECT count(*), sum(a.v) {four}", data) == ["shared key"]


def test_settings_and_hints_go_before_cost(data: Path) -> None:
    count = f"SELECT count(*) {STAR}"
    assert strategies(count, data, strategy="factorised") == ["factorised aggregate"]
    assert strategies(count, data, strategy="operator") == ["shared key"]
    assert strategies(f"SELECT a.v {STAR}", data, strategy="factorised") == ["cascade"]
    assert strategies(f"SELECT /*+ UMJOIN(a, b) */ a.v {STAR}", data) == ["shared key"]
    assert strategies(f"SELECT /*+ NO_UMJOIN */ a.v {STAR}", data, strategy="operator") == []
    cycle = "FROM edges a, edges b, edges c WHERE a.dst = b.src AND b.dst = c.src AND c.dst = a.src"
    assert strategies(f"SELECT a.src {cycle}", data, strategy="operator") == ["hypercube"]
    assert strategies(f"SELECT count(*) {cycle}", data, strategy="operator") == ["hypercube"]


def test_cross_products_are_kept_and_told(data: Path) -> None:
    def warnings(sql: str) -> list[str | None]:
        return [item.get("warning") for item in umjoins_json(stage(sql, FileCatalog(data), Config()))]

    told = "no condition connects d, e to the other inputs: all rows are paired"
    assert warnings("SELECT a.v FROM a, b, dim d, dim e WHERE a.k = b.k AND d.k = e.k") == [told]
    assert warnings("SELECT a.v FROM a, b, dim d WHERE a.k = b.k AND a.v + b.v < d.k") == [None]
    assert warnings("SELECT a.v FROM a, b, (SELECT max(k) AS k FROM dim) d WHERE a.k = b.k") == [None]
    assert warnings("SELECT a.v FROM a JOIN b ON a.k = b.k LEFT JOIN dim d ON true") != [None]
