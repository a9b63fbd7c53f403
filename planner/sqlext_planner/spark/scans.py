"""DataFrames that are nothing but Parquet files, which tasks may read without Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlext_planner.spark.plans import (
    ProjectItem,
    attribute_ids,
    class_name,
    column_id,
    items_of,
    items_of_project,
    optimized_plan,
    texts_of,
)
from sqlext_planner.spark.relations import NotPlainError, files_of, known_files
from sqlext_planner.spark.session import settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlext_operators.exchange.parquet_scan import PartitionValue, ScanComparison, Source

    #: The paths of a partition's files (None: on another machine), and its values (None: of another type).
    Directory = tuple[list[str | None], tuple[PartitionValue, ...] | None]


#: The driver reads the footers, at about 1 ms a file.
MOST_FILES = 500


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
    plan = optimized_plan(frame)
    if plan is None:
        raise NotPlainError("the files of a stream, or under Spark Connect, are not known to others")
    scan = _scan_of(plan)
    changed = changing_setting(settings(frame.sparkSession, PLAIN_SETTINGS))
    if changed is not None:
        raise NotPlainError(f"setting {changed} changes how it reads Parquet")
    return scan


#: Settings under which Spark's Parquet reader does more than read, with the value under which it only reads.
PLAIN_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
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
    listed = _listed(relation, conditions) if fields else dict.fromkeys(local_paths(relation.location()) or (), ())
    columns = tuple(texts_of(leaf.schema().fieldNames()))
    if not listed:
        raise NotPlainError(f"there are no files, more than {MOST_FILES}, or partitions of unknown types")
    if not set(columns) <= {*fields, *texts_of(relation.dataSchema().fieldNames())}:
        raise NotPlainError("it reads more than the files' columns")
    sources = [Partition(name, fields.index(name)) if name in fields else name for name in columns]
    return PlainScan(tuple(listed), tuple(sources), (), tuple(listed.values()) if fields else ())


def _listed(relation: Any, conditions: Sequence[Any]) -> dict[str, tuple[PartitionValue, ...]] | None:
    """The files of a partitioned relation, sorted, with the values of its partition columns; None for more than
    MOST_FILES, and if one is on another machine or a value is of another type."""
    from pyspark import SparkContext

    java: Any = SparkContext._jvm
    chosen = java.java.util.ArrayList()
    for condition in conditions:
        chosen.add(condition)
    to_seq, none = java.org.apache.spark.api.python.PythonUtils.toSeq, java.java.util.ArrayList()
    kinds = [str(field.dataType().simpleString()) for field in relation.partitionSchema().fields()]
    directories = relation.location().listFiles(to_seq(chosen), to_seq(none))
    if directories.size() > MOST_FILES:
        return None
    files: dict[str, tuple[PartitionValue, ...]] = {}
    for place, text in enumerate(str(directories.mkString("\0")).split("\0")) if directories.size() else ():
        read = _read_directory(text, kinds)
        paths, values = _asked(directories.apply(place), kinds, relation.partitionSchema()) if read is None else read
        if values is None or None in paths or len(files) + len(paths) > MOST_FILES:
            return None
        files.update({path: values for path in paths if path is not None})
    return dict(sorted(files.items()))


#: What a partition and its files print: one JVM call for all, where asking takes 1.5 ms a file.
_DIRECTORY = re.compile(r"PartitionDirectory\(\[(.*?)\],\w+\((FileStatusWithMetadata\(.*)\)\)", re.DOTALL)
_STATUS = re.compile(r"FileStatusWithMetadata\(\w+\{path=(.*?); isDirectory=false;", re.DOTALL)


def _read_directory(text: str, kinds: Sequence[str]) -> Directory | None:
    """The local paths of a partition's files and its values, of its text; None if it can be read in two ways."""
    match = _DIRECTORY.fullmatch(text)
    if match is None:
        return None
    paths, texts = _STATUS.findall(match[2]), match[1].split(",")
    is_sure = len(texts) == len(kinds) and not any(
        kind == "string" and value == "null" for kind, value in zip(kinds, texts, strict=True)
    )
    if not is_sure or len(paths) != match[2].count("FileStatusWithMetadata("):
        return None
    local = [path[5:] if re.match("file:/(?!/)", path) else None for path in paths]
    return local, _values(texts, kinds)


def _asked(directory: Any, kinds: Sequence[str], schema: Any) -> Directory:
    """The same, asked of the JVM one by one."""
    paths = [_local_path(str(file.getPath().toUri().toString())) for file in items_of(directory.files())]
    row = directory.values()
    fields = [schema.apply(place).dataType() for place in range(len(kinds))]
    texts = [
        None if row.isNullAt(place) else _text(row.get(place, field), kind)
        for place, (field, kind) in enumerate(zip(fields, kinds, strict=True))
    ]
    return paths, _values(texts, kinds)


def _text(value: Any, kind: str) -> str:
    return str(value.toString()) if kind == "string" or kind.startswith("decimal") else str(value)


def _values(texts: Sequence[str | None], kinds: Sequence[str]) -> tuple[PartitionValue, ...] | None:
    """Values of their texts: days and microseconds for dates and times. None for a value of another type."""
    values: list[PartitionValue] = []
    for text, kind in zip(texts, kinds, strict=True):
        read = _READ.get(kind.partition("(")[0])
        if text is None or (text == "null" and kind != "string"):
            values.append(None)
        elif read is None:
            return None
        else:
            values.append(read(text))
    return tuple(values)


_READ: Mapping[str, Callable[[str], PartitionValue]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz"), int),
    **dict.fromkeys(("float", "double"), float),
    "string": str,
    "decimal": Decimal,
    "boolean": lambda text: text.lower() == "true",
}


def file_index(plan: Any) -> Any:
    """Where Spark lists the files of a plain scan's plan."""
    leaf = plan.collectLeaves().head()
    return leaf.relation().location()


def local_paths(location: Any) -> tuple[str, ...] | None:
    """The paths of listed files, sorted: the listing has no order of its own. None if one is on another machine."""
    paths = [_local_path(uri) for uri in sorted(texts_of(location.inputFiles()))]
    return None if None in paths else tuple(path for path in paths if path is not None)


def _roots(relation: Any) -> Iterator[str]:
    paths = relation.location().rootPaths()
    return (str(paths.apply(place).toString()) for place in range(paths.size()))


def _other_scheme(uri: str) -> str | None:
    """The scheme of a URI that is not of this machine's files."""
    from urllib.parse import urlsplit

    scheme = urlsplit(uri).scheme
    return None if scheme in ("", "file") else scheme


def _local_path(uri: str) -> str | None:
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme in ("", "file") and not parts.netloc else None


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
