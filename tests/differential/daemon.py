"""Spark's Python daemon with the operators loaded: its workers are forks of it, and a statement with LIMIT ends one."""

from __future__ import annotations

from pyspark.daemon import manager
from sqlext_operators.exchange import broadcast_scan, group_aggregate, interval_join, last_join, umjoin, window_union

#: Loaded before the forks.
LOADED = (broadcast_scan, group_aggregate, interval_join, last_join, umjoin, window_union)

if __name__ == "__main__":
    manager()
