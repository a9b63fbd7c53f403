"""A checkpoint of another query, or of another version: refused, and the user sees in the first line why."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlext_operators
from sqlext_operators.exchange.chunks import FORMAT

from sqlext import stream_settings

from .harness import Driver
from .streaming import STATEMENTS, write_streams

pytestmark = pytest.mark.slow

SQL = STATEMENTS["range"]
CONF = stream_settings(cores=2)
#: What changes, and what the message says of it.
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "window length": ({"sql": SQL.replace("20s", "30s")}, "windows was "),
    "function": ({"sql": SQL.replace("max(v)", "min(v)")}, "windows was "),
    "key": ({"sql": SQL.replace("PARTITION BY k", "PARTITION BY v")}, "keys and order was a.k; a.ts, and is a.v; a.ts"),
    "schema": ({"columns": ["id", "k", "ts", "cast(v AS int) v", "x"]}, "v int"),
    "partitions of Spark": ({"conf": {"spark.sql.shuffle.partitions": "3"}}, "partitions was 2 of 2, and is 3 of 3"),
    "partitions": ({"settings": {"sqlext.exchange.partitions": "5"}}, "partitions was 2 of 2, and is 5 of 2"),
    "time zone": ({"conf": {"spark.sql.session.timeZone": "Asia/Tokyo"}}, "time zone was UTC, and is Asia/Tokyo"),
    "ANSI mode": ({"conf": {"spark.sql.ansi.enabled": "false"}}, "spark.sql.ansi.enabled was true, and is false"),
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`rows`, and `checkpoint` after three micro-batches."""
    folder = tmp_path_factory.mktemp("begun")
    write_streams(folder / "rows", 12, 200)
    with Driver("local[2]", folder / "driver", CONF) as driver:
        driver.run("stream_probes.begin", sql=SQL, rows=str(folder / "rows"), checkpoint=str(folder / "checkpoint"))
    return folder


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with Driver("local[2]", tmp_path_factory.mktemp("changed"), CONF) as driver:
        yield driver


def go_on(driver: Driver, begun: Path, folder: Path, **change: Any) -> Any:
    checkpoint = shutil.copytree(begun / "checkpoint", folder / "checkpoint")
    request = {"sql": SQL, "rows": str(begun / "rows"), "checkpoint": str(checkpoint)}
    return driver.run("stream_probes.go_on", **{**request, **change})


def check(found: Any, message: str) -> None:
    """The error, raised and asked for, says it in its first line, and is of Spark's class and of ours."""
    assert found is not None, "the query went on"
    for way in ("raised", "shown"):
        first, *lines = found[way]["message"].splitlines()
        assert message in first, found[way]
        assert any(line.startswith("help: ") and "checkpoint" in line for line in lines[:8]), lines
        assert {"StreamingQueryException", "ConfigurationError"} <= {*found[way]["kinds"]}


def test_the_same_query_goes_on(driver: Driver, begun: Path, tmp_path: Path) -> None:
    assert go_on(driver, begun, tmp_path) is None


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_query_is_refused(driver: Driver, begun: Path, tmp_path: Path, change: str) -> None:
    arguments, message = CHANGES[change]
    found = go_on(driver, begun, tmp_path, **arguments)
    check(found, "the checkpoint belongs to another query: ")
    check(found, message)


def test_another_version_of_the_state_is_refused(begun: Path, tmp_path: Path) -> None:
    """The operators of a version that writes another format."""
    package = Path(sqlext_operators.__file__).parent
    later = shutil.copytree(package, tmp_path / "later" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    chunks = later / "exchange" / "chunks.py"
    written, text = f"\nFORMAT = {FORMAT}\n", chunks.read_text()
    assert written in text
    chunks.write_text(text.replace(written, f"\nFORMAT = {FORMAT + 1}\n"))
    message = f"holds the stream's state in format {FORMAT}, and this version reads {FORMAT + 1}"
    with Driver("local[2]", tmp_path / "driver", CONF, first=later.parent) as driver:
        check(go_on(driver, begun, tmp_path), message)
