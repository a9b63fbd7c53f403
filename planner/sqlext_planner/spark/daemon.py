"""Spark's Python daemon with the operators loaded: for ``spark.python.daemon.module`` (Spark starts it with ``-m``).

Spark's Python workers are forks of it. They need not load numba and the operators, which takes each of them more than a
second, and what is loaded is left out of the collection of garbage that PySpark makes before each fork and after each
task. An embedded Spark has it; a cluster's executors may lack the operators, and keep Spark's own.
"""

from __future__ import annotations

import gc

from pyspark.daemon import manager
from sqlext_operators.interval_join import operator as interval_join
from sqlext_operators.last_join import operator as last_join
from sqlext_operators.umjoin import operator as umjoin
from sqlext_operators.window import operator as window

#: Loaded before the forks.
LOADED = (interval_join, last_join, umjoin, window)

if __name__ == "__main__":
    gc.freeze()
    manager()
