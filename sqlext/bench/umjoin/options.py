"""The command line options of the suite `umjoin`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Contestants and what each does, in the order of the tables. The first that is not ours is the reference.
CONTESTANTS = {
    "ours": "Session.sql",
    "spark": "spark.sql of the same text, in the same Spark session, on the same views",
    "duckdb": "the same text in DuckDB, on views of the same files",
}


@dataclass(frozen=True)
class UMJoinOptions:
    """`cases` are names of umjoin_cases.SETS. `rows` are those of each input of star and chain, `edges` those of the
    graphs. `scale` multiplies both, and is the scale factor of TPC-H and TPC-DS. Enumerating the larger results of star
    and chain stops after `many_seconds`; the result is then only a lower bound. `data` keeps all generated tables; None
    puts TPC tables into the cache of `sqlext tpch|tpcds`, all others into a temporary folder."""

    cases: Sequence[str] = ("seed", "star", "chain", "triangle", "cycle4", "tpch", "planning")
    contestants: Sequence[str] = tuple(CONTESTANTS)
    scale: float = 1.0
    rows: int = 125_000
    edges: int = 600_000
    many_seconds: float = 20.0
    cores: int = 2
    memory: str = "8g"
    data: Path | None = None
