"""`sqlext demo`: the main job from generated files (a shop's week) to rows, with every step shown."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from sqlext.cli.console import console, print_lines, print_rows, print_sql, progress
from sqlext.explain.pages import explain_text
from sqlext.session import Session

SHOWN_ROWS = 10


def run_demo(rows: int, seed: int, data: Path | None) -> None:
    """Generate, plan, run; prints the SQL, the rewritten plan, the first rows and the seconds of each step."""
    out = console()
    begin = time.perf_counter()
    seconds: dict[str, float] = {}
    with _folder(data) as folder:
        with _timed(seconds, "generate", "Generating the tables"):
            sizes = write_tables(folder, rows, seed)
        with _timed(seconds, "start Spark", "Starting Spark"):
            session = Session()
            for name in sizes:
                session.register(name, folder / f"{name}.parquet")
        _heading(out, "Tables: " + ", ".join(f"{name} ({size:,} rows)" for name, size in sizes.items()))
        print_sql(out, DEMO_SQL)
        with _timed(seconds, "plan", "Planning"):
            plan = session.plan(DEMO_SQL)
        _heading(out, "Plan before and after the rules, and what runs it")
        print_lines(out, explain_text(plan, ("analyzed", "optimized", "physical")).splitlines())
        with _timed(seconds, "run", "Running"):
            result = session.sql(DEMO_SQL).toArrow()
        _heading(out, "First rows")
        print_rows(out, result.slice(0, SHOWN_ROWS), more=result.num_rows > SHOWN_ROWS)
        session.spark.stop()
    steps = ", ".join(f"{name} {value:.2f} s" for name, value in seconds.items())
    total = time.perf_counter() - begin
    out.print(f"\n{result.num_rows:,} rows with {len(result.column_names) - 4} features each in {seconds['run']:.2f} s")
    out.print(f"{steps}; in all {total:.1f} s", style="dim")
    if data is not None:
        out.print(f'Now try: sqlext run --data {data} -e "SELECT ..."', style="dim")


def _heading(out: Console, text: str) -> None:
    out.print()
    out.print(text, style="bold")
    out.print()


@contextmanager
def _timed(seconds: dict[str, float], step: str, what: str) -> Iterator[None]:
    begin = time.perf_counter()
    with progress(what):
        yield
    seconds[step] = time.perf_counter() - begin


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    if data is not None:
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="sqlext-demo-") as folder:
        yield Path(folder)


WEEK_START = np.datetime64("2024-03-04T00:00:00", "us")

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
    # A few users are very active: shares fall with the square root of the rank.
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
