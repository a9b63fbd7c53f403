"""A full disk is told as such, whoever finds it: Spark's jobs, Parquet's writer in Java, or a file of text."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pyspark  # as it is loaded where Spark has failed
import pytest
from py4j.protocol import Py4JError
from sqlext_planner.errors import ConfigurationError

from sqlext.cli.destinations import result_writer
from sqlext.cli.failures import explained

FULL = "An error occurred while calling o1.end.\n: java.io.IOException: No space left on device\n\tat x.Y.z(Y.java:1)"


@pytest.mark.parametrize(
    "error", [Py4JError(FULL), OSError(errno.ENOSPC, "No space left on device"), RuntimeError(FULL)]
)
def test_a_result_in_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def full(*_: object) -> Path:
        raise error

    monkeypatch.setattr("sqlext_planner.spark.results.write_one_parquet", full)
    frame: Any = None
    shown: Any = None
    message = r"no space was left on a disk while .*x\.parquet was written"
    with (
        pytest.raises(ConfigurationError, match=message) as caught,
        result_writer("parquet", tmp_path / "x.parquet", None) as write,
    ):
        write(frame, shown)
    assert (caught.value.condition, list(tmp_path.iterdir())) == ("disk-full", [])
    assert "bug" not in explained(caught.value)[0]


def test_other_errors_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Path:
        raise RuntimeError("something else")

    monkeypatch.setattr("sqlext_planner.spark.results.write_one_parquet", fails)
    frame: Any = None
    shown: Any = None
    with (
        pytest.raises(RuntimeError, match="something else"),
        result_writer("parquet", tmp_path / "x.parquet", None) as write,
    ):
        write(frame, shown)


def test_an_error_of_java_is_no_bug() -> None:
    assert pyspark.__version__
    message, code = explained(Py4JError(FULL))
    assert code == 1
    assert message.startswith("Py4JError: An error occurred while calling o1.end.")
    assert "No space left on device" in message
    assert "disk-full" in message
    assert "bug" not in message
    assert "Y.java" not in message
