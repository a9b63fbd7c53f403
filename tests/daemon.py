"""Spark's Python daemon of the tests: `python -m tests.daemon`, for ``spark.python.daemon.module``.

Its workers are forks of it, and a statement with LIMIT ends one, so what takes long is done before the forks:

- the operators are loaded;
- what is loaded is left out of later collections of garbage, which PySpark makes before each fork and after each task;
- zip files of modules are not read again. Up to 4.1 PySpark calls `importlib.invalidate_caches` in every task, and
  Python 3.11 then reads the directory of pyspark.zip again for every package of it, which takes longer than most tests'
  tasks. No test changes a zip file that a worker has loaded from.
"""

from __future__ import annotations

import gc
from zipimport import zipimporter

from pyspark.daemon import manager
from sqlext_planner.spark.daemon import LOADED

#: Loaded before the forks.
assert LOADED

if __name__ == "__main__":
    zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]
    gc.freeze()
    manager()
