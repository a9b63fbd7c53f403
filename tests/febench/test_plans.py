"""FEBench's feature queries plan as they are written, without Spark: which operators, how many exchanges."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlext_planner.config import Config
from sqlext_planner.last_join.nodes import LastJoin
from sqlext_planner.window.nodes import WindowUnion

from sqlext.catalog import DictCatalog
from sqlext.run.pipeline import stage

from .scripts import QUERIES, read_script

Shared = Callable[[str], Path]


@dataclass(frozen=True)
class Operators:
    """Each is one exchange at most: the right sides of each LAST JOIN, and the (sources, windows, calls) of each
    window union."""

    last_joins: tuple[int, ...]
    windows: tuple[tuple[int, int, int], ...]


#: Q1's ten windows are of two partitionings; Q3's eight windows need three exchanges and its seven LAST JOINs three; Q4
#: reads nothing of two of its nine LAST JOINs, the others share one exchange; Q5's ten need five.
EXPECTED = {
    0: Operators((), ((0, 2, 8),)),
    1: Operators((), ((0, 4, 7), (0, 6, 9))),
    2: Operators((8,), ()),
    3: Operators((1, 2, 4), ((0, 1, 2), (1, 1, 1), (1, 6, 58))),
    4: Operators((7,), ((0, 1, 2), (1, 1, 1), (1, 1, 7), (1, 2, 6), (1, 2, 13), (1, 2, 14), (1, 2, 21), (1, 2, 43))),
    5: Operators((1, 1, 1, 2, 5), ()),
}

#: Result columns of each query.
WIDTHS = {0: 49, 1: 27, 2: 45, 3: 117, 4: 263, 5: 661}


@pytest.mark.parametrize("number", QUERIES)
def test_operators_of_a_script(shared: Shared, number: int) -> None:
    script = read_script(shared, number)
    started = time.perf_counter()
    plan = stage(script.sql, DictCatalog(script.schemas), Config(), "openmldb")
    assert time.perf_counter() - started < 10
    assert plan.optimized is not None
    nodes = list(plan.optimized.walk())
    found = Operators(
        tuple(sorted(len(node.rights) for node in nodes if isinstance(node, LastJoin))),
        tuple(
            sorted(
                (len(node.unions), len(node.windows), sum(len(window.calls) for window in node.windows))
                for node in nodes
                if isinstance(node, WindowUnion)
            )
        ),
    )
    assert found == EXPECTED[number]
    assert len(plan.optimized.output_columns) == WIDTHS[number]
    used = {"LastJoinExec": found.last_joins, "WindowUnionExec": found.windows}
    assert set(plan.extensions) == {name for name, nodes in used.items() if nodes}
