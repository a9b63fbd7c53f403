"""Plans that hold the tables that somebody other than Spark reads, and DataFrames that a statement reads under names of
temporary views that go when it has been planned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from sqlext_planner.spark.plans import class_name, items_of, optimized_plan
from sqlext_planner.spark.scans import is_file_index
from sqlext_planner.spark.session import is_remote
from sqlext_planner.spark.versions import frame_of_plan, metadata_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def over_sources(rows: DataFrame, frames: Iterable[DataFrame]) -> DataFrame:
    """`rows`, which somebody other than Spark reads from `frames`, now or later, in a plan with the frames' tables.

    Catalyst then knows what the plan reads: it refuses to overwrite a table that it reads, drops the plan's cached rows
    when the table gets new ones, and `inputFiles` is right. For each table of files the plan holds the files that
    Spark has come to list since now, and an error for them: there are none unless the table was listed again, for a
    cached plan after an INSERT, or by REFRESH TABLE. Other tables are in the plan without rows, and are optimised
    away. Under Connect `rows` is returned unchanged.
    """
    others = ["NULL"] * (len(rows.columns) - 1)  # a union gives a NULL, and an error, the column's type
    for frame in frames:
        plan = optimized_plan(frame)
        leaves = items_of(plan.collectLeaves()) if plan is not None else []
        listed = [_whole(frame.sparkSession, leaf) for leaf in leaves if _is_file_relation(leaf)]
        for leaf in listed:
            scanned, error = _new_files(frame.sparkSession, leaf)
            rows = rows.unionAll(scanned.selectExpr(error, *others))
        if len(listed) < len(leaves):
            rows = rows.unionAll(frame.where("false").selectExpr("NULL", *others))
    return rows


def _is_file_relation(leaf: Any) -> bool:
    if class_name(leaf) != "LogicalRelation" or class_name(leaf.relation()) != "HadoopFsRelation":
        return False
    return is_file_index(leaf.relation().location())


def _whole(spark: SparkSession, leaf: Any) -> Any:
    """The relation of all partitions: a condition leaves Catalyst a list of some, which does not grow any more."""
    if leaf.relation().partitionSchema().isEmpty() or leaf.catalogTable().isEmpty():
        return leaf
    table = spark.table(str(leaf.catalogTable().get().identifier().quotedString()))
    return table._jdf.queryExecution().analyzed().collectLeaves().head()


def _new_files(spark: SparkSession, relation: Any) -> tuple[DataFrame, str]:
    """The rows of files that Spark does not list now, and an expression over them that raises an error.

    Spark compares the files' names when it plans the scan, which then has no tasks.
    """
    from sqlext_operators.errors import MARK, marked
    from sqlext_operators.exchange.source_files import AGAIN

    listed = list(relation.relation().location().inputFiles())
    listed += ["file:/" + uri.removeprefix("file:///") for uri in listed if uri.startswith("file:///")]
    rows = frame_of_plan(spark, relation)
    path = "_metadata.file_path"
    if any(name.lower() == "_metadata" for name in rows.columns):  # a column of the data hides Spark's
        rows, path = rows.select(metadata_column(rows, "_metadata").getField("file_path").alias("path")), "path"
    told = "a file was added to a table of the statement after it was planned"
    mark = f"{MARK} {marked('ConfigurationError', 'changed-file', told, AGAIN, None)}"
    known, line = _text_literal("\n".join(["", *listed, ""])), _text_literal("\n")
    after = _text_literal(f"' was added to its table after the statement was planned\n{mark}")
    error = f"raise_error(concat('file ', {_text_literal(chr(39))}, {path}, {after}))"
    return rows.where(f"instr({known}, concat({line}, {path}, {line})) = 0"), f"{error} AS error"


def _text_literal(text: str) -> str:
    """A literal that reads the same under every setting of the parser."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


_HELD: ContextVar[Mapping[str, DataFrame] | None] = ContextVar("sqlext_references", default=None)


@contextmanager
def held(name: str, frame: DataFrame) -> Iterator[None]:
    """Inside, the table `name` is this DataFrame."""
    token = _HELD.set({**(_HELD.get() or {}), name: frame})
    try:
        yield
    finally:
        _HELD.reset(token)


def referenced_table(spark: SparkSession, name: str) -> DataFrame:
    """The table, as a DataFrame that lasts. Under Connect that of `held`: there ``spark.table`` looks its name up anew
    each time the DataFrame runs, when the view is gone."""
    frame = (_HELD.get() or {}).get(name.strip("`"))
    return frame if frame is not None and is_remote(spark) else spark.table(name)
