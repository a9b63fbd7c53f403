"""Columns in the names of folders: the catalog without Spark says what Spark says, over many layouts and values."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_planner.errors import ConfigurationError

from sqlext.catalog import FileCatalog, read_files
from sqlext.catalog.partitions import value_type, wider
from tests.properties import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NULL = "__HIVE_DEFAULT_PARTITION__"

#: Folders of a table, each with one file.
LAYOUTS = {
    "nested": ["day=2024-01-01/n=1", "day=2024-01-02/n=3000000000", f"day={NULL}/n=2"],
    "widened to a double": ["p=1", "p=1.5"],
    "not exact as a double": ["p=3000000000", "p=1.5"],
    "widened to a decimal": ["p=3000000000", "p=1e3"],
    "a day and a time": ["p=2024-01-01", "p=2024-01-01 10%3A00%3A00"],
    "a day and a number": ["p=2024-01-01", "p=20240101"],
    "a time of day and a day": ["p=10%3A00%3A00", "p=2024-01-01"],
    "a time of day": ["p=10%3A00%3A00", "p=23%3A59%3A59.25"],
    "only NULL": [f"p={NULL}"],
    "in the files too": ["v=1", "v=2"],
    "in the files too, in other letters": ["V=a"],
    "escaped": ["a%20b=x%2Fy"],
    "a sign of equality in the value": ["p=q=1"],
    "a name that starts like a hidden one": ["_p=1"],
    "other folders below": ["p=1/any", "p=2"],
    "other folders above": ["any/p=1", "any/p=2"],
}
REFUSED = {
    "a file beside the folders": ["", "p=1"],
    "other columns below": ["p=1", "p=1/q=2"],
    "another order": ["p=1/q=1", "q=1/p=1"],
    "two folders above": ["x/p=1", "y/p=1"],
    "one folder above": ["x", "p=1"],
    "twice": ["p=1/p=2"],
    "no value": ["p="],
    "no name": ["=1"],
}


def write(root: Path, folders: list[str]) -> None:
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"v": ["x"], "w": [1]}), root / folder / "part.parquet")


def described(folder: Path) -> tuple[tuple[str, str], ...]:
    info = FileCatalog(folder.parent).table(folder.name)
    assert info is not None
    return info.columns


def in_spark(spark: SparkSession, folder: Path) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, field.dataType.simpleString()) for field in read_files(spark, folder).schema)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", list(LAYOUTS))
def test_columns_are_those_of_spark(spark: SparkSession, tmp_path: Path, name: str) -> None:
    write(tmp_path / "t", LAYOUTS[name])
    columns = described(tmp_path / "t")
    assert columns == in_spark(spark, tmp_path / "t")
    if ("p", "time(6)") not in columns:  # Spark infers the type, and refuses it when it reads
        assert read_files(spark, tmp_path / "t").count() == len(LAYOUTS[name])


@pytest.mark.parametrize("name", list(REFUSED))
def test_mixed_layouts_are_refused(tmp_path: Path, name: str) -> None:
    """Spark refuses all of them but the first, whose file it would not read."""
    write(tmp_path / "t", REFUSED[name])
    with pytest.raises(ConfigurationError) as caught:
        FileCatalog(tmp_path).table("t")
    assert caught.value.help
    with pytest.raises(ConfigurationError) as again:
        read_files(None, tmp_path / "t")  # type: ignore[arg-type]
    assert again.value.message == caught.value.message


#: What numbers, days and times are made of, and nearly are.
_PARTS = ["0", "1", "12", "2024", "-", "+", ".", "e", "E5", "-01", "-31", " ", " 10%3A", "00", ":30", "%20", "d", "F"]
_PARTS += ["0x1", "p3", "NaN", "Infinity", "__", "x", "true", "9" * 19, "\uff11", "T", "Z", "_"]
_SHAPES = st.one_of(
    st.lists(st.sampled_from(_PARTS), min_size=1, max_size=5).map("".join),
    st.integers(-(10**20), 10**20).map(str),
    st.floats().map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(str),
    st.dates().map(str),
    st.datetimes().map(lambda at: str(at.replace(microsecond=0))),
    st.times().map(str),
    st.from_regex(
        r"[+-]?0{0,3}[0-9]{1,6}-[01][0-9]-[0-3][0-9]( [0-2][0-9]:[0-6][0-9]:[0-5][0-9](\.[0-9]{1,2})?)?", fullmatch=True
    ),
)
VALUES = _SHAPES.filter(lambda text: text not in (".", "..") and "/" not in text and len(text) < 60)


@examples(25)
@given(texts=st.lists(VALUES, min_size=12, max_size=12))
def test_any_value_has_sparks_type(spark: SparkSession, tmp_path: Path, texts: list[str]) -> None:
    """Twelve values at a time, each a column of its own: a question to Spark takes 30 ms."""
    root = tmp_path / "t"
    shutil.rmtree(root, ignore_errors=True)
    write(root, ["/".join(f"c{place}={text}" for place, text in enumerate(texts))])
    read = spark.read.parquet(str(root)).schema
    assert dict(zip(texts, [field.dataType.simpleString() for field in read][2:], strict=True)) == {
        text: value_type(text) for text in texts
    }


KINDS = {"1": "int", "3000000000": "bigint", "1e3": "decimal(4,0)", "12345678901234567890": "decimal(20,0)"}
KINDS |= {
    "1.5": "double",
    "2024-01-01": "date",
    "2024-01-01 10%3A00%3A00": "timestamp",
    "10%3A00%3A00": value_type("10%3A00%3A00"),
}
KINDS |= {"x": "string", NULL: "void"}


def test_two_types_have_sparks_common_type(spark: SparkSession, tmp_path: Path) -> None:
    """All pairs of types at once: a column for each pair, and two folders."""
    pairs = [(one, other) for one in KINDS for other in KINDS if one < other]
    write(tmp_path / "t", ["/".join(f"{place}={pair[side]}" for place, pair in enumerate(pairs)) for side in (0, 1)])
    read = spark.read.parquet(str(tmp_path / "t")).schema
    expected = dict(zip(pairs, [field.dataType.simpleString() for field in read][2:], strict=True))
    assert {pair: wider(KINDS[pair[0]], KINDS[pair[1]]) for pair in pairs} == expected
    assert described(tmp_path / "t")[2:] == tuple((str(place), expected[pair]) for place, pair in enumerate(pairs))


def test_text_files_with_null_and_typed_partitions(spark: SparkSession, tmp_path: Path) -> None:
    for value in ("2024-01-01 10%3A00%3A00", NULL):
        folder = tmp_path / "t" / f"at={value}" / f"nothing={NULL}"
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text("v\n1\n", encoding="utf-8")
    assert described(tmp_path / "t") == in_spark(spark, tmp_path / "t")
    rows = read_files(spark, tmp_path / "t").selectExpr("v", "string(at)", "nothing").collect()
    assert sorted(map(tuple, rows), key=str) == [(1, "2024-01-01 10:00:00", None), (1, None, None)]


def test_without_inference_every_column_is_text(spark: SparkSession, tmp_path: Path) -> None:
    setting = "spark.sql.sources.partitionColumnTypeInference.enabled"
    (tmp_path / "t" / "p=1").mkdir(parents=True)
    (tmp_path / "t" / "p=1" / "a.csv").write_text("v\n1\n", encoding="utf-8")
    assert in_spark(spark, tmp_path / "t") == (("v", "int"), ("p", "int"))
    spark.conf.set(setting, "false")
    try:
        assert in_spark(spark, tmp_path / "t") == (("v", "int"), ("p", "string"))
        assert [tuple(row) for row in read_files(spark, tmp_path / "t").collect()] == [(1, "1")]
    finally:
        spark.conf.unset(setting)
