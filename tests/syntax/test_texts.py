"""Texts by the hundred: TPC-H, TPC-DS and OpenMLDB's own cases all parse, and their plans are sound."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlext_operators.window.functions import lookup
from sqlext_planner.errors import SqlExtError

from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.syntax.parser import parse

duckdb = pytest.importorskip("duckdb")

_TYPES = {"INTEGER": "int", "BIGINT": "bigint", "VARCHAR": "string", "DATE": "date"}
_GENERATORS = {"tpch": "dbgen", "tpcds": "dsdgen"}


def _benchmark(name: str) -> tuple[DictCatalog, list[tuple[int, str]]]:
    extensions = pytest.importorskip("duckdb_extensions")
    connection = duckdb.connect()
    extensions.import_extension(name, con=connection)
    connection.execute(f"LOAD {name}")
    connection.execute(f"CALL {_GENERATORS[name]}(sf=0)")
    tables: dict[str, dict[str, str]] = {}
    listing = "SELECT table_name, column_name, data_type FROM information_schema.columns"
    for table, column, dtype in connection.execute(listing).fetchall():
        tables.setdefault(table, {})[column] = _TYPES.get(dtype, dtype.lower())
    return DictCatalog(tables), connection.execute(f"SELECT query_nr, query FROM {name}_queries()").fetchall()


@pytest.mark.few(2)
@pytest.mark.parametrize(("name", "count"), [("tpch", 22), ("tpcds", 99)])
def test_benchmark_queries_have_sound_plans(name: str, count: int) -> None:
    catalog, queries = _benchmark(name)
    assert len(queries) == count
    for number, sql in queries:
        statement = parse(sql)
        assert (statement.kind, statement.uses_extension) == ("query", False), number
        for node in analyze(statement, catalog).walk():
            assert not node.missing_references(), (number, node.label())


def _openmldb_cases(shared: Callable[[str], Path]) -> list[dict[str, Any]]:
    cases = json.loads(shared("cases/openmldb/window_cases.json").read_text(encoding="utf-8"))
    in_one_database = [case for case in cases if not any(table.get("db") for table in case["inputs"])]
    return [case for case in in_one_database if not case.get("suspect")]


def _statement(case: dict[str, Any]) -> tuple[str, DictCatalog]:
    sql = case["sql"]
    tables = {}
    for i, table in enumerate(case["inputs"]):
        name = table["name"] or f"input_{i}"
        sql = sql.replace(f"{{{i}}}", name)
        columns = {column["name"]: column["type"] for column in table["columns"]}
        tables |= {name: columns, f"{case.get('db')}.{name}": columns}
    return sql, DictCatalog(tables)


def test_openmldb_statements_parse(shared: Callable[[str], Path]) -> None:
    """All but one with the rows of a request."""
    for case in _openmldb_cases(shared):
        if case["expect"].get("success", True) and "execute_mode = 'request'" not in case["sql"]:
            sql, _ = _statement(case)
            assert parse(sql, compat="openmldb").kind == "query", case["key"]


def test_openmldb_refusals_have_a_place(shared: Callable[[str], Path]) -> None:
    for case in _openmldb_cases(shared):
        if not case["expect"].get("success", True):
            sql, catalog = _statement(case)
            with pytest.raises(SqlExtError) as caught:
                analyze(parse(sql, compat="openmldb"), catalog)
            assert caught.value.span is not None, case["key"]


def test_openmldb_statements_have_sound_plans(shared: Callable[[str], Path]) -> None:
    """All but those that use functions which the table lacks, two that contradict the refusal of float keys, one with
    the rows of a request, and one with a column for n."""
    refused = []
    for case in _openmldb_cases(shared):
        wanted = [name for name in case["functions"] if name != "fz_join"]
        if not case["expect"].get("success", True) or any(lookup(name) is None for name in wanted):
            continue
        sql, catalog = _statement(case)
        try:
            plan = analyze(parse(sql, compat="openmldb"), catalog)
        except SqlExtError as error:
            refused.append((case["key"], error.message))
            continue
        for node in plan.walk():
            assert not node.missing_references(), case["key"]
    reasons = ("partitioned by a column of type float", "rows of a request", "must be a literal integer")
    assert all(any(reason in message for reason in reasons) for _, message in refused), refused
    assert len(refused) <= 4
