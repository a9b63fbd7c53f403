"""Multi-way joins over views for tests, and the same as a statement of binary joins for Spark."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import StructType
from sqlext_planner.expressions.nodes import Column, Compare, Expression, SparkExpr, conjunction
from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.nodes import Scan
from sqlext_planner.relational.spark_exec import SparkExec
from sqlext_planner.spark.versions import to_arrow_schema
from sqlext_planner.umjoin.nodes import MemberKind, UMJoin

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame
    from pyspark.sql import SparkSession as Spark

#: Columns of every table. i, j, h, m are numbers of one range; f, x floats; e, t, u the same days.
SCHEMA = (
    "id int, i int, j bigint, h smallint, m decimal(10,2), n decimal(20,0), f float, x double, s string, b binary, "
    "e date, t timestamp, u timestamp_ntz, p boolean, w interval day to second"
)
TYPES = {item.split()[0]: item.split(maxsplit=1)[1] for item in SCHEMA.split(", ")}
TABLES = {"t0": 24, "t1": 18, "t2": 12, "nobody": 0}
_SQL_JOINS: dict[str, str] = {"left": "LEFT JOIN", "semi": "LEFT SEMI JOIN", "anti": "LEFT ANTI JOIN"}


def rows(seed: int, count: int) -> list[tuple[Any, ...]]:
    """Few values, so that most rows match several; NULLs in every column but id."""
    rng = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.12 else value

    def number() -> int:
        return rng.randrange(4)

    day = dt.datetime(2024, 3, 1)
    return [
        (
            place,
            maybe(number()),
            maybe(number()),
            maybe(number()),
            maybe(Decimal(number()) + rng.choice([Decimal(0), Decimal("0.25")])),
            maybe(Decimal(number())),
            maybe(rng.choice([0.0, -0.0, 1.0, 2.0, float("nan")])),
            maybe(rng.choice([0.0, -0.0, 1.0, 2.0, 3.0, float("nan")])),
            maybe(rng.choice(["", "a", "b", "é"])),
            maybe(rng.choice([b"", b"a", b"b", b"\xff"])),
            maybe((day + dt.timedelta(number())).date()),
            maybe(day + dt.timedelta(number(), hours=rng.choice([0, 0, 12]))),
            maybe(day + dt.timedelta(number())),
            maybe(rng.random() < 0.5),
            maybe(dt.timedelta(number())),
        )
        for place in range(count)
    ]


def write_tables(spark: Spark, folder: Path) -> None:
    """Views t0 and t2 of Parquet files that pyarrow may read, t1 that Spark reads, and one without rows."""
    schema = to_arrow_schema(StructType.fromDDL(SCHEMA))
    for seed, (name, count) in enumerate(TABLES.items()):
        columns = list(zip(*rows(seed, count), strict=True)) or [()] * len(schema)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), folder / f"{name}.parquet")
        frame = spark.read.schema(SCHEMA).parquet(str(folder / f"{name}.parquet"))
        (frame.filter("id + 1 > 0") if name == "t1" else frame).createOrReplaceTempView(name)


def column(text: str) -> Column:
    """`column("a.i")`"""
    relation, name = text.split(".")
    return Column(relation, name)


def equal(left: str, right: str) -> Compare:
    """`equal("a.i", "b.j")`"""
    return Compare("=", column(left), column(right))


def term(text: str) -> SparkExpr:
    """An opaque term with columns in braces: `term("{a.i} + 1 < {b.j}")`."""
    parts: list[str | Expression] = []
    for place, piece in enumerate(text.replace("}", "{").split("{")):
        parts.append(column(piece) if place % 2 else piece)
    return SparkExpr(tuple(part for part in parts if part != ""))


def scan(alias: str, table: str, columns: str = "") -> Scan:
    """A scan of all columns, or of those named."""
    names = columns.split() or list(TYPES)
    return Scan(table, alias, tuple(Field(Column(alias, name), TYPES[name]) for name in names))


def umjoin(
    relations: str,
    *terms: Expression,
    members: dict[str, tuple[MemberKind, Expression | None]] | None = None,
    count: bool = False,
    payload: str | None = None,
    columns: str = "",
) -> UMJoin:
    """`umjoin("a=t0 b=t1 d=t2", equal(...), members={"d": ("left", equal(...))})`; payload `"a.id b.s"`."""
    known = members or {}
    pairs = [item.split("=") for item in relations.split()]
    return UMJoin(
        tuple(scan(alias, table, columns) for alias, table in pairs),
        tuple(known[alias][0] if alias in known else "inner" for alias, _ in pairs),
        conjunction(terms),
        tuple(known[alias][1] if alias in known else None for alias, _ in pairs),
        Column("", "many") if count else None,
        None if payload is None else tuple(map(column, payload.split())),
    )


def scans(node: UMJoin) -> list[SparkExec]:
    """The physical inputs of a join of scans."""
    return [SparkExec(item) for item in node.inputs if isinstance(item, Scan)]


def binary_joins(node: UMJoin) -> str:
    """The join as a statement: a cross product, then the other inputs in their order, then the condition. Rows without
    columns have the column `many`."""
    inner, others = [], []
    for child, kind, match in zip(node.inputs, node.kinds, node.matches, strict=True):
        assert isinstance(child, Scan)
        names = ", ".join(f"{item.name} AS `{item.spark_name}`" for item in child.output_columns)
        relation = f"(SELECT {names} FROM {child.table})"
        on = "TRUE" if match is None else match.sql()
        if kind == "inner":
            inner.append(relation)
        else:
            others.append(f"{_SQL_JOINS[kind]} {relation} ON {on}")
    kept = [f"`{item.column.spark_name}`" for item in node.output if item.column != node.count]
    kept += ["1L AS many"] if node.count is not None or not kept else []
    where = "TRUE" if node.condition is None else node.condition.sql()
    return f"SELECT {', '.join(kept)} FROM {' CROSS JOIN '.join(inner)} {' '.join(others)} WHERE {where}"


def tagged(frame: DataFrame, node: UMJoin, number: int) -> DataFrame:
    """The rows of a join as texts after its number, and how often each occurs: (row string, many bigint)."""
    from pyspark.sql.functions import col, concat_ws, lit, struct

    kept = [col(f"`{item.column.spark_name}`") for item in node.output if item.column != node.count]
    text = struct(*kept).cast("string") if kept else lit("")
    many = lit(1).cast("bigint") if node.count is None else col("many")
    return frame.select(concat_ws("/", lit(str(number)), text).alias("row"), many.alias("many"))


def bag(frames: Sequence[DataFrame]) -> dict[str, int]:
    """How often each row of `tagged` frames occurs, counts added up. NaN is NaN."""
    every = reduce(lambda one, other: one.unionAll(other), frames)
    return {row[0]: row[1] for row in every.groupBy("row").agg({"many": "sum"}).collect()}
