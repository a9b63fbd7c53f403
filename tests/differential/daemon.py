"""Spark's Python daemon with the operators loaded: its workers are forks of it, and a statement with LIMIT ends one."""

from __future__ import annotations

from pyspark.daemon import manager
from sqlext_operators.interval_join import broadcast_scan
from sqlext_operators.interval_join import worker as interval_join
from sqlext_operators.last_join import worker as last_join
from sqlext_operators.umjoin import worker as umjoin
from sqlext_operators.window import group_worker as group_aggregate
from sqlext_operators.window import worker as window_union

#: Loaded before the forks.
LOADED = (broadcast_scan, group_aggregate, interval_join, last_join, umjoin, window_union)

if __name__ == "__main__":
    manager()
