"""The command line options of the suite `interval`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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

RELATIONS = ("overlap", "during", "start-preceding", "before")


@dataclass(frozen=True)
class IntervalOptions:
    """`sets` are names of interval_cases.SETS; `rows`, `lengths` and `relations` apply to the set synthetic.

    Its cases with more than `max_pairs` pairs are left out. `queries` apply to the set large. `scale` multiplies the
    rows of all generated tables. Spark's nested loop takes part up to `nested_rows` rows a side, and in the set nested.
    `bin_width` replaces the chosen width of hand-written bins. `real` is the folder of the real data, `peers` that of
    the peers' environments.
    """

    sets: Sequence[str] = ("kernel", "synthetic", "nested", "large", "real", "growth")
    rows: Sequence[int] = (10_000, 30_000, 100_000)
    lengths: Sequence[int] = (50, 5_000, 500_000)
    relations: Sequence[str] = RELATIONS
    queries: Sequence[str] = ("pairs", "count", "semi", "anti")
    contestants: Sequence[str] = tuple(CONTESTANTS)
    scale: float = 1.0
    max_pairs: int = 120_000_000
    nested_rows: int = 30_000
    bin_width: int | None = None
    real: Path | None = None
    peers: Path = Path(".peers")
    cores: int = 2
    memory: str = "8g"
    data: Path | None = None
