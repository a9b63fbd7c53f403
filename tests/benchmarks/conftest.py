"""Spark as it ships for the benchmarks' tests: they run the plain queries of the other contestants over many rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.quick_spark import INTERPRETED

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Suites make views and change settings, as they may in a process of their own."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.tidied)


@pytest.fixture(autouse=True)
def compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Spark's own operators are compiled, if the test uses Spark."""
    if "spark" not in request.fixturenames:
        yield
        return
    spark = request.getfixturevalue("spark")
    before = {key: spark.conf.get(key) for key in INTERPRETED}
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    yield
    for key, value in before.items():
        spark.conf.set(key, str(value))
