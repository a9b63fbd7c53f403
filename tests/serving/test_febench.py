"""FEBench's six scripts as deployments: rows are asked in the order of their times, and compared with batch."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from sqlext_planner.spark.session import active_kept

from benchmarks.features import SCRIPTS
from benchmarks.features_contestants import script
from sqlext import Session
from sqlext.serving.verify import verify

ROWS, ASKED = 300, 25


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", list(SCRIPTS))
def test_answers_of_a_script_are_those_of_batch(spark: SparkSession, name: str) -> None:
    with active_kept(spark):
        check(Session(spark.newSession(), compat="openmldb"), name)


def check(session: Session, name: str) -> None:
    for table, rows in SCRIPTS[name].generator(ROWS).tables().items():
        session.spark.createDataFrame(rows).coalesce(1).createOrReplaceTempView(table)
    deployment = session.deploy(script(name)[-1], lateness=None)
    found = verify(session, deployment, ASKED)
    assert (found.rows, found.differences) == (ASKED, [])
