"""How CSV files are laid out, by looking at them and by options; names and patterns of tables. No Spark."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest
from sqlext_planner.catalog import TableInfo
from sqlext_planner.config import Config
from sqlext_planner.errors import ConfigurationError

from sqlext.catalog import FileCatalog, table_info
from sqlext.catalog.csv import csv_table
from sqlext.catalog.options import FolderOptions, ReadOptions
from sqlext.run.pipeline import stage


def told(tmp_path: Path, name: str, text: str, options: ReadOptions = ReadOptions()) -> TableInfo:  # noqa: B008
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    return table_info("t", tmp_path / name, options)


@pytest.mark.parametrize(
    ("name", "text", "columns", "rows"),
    [
        ("t.csv", "a;b\n1,5;x\n2,5;y\n", "a string, b string", 2),
        ("t.csv", "a|b,c\n1|2\n", "a int, b,c int", 1),
        ("t.csv", "a\tb\n1\t2020-01-02\n", "a int, b date", 1),
        ("t.csv", "a,b\n1,x;y\n2,\n", "a int, b string", 2),
        ("t.csv", "a\n1\n", "a int", 1),
        ("t.csv", "1,2.5\n3,4\n", "_c0 int, _c1 double", 2),
        ("t.csv", "2020-01-02|-1\n", "_c0 date, _c1 int", 1),
        ("t.csv", "id,2019,2020\n1,2,3\n", "id int, 2019 int, 2020 int", 1),
        ("t.csv", ",a\n1,2\n", "_c0 int, a int", 1),
        ("t.tsv", "a\tb,c\n1\t2\n", "a int, b,c int", 1),
        ("t.bed", "chr1\t5\t9\tx\nchr2\t6\t8\ty\n", "chrom string, chromStart int, chromEnd int, name string", 2),
        (
            "t.bed",
            "#made by hand\n#\nchr1\t5\t9\n# more\nchr1\t5\t9\n",
            "chrom string, chromStart int, chromEnd int",
            2,
        ),
        ("t.csv", 'a,b\n1,"x\ny"\n2,"z ""\r\n"""\n', "a int, b string", 2),
        ("t.csv", '"a\nb",c\n1,2\n', "a\nb int, c int", 1),
        ("t.csv", "\ufeffa,b\r\n1,2\r\n", "a int, b int", 1),
    ],
)
def test_layouts_are_seen(tmp_path: Path, name: str, text: str, columns: str, rows: int) -> None:
    info = told(tmp_path, name, text)
    assert ", ".join(" ".join(column) for column in info.columns) == columns
    assert info.rows == rows


def test_layouts_are_given(tmp_path: Path) -> None:
    assert told(tmp_path, "t.csv", "a,b\n1,2\n", ReadOptions(header=False)).columns[0] == ("_c0", "string")
    assert told(tmp_path, "t.csv", "1,2\n3,4\n", ReadOptions(header=True)).columns == (("1", "int"), ("2", "int"))
    assert told(tmp_path, "t.csv", "a^b\n1^2\n", ReadOptions.of(delimiter="^")).columns == (("a", "int"), ("b", "int"))
    assert told(tmp_path, "t.csv", "a\tb\n1\t2\n", ReadOptions.of(delimiter="tab")).columns[1] == ("b", "int")
    quoted = tmp_path / "q.csv"
    quoted.write_text('a,b\n1,"x\ny"\n', encoding="utf-8")
    assert csv_table([quoted]).layout.multiline
    with pytest.raises(ConfigurationError, match=r"q\.csv' has line breaks in quoted values"):
        csv_table([quoted], ReadOptions(multiline=False))
    assert not csv_table([tmp_path / "t.csv"]).layout.multiline


def test_compressed_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x;y\n1;2\n"))
    (tmp_path / "b.bed.bz2").write_bytes(bz2.compress(b"chr1\t1\t2\n"))
    catalog = FileCatalog(tmp_path)
    assert catalog.tables() == ("a", "b")
    found = [catalog.table(name) for name in catalog.tables()]
    assert [info and len(info.columns) for info in found] == [2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k,v,K\n1,2,3\n", r"header of '.*bad\.csv' names column 'K' twice"),
        ("k,v\n1,2\n3,4,5\n", r"bad\.csv' cannot be read: .*Expected 2 columns, got 3"),
        ("", r"bad\.csv' has no header"),
        (b"k,v\n\xff\xfe,1\n", r"bad\.csv' cannot be read: "),
        (b"\xff\xfe\n", r"bad\.csv' cannot be read: "),
    ],
)
def test_a_bad_file_is_named_and_stops_only_those_who_name_it(tmp_path: Path, text: str | bytes, message: str) -> None:
    (tmp_path / "bad.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    (tmp_path / "good.csv").write_text("k,v\n1,2\n", encoding="utf-8")
    catalog = FileCatalog(tmp_path)
    assert stage("SELECT bad.k FROM good AS bad", catalog, Config()).analyzed is not None
    with pytest.raises(ConfigurationError, match=message) as caught:
        stage("SELECT * FROM bad", catalog, Config())
    assert caught.value.help


def test_types_of_one_table(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("k;v\n1.5;2\n", encoding="utf-8")
    catalog = FileCatalog(tmp_path, FolderOptions.of_texts(["delimiter=;", "a.types=k string"]))
    types = {name: info.columns[0][1] for name in catalog.tables() if (info := catalog.table(name))}
    assert types == {"a": "string", "b": "double"}
