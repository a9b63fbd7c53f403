"""Factorised aggregates against the aggregates over joined rows, made by nested loops; both aggregated by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import event, given
from sqlext_planner.plan_format import tree_text
from sqlext_planner.relational.nodes import Project, Scan
from sqlext_planner.umjoin.factorised.plan import factorise
from sqlext_planner.umjoin.nodes import UMJoin

from tests.planner.duck_plans import duck_sql
from tests.planner.umjoin.umjoin_cases import Case, cases, expected, same, table
from tests.properties import examples


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as found:
        yield found


def given_rows(case: Case, found: Project, connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    for child, rows in zip(case.join.inputs, case.rows, strict=True):
        assert isinstance(child, Scan)
        names = [(column.name, column.name) for column in child.output_columns]
        connection.register(child.table, table(names, [list(row.values()) for row in rows]))
    return connection.execute(duck_sql(found)).fetchall()


def check(case: Case, connection: duckdb.DuckDBPyConnection) -> None:
    found = factorise(case.node, [len(rows) for rows in case.rows])
    if isinstance(found, str):
        event(found[:40])
        return
    event("factorised")
    assert found.output_columns == case.node.output_columns
    assert all(not node.missing_references() for node in found.walk())
    assert not found.collect(UMJoin)
    assert same(given_rows(case, found, connection), expected(case, connection)), tree_text(found, details=False)


@given(cases())
@examples(300, share=8)
def test_rows_are_those_of_the_aggregate_over_joined_rows(connection: duckdb.DuckDBPyConnection, case: Case) -> None:
    check(case, connection)


@pytest.mark.slow
@given(cases())
@examples(10_000)
def test_many_more(connection: duckdb.DuckDBPyConnection, case: Case) -> None:
    check(case, connection)
