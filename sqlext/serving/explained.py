"""What a deployment keeps and computes, as text: `EXPLAIN DEPLOYMENT query`, `deployment.explain()`, and `plan.txt`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlext_operators.serving.steps import BranchStep, InputSpec, LastJoinStep, ServedRight, Step, WindowStep
from sqlext_operators.serving.store import CONDENSED_FROM
from sqlext_planner.errors import SqlExtError
from sqlext_planner.relational.nodes import Scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlext_planner.serving.lowering import ServingSettings

    from sqlext.run.pipeline import StagedPlan
    from sqlext.serving.deployment import Deployment
    from sqlext.session import Session

_WORDS = re.compile(r"\s*EXPLAIN\s+DEPLOYMENT", re.IGNORECASE)
_UNITS = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000}


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
    from sqlext.catalog.dictionary import DictCatalog
    from sqlext.catalog.spark import columns_of
    from sqlext.serving.deployment import Deployment

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


def explained_deployment(session: Session, sql: str) -> DataFrame:
    """One row, one column `plan`, for EXPLAIN DEPLOYMENT and a query. Raises as `Session.deploy`."""
    from sqlext_planner.spark.session import active_kept

    found = _WORDS.match(sql)
    start = 0 if found is None else found.end()
    try:
        deployment = session.deploy(" " * start + sql[start:])
    except SqlExtError as error:
        raise error.with_sql(sql) from error.__cause__
    with active_kept(session.spark):
        return session.spark.createDataFrame([(deployment.explain(),)], "plan string")


def explained(deployment: Deployment) -> str:
    """What is kept of each table and why, and what an answer reads and computes."""
    spec = deployment.spec
    lines = [f"Deployment {deployment.name}: a row of {deployment.request}"]
    for place, item in enumerate(spec.inputs):
        kept = item.kept
        keys = f" by {', '.join(kept.keys)}" if kept.keys else ""
        order = f" in order of {kept.order}" if kept.order is not None else ""
        rows, size = deployment.kept_of(place)
        width = f"{size / rows:.0f} bytes a row" if rows else _width(kept.schema)
        lines.append(f"  input {place}: {item.table} [{', '.join(kept.schema.names)}]{keys}{order}")
        lines.append(f"      (kept: {_kept(item, deployment.lateness)}; {rows} rows, {width})")
    for place, step in enumerate(spec.steps[:-1], 1):
        lines += _step(f"  step {place}: ", step)
    return "\n".join([*lines, f"  result: {', '.join(spec.names)}"])


def _kept(item: InputSpec, lateness: int | None) -> str:
    """How long rows of an input are kept."""
    if item.back is None or lateness is None or item.kept.order is None:
        return "for good"
    age = lateness + item.back
    newest = f"the newest {item.kept.newest} of each key" if item.kept.newest else ""
    if age < 0:
        return newest
    told = length(age, item.kept.schema.field(item.kept.order).type)
    return f"{told} behind the newest time of all{newest and f', and {newest} before that'}"


def _width(schema: pa.Schema) -> str:
    """The bytes of a row by its types."""
    known = sum(_bits(item.type) for item in schema) / 8
    others = [item.name for item in schema if not _bits(item.type)]
    return f"{known:.0f} bytes a row{(others and ' and the texts of ' + ', '.join(others)) or ''}"


def _bits(kind: pa.DataType) -> int:
    try:
        return int(kind.bit_width)
    except ValueError:
        return 0


def _step(head: str, step: Step) -> list[str]:
    inner = " " * 6
    match step:
        case BranchStep():
            parts = [line for number, one in enumerate(step.steps, 1) for line in _step(f"{inner}{number}: ", one)]
            return [f"{head}columns of the request row by steps of their own", *parts]
        case LastJoinStep():
            return [f"{head}LAST JOIN: {'; '.join(map(_right, step.rights))}"]
        case WindowStep():
            return _windows(head, inner, step)
    return [f"{head}columns: {', '.join(name for name, _ in step.columns)}"]


def _right(right: ServedRight) -> str:
    if not right.is_last:
        return f"all rows of its key in input {right.source}"
    return f"the newest row of its key in input {right.source}{'' if right.until is None else ' up to its time'}"


def _windows(head: str, inner: str, step: WindowStep) -> list[str]:
    calls = [f"{call.function} AS {call.output}" for window in step.window.windows for call in window.calls]
    inputs = [*step.unions, *(() if step.own is None else (step.own,))]
    over = f"inputs {', '.join(map(str, inputs))}" if inputs else "the row"
    lines = [f"{head}windows over {over}: {', '.join(calls)}"]
    reach, window = step.request_reach, step.window
    reads = []
    if window.order is not None:
        kind = step.types.field(window.order).type
        if reach.back is not None:
            reads.append(f"rows of {length(reach.back, kind)}")
        if reach.most:
            reads.append(f"at most {reach.most} rows of {length(reach.capped, kind)}")
        if reach.ahead:
            reads.append(f"those of the {length(reach.ahead, kind)} behind it")
    if reach.rows:
        reads.append(f"the newest {reach.rows}")
    if inputs and reads:
        lines.append(f"{inner}(reads of its key: {', '.join(reads)})")
    condensed = [call.name for calls_ in step.long.calls for call in calls_.calls]
    if condensed:
        lines.append(f"{inner}(from {CONDENSED_FROM:,} rows of a key on over condensed rows: {', '.join(condensed)})")
    return lines


def length(size: int, kind: pa.DataType) -> str:
    """A length of the order column; microseconds of timestamps as a dialect writes them: 3d 12h."""
    if not pa.types.is_timestamp(kind):
        return str(size)
    found = []
    for unit, micros in _UNITS.items():
        if count := size // micros:
            found.append(f"{count}{unit}")
        size %= micros
    return " ".join([*found, *([f"{size}us"] if size else [])]) or "0s"
