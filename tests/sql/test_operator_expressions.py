"""Conditions that operators compute by themselves against Spark's own answers, for random expressions of every type."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from sqlext_operators.errors import RowOverflowError
from sqlext_operators.expressions import nodes
from sqlext_operators.expressions.evaluation import evaluate
from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.expressions.operator_expressions import OperatorExpressions
from sqlext_planner.expressions.scalars.settings import ScalarSettings
from sqlext_planner.expressions.types import from_arrow
from sqlext_planner.relational.nodes import Filter

from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.syntax.parser import parse

pytestmark = pytest.mark.tidied

NAN, INF = float("nan"), float("inf")
#: Columns by type, two of each, with values that overflow and those that do not.
KINDS: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "t": (pa.int8(), [-128, 127], [-3, 0, 1, 2]),
    "h": (pa.int16(), [-(1 << 15), (1 << 15) - 1], [-3, 0, 1, 2]),
    "i": (pa.int32(), [-(1 << 31), (1 << 31) - 1, 46341], [-3, 0, 1, 2]),
    "l": (pa.int64(), [-(1 << 63), (1 << 63) - 1, (1 << 53) + 1], [-3, 0, 1, 2]),
    "f": (pa.float32(), [], [NAN, -INF, -0.0, 0.0, 0.1, 1.0, 2.5]),
    "d": (pa.float64(), [], [NAN, INF, -0.0, 0.0, 0.1, 1.0, 1e308, float(1 << 53)]),
    "m": (pa.decimal128(7, 2), [], [Decimal(x) for x in ("-99999.99", "-0.01", "0.00", "1.00", "2.50")]),
    "n": (pa.decimal128(20, 0), [], [Decimal(x) for x in ("-3", "0", "1", "99999999999999999999")]),
    "s": (pa.string(), [], ["", "a", "A", "aa", "b", "ä", "🙂"]),
    "b": (pa.binary(), [], [b"", b"\x00", b"\x7f", b"\x80"]),
    "o": (pa.bool_(), [], [False, True]),
    "y": (pa.date32(), [], [dt.date(1969, 12, 31), dt.date(2024, 1, 1)]),
    "w": (pa.timestamp("us"), [], [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)]),
    "z": (pa.timestamp("us", "UTC"), [], [dt.datetime(2024, 1, 1, h, tzinfo=dt.UTC) for h in (0, 23)]),
    "v": (pa.duration("us"), [], [dt.timedelta(0), dt.timedelta(days=-1, microseconds=1)]),
}
NUMBERS = "thilfdmn"
LITERALS = {
    "thil": ["0", "2", "-1", "3L", "1S", "NULL"],
    "fd": ["0.5D", "1", "-2.5D", "0D"],
    "mn": ["1.5", "-0.01", "2", "0.00"],
    "s": ["'a'", "'ä'", '"b"', "NULL"],
    "o": ["TRUE", "FALSE", "NULL"],
}
ROWS = 60


def written(text: str, tables: dict[str, dict[str, str]]) -> Expression:
    """The condition of WHERE, where logic has a form."""
    plan = analyze(parse(f"SELECT 1 AS x FROM {', '.join(tables)} WHERE {text}"), DictCatalog(tables))
    return next(node.condition for node in plan.walk() if isinstance(node, Filter))


def table(rng: random.Random, *, large: bool) -> pa.Table:
    columns = {}
    for name, (kind, extreme, plain) in KINDS.items():
        values = [None, *plain, *(extreme if large else [])]
        for number in (1, 2):
            columns[f"{name}{number}"] = pa.array([rng.choice(values) for _ in range(ROWS)], kind)
    return pa.table(columns)


def leaf(rng: random.Random, kind: str) -> str:
    literals = next((texts for kinds, texts in LITERALS.items() if kind in kinds), [])
    return rng.choice(literals) if literals and rng.random() < 0.3 else f"a.{kind}{rng.choice('12')}"


def number(rng: random.Random, depth: int, kinds: str) -> str:
    if depth == 0 or rng.random() < 0.3:
        return leaf(rng, rng.choice(kinds))
    ours, theirs = number(rng, depth - 1, kinds), number(rng, depth - 1, kinds)
    sign = rng.choice("++--**/%")
    return rng.choice([f"({ours} {sign} {theirs})", f"({ours} {sign} {theirs} + {leaf(rng, kinds[0])})", f"(- {ours})"])


def condition(rng: random.Random, depth: int) -> str:
    shape = rng.randint(0, 9) if depth else rng.randint(4, 9)
    if shape < 2:
        return f"({condition(rng, depth - 1)} {rng.choice(['AND', 'OR'])} {condition(rng, depth - 1)})"
    if shape == 2:
        return f"(NOT {condition(rng, depth - 1)})"
    if shape == 3:
        return f"({condition(rng, depth - 1)} IS {rng.choice(['', 'NOT '])}{rng.choice(['TRUE', 'FALSE', 'NULL'])})"
    op = rng.choice(["=", "<>", "!=", "<", "<=", ">", ">=", "<=>"])
    if shape < 7:
        kinds = rng.choice(["thil", "fd", "tild", "mn", "thimn", "f", "l", "ilf"])
        ours = number(rng, 2, kinds)
        if rng.random() < 0.2:
            ours = rng.choice([f"abs({ours})", f"coalesce({ours}, 1)", f"if({leaf(rng, 'o')}, {ours}, 2)"])
        return f"({ours} {op} {number(rng, 1, kinds)})"
    kind = rng.choice(sorted(KINDS))
    if shape == 7:
        others = kind if kind not in "thild" else "thild"
        options = ", ".join(leaf(rng, rng.choice(others)) for _ in range(rng.randint(1, 3)))
        return f"(a.{kind}1 {rng.choice(['', 'NOT '])}IN ({options}))"
    return f"({leaf(rng, kind)} {op} a.{kind}2)"


@pytest.mark.parametrize(
    ("ansi", "count"),
    [(True, 300), (False, 300), *(pytest.param(ansi, 5000, marks=pytest.mark.slow) for ansi in (True, False))],
)
def test_random_conditions(ansi: bool, count: int, spark: SparkSession) -> None:
    """One Spark job for all: the operator's answers are Spark's, NULL for NULL, for each row."""
    rng = random.Random(f"{ansi} {count}")
    rows = table(rng, large=not ansi)
    types = {"a": {name: from_arrow(rows.schema.field(name).type) for name in rows.column_names}}
    found: list[tuple[str, nodes.TaskExpression]] = []
    while len(found) < count:
        text = condition(rng, 2)
        item = written(text, types)
        known = {column: types["a"][column.name] for column in item.references}
        mine = OperatorExpressions(known, ScalarSettings(ansi)).condition(item)
        if mine is not None and item.references:
            found.append((text, mine))
    columns = {f"a.{name}": rows[name].combine_chunks() for name in rows.column_names}
    kept = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    try:
        given = spark.createDataFrame(rows.append_column("place", pa.array(range(ROWS)))).alias("a").coalesce(1)
        wanted = given.orderBy("place").selectExpr(*(f"{text} AS c{i}" for i, (text, _) in enumerate(found))).toArrow()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", kept or "true")
    for place, (text, mine) in enumerate(found):
        try:
            answer = evaluate(mine, columns.__getitem__, ROWS).to_pylist()
        except RowOverflowError:
            answer = ["overflow"]
        assert answer == wanted.column(place).to_pylist(), text


@pytest.mark.parametrize("text", ["a.t1 + a.t2 > 1", "a.l1 * a.l2 > 1", "a.i1 - a.i2 > 1", "- a.l1 > 0"])
def test_overflow_is_an_error_in_ansi_mode(text: str) -> None:
    rows = table(random.Random(1), large=True)
    types = {"a": {name: from_arrow(rows.schema.field(name).type) for name in rows.column_names}}
    item = written(text, types)
    known = {column: types["a"][column.name] for column in item.references}
    for ansi in (True, False):
        mine = OperatorExpressions(known, ScalarSettings(ansi)).condition(item)
        assert mine is not None
        columns = {f"a.{name}": rows[name].combine_chunks() for name in rows.column_names}
        if ansi:
            with pytest.raises(RowOverflowError):
                evaluate(mine, columns.__getitem__, ROWS)
        else:
            evaluate(mine, columns.__getitem__, ROWS)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a.d1 < a.m1", "a decimal rounded to a double"),
        ("a.s1 < a.i1", "a text beside a number"),
        ("a.y1 < a.z1", "the session's time zone"),
        ("a.i1 / a.i2 > 1", "division by zero is an error"),
        ("a.i1 % a.i2 > 1", "division by zero is an error"),
        ("a.n1 * a.n2 * a.n1 > 1", "more than 38 digits"),
        ("a.s1 LIKE 'a%'", "a pattern"),
        ("round(a.d1) > 1", "a function"),
        ("year(a.z1) > 2000", "the session's time zone"),
        ("CAST(a.s1 AS int) > 1", "Python reads texts one by one"),
    ],
)
def test_what_is_not_certain_is_sparks(text: str, why: str) -> None:
    types = {"a": {f"{name}{n}": from_arrow(kind) for name, (kind, _, _) in KINDS.items() for n in "12"}}
    item = written(text, types)
    known = {column: types["a"][column.name] for column in item.references}
    assert OperatorExpressions(known, ScalarSettings(True)).condition(item) is None, why
