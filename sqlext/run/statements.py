"""Runs a planned statement that has extension nodes: a query, or DDL, INSERT, EXPLAIN around one.

The query is lowered to a DataFrame. Spark runs the statement around it: a view of the DataFrame replaces the query's
text, and everything else goes to spark.sql as written.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlext_planner.config import Config
from sqlext_planner.errors import InternalError, Span, UnsupportedError
from sqlext_planner.spark.session import active_kept
from sqlext_planner.spark.tables import held, quoted_name
from sqlglot import exp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sqlext.run.pipeline import StagedPlan


def run(plan: StagedPlan, spark: SparkSession, config: Config) -> DataFrame:
    """The statement's DataFrame; commands run at once, queries when the DataFrame is used.

    Raises UnsupportedError for a statement that Spark would have to keep as text (CREATE VIEW).
    """
    if plan.explain is not None:
        return _explain(plan, spark, config)
    return run_lowered(plan, lower(plan, spark, config), spark)


def run_lowered(plan: StagedPlan, frame: DataFrame, spark: SparkSession) -> DataFrame:
    """Run the statement with `frame` in place of its query. Raises UnsupportedError as `run` does."""
    if plan.statement.kind == "query":
        return frame
    match plan.statement.ast:
        case exp.Create(kind="VIEW") as create:
            return _create_view(create, plan, frame, spark)
        case exp.Cache() as cache:
            return _cache(cache, plan, frame, spark)
    with temporary_view(frame) as view:
        span, text = query_place(plan), plan.statement.sql
        return spark.sql(f"{text[: span.start]}SELECT * FROM {view}{text[span.end :]}")


@contextmanager
def temporary_view(frame: DataFrame) -> Iterator[str]:
    """A view of the DataFrame under a unique name, for the duration of the context."""
    name = f"_sqlext_{uuid.uuid4().hex}"
    frame.createOrReplaceTempView(name)
    try:
        with held(name, frame):
            yield name
    finally:
        frame.sparkSession.catalog.dropTempView(name)


def lower(plan: StagedPlan, spark: SparkSession, config: Config) -> DataFrame:
    """The DataFrame of the statement's query; nothing runs."""
    from sqlext_planner.relational.physical_plan import ExecutionContext

    if plan.physical is None:
        raise InternalError("a statement without a plan was to be lowered")
    context = ExecutionContext(spark, config)
    frame = plan.physical.execute(context)
    if context.observed:
        from sqlext.explain.stream_plan import remember

        remember(plan.physical, context.observed)
    return frame


def _explain(plan: StagedPlan, spark: SparkSession, config: Config) -> DataFrame:
    """One row, one column `plan`: the physical plan; with EXTENDED also the stages before it, with ANALYZE the run."""
    from sqlext.explain.analyze import measured
    from sqlext.explain.pages import STAGES, explain_text

    shown = measured(plan, spark, config) if plan.explain == "analyze" else plan
    text = explain_text(shown, STAGES if plan.explain == "extended" else ("physical",))
    with active_kept(spark):
        return spark.createDataFrame([(text,)], "plan string")


def _create_view(create: exp.Create, plan: StagedPlan, frame: DataFrame, spark: SparkSession) -> DataFrame:
    """CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW. Spark keeps any other view as text, which it could not parse."""
    properties = create.args.get("properties")
    kinds = {type(item) for item in (properties.expressions if properties else ())}
    if exp.TemporaryProperty not in kinds:
        raise UnsupportedError(
            "a permanent view is stored as text, and Spark cannot parse this query again",
            condition="unsupported-clause",
            span=query_place(plan),
            help="create a TEMPORARY view, or a table with CREATE TABLE ... AS",
        )
    if kinds - {exp.TemporaryProperty, exp.GlobalProperty}:
        raise UnsupportedError(
            "a temporary view over this query cannot have COMMENT or TBLPROPERTIES",
            condition="unsupported-clause",
            span=Span(0, query_place(plan).start),
            help="leave them out",
        )
    target, names = create.this, None
    if isinstance(target, exp.Schema):
        target, names = target.this, [column.name for column in target.expressions]
    if names is not None:
        if len(names) != len(frame.columns):
            raise UnsupportedError(
                f"the view lists {len(names)} columns, and its query has {len(frame.columns)}",
                condition="column-count",
                span=Span(0, query_place(plan).start),
            )
        frame = frame.toDF(*names)
    replace, is_global = bool(create.args.get("replace")), exp.GlobalProperty in kinds
    name = quoted_name(target.name)
    if is_global:
        (frame.createOrReplaceGlobalTempView if replace else frame.createGlobalTempView)(name)
    else:
        (frame.createOrReplaceTempView if replace else frame.createTempView)(name)
    with active_kept(spark):
        return spark.createDataFrame([], "")  # as Spark's own commands: no column, no row


def _cache(cache: exp.Cache, plan: StagedPlan, frame: DataFrame, spark: SparkSession) -> DataFrame:
    """CACHE [LAZY] TABLE name [OPTIONS ...] AS query: a temporary view of that name, then Spark's own CACHE TABLE."""
    frame.createTempView(quoted_name(cache.this.name))
    head = plan.statement.sql[: query_place(plan).start]
    return spark.sql(re.sub(r"\bAS\s*\(?\s*$", "", head, flags=re.IGNORECASE))


def query_place(plan: StagedPlan) -> Span:
    """The place of the query inside the statement."""
    if plan.statement.query_span is None:
        raise InternalError("a statement without a query was to be run")
    return plan.statement.query_span
