"""The command line options of the suite `stream`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.options import WHO, ScaledOptions, option
from benchmarks.harness.runner import Limits

#: Contestants of each set of cases and what each does, in the order of the tables. The first that is not ours and has
#: an answer is the reference.
WINDOW_CONTESTANTS = {
    "ours": "Session.sql of the window over two streams",
    "ours-csv": "the same over CSV files of the same rows, which Flink reads",
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
    "ours": "Session.sql of the join, which chooses what runs it",
    "ours-csv": "the same over CSV files of the same rows, which Flink reads",
    "ours-operator": "the same with the hint UMJOIN",
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
    "ours-csv": "the same over CSV files of the same rows, which Flink reads",
    "floor": WINDOW_CONTESTANTS["floor"],
    "duckdb": WINDOW_CONTESTANTS["duckdb"],
    "spark-join": "Spark's stream-stream join, join state format 4",
    "spark-join-v2": WINDOW_CONTESTANTS["spark-join-v2"],
    "flink-join": "Flink's interval join or regular join, state in RocksDB",
    "flink-join-heap": "the same, state on the heap",
}
EARLY_CONTESTANTS = {
    "ours": "Session.sql with EMIT AFTER: early rows by shrink, and final rows",
    "ours-none": "the same with COMPENSATE USING none",
    "floor": WINDOW_CONTESTANTS["floor"],
    "duckdb": WINDOW_CONTESTANTS["duckdb"],
    "spark-join": "Spark, final rows alone: totals by window and key, joined, or as in window; join state format 4",
    "spark-join-v2": WINDOW_CONTESTANTS["spark-join-v2"],
}
CONTESTANTS = WINDOW_CONTESTANTS | UMJOIN_CONTESTANTS | INTERVAL_CONTESTANTS | EARLY_CONTESTANTS

#: Sets of cases that `--cases` names.
SETS = ("window", "umjoin", "interval", "early")


@dataclass(frozen=True)
class StreamOptions(ScaledOptions):
    """`workloads` of sets of cases that are not asked for are left out. `scale` multiplies `rows` and `live`. `peers`
    is where Flink is, `state_memory_mb` what RocksDB may take: Spark's state stores, or Flink's managed memory."""

    cases: Sequence[str] = option(
        ("window",),
        "window: a window over the union of two streams. umjoin: joins of three and four streams. interval: "
        "joins of two streams in a band of time or of periods. early: early answers of a window join and of a window.",
    )
    workloads: Sequence[str] = option(
        (
            *("A", "B", "C", "D", "rising", "even", "moving"),
            *("shared", "chain", "second", "near"),
            *("points", "overlap", "left"),
            *("few", "many", "rows"),
        ),
        "A, D: 5 keys, windows of 1 s, rows up to 1 s (A) and 2 s (D) late. B: 111 keys, 150 s, 10 s. "
        "C: 45 keys, 8 s, 100 s. rising: state of --live rows. even, moving: 1,000 keys, even or with "
        "hot ones. shared: four streams on one key, state of --live "
        "rows. chain: on three keys. second: three on a key of 100 values and a second one each. near: four on one "
        "key, 20 s apart at most. points: a row and those of the 20 s after it, state of --live rows. overlap: "
        "periods that overlap. left: a LEFT JOIN of them. few, many: windows of 1 s with 10 and 10,000 keys. "
        "rows: windows of 2 s over the union.",
        flag="workload",
    )
    rows: int = option(1_000_000, "Rows of each stream, in A to D.", min=1)
    batches: Sequence[int] = option(
        (50_000, 500_000), "Rows of a micro-batch; peers without micro-batches take part with the most."
    )
    live: Sequence[int] = option((100_000, 1_000_000, 10_000_000), "In rising, shared and points: rows in state.")
    paced: float = option(20.0, "Seconds of the paced runs of A, B and D at the rates of Scale-OIJ; 0: none.", min=0.0)
    contestants: Sequence[str] = option(tuple(CONTESTANTS), WHO)
    peers: Path = option(Path(".peers"), "Where `make peers` put Flink.")
    state_memory_mb: int = option(1_024, "MB of RocksDB's memory, in Spark and in Flink.", flag="state_memory", min=64)

    LIMITS = Limits(repeat=1, cap_seconds=60.0, limit_seconds=120.0)
