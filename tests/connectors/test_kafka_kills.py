"""From Kafka to Delta, with brokers and drivers that are killed: every row is in the table once, and is batch's."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from sqlext import stream_settings
from tests.connectors.broker import Broker
from tests.connectors.jars import classpath, spark_settings
from tests.connectors.kafka_cases import STATEMENTS
from tests.faults.harness import Driver
from tests.faults.streaming import committed, wait_for_commit

pytestmark = pytest.mark.slow

#: `SQLEXT_KILLS=4` makes them fewer. A broker is killed half as often.
KILLS = int(os.environ.get("SQLEXT_KILLS", "10"))
#: Messages of each topic, and at most so many in a micro-batch: more micro-batches than there is time for.
COUNT, MOST = 1_500 * KILLS, 50


@pytest.mark.parametrize("name", STATEMENTS)
def test_rows_are_in_the_table_once(tmp_path: Path, name: str) -> None:
    rng = random.Random(name)
    conf = {**stream_settings(cores=2), **spark_settings("kafka", "delta")}
    events = ["driver"] * KILLS + ["broker"] * (KILLS // 2)
    rng.shuffle(events)
    stopped = 0
    with Broker(tmp_path / "broker", classpath("broker")) as broker:
        request = {"address": broker.address, "sql": STATEMENTS[name], "out": str(tmp_path / "out")}
        checkpoint = tmp_path / "out" / "checkpoint"
        driver = Driver("local[2]", tmp_path / "driver", conf)
        driver.run("tests.connectors.probes.send", address=broker.address, count=COUNT)
        driver.run("tests.connectors.probes.start", **request, most=MOST)
        for number, event in enumerate(events):
            wait_for_commit(checkpoint, 120)
            time.sleep(rng.uniform(0, 3))
            if event == "broker":
                broker.kill()
                time.sleep(rng.uniform(0, 5))
                broker.start()
                if driver.run("tests.connectors.probes.is_running")["active"]:
                    continue
                stopped += 1
            driver.kill()
            driver = Driver("local[2]", tmp_path / f"driver{number}", conf)
            driver.run("tests.connectors.probes.start", **request, most=MOST)
        wait_for_commit(checkpoint, 120)
        driver.kill()
        behind = committed(checkpoint)
        print(f"{name}: {behind} micro-batches at the last kill; stopped by a killed broker: {stopped}")
        assert len(events) // 2 < behind < COUNT // MOST, "kills came too early, or after the end"
        with Driver("local[2]", tmp_path / "last", conf) as last:
            last.run("tests.connectors.probes.start", **request, most=100 * MOST, to_the_end=True)
            assert "error" not in last.run("tests.connectors.probes.await_end")
            found = last.run("tests.connectors.probes.compare", **request)
    assert (found["equal"], found["doubled"]) == (True, 0)
    assert found["rows"] >= COUNT
