"""The command line options of the suite `umjoin`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.options import WHO, Options, option
from benchmarks.harness.runner import Limits

#: Contestants and what each does, in the order of the tables. The first that is not ours is the reference.
CONTESTANTS = {
    "ours": "Session.sql",
    "spark": "spark.sql of the same text, in the same Spark session, on the same views",
    "duckdb": "the same text in DuckDB, on views of the same files",
}


@dataclass(frozen=True)
class UMJoinOptions(Options):
    """`cases` are names of cases.SETS. Enumerating the larger results of star and chain stops after `many_seconds`; the
    result is then only a lower bound."""

    cases: Sequence[str] = option(
        ("seed", "star", "chain", "triangle", "cycle4", "tpch", "planning", "session"),
        "seed: four tables of TPC-DS on one key. star, chain: four inputs, 1e9 and 1e12 result rows. "
        "triangle, cycle4: cycles of skewed graphs. tpch: all 22 queries. planning: 99 queries of TPC-DS, not run. "
        "session: what Session.sql adds to spark.sql for these.",
    )
    contestants: Sequence[str] = option(tuple(CONTESTANTS), WHO)
    scale: float = option(1.0, "Scale factor of TPC-H and TPC-DS; multiplies the rows of all other tables.", min=0.001)
    rows: int = option(125_000, "In star and chain: rows of each input.", min=1_000)
    edges: int = option(600_000, "In triangle and cycle4: edges.", min=1_000)
    many_seconds: float = 20.0
    data: Path | None = option(
        None, "Keep generated data here; by default TPC tables are kept in ~/.cache/sqlext, and others are deleted."
    )

    LIMITS = Limits(cap_seconds=20.0, limit_seconds=120.0)
