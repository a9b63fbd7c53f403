"""What a session does with a query that is deployed: `Session.deploy`, and EXPLAIN DEPLOYMENT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlext_planner.errors import SqlExtError
from sqlext_planner.relational.nodes import Scan

from sqlext.catalog.dictionary import DictCatalog
from sqlext.catalog.spark import columns_of
from sqlext.serving.deployment import Deployment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlext_planner.serving.lowering import ServingSettings

    from sqlext.run.pipeline import StagedPlan
    from sqlext.session import Session


def deployed(
    session: Session,
    plan: StagedPlan,
    sql: str,
    settings: ServingSettings,
    *,
    request: str | None,
    name: str,
    lateness: int | None,
) -> Deployment:
    """The deployment of a query over a session's tables. Raises as `Deployment`."""
    tables = {} if plan.analyzed is None else {scan.table for scan in plan.analyzed.collect(Scan)}
    schemas = {table: dict(columns_of(session.spark.table(table).schema)) for table in tables}
    return Deployment(
        sql,
        DictCatalog(schemas),
        request=request,
        settings=settings,
        name=name,
        compat=session.compat,
        lateness=lateness,
    )


def explained_deployment(session: Session, sql: str, start: int) -> DataFrame:
    """One row, one column `plan`, for EXPLAIN DEPLOYMENT and the query that begins at `start`. Raises as
    `Session.deploy`."""
    from sqlext_planner.spark.session import active_kept

    try:
        deployment = session.deploy(" " * start + sql[start:])
    except SqlExtError as error:
        raise error.with_sql(sql) from error.__cause__
    with active_kept(session.spark):
        return session.spark.createDataFrame([(deployment.explain(),)], "plan string")
