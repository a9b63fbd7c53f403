"""Copies of the rows of tables in plain Parquet, which our operators read themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pyspark.sql import SparkSession


class Copies:
    """Temporary views of copies, until the block ends."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder
        self._names: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._names:
            self._spark.catalog.dropTempView(name)

    def of(self, table: str) -> str:
        """The name of a view of the same rows; `table` is what may stand in FROM."""
        name = f"plain_{len(self._names)}"
        self._names.append(name)
        path = str(self._folder / name)
        self._spark.sql(f"SELECT * FROM {table}").coalesce(1).write.parquet(path)
        self._spark.read.parquet(path).createOrReplaceTempView(name)
        return name
