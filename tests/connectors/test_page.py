"""The page about connectors, word by word: its Python runs as one script, beside a broker with its topics."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.connectors.broker import Broker
from tests.connectors.jars import classpath, spark_settings
from tests.test_docs import ROOT, examples

PAGE = ROOT / "docs" / "connectors.md"


def test_the_page_names_jars_that_the_tests_use() -> None:
    from tests.connectors.jars import SETS

    text = PAGE.read_text(encoding="utf-8")
    for name in ("kafka", "delta", "iceberg", "s3"):
        newest = next(wanted[0] for spark, wanted in SETS[name].coordinates.items() if "4.1.1".startswith(spark))
        assert f"`{newest}`" in text


@pytest.mark.spark
def test_the_page_as_a_script(tmp_path: Path) -> None:
    if pyspark.__version__ != "4.1.1":
        pytest.skip("the packages of the page are for PySpark 4.1.1")
    spark_settings("kafka", "delta", "iceberg")  # skips where the registries cannot be reached
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", 9092)) == 0:
            pytest.skip("something listens at port 9092 already, which is the page's")
    script = tmp_path / "page.py"
    blocks = [one.text for one in examples() if one.page == PAGE and one.language == "python"]
    path = os.pathsep.join(map(str, (ROOT, ROOT / "planner", ROOT / "operators")))
    script.write_text("\n".join(blocks))
    with Broker(tmp_path / "broker", classpath("broker"), port=9092, makes_topics=True):
        done = subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=900,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr[-8000:]
