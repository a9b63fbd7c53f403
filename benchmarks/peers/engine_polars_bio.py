"""polars-bio: overlap of half-open periods, by SuperIntervals, the fastest of its algorithms."""

from __future__ import annotations

import time
import warnings
from typing import Any

import polars as pl
import polars_bio as pb
from engine_polars import checksums

pb.set_option("datafusion.bio.coordinate_system_zero_based", True)
pb.set_option("datafusion.bio.coordinate_system_check", False)
warnings.filterwarnings("ignore", message="Coordinate system metadata is missing")

COLUMNS = ["k", "ts", "te"]
_tables: dict[tuple[str, bool], pl.DataFrame] = {}


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """The pairs of one overlap join; without a key all rows get the same one, because the engine needs a key."""
    pb.set_option("datafusion.execution.target_partitions", str(request["threads"]))
    memory, keyed = request["memory"], request["keyed"]
    if memory:
        left, right = (_tables.setdefault((request[s], keyed), read(request[s], keyed)) for s in ("left", "right"))
    start = time.perf_counter()
    if not memory:
        left, right = (read(request[side], keyed) for side in ("left", "right"))
    joined = pb.overlap(left, right, cols1=COLUMNS, cols2=COLUMNS, suffixes=("_l", "_r"), algorithm="SuperIntervals")
    pairs = joined.select("id_l", "id_r").collect()
    seconds = time.perf_counter() - start
    sums = checksums(pairs.lazy(), "id_l", "id_r")
    return {"seconds": seconds, "rows": sums.pop("n"), "checksums": sums}


def read(path: str, keyed: bool) -> pl.DataFrame:
    """id, k, ts and te; the engine's coordinates have 32 bits."""
    key = pl.col("k") if keyed else pl.lit("all").alias("k")
    return pl.scan_parquet(path).select("id", key, pl.col("ts", "te").cast(pl.Int32)).collect()
