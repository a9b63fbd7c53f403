"""What each benchmark has: its queries, its tables, and the name of its generator. DuckDB's generator makes the tables
as Parquet files."""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlext_planner.errors import ConfigurationError

from sqlext.catalog import DictCatalog
from sqlext.catalog.ddl import read_ddl

if TYPE_CHECKING:
    import duckdb

_benchmark_error = partial(ConfigurationError, condition="benchmark")


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
            raise _benchmark_error(
                f"the queries of {self.title} are not installed", help=f"looked in {' and '.join(map(str, places))}"
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
            raise _benchmark_error(
                f"{self.title} has no query {number}", help=f"its queries are 1 to {self.size}, as in --queries 3,5"
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


#: Records what a folder holds; written last, so a folder with it is complete. Hidden: it is not a table.
MARKER = ".sqlext-tpc.json"
#: Above this DuckDB keeps generated rows in the temporary database on disk. Scale 1 of either benchmark fits.
MEMORY_LIMIT = "2GB"
ROW_GROUP_ROWS = 250_000

#: Called for each step: with the rows of a finished table, with None for the generator's own work.
Report = Callable[[str, int | None], None]


@dataclass(frozen=True)
class Generated:
    """What a folder holds: the benchmark's name, the scale, the generator with its version, rows by table."""

    benchmark: str
    scale: float
    generator: str
    rows: dict[str, int]


def connect(benchmark: Benchmark, database: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A DuckDB with the benchmark's extension, in memory or in a file. Downloads nothing.

    Raises ConfigurationError if a package is not installed, or not for this version of DuckDB.
    """
    package = f"duckdb_extension_{benchmark.name}"
    spec = importlib.util.find_spec(package)
    if importlib.util.find_spec("duckdb") is None or spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            f"{benchmark.title} needs the packages duckdb and {package.replace('_', '-')}",
            condition="missing-package",
            help="pip install 'sql-for-time-on-spark[tpc]'",
        )
    import duckdb

    version = f"v{duckdb.__version__}"
    file = Path(spec.submodule_search_locations[0], "extensions", version, f"{benchmark.name}.duckdb_extension")
    if not file.is_file():
        raise ConfigurationError(
            f"{package.replace('_', '-')} has no extension for DuckDB {version}",
            condition="missing-package",
            help="install both in the same version: pip install 'sql-for-time-on-spark[tpc]'",
        )
    connection = duckdb.connect(
        str(database) if database is not None else ":memory:", config={"autoinstall_known_extensions": "false"}
    )
    connection.execute("SET enable_progress_bar = false")  # ours is on the terminal
    connection.execute(f"LOAD '{_quoted(file)}'")
    return connection


def generated(folder: Path) -> Generated | None:
    """What an earlier `generate` wrote to the folder; None if none did, or if one of its tables is gone.

    Raises ConfigurationError for a marker file that `generate` did not write.
    """
    try:
        earlier = Generated(**json.loads((folder / MARKER).read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError) as error:
        raise _benchmark_error(
            f"{folder / MARKER} was not written by `generate`", help="remove the folder, or give another one"
        ) from error
    return earlier if all((folder / f"{table}.parquet").is_file() for table in earlier.rows) else None


def generate(benchmark: Benchmark, scale: float, folder: Path, report: Report) -> Generated:
    """Make `TABLE.parquet` in the folder for every table, with the types of the schema; does nothing if they exist.

    Memory is bounded by MEMORY_LIMIT: rows above it go to a temporary database in the folder. Raises
    ConfigurationError if the folder holds tables of another scale or benchmark, or files that are not generated.
    """
    known = generated(folder)
    if known is not None:
        if (known.benchmark, known.scale) == (benchmark.name, scale):
            return known
        raise _benchmark_error(
            f"{folder} already contains {known.benchmark} at scale {known.scale:g}",
            help="give another folder as --data",
        )
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MARKER).exists():
        _refuse_tables(folder)
    with tempfile.TemporaryDirectory(prefix=".generating-", dir=folder) as work:
        with connect(benchmark, Path(work, "tables.duckdb")) as connection:
            connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
            connection.execute(f"SET temp_directory = '{_quoted(Path(work))}'")
            report(f"{benchmark.generator} at scale {scale:g}", None)
            connection.execute(f"CALL {benchmark.generator}(sf = {scale!r})")
            rows = {table: _write(connection, benchmark, table, Path(work), report) for table in benchmark.tables}
            import duckdb

            done = Generated(benchmark.name, scale, f"duckdb {duckdb.__version__} {benchmark.generator}", rows)
        for table in rows:
            Path(work, f"{table}.parquet").replace(folder / f"{table}.parquet")
    (folder / MARKER).write_text(json.dumps(asdict(done), indent=2) + "\n", encoding="utf-8")
    return done


def _refuse_tables(folder: Path) -> None:
    """Raises ConfigurationError for other files in the folder: they would be mixed up with ours, or lost."""
    found = next((path for path in sorted(folder.iterdir()) if not path.name.startswith(".")), None)
    if found is not None:
        raise _benchmark_error(
            f"{folder} is not empty, and `generate` did not fill it: it contains {found.name}",
            help="give a new folder as --data",
        )


def _write(
    connection: duckdb.DuckDBPyConnection, benchmark: Benchmark, table: str, folder: Path, report: Report
) -> int:
    """Write one table, cast to the types of the schema (the generator's integers are wider); returns its row count."""
    columns = ", ".join(
        f"CAST({name} AS {'VARCHAR' if kind.lower() == 'string' else kind}) AS {name}"
        for name, kind in benchmark.tables[table].items()
    )
    connection.execute(
        f"COPY (SELECT {columns} FROM {table}) TO '{_quoted(folder / f'{table}.parquet')}' "
        f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
    )
    row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert row is not None
    report(table, row[0])
    return int(row[0])


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
