"""The tests under a version of Spark: which of them every version runs, what counts as refused, what came of each.

``every_spark("windows")`` marks a central statement of a feature, which each version runs or refuses in one sentence
(of a test with parameters, the first case);
``spark_since("4.1", "why")`` a test that needs a newer Spark than the oldest.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from sqlext_planner.errors import SqlExtError
from sqlext_planner.spark.versions import spark_version

from tests.spark_versions.older import complete

_FEATURE = "feature"
#: What PySpark itself warns about, before a version.
_SPARKS_WARNINGS = (
    ((4, 2), "unclosed <socket:ResourceWarning"),
    ((4, 0), "The distutils package:DeprecationWarning"),
    ((4, 0), "distutils Version classes:DeprecationWarning"),
    ((4, 0), "is_datetime64tz_dtype is deprecated:DeprecationWarning"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-spark", action="store_true", help="only the tests that every version of Spark runs")
    parser.addoption("--outcomes", type=Path, metavar="FILE", help="write what came of these tests, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """What the tests use (3.5 lacks some of it), no errors for PySpark's own open sockets (up to 4.1)."""
    file = config.getoption("--outcomes")
    if file is not None and not hasattr(config, "workerinput"):  # a worker of pytest-xdist tells its starter
        config.pluginmanager.register(_Outcomes(file))
    complete()
    for before, warning in _SPARKS_WARNINGS:
        if spark_version() < before:
            config.addinivalue_line("filterwarnings", f"ignore:{warning}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a newer Spark, and with --every-spark what is not marked so."""
    for item in items:
        for mark in item.iter_markers("spark_since"):
            version, reason = mark.args
            if spark_version() < tuple(map(int, version.split("."))):
                item.add_marker(pytest.mark.skip(reason=f"needs Spark {version}: {reason}"))
        item.user_properties.extend((_FEATURE, feature) for feature in _features(item))
    if config.getoption("--every-spark"):
        central = list(_central(items))
        config.hook.pytest_deselected(items=[item for item in items if item not in central])
        items[:] = central


def _central(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """The first case of each marked test."""
    seen = set()
    for item in items:
        test = item.nodeid.partition("[")[0]
        if item.get_closest_marker("every_spark") and test not in seen:
            seen.add(test)
            yield item


def _features(item: pytest.Item) -> Iterator[str]:
    for mark in item.iter_markers("every_spark"):
        yield from mark.args


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that an older Spark cannot run, as our own error says, is skipped with that error as its reason.

    Every version has the features over tables: a refusal there is a failure.
    """
    report = yield
    refusal = None if call.excinfo is None else _refusal(call.excinfo.value)
    features = list(_features(item))
    may_refuse = not features or any("streams" in feature for feature in features)
    if refusal is not None and may_refuse and spark_version() < (4, 1):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), item.location[1] or 0, f"refused: {refusal}")
        item.add_marker("tidied")  # it ended in the middle
    return report


def _refusal(error: BaseException | None) -> str | None:
    while error is not None:
        if isinstance(error, SqlExtError) and error.condition == "spark-version":
            return error.message
        error = error.__cause__
    return None


class _Outcomes:
    """What came of each test with a feature: the worst of its setup, call and teardown."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._found: dict[str, dict[str, object]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        features = [str(value) for name, value in report.user_properties if name == _FEATURE]
        worse = report.outcome != "passed" or report.nodeid not in self._found
        if features and worse:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._found[report.nodeid] = {
                "features": features,
                "outcome": report.outcome,
                "reason": reason.removeprefix("Skipped: "),
            }

    def pytest_sessionfinish(self) -> None:
        self._file.write_text(json.dumps(self._found, indent=1))
