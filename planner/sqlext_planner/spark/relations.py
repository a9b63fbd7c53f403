"""The relations of Spark whose files hold exactly their rows, so that others than Spark may read the files.

This is a list of what is known, not of exceptions: the files of a Delta table hold rows that the table does not have
and names that are not its columns', as may those of any relation that comes from a package or a later Spark. Whatever
is not listed here, in each of its parts, is Spark's to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlext_planner.spark.plans import CATALOG_INDEX, FILE_INDEX, class_name

_SOURCES = "org.apache.spark.sql.execution.datasources"
_LEAF = f"{_SOURCES}.LogicalRelation"
_RELATION = f"{_SOURCES}.HadoopFsRelation"


@dataclass(frozen=True)
class KnownRelation:
    """Files that Spark's own reader of a format reads one by one, every row of each.

    `file_format` is the class of the reader, itself: a subclass does more. `indexes` are the classes that list files by
    their folders alone, or by the partitions that the catalog has; `providers` what a table in Spark's catalog says of
    itself (None for files without a table), `options` those that do not change how a file is read.
    """

    file_format: str
    indexes: frozenset[str]
    providers: frozenset[str | None]
    options: frozenset[str]


KNOWN_RELATIONS = (
    KnownRelation(
        f"{_SOURCES}.parquet.ParquetFileFormat",
        frozenset({FILE_INDEX, CATALOG_INDEX}),
        frozenset({None, "parquet", "hive"}),  # of Hive's tables, those that Spark reads itself
        frozenset({"", "path", "paths", "basepath", "serialization.format"}),
    ),
)


class NotPlainError(Exception):
    """Why nobody but Spark may read what a frame reads: the end of a sentence that begins with "Spark, since"."""


def known_files(leaf: Any) -> Any:
    """The relation of files behind a plan's leaf, if it is one of KNOWN_RELATIONS. Raises NotPlainError."""
    relation = files_of(leaf)
    if relation is None:
        raise NotPlainError(f"{_part_of(leaf)} is not known to be files that hold exactly its rows")
    reader, index, provider = _class(relation.fileFormat()), _class(relation.location()), provider_of(leaf)
    fitting = [known for known in KNOWN_RELATIONS if known.file_format == reader]
    if not fitting:
        raise NotPlainError(f"{reader} may give other rows than those of the files")
    fitting = [known for known in fitting if index in known.indexes]
    if not fitting:
        raise NotPlainError(f"{index} may list files that hold other rows than the table")
    fitting = [known for known in fitting if provider in known.providers]
    if not fitting:
        raise NotPlainError(f"a table of {provider} may have other rows than its files")
    options = set(str(relation.options().keys().mkString("\0")).lower().split("\0"))
    unknown = options - fitting[0].options
    if unknown:
        raise NotPlainError(f"option {sorted(unknown)[0]} may change how the files are read")
    return relation


def files_of(leaf: Any) -> Any | None:
    """The relation of files, of any format, behind a plan's leaf; None for any other leaf."""
    if _class(leaf) != _LEAF:
        return None
    relation = leaf.relation()
    return relation if _class(relation) == _RELATION else None


def is_file_index(location: Any) -> bool:
    """Whether Spark lists files by their folders, or by the partitions that its catalog has."""
    return _class(location) in (FILE_INDEX, CATALOG_INDEX)


def provider_of(leaf: Any) -> str | None:
    """What a table of Spark's catalog says of its format; None for anything else."""
    table = leaf.catalogTable()
    return None if table.isEmpty() or table.get().provider().isEmpty() else str(table.get().provider().get()).lower()


def _part_of(leaf: Any) -> str:
    """The class that tells most of a leaf that is no relation of files."""
    kind = class_name(leaf)
    if kind == "LogicalRelation":
        return _class(leaf.relation())
    if kind in ("DataSourceV2Relation", "DataSourceV2ScanRelation"):
        relation = leaf.relation() if kind == "DataSourceV2ScanRelation" else leaf
        return _class(relation.table())
    return kind


def _class(item: Any) -> str:
    return str(item.getClass().getName())
