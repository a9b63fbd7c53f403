"""No space left where operators put what does not fit into memory: the job fails and says where, nothing stays behind,
and the next statement is right."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from .harness import Driver
from .statements import SPILLING, oracle, write_table

pytestmark = pytest.mark.slow

#: What fits into the folder: Spark's shuffle files, which are compressed, but not our runs and spools.
_DISK = "24m"
_ROWS, _TEXT = 30_000, 2_000
_OVERLAP = "p.k = q.k AND PERIOD(p.ts, p.te) OVERLAPS PERIOD(q.ts, q.te)"
_INTERVALS = {**SPILLING, "sqlext.intervalJoin.strategy": "exchange"}
_UMJOIN = {**SPILLING, "sqlext.umjoin.strategy": "operator"}
WRITERS: dict[str, tuple[str, dict[str, str]]] = {
    "window union": (
        "SELECT *, sum(v) OVER w AS s FROM p WINDOW w AS "
        "(UNION q PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 100 PRECEDING AND CURRENT ROW)",
        SPILLING,
    ),
    "last join": (
        "SELECT p.*, q.text AS other FROM p LAST JOIN q ORDER BY q.ts ON p.k = q.k AND q.ts < p.ts",
        SPILLING,
    ),
    "interval join": (f"SELECT p.text, q.text AS other FROM p JOIN q ON {_OVERLAP}", _INTERVALS),
    "interval semi": (f"SELECT p.* FROM p LEFT SEMI JOIN q ON {_OVERLAP}", _INTERVALS),
    "umjoin": (
        "SELECT x.text, y.text AS a, z.text AS b FROM p x, q y, p z WHERE x.g = y.g AND y.g = z.g",
        _UMJOIN,
    ),
    "group aggregates": ("SELECT k, distinct_count(text || id) AS n FROM p GROUP BY k", SPILLING),
}
AFTER = (
    "SELECT p.id, count(*) AS n FROM p JOIN q ON p.g = q.g AND PERIOD(p.ts, p.te) OVERLAPS PERIOD(q.ts, q.te) "
    "GROUP BY p.id"
)
AFTER_ORACLE = "SELECT p.id, count(*) FROM p JOIN q ON p.g = q.g AND p.ts < q.te AND q.ts < p.te GROUP BY p.id"


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small file system."""
    folder = tmp_path_factory.mktemp("disk")
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables p and q with a long text in each row: no two are the same, so no dictionary holds them, and all compress
    well."""
    folder = tmp_path_factory.mktemp("texts")
    random = np.random.default_rng(1)
    for name in "pq":
        start = random.integers(0, 100 * _ROWS, _ROWS)
        columns: dict[str, Any] = {
            "id": np.arange(_ROWS),
            "k": random.integers(0, 20, _ROWS),
            "g": random.integers(0, _ROWS, _ROWS),
            "ts": start,
            "te": start + random.integers(1, 1000, _ROWS),
            "v": random.integers(0, 100, _ROWS),
            "text": pa.array([str(number).ljust(_TEXT, "x") for number in range(_ROWS)]),
        }
        write_table(folder / name, pa.table(columns))
    return folder


@pytest.fixture(scope="module")
def driver(disk: Path, texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """A Spark whose local folder is the small file system."""
    with Driver("local[2]", tmp_path_factory.mktemp("full"), {"spark.local.dir": str(disk)}) as driver:
        driver.run("register", folder=str(texts))
        yield driver


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_an_error_that_names_the_folder(driver: Driver, disk: Path, texts: Path, name: str) -> None:
    sql, settings = WRITERS[name]
    found = driver.run("fill_disk", sql=sql, settings=settings)
    assert found["message"] is not None, "the disk was not filled"
    assert "sqlext-exchange-" in found["message"]
    assert str(disk) in found["message"]
    assert "No space left" in found["message"] or "full" in found["message"]
    assert found["left"] == []
    after = driver.run("answer", sql=AFTER, settings={"sqlext.intervalJoin.strategy": "exchange"})
    del after["seconds"]
    assert after == oracle(texts, AFTER_ORACLE)
