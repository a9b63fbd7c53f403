"""The demo's shop: what users looked at, and what they ordered, over one week."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WEEK_START = np.datetime64("2024-03-04T00:00:00", "us")
WEEK_SECONDS = 7 * 86_400

DEMO_SQL = """\
SELECT user_id, ts, item, price,
       count(price)         OVER last_hour AS orders_1h,
       sum(price)           OVER last_hour AS spent_1h,
       distinct_count(item) OVER last_day  AS items_1d,
       max(price)           OVER last_day  AS dearest_1d,
       avg_where(price, price > 20) OVER last_day AS avg_over_20_1d
FROM views
WINDOW last_hour AS (UNION orders PARTITION BY user_id ORDER BY ts
                     ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW
                     EXCLUDE CURRENT_ROW INSTANCE_NOT_IN_WINDOW),
       last_day  AS (UNION orders PARTITION BY user_id ORDER BY ts
                     ROWS_RANGE BETWEEN 1d PRECEDING AND CURRENT ROW MAXSIZE 1000
                     EXCLUDE CURRENT_ROW INSTANCE_NOT_IN_WINDOW)
"""


def write_tables(folder: Path, rows: int, seed: int) -> dict[str, int]:
    """Write views.parquet and orders.parquet, `rows` rows together (two views for an order); rows by table name."""
    random = np.random.default_rng(seed)
    orders = rows // 3
    sizes = {"views": rows - orders, "orders": orders}
    users = max(10, rows // 300)
    # A few users do much: shares fall with the square root of the rank.
    share = 1 / np.sqrt(np.arange(1, users + 1))
    price_of_item = np.round(random.lognormal(3.0, 0.8, 500), 2)
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in sizes.items():
        item = random.integers(0, len(price_of_item), size)
        table = pa.table(
            {
                "user_id": pa.array(random.choice(users, size, p=share / share.sum()) + 1, pa.int64()),
                "ts": pa.array(_times(random, size), pa.timestamp("us", tz="UTC")),
                "item": pa.array(np.char.add("item-", item.astype(str))),
                "price": pa.array(price_of_item[item]),
            }
        )
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=100_000)
    return sizes


def _times(random: np.random.Generator, size: int) -> np.ndarray[tuple[int], np.dtype[np.datetime64]]:
    """Sorted moments of the week, to the second, with more of them in the afternoon."""
    day = random.integers(0, 7, size) * 86_400
    second = np.clip(random.normal(15.5, 4.0, size), 0, 23.999) * 3_600
    return np.sort(WEEK_START + ((day + second) * 1_000_000).astype("timedelta64[us]") // 1_000_000 * 1_000_000)
