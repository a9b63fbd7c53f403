"""`sqlext demo`: a question about a shop's week, answered by a window over two tables and by plain Spark. `sqlext
examples`: the tables and notebooks to try things on."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer
from rich.console import Console
from sqlext_planner.spark.versions import arrow_table
from sqlext_planner.window.execution import WindowUnionExec

from sqlext.cli.terminal import console, print_lines, print_rows, print_sql, progress, writing
from sqlext.examples import copy_notebooks, write_flights
from sqlext.session import Session

#: Where the tables stay, unless --data says another folder; with them the statement.
DEFAULT_FOLDER = Path("sqlext-demo")
STATEMENT_FILE = "features.sql"
SHOWN_ROWS = 8
#: Sums of doubles depend on the order in which they are added.
_SAME = 1e-9
#: A longer line of the plan is cut.
_MOST_LABEL = 140

QUESTION = "What had each user ordered, in the hour and in the day before each view of an item?"

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
                     ROWS_RANGE BETWEEN 1d PRECEDING AND CURRENT ROW
                     EXCLUDE CURRENT_ROW INSTANCE_NOT_IN_WINDOW)
"""

#: The same by hand: rows of orders are marked, and a row of views has nothing that the windows count.
SPARK_SQL = """\
WITH both AS (SELECT user_id, ts, item, price, true AS is_view, NULL AS o_item, NULL AS o_price FROM views UNION ALL
              SELECT user_id, ts, NULL, NULL, false, item, price FROM orders),
featured AS (SELECT *, count(o_price) OVER hour AS orders_1h, sum(o_price) OVER hour AS spent_1h,
                    size(collect_set(o_item) OVER day) AS items_1d, max(o_price) OVER day AS dearest_1d,
                    avg(CASE WHEN o_price > 20 THEN o_price END) OVER day AS avg_over_20_1d FROM both
  WINDOW hour AS (PARTITION BY user_id ORDER BY ts RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW),
         day AS (PARTITION BY user_id ORDER BY ts RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW))
SELECT user_id, ts, item, price, orders_1h, spent_1h, items_1d, dearest_1d, avg_over_20_1d FROM featured WHERE is_view
"""

LAST_ORDER_SQL = (
    "SELECT v.user_id, v.ts, v.item, o.item AS bought, o.ts AS bought_at "
    "FROM views v LAST JOIN orders o ORDER BY o.ts ON v.user_id = o.user_id AND o.ts <= v.ts LIMIT 5"
)


def run_demo(rows: int, seed: int, data: Path | None) -> None:
    """Generate the tables, answer the question in both ways, compare; the plan and what to try next come last."""
    out = console()
    begin = time.perf_counter()
    seconds: dict[str, float] = {}
    folder = DEFAULT_FOLDER if data is None else data
    with _timed(seconds, "tables", "Generating the tables"), writing(folder):
        sizes = write_tables(folder, rows, seed)
        (folder / STATEMENT_FILE).write_text(DEMO_SQL, encoding="utf-8")
    with _timed(seconds, "start of Spark", "Starting Spark"):
        session = Session()
        for name in sizes:
            session.register(name, folder / f"{name}.parquet")
    try:
        _heading(out, QUESTION)
        print_sql(out, DEMO_SQL)
        ours, theirs = _both_ways(session, folder, seconds)
        _show_answers(out, ours)
        _show_spark(out, ours, theirs, seconds)
        _show_plan(out, session)
        _show_next(out, folder, sizes)
    finally:
        session.spark.stop()
    steps = ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
    out.print(f"{steps}; in all {time.perf_counter() - begin:.1f} s", style="dim")


def _both_ways(session: Session, folder: Path, seconds: dict[str, float]) -> tuple[pa.Table, pa.Table]:
    """The answers of our statement and of plain Spark's. Each is timed after a run over a hundredth of the rows, in
    which Python workers start and Java compiles."""
    with _timed(seconds, "warm-up", "Warming up, both on a hundredth of the rows"):
        few = Session(session.spark.newSession())
        for name in ("views", "orders"):
            few.spark.read.parquet(str(folder / f"{name}.parquet")).where("user_id % 100 = 1").createTempView(name)
        arrow_table(few.sql(DEMO_SQL))
        arrow_table(few.spark.sql(SPARK_SQL))
    with _timed(seconds, "sqlext", "Running it"):
        ours = arrow_table(session.sql(DEMO_SQL))
    with _timed(seconds, "plain Spark", "Running it in plain Spark's way"):
        theirs = arrow_table(session.spark.sql(SPARK_SQL))
    return ours, theirs


def _show_answers(out: Console, answers: pa.Table) -> None:
    """Rows of one user, with all features."""
    full = answers.filter(pc.and_(pc.greater(answers["orders_1h"], 0), pc.is_valid(answers["avg_over_20_1d"])))
    complete = full if full.num_rows else answers
    counts = (
        complete.group_by("user_id")
        .aggregate([("ts", "count")])
        .sort_by([("ts_count", "descending"), ("user_id", "ascending")])
    )
    user = counts["user_id"][0].as_py()
    of_user = complete.filter(pc.equal(complete["user_id"], user)).sort_by("ts")
    _heading(
        out, f"{answers.num_rows:,} rows, one for each view. Those of user {user}, who is active, with all features:"
    )
    print_rows(out, of_user.slice(0, SHOWN_ROWS), more=of_user.num_rows > SHOWN_ROWS)


def _show_spark(out: Console, ours: pa.Table, theirs: pa.Table, seconds: Mapping[str, float]) -> None:
    _heading(out, "The same in plain Spark: mark the rows, put both tables together, take the orders out again")
    print_sql(out, SPARK_SQL)
    own, plain = seconds["sqlext"], seconds["plain Spark"]
    times = f"{plain / own:.1f} times as fast" if plain >= own else f"{own / plain:.1f} times as slow on so few rows"
    _heading(out, f"sqlext {own:.2f} s, plain Spark {plain:.2f} s: {times}")
    different = differing(ours, theirs)
    if different:
        out.print(f"The answers DIFFER in {', '.join(different)}: please report it", style="bold red")
    else:
        told = "counts and maxima exactly, sums and means of doubles to nine digits"
        out.print(f"Both give the same {ours.num_rows:,} rows: {told}. Each ran once, after a warm-up.")


def differing(ours: pa.Table, theirs: pa.Table) -> list[str]:
    """The columns in which two answers differ; sums and means of doubles may do so in their last digits. Equal views
    have equal features, so their order does not matter."""
    if ours.column_names != theirs.column_names or ours.num_rows != theirs.num_rows:
        return ["their columns or their number of rows"]
    keys = [(name, "ascending") for name in ("user_id", "ts", "item")]
    one, other = ours.sort_by(keys), theirs.sort_by(keys)
    return [name for name in one.column_names if not _same(one[name], other[name])]


def _same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    other = other.cast(one.type)
    if not pa.types.is_floating(one.type):
        return bool(one.equals(other))
    if not pc.is_null(one).equals(pc.is_null(other)):
        return False
    return bool(np.allclose(one.fill_null(0).to_numpy(), other.fill_null(0).to_numpy(), rtol=_SAME, atol=0))


def _show_plan(out: Console, session: Session) -> None:
    """The node that does the work, and why it was chosen."""
    plan = session.plan(DEMO_SQL).physical
    node = None if plan is None else next((item for item in plan.walk() if isinstance(item, WindowUnionExec)), None)
    if node is not None:
        _heading(out, "How it runs: both windows in one operator, over one exchange of both tables")
        label = node.label()
        cut = label if len(label) <= _MOST_LABEL else f"{label[: _MOST_LABEL - 3]}..."
        print_lines(out, [cut, *(f"    ({name}: {value})" for name, value in node.details().items())])


def next_commands(folder: Path) -> list[str]:
    """What to try with the tables in a folder, as one would type it."""
    data, statement = shlex.quote(str(folder)), shlex.quote(str(folder / STATEMENT_FILE))
    return [
        f"sqlext plan --data {data} {statement} --analyze",
        f"sqlext run --data {data} {statement} -o features.parquet",
        f"sqlext run --data {data} -e {shlex.quote(LAST_ORDER_SQL)}",
    ]


def _show_next(out: Console, folder: Path, sizes: Mapping[str, int]) -> None:
    tables = " and ".join(f"{name} ({size:,} rows)" for name, size in sizes.items())
    _heading(out, f"{tables} stay in {folder}. Try next: where the time goes, the answers as a file, the last order")
    print_lines(out, next_commands(folder))
    out.print()


def _heading(out: Console, text: str) -> None:
    out.print()
    out.print(text, style="bold", markup=False)
    out.print()


@contextmanager
def _timed(seconds: dict[str, float], step: str, what: str) -> Iterator[None]:
    begin = time.perf_counter()
    with progress(what):
        yield
    seconds[step] = time.perf_counter() - begin


WEEK_START = np.datetime64("2024-03-04T00:00:00", "us")


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


def run_examples(folder: Path, months: Sequence[int], notebooks: Path | None) -> None:
    """Write the tables, copy the notebooks if asked to, and say what is where."""
    with writing(folder):
        sizes = write_flights(folder, months)
    typer.echo(f"{folder} contains " + ", ".join(f"{name} ({size:,} rows)" for name, size in sizes.items()))
    if notebooks is not None:
        with writing(notebooks):
            copied = copy_notebooks(notebooks)
        typer.echo(f"{notebooks} contains " + ", ".join(path.name for path in copied))
