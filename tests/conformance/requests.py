"""OpenMLDB's cases as requests: each row of the request table is asked and then stored, as OpenMLDB's own tests do.
Without Spark."""

from __future__ import annotations

import pyarrow as pa
from sqlext_planner.errors import InternalError, SqlExtError
from sqlext_planner.expressions.types import from_arrow
from sqlext_planner.serving.lowering import ServingSettings

from sqlext.catalog import DictCatalog
from sqlext.serving.deployment import Deployment

from .cases import ConformanceCase, TableData
from .runner import Outcome, judged
from .tables import ZONE, json_rows, to_table

#: What OpenMLDB itself does not run so, by a case's field `mode`.
UNSUPPORTED = "request-unsupport"


def run_requests(case: ConformanceCase) -> Outcome | None:
    """The outcome of a case; None for a statement that is no deployment."""
    names = [table.name or f"t{place}" for place, table in enumerate(case.inputs)]
    inputs = [table.in_index_order() if case.index_order else table for table in case.inputs]
    known = [f"{table.database or case.database}.{name}" for table, name in zip(inputs, names, strict=True)]
    tables = dict(zip(known if case.has_databases else names, map(_stored, inputs), strict=True))
    columns = {name: {item.name: from_arrow(item.type) for item in table.schema} for name, table in tables.items()}
    sql = case.statement(names)
    try:
        deployment = Deployment(
            sql, DictCatalog(columns), settings=ServingSettings(False, ZONE), compat="openmldb", lateness=None
        )
    except SqlExtError as error:
        return None if error.condition in ("not-servable", "scalar-needs-spark") else _refusal(case, error)
    return _asked(case, deployment, tables)


def _stored(table: TableData) -> pa.Table:
    found = to_table(table)
    fields = [
        item.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(item.type) else item for item in found.schema
    ]
    return found.cast(pa.schema(fields))


def _refusal(case: ConformanceCase, error: SqlExtError) -> Outcome | None:
    if not case.succeeds:
        return Outcome(case.key, "pass")
    return Outcome(case.key, "refused", f"{type(error).__name__}: {error.message}")


def _asked(case: ConformanceCase, deployment: Deployment, tables: dict[str, pa.Table]) -> Outcome:
    try:
        for name in deployment.spec.tables:
            if name != deployment.request:
                deployment.push(name, tables[name])
        results = []
        for batch in tables[deployment.request].to_batches(max_chunksize=1):
            results += [
                answer.result for answer in deployment.answers(batch.cast(deployment.schemas[deployment.request]))
            ]
            deployment.push(deployment.request, batch)
    except SqlExtError as error:
        return _refusal(case, error) or Outcome(case.key, "refused", error.message)
    except InternalError as error:
        return Outcome(case.key, "error", str(error))
    if not results:
        return Outcome(case.key, "pass")
    table = pa.Table.from_batches(results).rename_columns(list(deployment.spec.names))
    return judged(case, *json_rows(table))
