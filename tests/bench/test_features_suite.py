"""Suite `features` at small size: what its data promise, its contestants' answers, its checks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from sqlext.bench import CaseResult
from sqlext.bench.features import FeaturesOptions, features_suite
from sqlext.bench.features_data import DAY, HOUR, CovidTables, TaxiTables
from sqlext.bench.features_shop import ShopTables
from sqlext.bench.harness.engines import Engines
from tests.bench.runs import agreed, case_result, outcome

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


def test_data_are_the_same_every_time() -> None:
    for generator in (TaxiTables, CovidTables, ShopTables):
        assert generator(500).tables() == generator(500).tables()


@pytest.mark.parametrize("script", ["Q0", "Q1", pytest.param("Q3", marks=pytest.mark.slow)])
def test_all_contestants_agree(spark: SparkSession, tmp_path: Path, script: str) -> None:
    ansi = spark.conf.get("spark.sql.ansi.enabled", None)
    options = FeaturesOptions(rows=3_000, scripts=[script], data=tmp_path)
    (result,) = agreed(features_suite(options, Engines(cores=2))).cases
    assert [m.rows for m in result.measurements] == [3_000] * 3
    # A column that is NULL everywhere would agree with anything. One of Q3's is, at any size: it divides by the least
    # amount of a window that the request itself is in, with 0.
    counted = {name: value for name, value in result.measurements[0].checksums.items() if name.endswith("_n")}
    assert counted
    empty = [name for name, value in counted.items() if value == 0]
    assert empty == (["c49_n"] if script == "Q3" else [])
    assert spark.conf.get("spark.sql.ansi.enabled", None) == ansi  # the contestants' settings are taken back


def test_checks_compare_with_the_best_of_spark() -> None:
    def result(script: str, ours: float, spark: float, tree: float) -> CaseResult:
        seconds = {"ours": ours, "spark": spark, "spark-segment-tree": tree}
        return case_result({"script": script, "rows": 5}, seconds, script)

    suite = features_suite(FeaturesOptions(rows=5, scripts=["Q0"]))
    cases = [result("Q0", 5.0, 5.1, 7.0), result("Q1", 5.0, 6.0, 4.9), result("Q3", 5.0, 15.5, 14.0)]
    assert outcome(suite.checks, cases) == [
        ("never slower than plain Spark, Q0", True, "1.02x"),
        ("never slower than plain Spark, Q1", False, "0.98x"),
        ("at least 3x faster than plain Spark, Q3", False, "2.80x"),
    ]
    suite.close()
