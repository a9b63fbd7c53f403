"""From Kafka to Delta for a long time: nothing is lost, the query keeps up, and its state levels off."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median

import pytest

from sqlext import stream_settings
from tests.connectors.broker import Broker
from tests.connectors.jars import classpath, spark_settings
from tests.connectors.kafka_cases import STATEMENTS
from tests.faults.harness import Driver

pytestmark = pytest.mark.slow

#: `SQLEXT_SOAK=60` makes it short.
SECONDS = float(os.environ.get("SQLEXT_SOAK") or 1_200)
#: Messages a second, half of them in each topic.
RATE = 20_000


def test_lag_and_state_level_off(tmp_path: Path) -> None:
    conf = {
        **stream_settings(cores=2),
        **spark_settings("kafka", "delta"),
        "spark.sql.streaming.numRecentProgressUpdates": "5000",
    }
    with (
        Broker(tmp_path / "broker", classpath("broker")) as broker,
        Driver("local[2]", tmp_path / "driver", conf) as driver,
    ):
        request = {"address": broker.address, "sql": STATEMENTS["window"], "out": str(tmp_path / "out")}
        load = {"seconds": SECONDS, "rate": RATE}
        found = driver.run("tests.connectors.probes.soak", **request, **load, within=SECONDS + 600)
        sums = driver.run("tests.connectors.probes.soak_sums", **request, within=900)
    batches = found["batches"]
    quarter = len(batches) // 4
    assert found["error"] is None
    medians = {
        what: [median(batch[what] for batch in batches[place * quarter : (place + 1) * quarter]) for place in range(4)]
        for what in ("rows", "seconds", "behind", "state_bytes")
    }
    print(f"{len(batches)} micro-batches, {sum(batch['rows'] for batch in batches)} messages; {medians}; {sums}")
    assert sums["stream"] == sums["batch"]
    assert sums["stream"][0] == sums["stream"][1]
    assert sum(batch["rows"] for batch in batches) >= 0.9 * SECONDS * RATE
    for what in ("seconds", "state_bytes"):
        assert medians[what][3] <= 1.2 * medians[what][1]
    assert medians["behind"][3] <= max(1.2 * medians["behind"][1], 2 * RATE)
