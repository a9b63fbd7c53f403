"""Random aggregates over multi-way joins with their inputs' rows, and what they give by definition."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st
from sqlext_planner.expressions.nodes import Column, Compare, Expression, Literal, NamedExpr, SparkExpr, conjunction
from sqlext_planner.expressions.typed import call
from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.nodes import Aggregate, Scan
from sqlext_planner.umjoin.nodes import UMJoin

from tests.planner.duck_plans import duck_text
from tests.planner.plans import written
from tests.planner.umjoin.umjoin_rows import Row, joined_rows

Rows = list[tuple[Any, ...]]
TYPES = {
    "k": ("bigint", pa.int64()),
    "j": ("bigint", pa.int64()),
    "l": ("bigint", pa.int64()),
    "v": ("int", pa.int32()),
    "w": ("bigint", pa.int64()),
    "m": ("decimal(9,2)", pa.decimal128(9, 2)),
    "x": ("double", pa.float64()),
    "g": ("string", pa.string()),
}
KEYS = ("k", "j", "l")


@dataclass(frozen=True)
class Case:
    """An aggregate over a multi-way join, and the rows of its inputs."""

    node: Aggregate
    rows: tuple[tuple[Row, ...], ...]

    @property
    def join(self) -> UMJoin:
        assert isinstance(self.node.child, UMJoin)
        return self.node.child


def scan(number: int) -> Scan:
    name = "abcdef"[number]
    return Scan(name, name, tuple(Field(Column(name, column), dtype) for column, (dtype, _) in TYPES.items()))


def values(name: str) -> st.SearchStrategy[Any]:
    kinds: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(KEYS, st.integers(0, 2)),
        "v": st.integers(-3, 3),
        "w": st.sampled_from((-(2**40), 0, 1, 2**40)),
        "m": st.sampled_from((Decimal("-1.25"), Decimal("0.00"), Decimal("2.50"), Decimal("1000000.01"))),
        "x": st.sampled_from((-1.5, 0.0, 2.0, 4.25)),
        "g": st.sampled_from(("p", "q")),
    }
    return st.none() | kinds[name] | kinds[name] if name in KEYS else st.none() | kinds[name]


@st.composite
def input_rows(draw: st.DrawFn, child: Scan) -> tuple[Row, ...]:
    names = child.output_columns
    return tuple({column: draw(values(column.name)) for column in names} for _ in range(draw(st.integers(0, 4))))


def equal(left: Column, right: Column) -> Compare:
    return Compare("=", left, right)


@st.composite
def joins(draw: st.DrawFn) -> UMJoin:
    """Inner inputs each joined to one before (a tree, unless a third term closes a cycle), then the others."""
    count = draw(st.integers(2, 5))
    inputs = [scan(number) for number in range(count)]
    kinds = ["inner", *(draw(st.sampled_from(("inner", "inner", "inner", "left", "semi", "anti"))) for _ in inputs[1:])]
    key = st.sampled_from(KEYS)
    terms: list[Expression] = []
    matches: list[Expression | None] = []
    before: list[int] = []
    for number, kind in enumerate(kinds):
        found: list[Expression] = []
        hosts = [i for i in before if kinds[i] == "inner" or (kinds[i] == "left" and kind == "left")]
        for _ in range(draw(st.sampled_from((1, 1, 1, 1, 2, 0))) if hosts else 0):
            host = draw(st.sampled_from(hosts if kind != "inner" else [i for i in hosts if kinds[i] == "inner"]))
            found.append(equal(Column(inputs[host].relation, draw(key)), Column(inputs[number].relation, draw(key))))
        if draw(st.integers(0, 4)) == 0:
            found.append(
                Compare(draw(st.sampled_from(("<", ">="))), Column(inputs[number].relation, "v"), Literal("1"))
            )
        if kind != "inner" and draw(st.integers(0, 4)) == 0:
            found.append(Compare(">", Column(inputs[hosts[0]].relation, "v"), Literal("0")))
        if kind in ("semi", "anti") and draw(st.booleans()):
            found.append(Compare("<", Column("a", "v"), Column(inputs[number].relation, "v")))
        before.append(number)
        matches.append(None if kind == "inner" else conjunction(found))
        terms += found if kind == "inner" else []
    return UMJoin(tuple(inputs), tuple(kinds), conjunction(terms), tuple(matches))  # type: ignore[arg-type]


CALLS = (
    ("count(*)", ()),
    ("count(1)", ()),
    ("sum(2)", ()),
    ("count({})", ("v", "g", "k")),
    ("sum({})", ("v", "w", "m", "x")),
    ("avg({})", ("v", "w", "x")),
    ("min({})", ("v", "m", "g", "k")),
    ("max({})", ("w", "x", "g")),
    ("count(DISTINCT {})", ("v", "g")),
    ("sum(DISTINCT {})", ("v", "m")),
    ("sum({} * 2 + 1)", ("v", "w")),
    ("sum({} * (1 - 0.25))", ("m",)),
    ("sum(CASE WHEN {} > 0 THEN 1 ELSE 0 END)", ("v", "w")),
    ("sum(coalesce({}, 5))", ("v", "w")),
    ("max(coalesce({}, 9))", ("v",)),
    ("count(*) FILTER (WHERE {} > 0)", ("v", "x")),
    ("count({0}) FILTER (WHERE {0} < 1)", ("v", "k")),
    ("count(DISTINCT {0}) FILTER (WHERE {0} < 2)", ("v",)),
    ("sum({}) / nullif(count(*), 0)", ("v", "x")),
    ("coalesce(round(sum({}), 0), 0) + 1", ("x",)),
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    join = draw(joins())
    columns = [field.column for field in join.joined]

    def column(*names: str) -> Column:
        return draw(st.sampled_from([found for found in columns if found.name in names]))

    keys: list[Expression] = [column("g", "k", "j", "v") for _ in range(draw(st.integers(0, 2)))]
    if draw(st.integers(0, 5)) == 0:
        keys.append(call("coalesce", column("v"), Literal("7", dtype="int"), dtype="int"))
    if draw(st.integers(0, 9)) == 0:
        keys.append(SparkExpr((column("k"), " + ", column("j")), dtype="bigint"))
    keys = list(dict.fromkeys(keys))
    items = [NamedExpr(key, Column("", f"key{number}")) for number, key in enumerate(keys)]
    for number in range(draw(st.integers(0 if keys else 1, 5))):
        text, names = draw(st.sampled_from(CALLS))
        name = draw(st.sampled_from(names)) if names else "k"
        aggregate = written(text.replace("{0}", "{}").replace("{}", name), {"t": {name: TYPES[name][0]}})
        if names:
            aggregate = aggregate.substitute({Column("t", name): column(name)})
        items.append(NamedExpr(aggregate, Column("", f"out{number}")))
    node = Aggregate(tuple(keys), None, tuple(items), join)
    return Case(node, tuple(draw(input_rows(child)) for child in join.inputs))  # type: ignore[arg-type]


def table(names: list[tuple[str, str]], rows: list[list[Any]]) -> pa.Table:
    """A table of columns (name, kind), row by row."""
    arrays = [pa.array([row[i] for row in rows], TYPES[kind][1]) for i, (_, kind) in enumerate(names)]
    return pa.table(arrays, names=[name for name, _ in names])


def expected(case: Case, connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    columns = [field.column for field in case.join.joined]
    rows = [[row[column] for column in columns] for row in joined_rows(case.join, case.rows)]
    connection.register("joined", table([(column.spark_name, column.name) for column in columns], rows))
    keys = ", ".join(map(duck_text, case.node.keys))
    items = ", ".join(map(duck_text, case.node.items))
    return connection.execute(f"SELECT {items} FROM joined" + (f" GROUP BY {keys}" if keys else "")).fetchall()


def same(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]]) -> bool:
    def order(row: tuple[Any, ...]) -> str:
        return repr([round(float(x), 6) if isinstance(x, (int, float, Decimal)) else x for x in row])

    pairs = zip(sorted(left, key=order), sorted(right, key=order), strict=True)
    return len(left) == len(right) and all(_same(a, b) for x, y in pairs for a, b in zip(x, y, strict=True))


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-9)
    return bool(left == right)
