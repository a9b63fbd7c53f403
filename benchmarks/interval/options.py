"""The command line options of the suite `interval`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.options import WHO, ScaledOptions, option
from benchmarks.harness.runner import Limits
from benchmarks.storage import StorageOptions

#: Contestants and what each does, in the order of the tables. The first that is not ours is the reference.
CONTESTANTS = {
    "ours": "Session.sql with a period predicate; in kernel cases the slice kernel",
    "duckdb": "the inequalities in DuckDB, as installed here; in kernel cases one thread",
    "duckdb-range": "the same with prefer_range_joins = true (joins with a key only)",
    "duckdb-2": "the newer DuckDB of .peers/polars",
    "polars": "join_where, of .peers/polars",
    "polars-bio": "overlap by SuperIntervals, of .peers/genomics",
    "ncls": "nested containment list, of .peers/genomics (kernel cases only)",
    "join-by-s": "the seed's JoinByS (kernel cases only)",
    "lazy-join-by-s": "the seed's LazyJoinByS (kernel cases only)",
    "spark-bins": "Spark with hand-written bins",
    "spark": "Spark's own plan: a nested loop, with a key a hash join and a filter",
}

QUERIES = ("pairs", "count", "semi", "anti")


@dataclass(frozen=True)
class IntervalOptions(ScaledOptions, StorageOptions):
    """`sets` are names of cases.SETS. `scale` multiplies the rows of all generated tables."""

    sets: Sequence[str] = option(
        ("kernel", "synthetic", "nested", "large", "real", "growth"),
        "kernel: in memory, one thread. synthetic: the seed's recipe. nested: Spark's nested loop at 100k x 100k. "
        "large: 1M x 1M. real: git, genome, flights. growth: 1M against 4M rows. memory: 10M x 10M.",
    )
    relations: Sequence[str] = option(
        ("overlap", "during", "start-preceding", "before"),
        "In synthetic and kernel: which relations; also any name of docs/predicates.md, such as allen_meets.",
    )
    rows: Sequence[int] = option((10_000, 30_000, 100_000), "In synthetic: rows of each table.")
    lengths: Sequence[int] = option((50, 5_000, 500_000), "In synthetic: mean lengths, starts lie in 1..1000000.")
    queries: Sequence[str] = option(QUERIES, "In large: which queries.")
    contestants: Sequence[str] = option(tuple(CONTESTANTS), WHO)
    max_pairs: int = option(120_000_000, "In synthetic: cases with more pairs are left out.")
    nested_rows: int = option(30_000, "Largest table for Spark's nested loop.", min=0)
    bin_width: int | None = option(
        None, "Width of hand-written bins; by default the estimated best for each case.", min=1
    )
    real: Path | None = option(None, "Folder of the real data (data/intervals); it is only read.")
    peers: Path = option(Path(".peers"), "Where `make peers` put the peers.")

    LIMITS = Limits(cap_seconds=5.0, limit_seconds=60.0)
