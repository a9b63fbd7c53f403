"""Tests on an older Spark: what PySpark lacks there and tests use, and what it warns about."""

from __future__ import annotations

import pytest
from sqlext_planner.spark.versions import arrow_table, spark_version


def prepare(config: pytest.Config) -> None:
    """Before the first test: DataFrames with `toArrow` (not in 3.5), no errors for PySpark's own open sockets (up to
    4.1)."""
    from pyspark.sql import DataFrame

    if not hasattr(DataFrame, "toArrow"):
        DataFrame.toArrow = arrow_table  # type: ignore[method-assign]
    if spark_version() < (4, 2):
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
