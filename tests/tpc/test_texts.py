"""The query files are the generator's own texts with the changes that the READMEs note, and nothing else."""

from __future__ import annotations

import importlib.util

import pytest

from sqlext.tpc import BENCHMARKS
from tests.tpc.texts import ROOT, changes, file_texts

NAMES = pytest.mark.parametrize("name", list(BENCHMARKS))


@NAMES
def test_files_are_the_packages_texts_with_the_noted_changes(name: str) -> None:
    if importlib.util.find_spec(f"duckdb_extension_{name}") is None:
        pytest.skip(f"the package duckdb-extension-{name} is not installed")
    benchmark = BENCHMARKS[name]
    expected = file_texts(benchmark)
    assert list(expected) == list(benchmark.numbers)
    for number, text in expected.items():
        assert benchmark.query(number) == text, f"query {number}: python -m tests.tpc.texts, or note the change"


@NAMES
def test_there_is_a_file_for_each_query_and_no_other(name: str) -> None:
    benchmark = BENCHMARKS[name]
    files = {path.name for path in (ROOT / f"{name}_queries").glob("*.sql")}
    assert files == {"schema.sql", *(f"q{number:02}.sql" for number in benchmark.numbers)}


def test_what_is_changed() -> None:
    """As long as double quotes are all that Spark needs changed, every change is of that kind."""
    assert list(changes(BENCHMARKS["tpch"])) == []
    noted = list(changes(BENCHMARKS["tpcds"]))
    assert noted
    for change in noted:
        assert change.ours == change.theirs.replace('"', "`")


@NAMES
def test_tables_are_those_of_the_generator(name: str) -> None:
    """The same tables and columns; our types are narrower only where the generator has BIGINT for an integer."""
    if importlib.util.find_spec(f"duckdb_extension_{name}") is None:
        pytest.skip(f"the package duckdb-extension-{name} is not installed")
    from sqlext.tpc.benchmark import connect

    benchmark = BENCHMARKS[name]
    with connect(benchmark) as connection:
        connection.execute(f"CALL {benchmark.generator}(sf = 0)")
        rows = connection.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal "
            "ORDER BY table_name, column_index"
        ).fetchall()
    generator: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        generator.setdefault(table, {})[column] = kind
    assert {table: list(columns) for table, columns in benchmark.tables.items()} == {
        table: list(columns) for table, columns in generator.items()
    }
    same = {"VARCHAR": {"string"}, "INTEGER": {"int"}, "BIGINT": {"bigint", "int"}}
    for table, columns in benchmark.tables.items():
        for column, kind in columns.items():
            theirs = generator[table][column]
            assert kind in same.get(theirs, {theirs.lower()}), f"{table}.{column}: {kind}, the generator has {theirs}"
