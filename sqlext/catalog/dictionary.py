"""Catalogs without Spark: what all of them answer, and one of schemas given by hand."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlext_planner.catalog import KeyStatistics, TableInfo
from sqlext_planner.errors import ConfigurationError, SqlExtError
from sqlext_planner.expressions.types import normalize

from sqlext.catalog.locations import last_part

if TYPE_CHECKING:
    import pyarrow as pa


class CatalogWithoutSpark:
    """What a catalog answers where there is no Spark to ask."""

    def table_bytes(self, name: str) -> int | None:
        """None: what is known is already in `table`."""
        return None

    def cores(self) -> int:
        """The cores of this machine."""
        return os.cpu_count() or 1

    def stream_obstacle(self) -> str | None:
        """None: there is no Spark to ask."""
        return None

    def placing_obstacle(self) -> str | None:
        """None: there is no Spark to ask."""
        return None

    def query_columns(self, sql: str) -> tuple[tuple[str, str], ...] | None:
        """None: there is no Spark to ask."""
        return None

    def query_is_streaming(self, sql: str) -> bool:
        """False: queries that only Spark knows are not planned here."""
        return False

    def judge(self, sql: str) -> None:
        """Nothing: there is no Spark here."""

    def current_database(self) -> str | None:
        """None: the tables are in no database."""
        return None

    def has_function(self, name: str) -> bool:
        """False: there is no Spark to register one in."""
        return False


class DictCatalog(CatalogWithoutSpark):
    """Tables as ``{"orders": {"id": "int", "ts": "timestamp"}}``, for planning without data.

    Names are found ignoring case, also by their last part. `streams` are the names of the streaming tables. Raises
    ConfigurationError for text that is not a Spark type.
    """

    def __init__(self, tables: Mapping[str, Mapping[str, str]], streams: Collection[str] = ()) -> None:
        self._tables: dict[str, TableInfo] = {}
        for name, columns in tables.items():
            fields = tuple((column, _type(name, column, dtype)) for column, dtype in columns.items())
            self._tables[name.lower()] = TableInfo(name, fields, is_streaming=name in streams)

    def table(self, name: str) -> TableInfo | None:
        """The table called `name`, or called like its last part."""
        lowered = name.lower()
        return self._tables.get(lowered) or self._tables.get(last_part(lowered))

    def key_statistics(self, name: str, columns: Sequence[str]) -> KeyStatistics | None:
        """None: there is no data."""
        return None

    def key_sample(
        self, name: str, columns: Sequence[str], rows: int, read: int = 0, spread: str | None = None
    ) -> pa.Table | None:
        """None: there is no data."""
        return None

    def tables(self) -> tuple[str, ...]:
        """All names."""
        return tuple(info.name for info in self._tables.values())


def _type(table: str, column: str, dtype: str) -> str:
    try:
        return normalize(dtype)
    except SqlExtError as error:
        raise ConfigurationError(
            f"column '{column}' of table '{table}' has no Spark type: {error.message}",
            condition="unknown-type",
            help=error.help,
        ) from None
