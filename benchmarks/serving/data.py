"""The tables of FEBench's scripts, with a key that has many rows, and requests for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from sqlext_operators.arrays import Int64s
from sqlext_planner.expressions.types import from_arrow
from sqlext_planner.serving.lowering import ServingSettings

from benchmarks.features import SCRIPTS
from benchmarks.features_contestants import script
from benchmarks.harness.data import write_table
from sqlext.catalog import DictCatalog
from sqlext.serving.arrow_bodies import arrow_stream
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


#: What a look-up gives of a user, without the key.
USER_COLUMNS = ("age", "city", "spent", "orders")
LOOKUP_SQL = f"""SELECT a.user_id, {", ".join(f"u.{name}" for name in USER_COLUMNS)}
FROM asked a LAST JOIN users u ORDER BY u.updated ON a.user_id = u.user_id"""


def user_table(rows: int) -> pa.Table:
    """Users, one row each."""
    random = np.random.default_rng(7)
    return pa.table(
        {
            "user_id": pa.array(random.permutation(rows)),
            "age": pa.array(random.integers(18, 90, rows).astype(np.int32)),
            "city": pa.array([f"city {number}" for number in range(500)]).take(pa.array(random.integers(0, 500, rows))),
            "spent": pa.array(np.round(random.gamma(2.0, 50.0, rows), 2)),
            "orders": pa.array(random.integers(0, 300, rows)),
            "updated": pa.array(START + random.integers(0, _DAY, rows)).cast(pa.timestamp("us", "UTC")),
        }
    )


def asked_users(rows: int, requests: int = 1000) -> list[int]:
    """The users that are asked for."""
    return list(map(int, np.random.default_rng(9).integers(0, rows, requests)))


def lookup(rows: int) -> Served:
    """The row of a user."""
    table = user_table(rows)
    users = {item.name: from_arrow(item.type) for item in table.schema}
    catalog = DictCatalog({"asked": {"user_id": "bigint"}, "users": users})
    deployment = Deployment(
        LOOKUP_SQL, catalog, request="asked", settings=ServingSettings(True, "UTC"), name="lookup", lateness=None
    )
    bodies = [dumped({"input": {"user_id": user}}) for user in asked_users(rows)]
    return Served(deployment, {"users": table}, bodies)


SHOP_SQL = """SELECT user_id, sum(price) OVER w AS spent, count(*) OVER w AS n, distinct_count(item) OVER w AS items
FROM views
WINDOW w AS (UNION orders PARTITION BY user_id ORDER BY ts ROWS_RANGE BETWEEN {before} PRECEDING AND CURRENT ROW)"""
_SHOP = {"user_id": "bigint", "ts": "timestamp", "item": "string", "price": "double"}
ITEMS = 1000


def shop(before: str, lateness: int | None) -> Deployment:
    """What a user has ordered in the time `before`."""
    settings = ServingSettings(True, "UTC")
    catalog = DictCatalog({"views": _SHOP, "orders": _SHOP})
    sql = SHOP_SQL.format(before=before)
    return Deployment(sql, catalog, request="views", settings=settings, name="shop", lateness=lateness)


def order_table(random: np.random.Generator, times: Int64s, users: int) -> pa.Table:
    """Orders at times (microseconds) of random users."""
    rows = len(times)
    items = pa.array([f"item{number}" for number in range(ITEMS)])
    return pa.table(
        {
            "user_id": pa.array(random.integers(0, users, rows)),
            "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "item": items.take(pa.array(random.integers(0, ITEMS, rows))),
            "price": pa.array(random.random(rows)),
        }
    )


def warm_shop(rows: int, requests: int = 1000) -> Served:
    """Orders of 29 days in the order of their times, a hundred of each user, all of them kept."""
    random = np.random.default_rng(11)
    users = max(1, rows // 100)
    times = np.sort(random.integers(START, START + 29 * _DAY, rows))
    now = (START + 29 * _DAY) // 1000
    asked = random.integers(0, users, requests)
    bodies = [dumped({"input": {"user_id": int(user), "ts": now}}) for user in asked]
    return Served(shop("30d", None), {"orders": order_table(random, times, users)}, bodies)


def push_bodies(served: Served, table: str, count: int, rows: int, *, arrow: bool) -> list[bytes]:
    """Bodies of pushes of the first rows of a table, as Arrow or as JSON."""
    schema = served.deployment.schemas[table]
    bodies = []
    for number in range(count):
        first = number * rows % max(1, served.tables[table].num_rows - rows)
        batches = served.tables[table].slice(first, rows).cast(schema).combine_chunks().to_batches()
        if arrow:
            bodies.append(arrow_stream(schema, batches))
        else:
            columns = json_columns(batches[0], zone_of(served.deployment.settings.time_zone))
            bodies.append(dumped([dict(zip(schema.names, row, strict=True)) for row in zip(*columns, strict=True)]))
    return bodies


def write(served: Served, folder: Path) -> tuple[Path, Path]:
    """The deployment's folder, and that of its tables, of which those that are there stay."""
    served.deployment.save(folder / "deployment")
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    for name, table in served.tables.items():
        path = data / f"{name}.parquet"
        if name in served.deployment.spec.tables and not path.exists():
            write_table(table, path)
    return folder / "deployment", data
