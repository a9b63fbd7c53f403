"""Streams of files that come out of order, and the statements that faults meet over them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

#: Columns of both streams. `id` is different in every row, and so is `ts`: no order of equal times matters.
SCHEMA = "id bigint, k int, ts timestamp, v bigint, x double"
#: The watermark's delay, and what rows come later than their time, in microseconds.
DELAY, _DISORDER = "5 seconds", 4_000_000
#: The first time there is, in microseconds.
FIRST = 1_700_000_000_000_000
_KEYS = 20
_ORDER = "UNION {b} PARTITION BY k ORDER BY ts"
_AGGREGATES = (
    "sum(v) OVER w AS s, count(v) OVER w AS n, avg(x) OVER w AS m, max(v) OVER w AS mx, distinct_count(v) OVER w AS d"
)


def _near(first: str, second: str) -> str:
    """A row of the second input comes at most 200 ms after one of the first: about one of its key does."""
    return f"{second}.ts BETWEEN {first}.ts AND {first}.ts + INTERVAL 200 MILLISECONDS"


def _periods(name: str) -> str:
    """The rows of a stream as periods of 1 to 101 ms: about half of them overlap one of their key in the other."""
    return f"(SELECT id, k, ts, v, x, timestampadd(MILLISECOND, abs(v) + 1, ts) AS te FROM {{{name}}})"


#: Statements over {a} and {b}, which stand for the streams or for tables with the same rows.
STATEMENTS = {
    "range": f"SELECT id, k, {_AGGREGATES} FROM {{a}} WINDOW w AS "
    f"({_ORDER} ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW)",
    "rows": f"SELECT id, v, {_AGGREGATES}, lag(v, 2) OVER w AS l FROM {{a}} WINDOW w AS "
    f"({_ORDER} ROWS BETWEEN 30 PRECEDING AND CURRENT ROW)",
    "join": "SELECT /*+ UMJOIN */ xxhash64(p.id, q.id, r.id, s.id) AS id, p.v, q.v AS v2, r.x, s.x AS x2 FROM {a} p "
    f"JOIN {{b}} q ON p.k = q.k AND {_near('p', 'q')} JOIN {{a}} r ON q.k = r.k AND {_near('q', 'r')} "
    f"JOIN {{b}} s ON r.k = s.k AND {_near('r', 's')}",
    "left join": "SELECT /*+ UMJOIN */ xxhash64(p.id, q.id, r.id) AS id, p.v, q.v AS v2, r.x FROM {a} p "
    f"JOIN {{b}} q ON p.k = q.k AND {_near('p', 'q')} LEFT JOIN {{a}} r ON q.k = r.k AND {_near('q', 'r')}",
    "left overlap join": "SELECT CASE WHEN q.id IS NULL THEN p.id ELSE xxhash64(p.id, q.id) END AS id, p.v, q.x "
    f"FROM {_periods('a')} p LEFT JOIN {_periods('b')} q "
    "ON p.k = q.k AND PERIOD(p.ts, p.te) OVERLAPS PERIOD(q.ts, q.te)",
}


_JOINED = "count(*) AS n, sum(a.v) AS s, avg(b.x) AS m FROM {0} a JOIN {1} b ON a.k = b.k AND {2} = {3} GROUP BY {2}"
_WINDOWED = "(SELECT *, window(ts, '4 seconds') AS w FROM {{{0}}})"
#: Early answers and final ones; the final ones alone, for tables.
EARLY = (
    "SELECT unix_micros(start) AS id, * EXCEPT (start) FROM (SELECT window.start, "
    + _JOINED.format("{a}", "{b}", "window(a.ts, '4 seconds')", "window(b.ts, '4 seconds')")
    + " EMIT AFTER DELAY INTERVAL '3' SECONDS)"
)
EARLY_BATCH = (
    "SELECT unix_micros(start) AS id, n, s, m FROM (SELECT a.w.start AS start, "
    + _JOINED.format(_WINDOWED.format("a"), _WINDOWED.format("b"), "a.w", "b.w")
    + ")"
)


_ROWS = (
    "SELECT id, count(*) OVER w AS n, sum(v) OVER w AS s, avg(x) OVER w AS m FROM {a} WINDOW w AS "
    f"({_ORDER} ROWS_RANGE BETWEEN 4s PRECEDING AND CURRENT ROW)"
)
#: Statements with early answers, and those that give the final rows alone, for tables.
EARLY_ANSWERS = {
    "window join": (EARLY, EARLY_BATCH),
    "windows of rows": (_ROWS + " EMIT AFTER DELAY INTERVAL '1' SECOND", _ROWS),
}


#: Statements whose keys get other places while they run, over streams with a hot key that is another one now and then:
#: for how long one is hot, in microseconds. A change takes about twice as long as rows are kept.
MOVING = {"range": 100_000_000, "left overlap join": 20_000_000}
#: The share of the rows that the hot key has.
_HOT_SHARE = 0.7


def placed(name: str) -> str:
    """A statement whose keys get other places."""
    return STATEMENTS[name].replace("SELECT", "SELECT /*+ PARTITIONER(fragment) */", 1)


def write_streams(
    folder: Path, files: int, rows: int, *, step: int = 5_000, keys: int = _KEYS, hot_for: int | None = None
) -> Path:
    """Folders `a` and `b` with `files` files of `rows` rows, and one that closes all windows but its own.

    A row of one stream or the other comes every `step` microseconds of event time. With `hot_for` a key is hot for so
    many microseconds, then another one.
    """
    rng = np.random.default_rng(1)
    count = files * rows
    times = FIRST + step * rng.permutation(2 * count)
    for number, name in enumerate("ab"):
        ts = np.sort(times[number * count : (number + 1) * count])
        ts = ts[np.argsort(ts + rng.integers(0, _DISORDER, count), kind="stable")]
        table = rows_of(rng, number * (count + 1) + np.arange(count), ts, keys)
        if hot_for is not None:
            hot = np.where(rng.random(count) < _HOT_SHARE, (ts - FIRST) // hot_for % keys, table["k"].to_numpy())
            table = table.set_column(1, "k", pa.array(hot.astype(np.int32)))
        for place in range(files):
            write_file(folder / name, place, table.slice(place * rows, rows))
        end = np.array([int(times.max()) + 10**10 + number])
        write_file(folder / name, files, rows_of(rng, np.array([number * (count + 1) + count]), end))
    return folder


def rows_of(rng: np.random.Generator, ids: np.ndarray, ts: np.ndarray, keys: int = _KEYS) -> pa.Table:
    """Rows of `SCHEMA` with given ids and times (microseconds)."""
    count = len(ids)
    return pa.table(
        {
            "id": ids,
            "k": rng.integers(0, keys, count).astype(np.int32),
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            "v": rng.integers(-100, 100, count),
            "x": rng.random(count),
        }
    )


def write_file(folder: Path, place: int, table: pa.Table) -> None:
    """The file number `place` of a stream, whole at once. Spark takes files in the order of their times."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden, shown = folder / f".{place:09d}.parquet", folder / f"{place:09d}.parquet"
    pq.write_table(table, hidden)
    os.utime(hidden, (FIRST // 10**6 + place,) * 2)
    hidden.rename(shown)


def committed(checkpoint: Path) -> int:
    """How many micro-batches a query has committed."""
    return sum(path.name.isdigit() for path in (checkpoint / "commits").glob("*"))


def micro_batches(checkpoint: Path) -> dict[int, tuple[int, list[str]]]:
    """The watermark of each micro-batch, and the offsets that its sources were read to.

    After a kill these may be others. A source that has noted its next file, before the query noted its micro-batch,
    reads one more file in it. A sink that has the rows of a micro-batch which the query has not committed skips it, and
    then Spark's watermark knows nothing of its event times for one micro-batch.
    """
    logs = {int(path.name): path.read_text() for path in (checkpoint / "offsets").glob("*") if path.name.isdigit()}
    lines = {number: text.splitlines() for number, text in logs.items()}
    return {number: (json.loads(found[1])["batchWatermarkMs"], found[2:]) for number, found in lines.items()}


def wait_for_commit(checkpoint: Path, seconds: float, more: int = 1) -> None:
    """Wait until a query has committed `more` further micro-batches; `seconds` at most."""
    goal, end = committed(checkpoint) + more, time.monotonic() + seconds
    while committed(checkpoint) < goal and time.monotonic() < end:
        time.sleep(0.05)
