"""Random histories of two tables of a lakehouse: rows come, change and go, and so do columns.

Both tables get the same changes of their columns, at the same steps, so that they stay alike. `ts` and `id` never
change, so that no answer depends on an order among equals.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.sql import SparkSession

TABLES = ("views", "orders")
#: Times are 1000 seconds and a place from here on, half a second later in the second table: no two rows have the same.
_PLACES = 997
_ROWS = (
    "SELECT id, CAST(id % 3 AS INT) AS k, CAST(id % 4 AS INT) AS g, "
    "timestamp_seconds({start} + id * 7 % {places}) AS ts, "
    "timestamp_seconds({start} + id * 7 % {places} + 1 + id % 11) AS te, CAST(id * {factor} % 50 AS {kind}) AS v "
    "FROM range({first}, {last})"
)


class Lakehouse(NamedTuple):
    """What differs between Delta and Iceberg. `create` needs the `key` that tells rows apart; `version` is the newest
    one of a table, for VERSION AS OF."""

    schema: str
    create: str
    compact: str
    version: Callable[[SparkSession, str], int]


def _delta_version(spark: SparkSession, table: str) -> int:
    return int(spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0].version)


def _iceberg_version(spark: SparkSession, table: str) -> int:
    history = spark.sql(f"SELECT snapshot_id FROM {table}.history WHERE is_current_ancestor ORDER BY made_current_at")
    return int(history.collect()[-1].snapshot_id)


MERGE_ON_READ = ", ".join(f"'write.{kind}.mode' = 'merge-on-read'" for kind in ("delete", "update", "merge"))
LAKEHOUSES = {
    "delta": Lakehouse(
        "shop",
        "USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name', "
        "'delta.enableTypeWidening' = 'true')",
        "OPTIMIZE {table}",
        _delta_version,
    ),
    "iceberg": Lakehouse(
        "ice.shop",
        f"USING iceberg PARTITIONED BY (bucket(3, {{key}})) TBLPROPERTIES ('format-version' = '2', {MERGE_ON_READ})",
        "CALL ice.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))",
        _iceberg_version,
    ),
}


@dataclass
class History:
    """A history of both tables, by a seed. `run` makes them and gives the versions that a table had after each step."""

    spark: SparkSession
    lakehouse: Lakehouse
    seed: int
    steps: int = 8
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._last = dict.fromkeys(TABLES, 0)
        self._kind = "INT"
        self._columns = 0

    def table(self, name: str) -> str:
        """The whole name of a table of this history."""
        return f"{self.lakehouse.schema}.{name}_{self.seed}"

    def run(self) -> list[tuple[int, int]]:
        """Versions of both tables after the first rows and after each step."""
        for name in TABLES:
            self._do(f"DROP TABLE IF EXISTS {self.table(name)}")
            self._do(
                f"CREATE TABLE {self.table(name)} {self.lakehouse.create.format(key='id')} AS {self._rows(name, 60)}"
            )
        versions = [self._versions()]
        for _ in range(self.steps):
            change = self._random.choices((self._of_rows, self._of_columns, self._compacted), (6, 3, 1))[0]
            for statement in change():
                self._do(statement)
            versions.append(self._versions())
        for statement in self._of_rows():  # the newest version has a snapshot of its own also after changes of columns
            self._do(statement)
        return [*versions, self._versions()]

    def drop(self) -> None:
        """Remove the tables."""
        for name in TABLES:
            self.spark.sql(f"DROP TABLE IF EXISTS {self.table(name)}")

    def _do(self, statement: str) -> None:
        self.told.append(statement)
        self.spark.sql(statement)

    def _versions(self) -> tuple[int, int]:
        first, second = (self.lakehouse.version(self.spark, self.table(name)) for name in TABLES)
        return first, second

    def _rows(self, name: str, most: int) -> str:
        """New rows of a table."""
        first = self._last[name]
        self._last[name] = last = first + self._random.randint(1, most)
        start = 1000 if name == TABLES[0] else 1000.5
        factor = self._random.randint(1, 40)
        return _ROWS.format(start=start, places=_PLACES, factor=factor, kind=self._kind, first=first, last=last)

    def _of_rows(self) -> Iterator[str]:
        for name in TABLES:
            yield self._random.choice((self._insert, self._delete, self._update, self._merge))(name)

    def _some(self, column: str = "id") -> str:
        divisor = self._random.randint(2, 9)
        return f"{column} % {divisor} = {self._random.randrange(divisor)}"

    def _insert(self, name: str) -> str:
        return f"INSERT INTO {self.table(name)} (id, k, g, ts, te, v) {self._rows(name, 30)}"

    def _delete(self, name: str) -> str:
        return f"DELETE FROM {self.table(name)} WHERE {self._some()}"

    def _update(self, name: str) -> str:
        change = self._random.choice(("v = v + 7", "k = g, g = k", "g = 1", "v = NULL", "k = 2, v = 3"))
        return f"UPDATE {self.table(name)} SET {change} WHERE {self._some()}"

    def _merge(self, name: str) -> str:
        known = self._random.randint(1, 20)
        new = self._rows(name, 15)
        source = (
            f"SELECT id, k, g, ts, te, CAST(v + 1 AS {self._kind}) AS v FROM {self.table(name)} "
            f"WHERE id % {known + 1} = 0 UNION ALL {new}"
        )
        return (
            f"MERGE INTO {self.table(name)} t USING ({source}) s ON t.id = s.id "
            f"WHEN MATCHED AND {self._some('s.id')} THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v, g = 3 "
            "WHEN NOT MATCHED THEN INSERT (id, k, g, ts, te, v) VALUES (s.id, s.k, s.g, s.ts, s.te, s.v)"
        )

    def _of_columns(self) -> Iterator[str]:
        change = self._random.choice(
            (self._replaced, self._swapped, self._emptied, self._added, self._widened, self._moved)
        )
        self._columns += 1
        for name in TABLES:
            for statement in change():
                yield f"ALTER TABLE {self.table(name)} {statement}"
        if change in (self._widened, self._emptied):
            self._kind = "BIGINT"

    def _replaced(self) -> Iterator[str]:
        """The files of before have a column of that name, with values that the table no longer has there."""
        yield f"RENAME COLUMN g TO g{self._columns}"
        yield "ADD COLUMN g INT"

    def _swapped(self) -> Iterator[str]:
        yield "RENAME COLUMN k TO other"
        yield "RENAME COLUMN g TO k"
        yield "RENAME COLUMN other TO g"

    def _emptied(self) -> Iterator[str]:
        yield "DROP COLUMN v"
        yield "ADD COLUMN v BIGINT"

    def _added(self) -> Iterator[str]:
        yield f"ADD COLUMN extra{self._columns} STRING"

    def _widened(self) -> Iterator[str]:
        yield "ALTER COLUMN v TYPE BIGINT"

    def _moved(self) -> Iterator[str]:
        yield "ALTER COLUMN v FIRST"

    def _compacted(self) -> Iterator[str]:
        for name in TABLES:
            yield self.lakehouse.compact.format(table=self.table(name).removeprefix("ice."))
