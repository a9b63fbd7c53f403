"""Polars: `join_asof`, which takes tables that are sorted by time; they are sorted while the clock runs.

A request has `left` and `right` (Parquet files with the columns k, ts, v) and `kind` ("inner", "left"). The answer has
`seconds` and `sums`, the checksums of benchmarks/asof.py.
"""

from __future__ import annotations

import time
from typing import Any

import polars as pl


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """One join, summed up."""
    start = time.perf_counter()
    left, right = (pl.scan_parquet(request[side]).sort("ts") for side in ("left", "right"))
    right = right.select("k", pl.col("ts").alias("near"), pl.col("v").alias("value"))
    found = left.join_asof(right, left_on="ts", right_on="near", by="k", strategy="backward", coalesce=False)
    if request["kind"] == "inner":
        found = found.filter(pl.col("near").is_not_null())
    sums = {name: pl.col(name).sum() for name in ("k", "ts", "near")}
    mix = (pl.col("near") * (pl.col("ts") % 1009)).sum()
    row = found.select(n=pl.len(), **sums, mix=mix, v=pl.col("v").sum(), value=pl.col("value").sum()).collect()
    return {"seconds": time.perf_counter() - start, "sums": row.row(0, named=True)}
