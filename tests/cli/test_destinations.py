"""Results that go to a URI: one file, there when it is whole, and tried before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from sqlext_planner.errors import ConfigurationError

from sqlext.catalog.locations import RemoteData, written_at
from sqlext.cli.destinations import Destination, chosen_format, result_writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def remote(spark: SparkSession, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A URI that only Hadoop understands, and the folder that it is."""
    name, folder = f"sqlextout{os.getpid()}{abs(hash(tmp_path))}", tmp_path / "storage"
    folder.mkdir()
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    key = f"fs.viewfs.mounttable.{name}.link./out"
    settings.set(key, f"file://{folder}")
    yield f"viewfs://{name}/out", folder
    settings.unset(key)


def written(frame: DataFrame, output: Destination) -> None:
    shown: Any = SimpleNamespace(stop=lambda: None)
    with result_writer(chosen_format(None, output), output, None) as write:
        write(frame, shown)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("out.csv", Path("out.csv")),
        ("file:///x/out.csv", Path("/x/out.csv")),
        ("~/out.csv", Path.home() / "out.csv"),
        ("a:b.csv", Path("a:b.csv")),
        ("s3a://b/out.parquet", RemoteData("s3a://b/out.parquet", "s3a")),
    ],
)
def test_what_a_text_means(text: str, where: Destination) -> None:
    assert written_at(text) == where


def test_the_suffix_of_a_uri_tells_the_format() -> None:
    assert chosen_format(None, RemoteData("s3a://b/x.parquet", "s3a")) == "parquet"
    with pytest.raises(ConfigurationError, match=r"the suffix '\.doc' does not tell the format"):
        chosen_format(None, RemoteData("s3a://b/x.doc", "s3a"))
    with pytest.raises(ConfigurationError, match="one slash after 's3a:'"):
        written_at("s3a:/b/x.csv")
    assert "SECRET" not in str(RemoteData("s3a://KEY:SECRET@b/x.csv", "s3a"))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_file_of_a_uri_is_that_of_this_machine(
    spark: SparkSession, remote: tuple[str, Path], tmp_path: Path, suffix: str
) -> None:
    uri, folder = remote
    frame = spark.range(1000).selectExpr("id", "string(id) AS s").coalesce(1)
    (folder / f"x{suffix}").write_text("before")
    written(frame, written_at(f"{uri}/x{suffix}"))
    written(frame, tmp_path / f"x{suffix}")
    assert [path.name for path in folder.iterdir() if not path.name.endswith(".crc")] == [f"x{suffix}"]
    if suffix == ".parquet":
        assert pq.read_table(folder / f"x{suffix}") == pq.read_table(tmp_path / f"x{suffix}")
    else:
        assert (folder / f"x{suffix}").read_bytes() == (tmp_path / f"x{suffix}").read_bytes()


def test_what_cannot_be_written_is_told_before_rows_are_computed(spark: SparkSession, remote: tuple[str, Path]) -> None:
    uri, folder = remote
    (folder / "file").write_text("no folder")
    with pytest.raises(ConfigurationError, match="cannot be written") as caught:
        written(spark.sql("SELECT raise_error('computed')"), written_at(f"{uri}/file/x.csv"))
    assert caught.value.condition == "file-access"
    with pytest.raises(ConfigurationError, match=r"no file system for 's3a:' here"):
        written(spark.sql("SELECT raise_error('computed')"), written_at("s3a://bucket/x.csv"))


def test_rows_that_fail_leave_what_was_there(spark: SparkSession, remote: tuple[str, Path]) -> None:
    uri, folder = remote
    (folder / "x.csv").write_text("before")
    with pytest.raises(Exception, match="half way"):
        written(spark.sql("SELECT raise_error('half way')"), written_at(f"{uri}/x.csv"))
    assert (folder / "x.csv").read_text() == "before"
    assert [path.name for path in folder.iterdir() if not path.name.endswith(".crc")] == ["x.csv"]
