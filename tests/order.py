"""No test may lean on the order: files run in any order, and what a test leaves changed for others is noticed."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.leaks import STARTED, Watch

_FOUND = pytest.StashKey[list[tuple[str, str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle-files", type=int, metavar="SEED", help="run the files of tests in another order")
    parser.addoption(
        "--leaks",
        choices=("tell", "fail"),
        default="fail",
        help="if a test leaves something changed that others share: undo it and fail the test, or say so at the end",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_FOUND] = []
    if config.getoption("--shuffle-files") is not None:
        config.option.loadscopereorder = False  # pytest-xdist would sort the files by their numbers of tests


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The order of the files by --shuffle-files; that of the tests in a file stays."""
    seed = config.getoption("--shuffle-files")
    if seed is not None:
        files = sorted({item.path for item in items})
        random.Random(seed).shuffle(files)
        places = {path: place for place, path in enumerate(files)}
        items.sort(key=lambda item: places[item.path])


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Notices what a test leaves changed for those after it, or puts it back (`tidied`). 1 ms a test."""
    mark = request.node.get_closest_marker("tidied")
    if mark is not None and mark.args == ("file",):
        yield
    else:
        yield from _watched(request, "this test leaves")


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_by_fixtures(request: pytest.FixtureRequest) -> Iterator[None]:
    """The same for what the fixtures of a file make and have to remove."""
    yield from _watched(request, "the fixtures of this file leave")


def _watched(request: pytest.FixtureRequest, who: str) -> Iterator[None]:
    stash = request.config.stash
    started = stash.get(STARTED, None)
    watch = Watch(started)
    yield
    if started is None and STARTED in stash:  # what Spark's start leaves is for all tests
        return
    if request.node.get_closest_marker("tidied"):
        watch.put_back_spark()
    found = watch.leaks()
    if not found:
        return
    text = f"{who} changed what others share: {'; '.join(found)}"
    if request.config.getoption("--leaks") == "fail":
        watch.put_back()
        pytest.fail(text, pytrace=False)
    stash[_FOUND].append((request.node.nodeid, text))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist tells the process that started it."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["leaks"] = session.config.stash[_FOUND]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    node.config.stash[_FOUND].extend((test, text) for test, text in getattr(node, "workeroutput", {}).get("leaks", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """A line for each file with tests that leave something."""
    files = defaultdict(list)
    for test, text in config.stash[_FOUND]:
        files[test.partition("::")[0]].append(text)
    if files:
        terminalreporter.section("changed for other tests")
    for file, texts in sorted(files.items()):
        terminalreporter.write_line(f"{file}: {len(texts)} times; {texts[0][:300]}")
