"""What planning needs to know about tables; implementations live where the tables are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class TableInfo:
    """A table's schema and what is known about its size.

    `columns` pairs names with Spark simple type strings. `paths` and `format` are set where the table is plain
    files (`parquet`, `csv`); `rows` and `bytes` are None where unknown (bytes are uncompressed estimates).
    `is_streaming` says that reading the table gives a stream, even where a view hides that; `watermark` is the column
    that has its watermark, with the delay in milliseconds. `inferred_doubles` are the columns that are DOUBLE because
    values of text look so: what is text there may be equal here. `left_to_spark` asks a running Spark why nobody else
    may read the table; it answers None for files that hold exactly the table's rows.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    format: str | None = None
    paths: tuple[str, ...] = ()
    rows: int | None = None
    bytes: int | None = None
    is_streaming: bool = False
    watermark: tuple[str, int] | None = None
    inferred_doubles: tuple[str, ...] = ()
    left_to_spark: Callable[[], str | None] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class KeyStatistics:
    """What is known about a table's columns without reading it: the table's rows and, for each column, how many values
    it has: from Spark's column statistics, or from the range of dense integers and dates (None for others)."""

    rows: int
    distinct: tuple[int | None, ...]


#: The metadata of a key sample that tell how many rows the table has.
SAMPLED_ROWS = b"sqlext.rows"


def sampled_rows(sample: pa.Table) -> int | None:
    """The rows of the table that a key sample was taken from, if it tells."""
    text = (sample.schema.metadata or {}).get(SAMPLED_ROWS)
    return None if text is None else int(text)


@dataclass(frozen=True)
class Judgement:
    """The result of Spark's analysis of a query: its columns with their types, or the error condition of its refusal.

    `sentence` and `help` are Spark's words; `place` is the part of the query that they are about, if Spark says so.
    `cause` is Spark's own error.
    """

    columns: tuple[tuple[str, str], ...] = ()
    refusal: str | None = None
    sentence: str = ""
    help: str = ""
    place: tuple[int, int] | None = None
    cause: Exception | None = field(default=None, compare=False, repr=False)


class Catalog(Protocol):
    """Finds tables by name, in a JVM or without one."""

    def table(self, name: str) -> TableInfo | None:
        """The table called `name` (as written, parts joined by dots, case-insensitive); None if there is none."""

    def table_bytes(self, name: str) -> int | None:
        """An estimate of a table's bytes if its `TableInfo` has none; called only where a plan depends on it."""

    def key_statistics(self, name: str, columns: Sequence[str]) -> KeyStatistics | None:
        """Statistics of plain Parquet files or of ANALYZE TABLE; None without. Called only if a plan depends on it."""

    def key_sample(
        self, name: str, columns: Sequence[str], rows: int, read: int = 0, spread: str | None = None
    ) -> pa.Table | None:
        """About `rows` rows from all over a table of plain Parquet files; None for any other table.

        They are from as many row groups as hold `read` rows, or from fewer than that if `rows` are more. Values of the
        column `spread` are spread over the ranges of the row groups that were not read. The metadata of its schema say
        how many rows the table has (`sampled_rows`).
        """

    def cores(self) -> int:
        """How many tasks a query runs at a time, at least one. Called only where a plan depends on it."""

    def stream_obstacle(self) -> str | None:
        """Why Spark's version or settings do not suit the state of our operators over streams; None if they do, or
        where no Spark is at hand. Called only where a plan depends on it."""

    def placing_obstacle(self) -> str | None:
        """Why keys of a running stream cannot get other places; None if they can, or where no Spark is at hand."""

    def tables(self) -> tuple[str, ...]:
        """Names for suggestions."""

    def query_columns(self, sql: str) -> tuple[tuple[str, str], ...] | None:
        """Columns of a plain Spark query; None where only a running Spark could tell and none is at hand."""

    def query_is_streaming(self, sql: str) -> bool:
        """Whether a plain Spark query reads a stream; only for a query whose columns `query_columns` knows."""

    def judge(self, sql: str) -> Judgement | None:
        """What Spark says about a query, without running it; None where no Spark is at hand."""

    def current_database(self) -> str | None:
        """The database of names that are written without one; None where there are no databases."""

    def has_function(self, name: str) -> bool:
        """Whether Spark has a function `name`, built in or registered by the user."""
