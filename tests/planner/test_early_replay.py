"""Options of a replay, its files, and how rows get their times: as PECJ's loader does, and as the columns say."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sqlext_planner.early.files import FileRows, load, rate_times, read_rows, same_codes, uniform_delays
from sqlext_planner.early.options import (
    Columns,
    EstimatedAggregate,
    ReplayOptions,
    chosen_estimators,
    duration,
    durations,
    uniform_delay,
)
from sqlext_planner.early.replay import figures, json_rows, run_replay, text_of
from sqlext_planner.errors import AnalysisError, ConfigurationError, DataError, SqlExtError

NAMES = Columns("k", "v", "t", "a")


def options(**changes: Any) -> ReplayOptions:
    given: dict[str, Any] = {
        "left": Path("left.csv"),
        "right": Path("right.csv"),
        "columns": NAMES,
        "window": 10_000,
        "emit_after": (7_000,),
        **changes,
    }
    return ReplayOptions(**given)


def by_rate(**changes: Any) -> ReplayOptions:
    return options(**{"columns": Columns("k"), "rate": 100_000, "delay": 5_000, **changes})


def file_rows(count: int, keys: int = 7) -> FileRows:
    return FileRows(Path("x.csv"), pa.array(np.arange(count) % keys), np.ones(count), None, None)


def test_durations() -> None:
    assert [duration("--x", text) for text in ("7ms", "1.5s", "200 us", "2M", "1h", "1d")] == [
        7_000,
        1_500_000,
        200,
        120_000_000,
        3_600_000_000,
        86_400_000_000,
    ]
    assert durations("--x", ["10ms,7ms", "7000us"]) == (7_000, 10_000)
    assert [text_of(micros) for micros in (7_000, 1_500_000, 12, 90_000_000)] == ["7 ms", "1.5 s", "12 us", "1.5 m"]
    assert uniform_delay("uniform:5ms") == 5_000
    assert chosen_estimators("shrink, none,shrink") == ("shrink", "none")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (lambda: duration("--window", "10"), "--window 10: not a duration"),
        (lambda: duration("--window", "0ms"), "--window 0ms: give a duration above 0"),
        (lambda: duration("--window", "-1ms"), "--window -1ms: not a duration"),
        (lambda: duration("--window", "0.5us"), "the shortest time is 1us"),
        (lambda: uniform_delay("normal:5ms"), "not a distribution of delays"),
        (lambda: uniform_delay("uniform"), "not a distribution of delays"),
        (lambda: uniform_delay("uniform:2h"), "longest delay that can be drawn is 71 minutes"),
        (lambda: chosen_estimators("shrinkk"), "did you mean 'shrink'"),
        (lambda: chosen_estimators("wmj"), "there are none, ksj, alf"),
        (lambda: chosen_estimators(","), "names none"),
        (
            lambda: options(columns=Columns("k", None, "t", "a"), aggregate=EstimatedAggregate.SUM),
            "name a column .* --value",
        ),
        (lambda: options(columns=Columns("k", None, None, "a")), "nothing says the times of the rows"),
        (lambda: options(rate=5), "both --time and --rate"),
        (lambda: options(columns=Columns("k", None, "t")), "nothing says when the rows arrive"),
        (lambda: options(delay=5), "both --arrival and --delay"),
        (lambda: options(columns=Columns("k", None, None, "a"), rate=5), "draw the arrivals with --delay"),
        (lambda: by_rate(rate=0), "give rows per second"),
        (lambda: options(slices=3), "together with --rate"),
        (lambda: options(confidence=1.0), "--confidence 1 is not between 0 and 1"),
        (lambda: options(confidence=float("nan")), "--confidence nan is not between 0 and 1"),
    ],
)
def test_options_that_do_not_do(code: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        code()
    assert "\n" not in caught.value.message


def test_delays_are_those_of_the_published_loader() -> None:
    """First values of std::mt19937 with these seeds, and of libstdc++'s distribution over them."""
    raw = np.random.RandomState(5489).randint(0, 1 << 32, size=10_000, dtype=np.uint64)
    assert raw[-1] == 4_123_659_995  # the value that the C++ standard asks of the generator
    drawn = uniform_delays(4097, 20_000, 5_000)
    assert drawn.min() == 1
    assert drawn.max() == 5_000
    assert abs(drawn.mean() - 2500.5) < 40
    again = uniform_delays(4097, 100, 5_000)
    assert (again == drawn[:100]).all()
    assert (uniform_delays(7, 50, 1) == 1).all()


def test_times_by_a_rate() -> None:
    times = rate_times(152, 100_000)
    assert times.tolist() == [0, *[500] * 50, *[1000] * 50, *[1500] * 50, 2000]


@pytest.mark.parametrize(
    ("closed", "rows", "windows"), [(False, 951, 1), (False, 950, 0), (True, 1001, 1), (True, 2001, 2)]
)
def test_windows_that_the_files_fill(closed: bool, rows: int, windows: int) -> None:
    chosen = by_rate(closed=closed)
    if not windows:
        with pytest.raises(DataError, match="do not fill a window of 10 ms"):
            load(file_rows(rows), file_rows(rows + 500), chosen)
        return
    assert load(file_rows(rows), file_rows(rows + 500), chosen).starts == [10_000 * number for number in range(windows)]


def test_slices_lie_at_equal_shares_of_both_files() -> None:
    left, right = file_rows(10_951, 1 << 40), file_rows(20_951, 1 << 40)
    loaded = load(left, right, by_rate(slices=4))
    assert len(loaded.starts) == 4
    for number, start in enumerate(loaded.starts):
        for stream, count in ((loaded.left, 10_000), (loaded.right, 20_000)):
            inside = (stream.events >= start) & (stream.events < start + 10_000)
            places = stream.keys[inside]
            assert len(places) == 951
            assert places[0] == number * count // 4
        assert start % 10_000 == 0
        if number:
            assert start - loaded.starts[number - 1] >= 10_000 + 5_000
    with pytest.raises(DataError, match="too few for 10,002 slices"):
        load(left, right, by_rate(slices=10_002))


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """Two files of 3,000 rows in 30 windows of 10 ms, times in microseconds, in no order."""
    random = np.random.default_rng(1)
    for name in ("left", "right"):
        times = random.integers(0, 300_000, 3_000)
        table = pa.table(
            {
                "k": random.integers(0, 9, 3_000),
                "v": np.round(random.normal(5, 3, 3_000), 2),
                "t": times,
                "a": times + random.integers(0, 6_000, 3_000),
            }
        )
        pa.csv.write_csv(table, tmp_path / f"{name}.csv")
        pq.write_table(table, tmp_path / f"{name}.parquet")
    return tmp_path / "left.csv", tmp_path / "right.csv"


def rows_of(sides: tuple[Path, Path], **changes: Any) -> list[dict[str, Any]]:
    return json_rows(run_replay(options(left=sides[0], right=sides[1], **changes)))


def test_the_form_of_a_file_does_not_matter(sides: tuple[Path, Path]) -> None:
    csv = rows_of(sides, aggregate=EstimatedAggregate.SUM)
    other = sides[0].with_suffix(".parquet"), sides[1].with_suffix(".parquet")
    assert rows_of(other, aggregate=EstimatedAggregate.SUM) == csv
    table = pq.read_table(other[0])
    pq.write_table(table.take(pa.array(np.random.default_rng(3).permutation(3_000))), other[0])
    strip = [{key: value for key, value in row.items() if key == "exact"} for row in csv]
    again = rows_of(other, aggregate=EstimatedAggregate.SUM)
    assert [row["exact"] for row in again] == pytest.approx([row["exact"] for row in strip])


def test_timestamps_are_times_too(sides: tuple[Path, Path]) -> None:
    plain = rows_of(sides)
    for path in sides:
        table = pq.read_table(path.with_suffix(".parquet"))
        for place, name in ((2, "t"), (3, "a")):
            stamps = table.column(name).cast(pa.timestamp("us")).cast(pa.timestamp("ns"))
            table = table.set_column(place, name, stamps)
        pq.write_table(table, path.with_suffix(".parquet"))
    stamped = rows_of((sides[0].with_suffix(".parquet"), sides[1].with_suffix(".parquet")))
    assert stamped[-1]["window_start"] == "1970-01-01T00:00:00.290000"
    without = [{**row, "window_start": None} for row in plain]
    assert [{**row, "window_start": None} for row in stamped] == without


def test_units_and_several_moments(sides: tuple[Path, Path]) -> None:
    rows = rows_of(sides, unit=1000, window=10_000_000, emit_after=(7_000_000, 9_000_000))
    assert {row["window_start"] for row in rows} == set(range(0, 300_000, 10_000))
    assert {row["emit_after"] for row in rows} == {7_000_000, 9_000_000}
    assert list(rows[0]) == [
        "estimator",
        "window_start",
        "emit_after",
        "estimate",
        "lower",
        "upper",
        "exact",
        "reliable",
    ]


def test_rows_that_are_too_late_are_dropped(sides: tuple[Path, Path]) -> None:
    result = run_replay(options(left=sides[0], right=sides[1], lateness=1_000))
    assert result.dropped > 1_000
    assert result.lateness == 1_000
    assert (
        result.results[0].windows[5].exact
        < run_replay(options(left=sides[0], right=sides[1])).results[0].windows[5].exact
    )


def test_a_complete_window_is_answered_exactly(sides: tuple[Path, Path]) -> None:
    lateness = run_replay(options(left=sides[0], right=sides[1])).lateness
    for row in rows_of(sides, emit_after=(10_000 + lateness,)):
        assert row["estimate"] == row["lower"] == row["upper"] == row["exact"]
        assert row["reliable"]
    with pytest.raises(ConfigurationError, match="too late for an early answer"):
        rows_of(sides, emit_after=(10_001 + lateness,))


def test_figures_are_over_windows_that_have_an_answer(sides: tuple[Path, Path]) -> None:
    result = run_replay(options(left=sides[0], right=sides[1], warm_up=10, estimators=("none", "shrink")))
    none, shrink = figures(result.results[0])
    assert (none.windows, none.compared) == (20, 20)
    assert none.mean_error is not None
    assert shrink.mean_error is not None
    assert shrink.mean_error < none.mean_error
    assert none.mean_error == -none.bias  # type: ignore[operator]
    assert shrink.held >= 17


def csv(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", DataError, "is empty"),
        ("k,v,t,a\n", DataError, "has no rows"),
        ("key,v,t,a\n1,2,3,4\n", AnalysisError, "has no column 'k'"),
        ("k,v,time,a\n1,2,3,4\n", AnalysisError, "has no column 't'"),
        ("k,v,t,a\n1,x,3,4\n", AnalysisError, "column 'v' of .* is string, not a number"),
        ("k,v,t,a\n1,2,soon,4\n", AnalysisError, "column 't' of .* is string, not a time"),
        ("k,v,t,a\n1,2,3,4\n1,2,,4\n", DataError, "has no 't' in row 2"),
        ("k,v,t,a\n1,,3,4\n,2,3,4\n", DataError, "has no rows with a key and a value"),
        ("k,v,t,a\n,,3,4\n1,inf,3,4\n", DataError, "column 'v' of .* is inf in row 2"),
        ("k,v,t,a\n1,2,1e300,4\n", DataError, "out of range"),
        ("k,v,t,a\n1,1e200,3,4\n", DataError, r"values beyond 1e\+100"),
        ("k,v,t,a\n1,2,3\n", DataError, "cannot read"),
    ],
)
def test_files_that_do_not_do(tmp_path: Path, text: str, kind: type[SqlExtError], message: str) -> None:
    with pytest.raises(kind, match=message):
        read_rows(csv(tmp_path, "x.csv", text), NAMES, 1)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read .*gone\.csv"):
        read_rows(tmp_path / "gone.csv", NAMES, 1)
    with pytest.raises(ConfigurationError, match=r"neither \.csv nor \.parquet"):
        read_rows(csv(tmp_path, "x.txt", "k\n1\n"), NAMES, 1)
    with pytest.raises(DataError, match="cannot read"):
        read_rows(csv(tmp_path, "x.parquet", "k\n1\n"), NAMES, 1)


def test_rows_that_count_for_nothing_are_left_out(tmp_path: Path) -> None:
    rows = read_rows(csv(tmp_path, "x.csv", "k,v,t,a\n1,2,3,4\n,2,3,4\n1,,3,4\n5,7,8,9.4\n"), NAMES, 1000)
    assert rows.keys.to_pylist() == [1, 5]
    assert rows.values.tolist() == [2.0, 7.0]
    assert rows.times is not None
    assert rows.arrivals is not None
    assert (rows.times.tolist(), rows.arrivals.tolist()) == ([3_000, 8_000], [4_000, 9_400])


def test_dates_and_decimals(tmp_path: Path) -> None:
    table = pa.table(
        {
            "k": ["a"],
            "v": pa.array([Decimal("1.5")], pa.decimal128(5, 2)),
            "t": [datetime.date(1970, 1, 2)],
            "a": pa.array([86_400_000_001], pa.timestamp("us", "UTC")),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    rows = read_rows(tmp_path / "x.parquet", NAMES, 1)
    assert rows.timestamps
    assert rows.times is not None
    assert rows.arrivals is not None
    assert (rows.values[0], rows.times[0], rows.arrivals[0]) == (1.5, 86_400_000_000, 86_400_000_001)


def test_keys_of_different_types(tmp_path: Path) -> None:
    numbers = read_rows(csv(tmp_path, "n.csv", "k,v,t,a\n1,2,3,4\n"), NAMES, 1)
    texts = read_rows(csv(tmp_path, "t.csv", "k,v,t,a\nx,2,3,4\n"), NAMES, 1)
    with pytest.raises(AnalysisError, match=r"the keys are int64 in .* and string in"):
        same_codes(numbers, texts)
    small = FileRows(Path("s"), pa.array([1, 9], pa.int16()), np.ones(2), None, None)
    assert [codes.tolist() for codes in same_codes(numbers, small)] == [[0], [0, 1]]


def test_swapped_times_are_noticed(sides: tuple[Path, Path]) -> None:
    with pytest.raises(DataError, match="arrives before it happens"):
        rows_of(sides, columns=Columns("k", None, "a", "t"))


def test_too_few_windows(sides: tuple[Path, Path]) -> None:
    with pytest.raises(DataError, match="have 30 windows of 10 ms, and --warm-up is 30"):
        rows_of(sides, warm_up=30)
