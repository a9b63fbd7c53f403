"""The views that the statements read."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.spark_sql.corpus import QUERIES, statements

#: Tiny queries: compiling them would take most of the time.
SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture(scope="package")
def views(spark: SparkSession) -> Iterator[None]:
    """The views of queries/views.sql, and settings under which small queries run fast."""
    before = {key: spark.conf.get(key) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    made = []
    for sql in statements(QUERIES / "views.sql"):
        spark.sql(sql)
        made.append(re.search(r"VIEW (\w+)", sql))
    yield
    for name in made:
        if name is not None:
            spark.catalog.dropTempView(name[1])
    for key, old in before.items():
        if old is not None:
            spark.conf.set(key, old)
