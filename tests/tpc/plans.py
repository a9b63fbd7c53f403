"""Plans of the benchmarks' queries from the types of their tables alone, each made once for all tests."""

from __future__ import annotations

from functools import cache

from sqlext_planner.config import Config

from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.pipeline import StagedPlan, stage
from sqlext.tpc import BENCHMARKS


@cache
def planned(name: str, number: int, *, streams: bool = False) -> StagedPlan:
    """The query at every stage, over tables or over streams of the same types."""
    benchmark = BENCHMARKS[name]
    catalog = DictCatalog(benchmark.tables, streams=tuple(benchmark.tables)) if streams else benchmark.catalog()
    return stage(benchmark.query(number), catalog, Config())
