"""Values that are periods (calls, CAST, CASE, subqueries, elements) as operands, and periods where none can stand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError
from sqlext_planner.relational.nodes import SparkRelation
from sqlext_planner.spark.versions import spark_version

from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.pipeline import stage
from sqlext.syntax.parser import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqlext import Session

pytestmark = pytest.mark.tidied

CATALOG = DictCatalog(
    {
        "r": {
            "id": "int",
            "x": "int",
            "y": "int",
            "p": "struct<s:int,e:int>",
            "ps": "array<struct<s:int,e:int>>",
            "m": "map<array<int>,struct<s:int,e:int>>",
            "deep": "struct<q:array<struct<s:int,e:int>>>",
        },
        "s": {"id": "int", "x": "int", "y": "int", "p": "struct<s:int,e:int>"},
    }
)
VALUES = (
    "period_intersect(x, y, 2, 9)",
    "CAST(p AS struct<a:int,b:int>)",
    "p::struct<a:int,b:int>",
    "CASE WHEN x > 1 THEN p END",
    "CASE x WHEN 1 THEN p ELSE NULL END",
    "coalesce(p, p)",
    "if(x > 1, p, p)",
    "struct(x, y)",
    "named_struct('a', x, 'b', y)",
    "ps[0]",
    "element_at(ps, 1)",
    "m[array(1)]",
    "deep.q[0]",
    "(SELECT max(s.p) FROM s)",
    "(SELECT max(s.p) FROM s WHERE s.id = r.id)",
)


@pytest.mark.parametrize("value", VALUES)
def test_any_value_is_an_operand_on_both_sides(value: str) -> None:
    for condition in (
        f"{value} OVERLAPS PERIOD(3, 4)",
        f"{value} NOT BEFORE (3, 4) WITHIN 5",
        f"PERIOD(3, 4) DURING {value}",
        f"{value} MEETS {value}",
        f"NOT {value} CONTAINS 5 AND x > 1",
    ):
        plan = stage(f"SELECT {condition} AS c FROM r", CATALOG, Config()).analyzed
        assert plan is not None, condition
        assert plan.output[0].dtype == "boolean", condition


def test_they_have_the_rows_of_columns_with_these_values(spark: SparkSession, session: Session) -> None:
    rows = "(1, 1, 5), (2, 3, 4), (3, 4, 9), (4, 9, 12), (5, 2, 3)"
    period = "named_struct('s', x, 'e', y)"
    both = f"{period} AS p, array({period}) AS ps, map(array(1), {period}) AS m, struct(array({period}) AS q) AS deep"
    for name in ("r", "s"):
        spark.sql(f"SELECT *, {both} FROM VALUES {rows} AS v(id, x, y)").createOrReplaceTempView(f"values_{name}")
    tables = "WITH r AS (SELECT * FROM values_r), s AS (SELECT * FROM values_s) "
    known = [value for value in VALUES if not value.startswith("period_intersect")]
    if spark_version() < (4, 0):  # which has no ::
        known = [value for value in known if "::" not in value]
    direct = ", ".join(f"{value} OVERLAPS PERIOD(3, 5) AS c{number}" for number, value in enumerate(known))
    named = ", ".join(f"{value} AS c{number}" for number, value in enumerate(known))
    columns = ", ".join(
        f"c{number}.{_first(value)} < 5 AND 3 < c{number}.{_second(value)}" for number, value in enumerate(known)
    )
    found = session.sql(f"{tables}SELECT id, {direct} FROM r").collect()
    plain = f"{tables}SELECT id, {columns} FROM (SELECT id, {named} FROM r)"
    assert sorted(map(tuple, found)) == sorted(map(tuple, spark.sql(plain).collect()))


def _first(value: str) -> str:
    return "x" if value.startswith("struct(") else "a" if re.search(r"<a:|'a'", value) else "s"


def _second(value: str) -> str:
    return {"x": "y", "a": "b", "s": "e"}[_first(value)]


@pytest.mark.parametrize("value", [*VALUES, "1", "'a'", "count(*)", "x + 1"])
def test_an_alias_may_still_be_called_as_a_relation(value: str) -> None:
    for alias in ("before", "overlaps", "starts", "equals", "after"):
        statement = parse(f"SELECT {value} {alias}, x meets FROM r")
        assert statement.query is not None
        assert statement.query.named_selects == [alias, "meets"]


@pytest.mark.parametrize(
    ("text", "place", "help"),
    [
        ("SELECT PERIOD(x, y) FROM r", "PERIOD(x, y)", "struct(a, b)"),
        ("SELECT PERIOD CLOSED (x, y) AS p FROM r", "PERIOD CLOSED (x, y)", "struct(a, b)"),
        ("SELECT * FROM r JOIN s ON PERIOD(r.x, r.y) = PERIOD(s.x, s.y)", "PERIOD(r.x, r.y)", "write EQUALS"),
        ("SELECT * FROM r JOIN s ON (PERIOD(r.x, r.y)) <=> s.p", "PERIOD(r.x, r.y)", "write EQUALS"),
        ("SELECT * FROM r WHERE p <> PERIOD(1, 2)", "PERIOD(1, 2)", "write NOT EQUALS"),
        ("SELECT * FROM r WHERE PERIOD(x, y) < PERIOD(1, 2)", "PERIOD(x, y)", "PRECEDES"),
        ("SELECT count_if(PERIOD(x, y) IS NULL) FROM r", "PERIOD(x, y)", "compare it"),
    ],
)
def test_a_period_cannot_stand_alone(text: str, place: str, help: str) -> None:
    with pytest.raises(AnalysisError, match="a period cannot stand alone") as caught:
        stage(text, CATALOG, Config(), lenient=True)
    error = caught.value
    assert error.span is not None
    assert text[error.span.start : error.span.end] == place
    assert help in (error.help or "")


def test_a_users_function_of_the_name_is_the_users() -> None:
    statement = parse("SELECT PERIOD(x, y) FROM r", is_user_function=lambda name: name == "period")
    assert not statement.uses_extension


def test_open_by_means_the_periods_own_table() -> None:
    text = "SELECT * FROM r JOIN s ON PERIOD(r.x, r.y OPEN BY {}) OVERLAPS PERIOD(s.x, s.y)"
    found = stage(text.format("id"), CATALOG, Config()).analyzed
    assert found is not None
    assert found == stage(text.format("r.id"), CATALOG, Config()).analyzed
    with pytest.raises(AnalysisError, match="column 'idd' not found") as caught:
        stage(text.format("idd"), CATALOG, Config())
    assert "did you mean 'id'" in (caught.value.help or "")


@pytest.mark.parametrize("named", ["r TABLESAMPLE (10 PERCENT)", "r TABLESAMPLE (10 PERCENT) AS q"])
def test_a_sample_keeps_its_tables_name(named: str) -> None:
    name = "q" if named.endswith("q") else "r"
    text = f"SELECT {name}.x FROM {named} JOIN s ON PERIOD({name}.x, y2) OVERLAPS s.p"
    plan = stage(text.replace("y2", f"{name}.y"), CATALOG, Config()).analyzed
    assert plan is not None
    assert len(plan.collect(SparkRelation)) == 1
    with pytest.raises(AnalysisError, match="table 'z' not found in FROM") as caught:
        stage(text.replace("y2", "z.y"), CATALOG, Config())
    assert re.fullmatch(rf"tables here: {name}, s|did you mean .*", str(caught.value.help))
