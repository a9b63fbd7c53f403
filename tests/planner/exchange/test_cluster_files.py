"""Who reads files on a cluster: Spark, unless the user says that all executors see them."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlext_operators.exchange.parquet_scan import read_task
from sqlext_operators.exchange.source_files import SourceChangedError
from sqlext_planner.config import Config
from sqlext_planner.exchange import arrow_scan
from sqlext_planner.relational.physical_plan import ExecutionContext
from sqlext_planner.spark.session import is_local

MASTERS = {
    "local": True,
    "local[*]": True,
    "local[2,4]": True,
    "local-cluster[2,1,1024]": False,
    "spark://127.0.0.1:7077": False,
    "yarn": False,
    "k8s://https://127.0.0.1": False,
}


@pytest.mark.parametrize("master", MASTERS)
def test_local_masters(master: str) -> None:
    spark: Any = SimpleNamespace(_sc=SimpleNamespace(master=master))
    assert is_local(spark) is MASTERS[master]


def test_connect_is_not_local() -> None:
    spark: Any = SimpleNamespace()
    assert not is_local(spark)


@pytest.mark.parametrize(
    ("setting", "local", "reads"), [("auto", True, True), ("auto", False, False), ("true", False, True)]
)
def test_the_setting(
    setting: str, local: bool, reads: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")
    monkeypatch.setattr(arrow_scan, "is_local", lambda spark: local)
    context = ExecutionContext(spark, Config(arrow_scan=setting))
    scan = arrow_scan.scan_of(spark.read.parquet(str(tmp_path / "a.parquet")), context, 1)
    assert (scan is not None) is reads
    if scan is None:
        return
    (tmp_path / "a.parquet").unlink()  # as on a machine that does not see it
    with pytest.raises(SourceChangedError, match=f"no longer exists on {socket.gethostname()}") as caught:
        list(read_task(scan.scan, scan.scan.tasks[0]))
    assert caught.value.help is not None
    assert "sqlext.exchange.arrowScan=auto" in caught.value.help
