"""Spark's Python daemon with the operators loaded: its workers are forks of it, and a statement with LIMIT ends one."""

from __future__ import annotations

from pyspark.daemon import manager
from sqlext_operators.interval_join import broadcast, operator
from sqlext_operators.last_join import operator as last_join
from sqlext_operators.umjoin import operator as umjoin
from sqlext_operators.window import group_aggregate
from sqlext_operators.window import operator as window

#: Loaded before the forks.
LOADED = (broadcast, group_aggregate, last_join, operator, umjoin, window)

if __name__ == "__main__":
    manager()
