"""Memory and bytes of streaming queries: with much state, and over time."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from sqlext import stream_settings

from . import QUICK
from .harness import Driver
from .stream_measures import KEPT_FROM, KEPT_UNION
from .streaming import STATEMENTS, write_streams

pytestmark = pytest.mark.slow

#: Rows in the state, half of them of each stream, in 20 micro-batches.
SIZES = [500_000] if QUICK else [500_000, 10_000_000]
ROCKS_MB, WORKER_BYTES = 256, 1 << 30
#: `SQLEXT_SOAK=60` makes it short.
SOAK_SECONDS = float(os.environ.get("SQLEXT_SOAK") or (60 if QUICK else 600))
#: Rows of each stream a second.
SOAK_ROWS = 10_000
CONF = {
    **stream_settings(cores=2, memory_mb=ROCKS_MB),
    "spark.sql.streaming.numRecentProgressUpdates": "5000",
    "spark.driver.memory": "2g",
}


#: Statements that let no row go, a window longer than all rows together and a join without bounds; how often each reads
#: a stream.
LONG = {
    "range": (STATEMENTS["range"].replace("20s", "1h"), 1),
    "join": (
        "SELECT /*+ UMJOIN */ p.id, q.id AS id2, r.v, s.x FROM {a} p JOIN {b} q ON p.k = q.k JOIN {a} r ON q.k = r.k "
        "JOIN {b} s ON r.k = s.k",
        2,
    ),
}


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("name", LONG)
def test_much_state_in_little_memory(tmp_path: Path, name: str, count: int) -> None:
    sql, reads = LONG[name]
    each = count // 2 // reads
    # about one match for a row of the join, in each input
    write_streams(tmp_path / "rows", 20, each // 20, step=100, keys=1_000 if name == "range" else each)
    request = {"sql": sql, "rows": str(tmp_path / "rows")}
    with Driver("local[2]", tmp_path / "driver", CONF) as driver:
        found = driver.run("stream_measures.load", **request, checkpoint=str(tmp_path / "checkpoint"))
    batches = found.pop("batches")
    most = max(batches, key=lambda batch: batch["state_rows"])
    rocks = max(batch["store"] for batch in batches)
    print(f"{name}, {count} rows: {found}, RocksDB {rocks} {most['rocks']}; milliseconds {[b['ms'] for b in batches]}")
    print(f"the micro-batch with most state: {most}")
    assert most["state_rows"] >= count
    assert found["worker"] <= WORKER_BYTES
    assert rocks <= ROCKS_MB << 20
    assert found["checkpoint"] <= 4 * most["state_bytes"] + (64 << 20)


@pytest.mark.parametrize("name", ["range", "join", "left overlap join"])
def test_state_and_files_level_off(tmp_path: Path, name: str) -> None:
    """Nothing is lost, and no micro-batch takes longer because of those before it."""
    request = {"sql": STATEMENTS[name], "rows": str(tmp_path / "rows"), "out": str(tmp_path / "out")}
    load = {"seconds": SOAK_SECONDS, "rate": SOAK_ROWS}
    places = {"local": str(tmp_path / "driver"), "checkpoint": str(tmp_path / "checkpoint")}
    with Driver("local[2]", tmp_path / "driver", CONF) as driver:
        found = driver.run("stream_measures.soak", **request, **load, **places, within=SOAK_SECONDS + 300)
        sums = driver.run("stream_measures.sums", **request, within=600)
    batches, cached = found.pop("batches"), found.pop("cached")
    steady = [batch for batch in batches[len(batches) // 4 :] if batch["rows"]]
    new = [batch["rows"] // 2 * (KEPT_FROM + KEPT_UNION) for batch in steady]
    state = [batch["state_bytes"] for batch in batches]
    shares = {
        "read": [batch["read_bytes"] / size for batch, size in zip(steady, new, strict=True)],
        "written": [batch["written_bytes"] / size for batch, size in zip(steady, new, strict=True)],
    }
    print(f"{name}: {len(batches)} micro-batches, {sum(b['rows'] for b in batches)} rows, {found}, {sums}")
    print(f"median ms {median(b['ms'] for b in steady)}, rows a batch {median(b['rows'] for b in steady)}")
    seconds = [batch["ms"] / 1_000 for batch in steady]
    for what, sizes in {"state": state, "chunk files": cached, "seconds": seconds}.items():
        print(f"{what}: medians of the quarters {_quarters(sizes)}, most {max(sizes)}")
    print({what: (median(found), max(found)) for what, found in shares.items()})
    assert found["error"] is None
    assert sums["stream"] == sums["batch"]
    assert sum(batch["late_rows"] for batch in batches) == 0
    for sizes in (state, cached, seconds):
        assert _quarters(sizes)[3] <= 1.2 * _quarters(sizes)[1]
    assert max(shares["read"]) <= 0.1
    assert median(shares["written"]) <= 1.5


def _quarters(sizes: list[Any]) -> list[float]:
    size = len(sizes) // 4
    return [median(sizes[place * size : (place + 1) * size]) for place in range(4)]
