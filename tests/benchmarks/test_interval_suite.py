"""Suite `interval` at small size: its data, its statements, its contestants' answers, its checks, its command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlext_operators.interval_join.relations import RELATIONS

from benchmarks import Case, CaseResult, Measurement, Report, Run
from benchmarks.harness.chart import write_chart
from benchmarks.harness.engines import Engines
from benchmarks.interval.bins import BinWidth
from benchmarks.interval.cases import pairs_at_most
from benchmarks.interval.checks import CHECKS
from benchmarks.interval.data import PeriodTables
from benchmarks.interval.kernels import KERNELS, kernel_checksums
from benchmarks.interval.options import IntervalOptions
from benchmarks.interval.peers import interpreter
from benchmarks.interval.real import OPEN_END, REAL_JOINS, read_real
from benchmarks.interval.sql import JoinText
from benchmarks.interval.suite import interval_suite
from tests.benchmarks.runs import agreed, case_result, measured, outcome, report_of, stored


def test_data_follow_the_seeds_law_and_are_kept(tmp_path: Path) -> None:
    tables = PeriodTables(50_000, 5_000, 1_000_000)
    left, right = (tables.table(number) for number in (0, 1))
    for table in (left, right):
        start, length = table["ts"].to_numpy(), table["te"].to_numpy() - table["ts"].to_numpy()
        assert table["id"].to_pylist() == list(range(50_000))
        assert start.min() >= 1
        assert start.max() <= 1_000_000
        assert abs(start.mean() - 500_000) < 10_000
        assert length.min() == 1
        assert abs(length.mean() - 5_000) < 100
    assert left != right
    paths = tables.write(tmp_path)
    assert pq.read_table(paths[0]) == left
    stamp = paths[1].stat().st_mtime_ns
    tables.write(tmp_path)
    assert paths[1].stat().st_mtime_ns == stamp


def _counts(paths: tuple[Path, Path], text: JoinText) -> int:
    statement = text.plain((f"read_parquet('{paths[0]}')", f"read_parquet('{paths[1]}')"), "duckdb")
    row = duckdb.sql(statement).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.few(4)
@pytest.mark.parametrize("relation", ["overlap", "during", "start-preceding", "before", *RELATIONS])
def test_number_of_pairs_is_known_before(tmp_path: Path, relation: str) -> None:
    delta = 40 if len(JoinText(relation, "count").row.parameters) == 1 else None
    text = JoinText(relation, "count", delta)
    paths = PeriodTables(150, 30, 300).write(tmp_path)
    bound, pairs = pairs_at_most(paths, text), _counts(paths, text)
    assert bound >= pairs
    if not any(one.residual for one in text.passes):
        assert bound == pairs


@pytest.mark.few
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("relation", ["period_overlaps", "iseql_during", "iseql_before", "allen_overlaps"])
def test_kernels_find_duckdbs_pairs(tmp_path: Path, kernel: str, relation: str) -> None:
    parameters = {"delta": 25} if relation == "iseql_before" else {}
    text = JoinText(relation, "sums", parameters.get("delta"))
    paths = PeriodTables(400, 60, 2_000).write(tmp_path)
    left, right = (pq.read_table(path) for path in paths)
    connection = duckdb.connect()
    connection.register("left_rows", left)
    connection.register("right_rows", right)
    cursor = connection.execute(text.plain(("left_rows", "right_rows"), "duckdb"))
    names = [column[0] for column in cursor.description or ()]
    expected = dict(zip(names, cursor.fetchone() or (), strict=True))
    assert expected["n"] > 100
    assert kernel_checksums(kernel, relation, left, right, mix=True, **parameters) == expected


def test_statements() -> None:
    text = JoinText("before", "pairs", 5, keyed=True, dirty=True)
    tables = ("x", "y")
    guard = "l.ts < l.te AND r.ts < r.te"
    condition = "l.k = r.k AND l.te <= r.ts AND l.te + 5 >= r.ts"
    predicate = "PERIOD(l.ts, l.te) BEFORE PERIOD(r.ts, r.te) WITHIN 5"
    assert text.ours(tables) == f"SELECT l.id AS l, r.id AS r FROM x l JOIN y r ON l.k = r.k AND {predicate}"
    assert text.plain(tables) == f"SELECT l.id AS l, r.id AS r FROM x l JOIN y r ON {condition} AND {guard}"
    assert text.bins(tables, 8) == (
        "SELECT l.id AS l, r.id AS r FROM "
        "(SELECT *, explode(sequence((te) div 8, (te + 5) div 8)) AS bin FROM x WHERE te <= te + 5) l "
        f"JOIN (SELECT *, ts div 8 AS bin FROM y) r ON l.bin = r.bin AND {condition} AND {guard}"
    )
    semi = JoinText("overlap", "semi")
    assert semi.plain(tables) == "SELECT l.id AS l FROM x l LEFT SEMI JOIN y r ON l.ts < r.te AND l.te > r.ts"
    assert semi.plain(tables, "duckdb") == "SELECT l.id AS l FROM x l SEMI JOIN y r ON l.ts < r.te AND l.te > r.ts"
    assert not semi.bins_apply
    assert not JoinText("before", "count").bins_apply  # windows without an end


def test_width_of_bins(tmp_path: Path) -> None:
    short, long = (PeriodTables(2_000, mean, 1_000_000).write(tmp_path) for mean in (50, 50_000))
    text, width = JoinText("overlap", "count"), BinWidth()
    assert 50 <= width.choose(*short, text) < width.choose(*long, text)
    assert BinWidth(7).choose(*short, text) == 7


SPARK = ("ours", "duckdb", "spark-bins", "spark")


def _agree(options: IntervalOptions) -> Report:
    report = agreed(interval_suite(options, Engines(cores=2)))
    assert all(m.rows for result in report.cases for m in result.measurements)
    return report


@pytest.mark.slow
def test_contestants_agree_on_generated_data(spark: SparkSession, tmp_path: Path) -> None:
    options = IntervalOptions(
        sets=["synthetic", "large"],
        rows=[1_000_000],
        lengths=[5_000],
        relations=["overlap", "before", "allen_during"],
        queries=["semi"],
        scale=0.0015,
        contestants=SPARK,
        data=tmp_path,
    )
    report = _agree(options)
    found = [(result.case.name, len(result.measurements)) for result in report.cases]
    assert found == [
        ("overlap, 1.5k, 5k", 4),
        ("before, 1.5k, 5k", 4),
        ("allen_during, 1.5k, 5k", 4),
        ("semi, 1.5k, 7.5k pairs", 3),
        ("semi, 1.5k, 750k pairs", 3),
    ]
    assert spark.range(3).count() == 3  # a Spark that ran before the bench goes on


@pytest.mark.slow
def test_contestants_agree_on_dirty_data(spark: SparkSession, tmp_path: Path) -> None:
    _write_flights(tmp_path / "real")
    options = IntervalOptions(sets=["real"], real=tmp_path / "real", contestants=SPARK, data=tmp_path)
    report = _agree(options)
    (result,) = report.cases
    assert (result.case.tick, result.case.parameters["query"]) == ("flights", "pairs")
    assert [m.rows for m in result.measurements] == [FLIGHT_PAIRS] * 4
    assert len(report.left_out) == 3
    assert all("there is no file" in text for text in report.left_out)


#: Flights of two hours that start every hour: each overlaps itself and both neighbours.
FLIGHT_PAIRS = 10 + 2 * 9


def _write_flights(folder: Path) -> None:
    """Ten flights, a reversed one, an empty one, and one without an arrival."""
    folder.mkdir()
    times = [f"2015-01-01 {hour:02}:00:00" for hour in range(12)]
    columns = {
        "dep_time": [*times[:10], times[5], times[5], times[5]],
        "arr_time": [*times[2:], times[2], times[5], None],
        "tail_num": ["N1"] * 13,
    }
    pq.write_table(pa.table(columns), folder / "bts_flights_50k.parquet")


def test_real_data_are_read_in_one_form(tmp_path: Path) -> None:
    _write_flights(tmp_path / "real")
    flights = read_real("flights", tmp_path / "real")
    assert flights.column_names == ["id", "k", "ts", "te"]
    assert flights["ts"][1].as_py() - flights["ts"][0].as_py() == 60
    assert flights["te"].null_count == 1
    git = {"dir": pa.array(["a", "b"]).dictionary_encode(), "ts": [1, 2], "te": pa.array([5, None], pa.int64())}
    pq.write_table(pa.table(git), tmp_path / "git_file_versions.parquet")
    assert read_real("git", tmp_path)["te"].to_pylist() == [5, OPEN_END]
    with pytest.raises(FileNotFoundError, match=r"exons_0\.parquet"):
        read_real("exons", tmp_path)


@pytest.mark.parametrize("name", REAL_JOINS)
def test_real_data_have_the_documented_rows(shared: Callable[[str], Path], name: str) -> None:
    folder = shared("data/intervals")
    join = REAL_JOINS[name]
    rows = {"git": 116_128, "exons": 438_694, "fbrain": 198_621, "flights": 50_000}
    for table in (join.left, join.right):
        found = read_real(table, folder)
        assert found.num_rows == rows[table]
        start, end = found["ts"].fill_null(0).to_numpy(), found["te"].fill_null(0).to_numpy()
        assert bool((start < end).all()) is not join.dirty


@pytest.fixture
def peers(tmp_path: Path) -> Path:
    """The folder of peers with an environment `polars` that is this one: it has DuckDB, and perhaps no Polars."""
    program = interpreter("polars", tmp_path / "peers")
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return tmp_path / "peers"


@pytest.mark.slow
def test_a_peer_measures_in_its_own_process(tmp_path: Path, peers: Path) -> None:
    contestants = ["duckdb", "duckdb-2", "polars-bio", "lazy-join-by-s"]
    options = IntervalOptions(
        sets=["kernel", "large"],
        queries=["pairs", "semi"],
        scale=0.001,
        contestants=contestants,
        peers=peers,
        data=tmp_path,
    )
    report = agreed(interval_suite(options), repeat=2)
    assert report.left_out == [f"polars-bio: no environment at {peers / 'genomics'} (make peers)"]
    for result in report.cases:
        names = [m.contestant for m in result.measurements]
        assert names == ["duckdb", "duckdb-2"] + ["lazy-join-by-s"] * (result.case.parameters["set"] == "kernel")


def test_a_peer_that_fails_says_why(tmp_path: Path, peers: Path) -> None:
    program = interpreter("polars", peers)
    program.write_text('#!/bin/sh\necho "no such engine" >&2\nexit 3\n')
    options = IntervalOptions(
        sets=["large"], queries=["count"], scale=0.001, contestants=["duckdb", "duckdb-2"], peers=peers, data=tmp_path
    )
    report = measured(interval_suite(options))
    assert not report.answers_agree
    assert {result.measurements[1].message for result in report.cases} == {
        "ConfigurationError: the process of duckdb-2 ended with 3: no such engine"
    }


@pytest.mark.parametrize("name", ["polars", "polars-bio", "ncls"])
def test_installed_peers_agree(tmp_path: Path, name: str) -> None:
    folder = Path(__file__).resolve().parents[2] / ".peers"
    if not interpreter(name, folder).exists():
        pytest.skip("the peers are not installed (make peers)")
    sets = ["large"] if name == "polars" else ["kernel"]
    options = IntervalOptions(
        sets=sets,
        relations=["overlap"],
        queries=["pairs", "count"],
        scale=0.001,
        contestants=["duckdb", name],
        peers=folder,
        data=tmp_path,
    )
    report = agreed(interval_suite(options))
    assert {m.contestant for result in report.cases for m in result.measurements} == {"duckdb", name}


def _result(parameters: dict[str, int | str], rows: int | None = None, **seconds: float) -> CaseResult:
    times = {name.replace("_", "-"): time for name, time in seconds.items()}
    return case_result(parameters, times, x=float(parameters.get("rows", 1)), rows=rows)


def test_checks_compare_with_the_targets_of_the_project() -> None:
    cases = [
        _result({"set": "kernel", "relation": "overlap", "factor": 50}, ours=1, duckdb=9, duckdb_2=3.9),
        _result({"set": "nested"}, ours=1, spark=101),
        _result({"set": "large", "query": "count", "factor": 5}, ours=1, spark_bins=2.9),
        _result({"set": "large", "query": "count", "factor": 50}, ours=1, duckdb=1.1, duckdb_2=0.9, spark_bins=3),
        _result({"set": "large", "query": "count", "factor": 500}, ours=2.1),
        _result(
            {"set": "real", "data": "exons-fbrain", "expected": 7}, 7, ours=1, duckdb=1.6, duckdb_range=1.5, polars=0.5
        ),
        _result({"set": "growth", "query": "pairs", "rows": 100}, ours=1),
        _result({"set": "growth", "query": "pairs", "rows": 400}, ours=4.7),
        _result({"set": "memory"}, ours=9),
    ]
    assert outcome(CHECKS, cases) == [
        ("at least 4x as fast as DuckDB, kernel, overlap, 50", False, "3.90x (duckdb-2)"),
        ("at least 100x as fast as Spark's nested loop, nested", True, "101.00x (spark)"),
        ("at least 3x as fast as hand-written bins, large, count, 5", False, "2.90x (spark-bins)"),
        ("at least 3x as fast as hand-written bins, large, count, 50", True, "3.00x (spark-bins)"),
        ("at least as fast as DuckDB, large, count, 50", False, "0.90x (duckdb-2)"),
        ("at least as fast as DuckDB, real, exons-fbrain, 7", True, "1.60x (duckdb)"),
        ("at least as fast as DuckDB with prefer_range_joins, real, exons-fbrain, 7", True, "1.50x (duckdb-range)"),
        ("at least as fast as Polars, real, exons-fbrain, 7", False, "0.50x (polars)"),
        ("400 rows at most 4.6x the time of 100, pairs", False, "4.70x"),
        ("count: 500 pairs a row at most 2x the time of 5", False, "2.10x"),
        ("no Python process above 4 GiB, memory", True, "3.00 GiB"),
        ("7 pairs, real, exons-fbrain, 7", True, "7"),
    ]


@pytest.mark.slow
def test_chart_of_speedups_in_panels(tmp_path: Path) -> None:
    def result(panel: str | None, x: float, tick: str | None = None) -> CaseResult:
        runs = [Measurement(name, runs=[Run(x, 0, 0, 0)]) for name in ("ours", "duckdb", "spark")]
        return CaseResult(Case(f"{panel}-{x}", x, {}, panel, tick), runs)

    cases = [result("a", 1.0), result("a", 10.0), result("b", 3.0), result("real", 1, "git"), result(None, 5)]
    cases += [result("c", 1.0)]
    report = report_of(cases, speedup=True)
    write_chart(report, tmp_path / "chart.svg")
    text = (tmp_path / "chart.svg").read_text()
    assert text.count('id="axes_') == 4 + 2  # two places of the grid stay empty
    stored = Report.from_json({**report.to_json(), "machine": {}})
    assert (stored.speedup, [r.case.panel for r in stored.cases]) == (True, ["a", "a", "b", "real", None, "c"])
    assert stored.cases[3].case.tick == "git"


@pytest.mark.slow
def test_command_line(tmp_path: Path) -> None:
    words = ["interval", "--sets", "kernel,synthetic", "--relations", "overlap,before", "--rows", "40,60"]
    words += ["--lengths", "50", "--contestants", "duckdb,join-by-s", "--scale", "0.01"]
    assert "| kernel: overlap, 10k, 2.5k | join-by-s |" in stored(tmp_path, *words)[1]
