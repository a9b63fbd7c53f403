"""Aggregates over counted multi-way joins against those over the joined rows; both aggregated by DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest
from hypothesis import event, given
from sqlext_planner.expressions.aggregates import COUNT
from sqlext_planner.plan_format import tree_text
from sqlext_planner.relational.nodes import Aggregate
from sqlext_planner.umjoin.factorised.plan import counted
from sqlext_planner.umjoin.nodes import UMJoin

from tests.planner.duck_plans import duck_text
from tests.planner.umjoin.umjoin_cases import Case, Rows, cases, expected, same, table
from tests.planner.umjoin.umjoin_rows import joined_rows
from tests.properties import examples


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as found:
        yield found


def rows_of(case: Case, node: Aggregate, connection: duckdb.DuckDBPyConnection) -> Rows:
    """The rows of an aggregate over counts; the join's rows by its definition."""
    join = node.child
    assert isinstance(join, UMJoin)
    assert join.count == COUNT
    payload = join.payload or ()
    whole = replace(join, count=None, payload=None)
    found = Counter(tuple(row[column] for column in payload) for row in joined_rows(whole, case.rows))
    names = [(column.spark_name, column.name) for column in payload]
    counted_rows = table(names, [list(row) for row in found])
    counts = pa.array(list(found.values()), pa.int64())
    connection.register(
        "counted",
        counted_rows.append_column(COUNT.spark_name, counts) if names else pa.table({COUNT.spark_name: counts}),
    )
    keys = ", ".join(map(duck_text, node.keys))
    items = ", ".join(map(duck_text, node.items))
    return connection.execute(f"SELECT {items} FROM counted" + (f" GROUP BY {keys}" if keys else "")).fetchall()


@given(cases())
@examples(200, share=8)
def test_rows_are_those_of_the_aggregate_over_joined_rows(connection: duckdb.DuckDBPyConnection, case: Case) -> None:
    found = counted(case.node)
    if found is None:
        event("not counted")
        return
    event("counted")
    assert found.output == case.node.output
    assert not found.missing_references()
    assert same(rows_of(case, found, connection), expected(case, connection)), tree_text(found, details=False)
