"""DataFrames that are nothing but Parquet files, which tasks may read without Spark.

What files are known to be the table is a list of what is known, not of exceptions: the files of a Delta table hold rows
that the table does not have and names that are not its columns', as may those of any relation that comes from a package
or a later Spark. Whatever is not listed here, in each of its parts, is Spark's to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlext_planner.spark.plans import (
    CATALOG_INDEX,
    FILE_INDEX,
    ProjectItem,
    attribute_ids,
    class_name,
    column_id,
    items_of,
    items_of_project,
    local_path,
    optimized_plan,
    plan_before_optimizer,
    texts_of,
)
from sqlext_planner.spark.session import settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlext_operators.exchange.parquet_scan import PartitionValue, ScanComparison, Source

#: The driver reads the footers, at about 1 ms a file.
MOST_FILES = 500
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


@dataclass(frozen=True)
class PlainScan:
    """A frame that is nothing but Parquet files: local paths by name, the frame's columns by the names
    they have in the files (POSITION for monotonically_increasing_id(), a Constant for a literal, a Partition for a
    partition column), and comparisons that all hold. `partitions` are the values of the partition columns for each
    path; empty if there are none."""

    paths: tuple[str, ...]
    columns: tuple[Source, ...]
    filters: tuple[ScanComparison, ...]
    partitions: tuple[tuple[PartitionValue, ...], ...] = ()


def plain_parquet_scan(frame: DataFrame) -> PlainScan | None:
    """The scan behind a frame that only selects, renames and compares columns of local Parquet files; None for every
    other frame."""
    try:
        return examined_scan(frame)
    except NotPlainError:
        return None


def why_only_spark(frame: DataFrame) -> str | None:
    """Why nobody but Spark may read what a frame reads, as the end of "Spark, since ..."; None if others may."""
    try:
        examined_scan(frame)
    except NotPlainError as error:
        return str(error)
    return None


def examined_scan(frame: DataFrame) -> PlainScan:
    """The scan behind a frame that only selects, renames and compares columns of local Parquet files.

    Works on the optimised plan, so that temporary views, tables of the catalog, `spark.read.parquet` and subqueries are
    alike. Spark itself evaluates conditions on partition columns: only files of partitions that hold them are listed.
    Raises NotPlainError for every other frame, for a relation that is not known to be exactly its files
    (KNOWN_RELATIONS), and where settings change how Spark reads files.
    """
    before = plan_before_optimizer(frame)
    if before is None:
        raise NotPlainError("the files of a stream, or under Spark Connect, are not known to others")
    for leaf in items_of(before.collectLeaves()):
        if class_name(leaf) == "LogicalRelation" and files_of(leaf) is None:
            known_files(leaf)  # refuses it before Delta is asked for its files
    plan = optimized_plan(frame)
    scan = _scan_of(plan)
    known = settings(frame.sparkSession, (*PLAIN_SETTINGS, _FIELD_IDS))
    changed = changing_setting(known)
    if changed is not None:
        raise NotPlainError(f"setting {changed} changes how it reads Parquet")
    if known.get(_FIELD_IDS, "false").lower() != "false" and _has_field_ids(plan):
        raise NotPlainError(f"setting {_FIELD_IDS} makes it find columns by their ids")
    return scan


#: With it, which packages of a lakehouse turn on for a whole session, Spark finds a schema's columns by the ids in it.
_FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"


def _has_field_ids(plan: Any) -> bool:
    leaf = plan.collectLeaves().head()
    return "parquet.field.id" in str(leaf.relation().dataSchema().json())


#: Settings under which Spark's Parquet reader does more than read, with the value under which it only reads.
PLAIN_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
}


def reads_plainly(known: Mapping[str, str]) -> bool:
    """Whether Spark's reader only reads; `known` are those of PLAIN_SETTINGS that are set."""
    return changing_setting(known) is None


def changing_setting(known: Mapping[str, str]) -> str | None:
    """The first of PLAIN_SETTINGS that has another value than the plain one."""
    return next((key for key, plain in PLAIN_SETTINGS.items() if known.get(key, plain).lower() != plain), None)


def _scan_of(plan: Any) -> PlainScan:
    """Project(Filter(Project(...(relation)))) in any order and number, as long as all of it is plain."""
    kind = class_name(plan)
    if kind == "Filter":
        return _filtered(plan)
    if kind != "Project":
        if plan.children().isEmpty():
            return _relation_scan(plan, [])
        raise NotPlainError(f"what it reads is computed first ({kind})")
    below = _scan_of(plan.child())
    names: dict[int | None, Source] = dict(zip(attribute_ids(plan.child()), below.columns, strict=True))
    columns = [_scanned(plan, place, item, names) for place, item in enumerate(items_of_project(plan))]
    known = tuple(column for column in columns if column is not None)
    if len(known) < len(columns):
        raise NotPlainError("a column is computed from others")
    return replace(below, columns=known)


def _filtered(plan: Any) -> PlainScan:
    """The scan of a Filter: conditions on partition columns choose files, the others are comparisons."""
    terms = _terms(plan.condition())
    child = plan.child()
    if child.children().isEmpty():
        choosing = _partition_terms(child, terms)
        below = _relation_scan(child, [terms[place] for place in choosing])
        terms = [term for place, term in enumerate(terms) if place not in choosing]
    else:
        below = _scan_of(child)
    names: dict[int | None, Source] = dict(zip(attribute_ids(child), below.columns, strict=True))
    filters = [_filter_of(term, names) for term in terms]
    known = tuple(item for item in filters if item is not None)
    if len(known) < len(filters):
        raise NotPlainError("a condition is more than a comparison of a column")
    return replace(below, filters=below.filters + known)


def _terms(condition: Any) -> list[Any]:
    if class_name(condition) == "And":
        return _terms(condition.left()) + _terms(condition.right())
    return [condition]


def _partition_terms(leaf: Any, terms: Sequence[Any]) -> set[int]:
    """The places of the terms that only read partition columns of a relation."""
    from pyspark import SparkContext

    relation = files_of(leaf)
    names = set() if relation is None else set(texts_of(relation.partitionSchema().fieldNames()))
    if not names:
        return set()
    java: Any = SparkContext._jvm
    has_subquery = java.org.apache.spark.sql.catalyst.expressions.SubqueryExpression.hasSubquery
    found = set()
    for place, term in enumerate(terms):
        read = {str(column.name()) for column in items_of(term.references().toSeq())}
        if read and read <= names and term.deterministic() and not has_subquery(term):
            found.add(place)
    return found


#: Types whose literals are plain Python values.
_LITERAL_TYPES = {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string"}


def _scanned(plan: Any, place: int, item: ProjectItem, names: Mapping[int | None, Source]) -> Source | None:
    """What the item at a place of a projection reads from the files; None if it computes something."""
    from sqlext_operators.exchange.parquet_scan import POSITION, ScanConstant

    if item.source is not None:
        return names.get(item.source)
    if item.kind == "MonotonicallyIncreasingID":
        return POSITION
    literal = plan.projectList().apply(place).child() if item.kind == "Literal" else None
    if literal is None or literal.dataType().sql().lower() not in _LITERAL_TYPES:
        return None
    value = literal.value()
    return ScanConstant(value if isinstance(value, (bool, int, float, type(None))) else str(value))


def _relation_scan(leaf: Any, conditions: Sequence[Any]) -> PlainScan:
    """The scan of a relation, of the partitions that hold conditions on partition columns."""
    from sqlext_operators.exchange.parquet_scan import Partition

    relation = known_files(leaf)
    elsewhere = next(filter(None, (_other_scheme(root) for root in _roots(relation))), None)
    if elsewhere is not None:
        raise NotPlainError(f"it alone has the file system and the credentials of '{elsewhere}:'")
    fields = texts_of(relation.partitionSchema().fieldNames())
    listed: Mapping[str, tuple[PartitionValue, ...]] | None
    if fields:
        from sqlext_planner.spark.partition_folders import listed_files

        listed = listed_files(relation, conditions, MOST_FILES)
    else:
        listed = dict.fromkeys(local_paths(relation.location()) or (), ())
    columns = tuple(texts_of(leaf.schema().fieldNames()))
    if not listed:
        raise NotPlainError(f"there are no files, more than {MOST_FILES}, or partitions of unknown types")
    if not set(columns) <= {*fields, *texts_of(relation.dataSchema().fieldNames())}:
        raise NotPlainError("it reads more than the files' columns")
    sources = [Partition(name, fields.index(name)) if name in fields else name for name in columns]
    return PlainScan(tuple(listed), tuple(sources), (), tuple(listed.values()) if fields else ())


def file_index(plan: Any) -> Any:
    """Where Spark lists the files of a plain scan's plan."""
    leaf = plan.collectLeaves().head()
    return leaf.relation().location()


def local_paths(location: Any) -> tuple[str, ...] | None:
    """The paths of listed files, sorted: the listing has no order of its own. None if one is on another machine."""
    paths = [local_path(uri) for uri in sorted(texts_of(location.inputFiles()))]
    return None if None in paths else tuple(path for path in paths if path is not None)


def known_files(leaf: Any) -> Any:
    """The relation of files behind a plan's leaf, if it is one of KNOWN_RELATIONS. Raises NotPlainError."""
    relation = files_of(leaf)
    reader = _reader_of(leaf) if relation is None else _class(relation.fileFormat())
    fitting = [known for known in KNOWN_RELATIONS if known.file_format == reader]
    if reader is not None and not fitting:
        raise NotPlainError(f"{reader} may give other rows than those of the files")
    if relation is None:
        raise NotPlainError(f"{_part_of(leaf)} is not known to be files that hold exactly its rows")
    index, provider = _class(relation.location()), provider_of(leaf)
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


def _reader_of(leaf: Any) -> str | None:
    """The reader's class of a relation of files that is one by its superclass: Delta's, before a plan is optimised."""
    from py4j.protocol import Py4JError

    try:
        return _class(leaf.relation().fileFormat())
    except Py4JError:  # it is no relation of files
        return None


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


def _roots(relation: Any) -> Iterator[str]:
    paths = relation.location().rootPaths()
    return (str(paths.apply(place).toString()) for place in range(paths.size()))


def _other_scheme(uri: str) -> str | None:
    """The scheme of a URI that is not of this machine's files."""
    from urllib.parse import urlsplit

    scheme = urlsplit(uri).scheme
    return None if scheme in ("", "file") else scheme


_COMPARISONS = {
    "EqualTo": ("=", "="),
    "LessThan": ("<", ">"),
    "LessThanOrEqual": ("<=", ">="),
    "GreaterThan": (">", "<"),
    "GreaterThanOrEqual": (">=", "<="),
}
_COMPARED_TYPES = ("tinyint", "smallint", "int", "bigint", "string")


def _filter_of(condition: Any, names: Mapping[int | None, Source]) -> ScanComparison | None:
    """A condition as comparison of a column with an integer or (binary-ordered) string literal; None for any other."""
    from sqlext_operators.exchange.parquet_scan import ScanComparison

    kind = class_name(condition)
    if kind == "IsNotNull":
        column = names.get(column_id(condition.child()))
        return ScanComparison(column, "is not null") if isinstance(column, str) else None
    if kind not in _COMPARISONS:
        return None
    sides = (condition.left(), condition.right())
    literal_first = class_name(sides[0]) == "Literal"
    attribute, literal = reversed(sides) if literal_first else sides
    column = names.get(column_id(attribute))
    if (
        not isinstance(column, str)
        or class_name(literal) != "Literal"
        or literal.dataType().sql().lower() not in _COMPARED_TYPES
    ):
        return None
    value = literal.value()
    if value is None:
        return None
    return ScanComparison(column, _COMPARISONS[kind][literal_first], value if isinstance(value, int) else str(value))
