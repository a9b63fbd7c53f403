"""The tables of FEBench's scripts, with a key that has many rows, and requests for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sqlext_planner.expressions.types import from_arrow
from sqlext_planner.serving.lowering import ServingSettings

from benchmarks.features import SCRIPTS
from benchmarks.features_contestants import script
from sqlext.catalog import DictCatalog
from sqlext.serving.bodies import dumped, json_columns
from sqlext.serving.deployment import Deployment
from sqlext.serving.values import zone_of

ZONE = "Asia/Shanghai"
#: Rows of the asked key of Q1, and their days.
KEY_ROWS, KEY_DAYS = 10_000, 60
_DAY = 86_400_000_000
#: 2026-01-01
START = 1_767_225_600_000_000


@dataclass(frozen=True)
class Served:
    """A deployment whose tables are files, and request bodies for it."""

    deployment: Deployment
    tables: Mapping[str, pa.Table]
    bodies: Sequence[bytes]


def with_instants(table: pa.Table) -> pa.Table:
    """Times as Spark reads them from Parquet."""
    fields = [
        item.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(item.type) else item for item in table.schema
    ]
    return table.cast(pa.schema(fields))


def febench(name: str, rows: int, requests: int = 1000) -> Served:
    """A script over so many rows of its request table."""
    tables = {table: with_instants(found) for table, found in SCRIPTS[name].generator(rows).tables().items()}
    columns = {table: {item.name: from_arrow(item.type) for item in found.schema} for table, found in tables.items()}
    deployment = Deployment(
        script(name)[-1],
        DictCatalog(columns),
        settings=ServingSettings(False, ZONE),
        name=name.lower(),
        compat="openmldb",
        lateness=None,
    )
    request = deployment.request
    if name == "Q1":
        tables[request] = _with_large_key(tables[request])
    asked = tables[request].slice(tables[request].num_rows - requests)
    return Served(deployment, tables, bodies_of(asked, ZONE))


def _with_large_key(table: pa.Table) -> pa.Table:
    """The table with `KEY_ROWS` more rows of its last key at its end, over the last days."""
    random = np.random.default_rng(3)
    last = table.num_rows - 1
    more = table.take(pa.array(np.full(KEY_ROWS, last)))
    newest = table.column("Date").cast(pa.int64()).to_numpy().max()
    times = np.sort(random.integers(newest - KEY_DAYS * _DAY, newest + 1, KEY_ROWS))
    dates = pa.array(times).cast(pa.timestamp("us", "UTC"))
    more = more.set_column(more.schema.get_field_index("Date"), "Date", dates)
    return pa.concat_tables([table, more])


def bodies_of(rows: pa.Table, zone: str) -> list[bytes]:
    """A JSON body for each row."""
    bodies = []
    for batch in rows.to_batches():
        columns = json_columns(batch, zone_of(zone))
        for values in zip(*columns, strict=True):
            bodies.append(dumped({"input": dict(zip(batch.schema.names, values, strict=True))}))
    return bodies


def long_window(rows: int, calls: str, requests: int = 200) -> Served:
    """Calls over a window of 30 days with so many rows of the one key that is asked."""
    columns = {"k": "bigint", "ts": "timestamp", "v": "double", "n": "bigint", "c": "string"}
    sql = f"SELECT k, {calls} FROM asked WINDOW w AS (UNION stored PARTITION BY k ORDER BY ts " + (
        "ROWS_RANGE BETWEEN 30d PRECEDING AND CURRENT ROW)"
    )
    catalog = DictCatalog({"asked": columns, "stored": columns})
    deployment = Deployment(
        sql, catalog, request="asked", settings=ServingSettings(True, "UTC"), name="long", lateness=None
    )
    random = np.random.default_rng(5)
    times = np.sort(random.integers(START, START + 29 * _DAY, rows))
    stored = pa.table(
        {
            "k": pa.array(np.ones(rows, np.int64)),
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "v": pa.array(random.normal(0, 100, rows)),
            "n": pa.array(random.integers(0, 1000, rows)),
            "c": pa.array([f"c{number}" for number in range(20)]).take(pa.array(random.integers(0, 20, rows))),
        }
    )
    asked = stored.slice(0, 0)
    moments = pa.array(np.full(requests, START + 29 * _DAY)).cast(pa.timestamp("us", "UTC"))
    ask = pa.table(
        {
            "k": pa.array(np.ones(requests, np.int64)),
            "ts": moments,
            "v": pa.array(random.normal(0, 100, requests)),
            "n": pa.array(random.integers(0, 1000, requests)),
            "c": pa.array(["c1"] * requests),
        }
    )
    return Served(deployment, {"asked": asked, "stored": stored}, bodies_of(ask, "UTC"))


def write(served: Served, folder: Path) -> tuple[Path, Path]:
    """The deployment's folder, and that of its tables."""
    served.deployment.save(folder / "deployment")
    data = folder / "data"
    data.mkdir()
    for name, table in served.tables.items():
        if name in served.deployment.spec.tables:
            pq.write_table(table, data / f"{name}.parquet")
    return folder / "deployment", data
