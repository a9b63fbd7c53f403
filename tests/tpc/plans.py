"""Plans of the benchmarks' queries from the types of their tables alone, each made once for all tests."""

from __future__ import annotations

from functools import cache

from sqlext_planner.config import Config

from sqlext.run.pipeline import StagedPlan, stage
from sqlext.tpc import BENCHMARKS


@cache
def planned(name: str, number: int) -> StagedPlan:
    """The query at every stage."""
    benchmark = BENCHMARKS[name]
    return stage(benchmark.query(number), benchmark.catalog(), Config())
