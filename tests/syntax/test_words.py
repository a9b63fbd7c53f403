"""Words of SQL as names, signs of literals, inner names: plans without Spark. The readings are those of Spark 4.3."""

from __future__ import annotations

import pytest
from sqlext_planner.config import Config
from sqlext_planner.window.nodes import WindowUnion

from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.pipeline import stage

CATALOG = DictCatalog(
    {
        "t": {"all": "int", "distinct": "int", "a": "int", "y": "int", "current_date": "int", "ts": "int"},
        "u": {"i": "int", "arr": "array<int>"},
    }
)


def _plan(items: str):  # type: ignore[no-untyped-def]
    found = stage(f"SELECT {items} FROM t LAST JOIN u ON t.a = u.i", CATALOG, Config()).analyzed
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("all", ["all"]),
        ("all, a", ["all", "a"]),
        ("distinct", ["distinct"]),
        ("distinct, a", ["distinct", "a"]),
        ("/*+ BROADCAST(u) */ all, a", ["all", "a"]),
        ("a, distinct", ["a", "distinct"]),
        ("ALL a", ["a"]),
        ("DISTINCT a", ["a"]),
        ("DISTINCT (a)", ["a"]),
        ("all y", ["y"]),
        ("all distinct", ["distinct"]),
        ("distinct all", ["all"]),
        ("all distinct, a", ["distinct", "a"]),
        ("t.all, t.distinct", ["all", "distinct"]),
        ("(distinct)", ["distinct"]),
        ("all * 2", ["(all * 2)"]),
        ("all = 1", ["(all = 1)"]),
        ("distinct / 2, a", ["(distinct / 2)", "a"]),
        ("ALL *", ["all", "distinct", "a", "y", "current_date", "ts", "i", "arr"]),
        ("current_date", ["current_date"]),
        ("current_timestamp, user", ["current_timestamp()", "current_user()"]),
    ],
)
def test_names_of_the_result(items: str, names: list[str]) -> None:
    assert list(_plan(items).names) == names


@pytest.mark.parametrize(
    ("literal", "dtype"),
    [
        ("-2147483648", "int"),
        ("- 2147483648", "int"),
        ("2147483648", "bigint"),
        ("-2147483649", "bigint"),
        ("-(2147483648)", "bigint"),
        ("- -2147483648", "int"),
        ("-9223372036854775808", "bigint"),
        ("9223372036854775808", "decimal(19,0)"),
        ("-9223372036854775809", "decimal(19,0)"),
        ("-9223372036854775808L", "bigint"),
        ("-128Y", "tinyint"),
        ("-32768S", "smallint"),
        ("-1.5", "decimal(2,1)"),
        ("-1.50BD", "decimal(3,2)"),
        ("-1e3", "double"),
        ("current_date + 1", "int"),
        ("struct(t.a, (u.i), y + 1)", "struct<a:int,i:int,col3:int>"),
    ],
)
def test_types_of_literals(literal: str, dtype: str) -> None:
    (field,) = _plan(f"{literal} AS v").output
    assert field.dtype == dtype


def test_names_of_the_user_are_none_of_ours() -> None:
    frame = "PARTITION BY a ORDER BY ts ROWS_RANGE BETWEEN 1 PRECEDING AND CURRENT ROW"
    sql = f"SELECT sum(y) OVER ({frame}) AS __sqlext_0, count(y) OVER ({frame}) AS `t.a`, t.a FROM t"
    found = stage(sql, CATALOG, Config()).analyzed
    assert found is not None
    (window,) = found.collect(WindowUnion)[:1]
    inner = [call.column.spark_name for group in window.windows for call in group.calls]
    assert not [name for name in inner if name.startswith("__sqlext") or "." in name]
    assert list(found.names) == ["__sqlext_0", "t.a", "a"]
