"""The command line options of the suite `stream`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Contestants of each set of cases and what each does, in the order of the tables. The first that is not ours and has
#: an answer is the reference.
WINDOW_CONTESTANTS = {
    "ours": "Session.sql of the window over two streams",
    "ours-hash": "the same without its hint: each key in one task",
    "floor": "transformWithState in Python that counts the rows of the same streams",
    "floor-spark": "Spark's stateful count of the same two streams",
    "duckdb": "the same statement over the same rows as tables",
    "ours-batch": "Session.sql of the window over the same rows as tables",
    "spark-join": "Spark's stream-stream join and aggregate, join state format 4",
    "spark-join-v2": "the same with join state format 2, the default",
    "flink-over": "Flink's OVER aggregate over both streams, state in RocksDB",
    "flink-over-heap": "the same, state on the heap",
    "flink-join": "Flink's interval join and window aggregate, state in RocksDB",
    "flink-join-heap": "the same, state on the heap",
}
UMJOIN_CONTESTANTS = {
    "ours": "Session.sql of the join with the hint UMJOIN",
    "floor": WINDOW_CONTESTANTS["floor"],
    "duckdb": WINDOW_CONTESTANTS["duckdb"],
    "spark-chain": "Spark's stream-stream joins, one after another, join state format 4",
    "spark-chain-v2": "the same with join state format 2, the default",
    "flink-multi": "Flink's multi-join, state in RocksDB",
    "flink-multi-heap": "the same, state on the heap",
    "flink-binary": "Flink's joins of two streams, one after another, state in RocksDB",
    "flink-binary-heap": "the same, state on the heap",
}
INTERVAL_CONTESTANTS = {
    "ours": "Session.sql of the join with a period predicate or the hint SWEEP",
    "floor": WINDOW_CONTESTANTS["floor"],
    "duckdb": WINDOW_CONTESTANTS["duckdb"],
    "spark-join": "Spark's stream-stream join, join state format 4",
    "spark-join-v2": WINDOW_CONTESTANTS["spark-join-v2"],
    "flink-join": "Flink's interval join or regular join, state in RocksDB",
    "flink-join-heap": "the same, state on the heap",
}
EARLY_CONTESTANTS = {
    "ours": "Session.sql of the window join with EMIT AFTER: early rows by shrink, and final rows",
    "ours-none": "the same with COMPENSATE USING none",
    "floor": WINDOW_CONTESTANTS["floor"],
    "duckdb": WINDOW_CONTESTANTS["duckdb"],
    "spark-join": "Spark, final rows alone: totals of both streams by window and key, joined, join state format 4",
    "spark-join-v2": WINDOW_CONTESTANTS["spark-join-v2"],
}
CONTESTANTS = WINDOW_CONTESTANTS | UMJOIN_CONTESTANTS | INTERVAL_CONTESTANTS | EARLY_CONTESTANTS

#: Sets of cases that `--cases` names.
SETS = ("window", "umjoin", "interval", "early")


@dataclass(frozen=True)
class StreamOptions:
    """`workloads` are names of stream_data.WORKLOADS and SPREAD, `rising`, and names of stream_umjoin_sql.JOINS, of
    stream_interval_sql.INTERVALS and of stream_early.EARLY; those of sets of cases that are not asked for are left out.
    `rows` are those of each stream, `batches` the rows of a micro-batch (both streams together), `live` the rows in
    state in the cases `rising`, `shared` and `points`. `scale` multiplies the first and the last. `paced` is the length
    of a paced run in seconds; 0 leaves these cases out. `peers` is where `make peers` put Flink, `state_memory_mb` what
    RocksDB may take: Spark's state stores, or Flink's managed memory."""

    cases: Sequence[str] = ("window",)
    workloads: Sequence[str] = (
        *("A", "B", "C", "D", "rising", "even", "moving"),
        *("shared", "chain", "second", "near"),
        *("points", "overlap", "left"),
        *("few", "many"),
    )
    contestants: Sequence[str] = tuple(CONTESTANTS)
    rows: int = 1_000_000
    batches: Sequence[int] = (50_000, 500_000)
    live: Sequence[int] = (100_000, 1_000_000, 10_000_000)
    paced: float = 20.0
    scale: float = 1.0
    peers: Path = Path(".peers")
    state_memory_mb: int = 1_024
    cores: int = 2
    memory: str = "8g"
    data: Path | None = None
