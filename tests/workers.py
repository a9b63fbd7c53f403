"""Which worker runs which files: kernels are compiled once, not once for each worker.

In a fresh clone nothing is compiled yet. Tests of one feature call the same kernels, so a worker goes on with the
features that it has begun, and takes those of others only when nothing else is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from xdist.scheduler.loadfile import LoadFileScheduling

#: Files whose tests call the kernels of a feature. What early answers compute stands on windows and joins.
_FEATURE = re.compile(r"tests/(?:operators|planner)/(?:early_)?(\w+)/")


def feature_of(file: str) -> str | None:
    """The feature whose kernels a file of tests calls; None where it calls few or none."""
    found = _FEATURE.match(file)
    return found[1].removesuffix("s") if found else None


def next_file(files: Iterable[str], begun: dict[str, Any], worker: Any) -> str:
    """The file that a worker runs next, and in `begun` who has begun its feature."""

    def distance(file: str) -> int:
        feature = feature_of(file)
        if feature not in begun:
            return 1
        return 0 if begun[feature] is worker else 2

    chosen = min(files, key=distance)
    feature = feature_of(chosen)
    if feature is not None:
        begun.setdefault(feature, worker)
    return chosen


class FeatureScheduling(LoadFileScheduling):
    """``--dist loadfile``, where a worker prefers the files of features that it has begun."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._begun: dict[str, Any] = {}

    def _assign_work_unit(self, node: Any) -> None:
        self.workqueue.move_to_end(next_file(self.workqueue, self._begun, node), last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return FeatureScheduling(config, log) if config.getoption("dist") == "loadfile" else None
