"""The generator's tables: types of the specification, complete or not there, never mixed up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlext_planner.errors import ConfigurationError

from sqlext.catalog import FileCatalog
from sqlext.tpc import BENCHMARKS
from sqlext.tpc.benchmark import MARKER, connect, generate, generated
from tests.tpc.conftest import SCALE

Tables = Callable[[str], Path]
NAMES = pytest.mark.parametrize("name", list(BENCHMARKS))
TPCH = BENCHMARKS["tpch"]


def silent(step: str, rows: int | None) -> None:
    """Nobody reads the progress."""


@NAMES
def test_files_have_the_types_of_the_schema(name: str, tables: Tables) -> None:
    benchmark = BENCHMARKS[name]
    catalog = FileCatalog(tables(name))
    assert set(catalog.tables()) == set(benchmark.tables)
    for table, columns in benchmark.tables.items():
        info = catalog.table(table)
        assert info is not None
        assert dict(info.columns) == dict(columns)


@pytest.mark.few(2)
@NAMES
def test_rows_are_the_generators(name: str, tables: Tables) -> None:
    """All of them: counts, and the sums of a column of each type that the cast could have changed."""
    folder = tables(name)
    done = generated(folder)
    assert done is not None
    assert (done.benchmark, done.scale) == (name, SCALE)
    with connect(BENCHMARKS[name]) as connection:
        connection.execute(f"CALL {BENCHMARKS[name].generator}(sf = {SCALE})")
        for table, rows in done.rows.items():
            assert pq.read_metadata(folder / f"{table}.parquet").num_rows == rows
            other = f"read_parquet('{folder / table}.parquet')"
            for one, two in ((table, other), (other, table)):
                left = connection.execute(f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {two})").fetchone()
                assert left == (0,), table


def test_what_is_there_stays(tables: Tables) -> None:
    folder = tables("tpch")
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    said: list[str] = []
    known = generate(TPCH, SCALE, folder, lambda step, rows: said.append(step))
    assert known == generated(folder)
    assert said == []
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_another_scale_needs_another_folder(tables: Tables) -> None:
    with pytest.raises(ConfigurationError, match=r"already contains tpch at scale 0\.01"):
        generate(TPCH, 1.0, tables("tpch"), silent)


def test_files_of_somebody_else_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "orders.parquet").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"it contains orders\.parquet"):
        generate(TPCH, SCALE, tmp_path, silent)
    assert [path.name for path in tmp_path.iterdir()] == ["orders.parquet"]


def test_a_table_that_is_gone_comes_back(tmp_path: Path) -> None:
    pytest.importorskip("duckdb_extension_tpch")
    generate(TPCH, 0.001, tmp_path, silent)
    (tmp_path / "region.parquet").unlink()
    assert generated(tmp_path) is None
    generate(TPCH, 0.001, tmp_path, silent)
    assert pq.read_table(tmp_path / "region.parquet").num_rows == 5
    assert {path.name for path in tmp_path.iterdir()} == {MARKER, *(f"{table}.parquet" for table in TPCH.tables)}


def test_tables_that_are_half_done_are_not_seen(tmp_path: Path) -> None:
    """What stops the generator leaves nothing behind that could be taken for a table."""
    pytest.importorskip("duckdb_extension_tpch")

    def stop(step: str, rows: int | None) -> None:
        if step == "orders":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(TPCH, 0.001, tmp_path, stop)
    assert list(tmp_path.iterdir()) == []


def test_a_marker_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text(json.dumps({"a": 1}))
    with pytest.raises(ConfigurationError, match="was not written by `generate`"):
        generated(tmp_path)


def test_dates_and_decimals(tables: Tables) -> None:
    schema = pq.read_schema(tables("tpch") / "lineitem.parquet")
    assert schema.field("l_shipdate").type == pa.date32()
    assert schema.field("l_discount").type == pa.decimal128(15, 2)
    assert schema.field("l_linenumber").type == pa.int32()
    assert schema.field("l_orderkey").type == pa.int64()
