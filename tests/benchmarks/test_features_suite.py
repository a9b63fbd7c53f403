"""Suite `features` at small size: what its data promise, its contestants' answers, its checks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from sqlext_operators.exchange.blocks import Block, WireBatch
from sqlext_operators.exchange.operator import run_operator
from sqlext_operators.last_join.operator import LastJoinOperatorSpec
from sqlext_operators.last_join.spec import LastJoinSpec, RightSide

from benchmarks import CaseResult
from benchmarks.features import FeaturesOptions, features_suite
from benchmarks.features_bank import PRODUCTS, VERSIONED, BankTables
from benchmarks.features_contestants import FeatureContestant
from benchmarks.features_data import CovidTables, TaxiTables
from benchmarks.features_floor import IdleSpec
from benchmarks.features_loans import HISTORIES, LoanTables
from benchmarks.features_shop import ShopTables
from benchmarks.features_values import DAY, HOUR
from benchmarks.features_wind import WindTables
from benchmarks.harness.engines import Engines
from tests.benchmarks.runs import agreed, case_result, outcome

ROWS = 20_000


def _milliseconds(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return pc.cast(column, pa.timestamp("ms")).cast(pa.int64()).to_numpy()


def _longest_window(table: pa.Table, keys: list[str], time: str, length: int) -> int:
    """Rows of the fullest window (t - length, t], after a check that (keys, time) is unique."""
    codes = np.zeros(table.num_rows, np.int64)
    for key in keys:
        column = table[key].combine_chunks().dictionary_encode()
        codes = codes * (len(column.dictionary) + 1) + pc.fill_null(column.indices, len(column.dictionary)).to_numpy()
    times = _milliseconds(table[time])
    order = np.lexsort((times, codes))
    codes, times = codes[order], times[order]
    assert not ((np.diff(codes) == 0) & (np.diff(times) == 0)).any()
    span = 2 * (times.max() - times.min() + length)
    line = codes * span + times - times.min()  # one line of times for all keys, a span apart
    return int((np.arange(len(line)) - np.searchsorted(line, line - length, side="right") + 1).max())


def test_taxi_windows_stay_below_their_limit() -> None:
    train = TaxiTables(ROWS).tables()["train"]
    assert train.num_rows == ROWS
    assert 100 < _longest_window(train, ["vendor_id"], "pickup_datetime", 2 * HOUR) <= 200


def test_covid_windows_stay_below_their_limit() -> None:
    train = CovidTables(ROWS).tables()["train"]
    assert train.num_rows == ROWS
    for key, days, most in [("Province_State", 64, 100), ("Country_Region", 14, 200), ("Country_Region", 2, 100)]:
        assert _longest_window(train, [key], "Date", days * DAY) <= most


def test_shop_windows_stay_below_their_limit_and_every_last_join_has_one_answer() -> None:
    tables = ShopTables(ROWS).tables()
    assert set(tables) == set(ShopTables.NAMES)
    assert _longest_window(tables["train"], ["Q3_Col3"], "Q3_Col32", 7 * DAY) <= 100
    for name, key in [("order_cancel_return", "Q3_Col3"), ("order_sales", "Q3_Col3")]:
        assert _longest_window(tables[name], [key], "Q3_Col0", 64 * DAY) <= 99  # the request itself counts too
    for name, key in [("product_item", "Q3_Col6"), ("shipping_sku", "Q3_Col3")]:
        assert _longest_window(tables[name], [key], "Q3_Col0", DAY) >= 1
    for name, key in [("feedback", "Q3_Col31"), ("product_sku", "Q3_Col3")]:
        assert len(pc.unique(tables[name][key])) == tables[name].num_rows


def test_every_wind_last_join_has_one_answer() -> None:
    tables = WindTables(2_000).tables()
    assert set(tables) == set(WindTables.NAMES)
    for table in tables.values():
        assert len(pc.unique(table["date"])) == table.num_rows > 1_900


def test_loan_windows_stay_below_their_limit_and_every_last_join_has_one_answer() -> None:
    tables = LoanTables(ROWS).tables()
    assert set(tables) == set(LoanTables.NAMES)
    assert _longest_window(tables["train"], ["Q4_Col78"], "Q4_Col41", 10 * HOUR) <= 100
    for name in ("train", "action"):
        assert len(pc.unique(tables[name]["Q4_Col40"])) == tables[name].num_rows
    profile = [f"Q4_Col{number}" for number in range(77, 82)]
    assert _longest_window(tables["bo_part"], profile, "Q4_Col0", 180 * DAY) == LoanTables.PARTS_OF_A_PROFILE
    longest = {name: _longest_window(tables[name], ["Q4_Col2"], "Q4_Col0", 2_000 * DAY) for name in HISTORIES}
    assert all(rows > 100 for rows in longest.values())  # windows of 100 rows are cut


def test_every_bank_last_join_has_one_answer() -> None:
    tables = BankTables(2_000).tables()
    assert set(tables) == set(BankTables.NAMES)
    for name, key in [("train", "Q5_Col100"), ("feedback", "Q5_Col100"), ("CUST_f7", "Q5_Col0")]:
        assert len(pc.unique(tables[name][key])) == tables[name].num_rows
    assert _longest_window(tables[PRODUCTS], ["Q5_Col102"], "Q5_Col1", 300 * DAY) == 8
    for name in VERSIONED:
        assert _longest_window(tables[name], ["Q5_Col0"], "Q5_Col1", 300 * DAY) == 4


def test_data_are_the_same_every_time() -> None:
    for generator in (TaxiTables, CovidTables, WindTables, ShopTables, LoanTables, BankTables):
        assert generator(500).tables() == generator(500).tables()


#: Q0's columns that come from windows.
WINDOWS_OF_Q0 = (34, 35, 36, 37, 38, 39)

#: Columns that are NULL in every row, at any size: one of Q3's divides by the least amount of a window that the request
#: itself is in, with 0.
EMPTY = {"Q3": ["c49_n"]}
SLOW = [pytest.param(script, marks=pytest.mark.slow) for script in ("Q3", "Q4", "Q5")]


@pytest.mark.parametrize("script", ["Q0", "Q1", "Q2", *SLOW])
@pytest.mark.slow
def test_all_contestants_agree(spark: SparkSession, tmp_path: Path, script: str) -> None:
    ansi = spark.conf.get("spark.sql.ansi.enabled", None)
    options = FeaturesOptions(rows=3_000, scripts=[script], data=tmp_path)
    (result,) = agreed(features_suite(options, Engines(cores=2))).cases
    with_tree = () if script in ("Q2", "Q5") else ("spark-segment-tree",)  # these have no windows
    assert [m.contestant for m in result.measurements] == ["ours", "spark", *with_tree, "floor"]
    assert [m.rows for m in result.measurements[:-1]] == [3_000] * (2 + len(with_tree))
    assert result.measurements[-1].rows is None
    # A column that is NULL everywhere would agree with anything.
    counted = {name: value for name, value in result.measurements[0].checksums.items() if name.endswith("_n")}
    assert counted
    assert [name for name, value in counted.items() if value == 0] == EMPTY.get(script, [])
    assert spark.conf.get("spark.sql.ansi.enabled", None) == ansi  # the contestants' settings are taken back


@pytest.mark.slow
def test_the_floor_returns_the_payload_and_computes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    suite = features_suite(FeaturesOptions(rows=500, scripts=["Q0"], data=tmp_path), Engines(cores=2))
    by_name = {contestant.name: contestant for contestant in suite.contestants}
    tables = {}
    for name in ("ours", "floor"):
        contestant = by_name[name]
        assert isinstance(contestant, FeatureContestant)
        contestant.prepare(suite.cases[0])
        tables[name] = contestant.query(suite.cases[0]).toArrow().sort_by("c0")
    ours, floor = tables["ours"], tables["floor"]
    assert floor.schema == ours.schema
    computed = [name for name in ours.column_names if ours[name] != floor[name]]
    assert [f"c{number}" for number in WINDOWS_OF_Q0] == computed
    assert all(floor[name].null_count == 500 for name in computed)
    suite.close()


def test_the_floor_of_a_last_join_sends_right_rows_in_turn() -> None:
    utc, etc_utc = pa.timestamp("us", "UTC"), pa.timestamp("us", "Etc/UTC")
    left, right = pa.schema({"k": pa.int64(), "x": utc}), pa.schema({"k": pa.int64(), "y": pa.string()})
    join = LastJoinSpec(("k",), ("x",), (RightSide(("k",), (False,), ("y",)),))
    spec = IdleSpec.of(LastJoinOperatorSpec(join, left, (right,)), pa.schema({"x": etc_utc, "y": pa.string()}))
    rows = pa.RecordBatch.from_pydict({"k": [1, 2, 3], "x": [10, 20, 30]}, schema=left)
    others = pa.RecordBatch.from_pydict({"k": [7, 8], "y": ["a", "b"]}, schema=right)
    wire = WireBatch()
    for tag, batch in enumerate((rows, others)):
        wire.add(Block(0, tag, 0, batch))
    (found,) = run_operator(spec, 0, [wire.finish()])
    assert found["x"].cast(pa.int64()).to_pylist() == [10, 20, 30]
    assert found["y"].to_pylist() == ["a", "b", "a"]


def test_checks_compare_with_the_best_of_spark() -> None:
    def result(script: str, ours: float, spark: float, tree: float) -> CaseResult:
        seconds = {"ours": ours, "spark": spark, "spark-segment-tree": tree, "floor": 0.1}
        return case_result({"script": script, "rows": 5}, seconds, script)

    suite = features_suite(FeaturesOptions(rows=5, scripts=["Q0"]))
    cases = [result("Q0", 6.0, 10.0, 12.0), result("Q1", 5.0, 20.0, 10.0), result("Q4", 7.0, 10.0, 11.0)]
    share = "x the time of plain Spark, Q"
    memory = "no Python process above 1.5 GiB, Q"
    assert outcome(suite.checks, cases) == [
        (f"at most 0.65{share}0", True, "0.60x"),
        (f"at most 0.4{share}1", False, "0.50x"),
        (f"at most 0.7{share}4", True, "0.70x"),
        *((f"{memory}{script}", False, "3.00 GiB") for script in (0, 1, 4)),
    ]
    suite.close()
