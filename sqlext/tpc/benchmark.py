"""What each benchmark has: its queries, its tables, and the name of its generator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sqlext_planner.errors import ConfigurationError

from sqlext.catalog import DictCatalog
from sqlext.catalog.ddl import read_ddl


@dataclass(frozen=True)
class Benchmark:
    """One benchmark.

    name        `tpch` or `tpcds`: the name of the command, of DuckDB's extension and of the folder `NAME_queries`
    title       as people write it
    size        how many queries it has, numbered from 1
    generator   the function of DuckDB's extension that generates the tables
    """

    name: str
    title: str
    size: int
    generator: str

    @property
    def numbers(self) -> range:
        """The numbers of the queries."""
        return range(1, self.size + 1)

    @cached_property
    def folder(self) -> Path:
        """The folder of the texts: `NAME_queries` of the checkout, or its copy in the wheel."""
        root = Path(__file__).resolve().parent
        places = (root.parent.parent / f"{self.name}_queries", root / "queries" / self.name)
        folder = next((place for place in places if (place / "schema.sql").is_file()), None)
        if folder is None:
            raise ConfigurationError(
                f"the queries of {self.title} are not installed",
                condition="benchmark",
                help=f"looked in {' and '.join(map(str, places))}",
            )
        return folder

    @cached_property
    def tables(self) -> Mapping[str, Mapping[str, str]]:
        """``{"table": {"column": "spark type"}}``, in the order of the specification's columns."""
        return read_ddl((self.folder / "schema.sql").read_text(encoding="utf-8"))

    def catalog(self) -> DictCatalog:
        """The tables with their types only: enough for planning."""
        return DictCatalog(self.tables)

    def query(self, number: int) -> str:
        """The text of a query. Raises ConfigurationError for a number that does not exist."""
        if number not in self.numbers:
            raise ConfigurationError(
                f"{self.title} has no query {number}",
                condition="benchmark",
                help=f"its queries are 1 to {self.size}, as in --queries 3,5",
            )
        return (self.folder / f"q{number:02}.sql").read_text(encoding="utf-8")

    def cache(self, scale: float) -> Path:
        """Where generated tables of this scale are kept: `~/.cache/sqlext/NAME-SCALE`, below XDG_CACHE_HOME if set."""
        home = os.environ.get("XDG_CACHE_HOME")
        return (Path(home) if home else Path.home() / ".cache") / "sqlext" / f"{self.name}-{scale:g}"


BENCHMARKS: Mapping[str, Benchmark] = {
    "tpch": Benchmark("tpch", "TPC-H", 22, "dbgen"),
    "tpcds": Benchmark("tpcds", "TPC-DS", 99, "dsdgen"),
}
