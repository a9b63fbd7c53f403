"""DataFrames that are nothing but Parquet files, which tasks may read without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlext_planner.spark.plans import (
    FILE_INDEX,
    ProjectItem,
    attribute_ids,
    class_name,
    column_id,
    items_of_project,
    optimized_plan,
    texts_of,
)
from sqlext_planner.spark.session import settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlext_operators.exchange.parquet_scan import Constant, Position


@dataclass(frozen=True)
class ScannedFilter:
    """`column op value`, or `column is not null`."""

    column: str
    op: str
    value: int | str | None = None


@dataclass(frozen=True)
class PlainScan:
    """A frame that is nothing but Parquet files: local paths by name, the frame's columns by the names
    they have in the files (POSITION for monotonically_increasing_id(), a Constant for a literal), and comparisons that
    all hold."""

    paths: tuple[str, ...]
    columns: tuple[str | Constant | Position, ...]
    filters: tuple[ScannedFilter, ...]


def plain_parquet_scan(frame: DataFrame) -> PlainScan | None:
    """The scan behind a frame that only selects, renames and compares columns of unpartitioned local Parquet files.

    Works on the optimised plan, so that temporary views, `spark.read.parquet` tables and subqueries are alike.
    None for every other frame, and where options or settings change how Spark reads files.
    """
    plan = optimized_plan(frame)
    if plan is None or not reads_plainly(settings(frame.sparkSession, PLAIN_SETTINGS)):
        return None
    return _scan_of(plan)


#: Settings under which Spark's Parquet reader does more than read, with the value under which it only reads.
PLAIN_SETTINGS = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
}
_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_PLAIN_OPTIONS = {"path", "paths", "serialization.format"}


def reads_plainly(known: Mapping[str, str]) -> bool:
    """Whether Spark's reader only reads; `known` are those of PLAIN_SETTINGS that are set."""
    return all(known.get(key, plain).lower() == plain for key, plain in PLAIN_SETTINGS.items())


def _scan_of(plan: Any) -> PlainScan | None:
    """Project(Filter(Project(...(relation)))) in any order and number, as long as all of it is plain."""
    kind = class_name(plan)
    if kind == "LogicalRelation":
        return _relation_scan(plan)
    if kind not in ("Project", "Filter"):
        return None
    below = _scan_of(plan.child())
    if below is None:
        return None
    attributes = attribute_ids(plan.child())
    names: dict[int | None, str | Constant | Position] = dict(zip(attributes, below.columns, strict=True))
    if kind == "Filter":
        filters = _filters_of(plan.condition(), names)
        return None if filters is None else PlainScan(below.paths, below.columns, below.filters + filters)
    columns = [_scanned(plan, place, item, names) for place, item in enumerate(items_of_project(plan))]
    if None in columns:
        return None
    return PlainScan(below.paths, tuple(column for column in columns if column is not None), below.filters)


#: Types whose literals are plain Python values.
_LITERAL_TYPES = {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string"}


def _scanned(
    plan: Any, place: int, item: ProjectItem, names: dict[int | None, str | Constant | Position]
) -> str | Constant | Position | None:
    """What the item at a place of a projection reads from the files; None if it computes something."""
    from sqlext_operators.exchange.parquet_scan import POSITION, Constant

    if item.source is not None:
        return names.get(item.source)
    if item.kind == "MonotonicallyIncreasingID":
        return POSITION
    literal = plan.projectList().apply(place).child() if item.kind == "Literal" else None
    if literal is None or literal.dataType().sql().lower() not in _LITERAL_TYPES:
        return None
    value = literal.value()
    return Constant(value if isinstance(value, (bool, int, float, type(None))) else str(value))


def _relation_scan(plan: Any) -> PlainScan | None:
    relation = plan.relation()
    if class_name(relation) != "HadoopFsRelation" or relation.fileFormat().getClass().getName() != _PARQUET:
        return None
    options = str(relation.options().keys().mkString("\0")).lower()
    location = relation.location()
    if location.getClass().getName() != FILE_INDEX or not set(options.split("\0")) <= {"", *_PLAIN_OPTIONS}:
        return None
    if relation.partitionSchema().size() > 0:
        return None
    paths = local_paths(location)
    columns = tuple(texts_of(plan.schema().fieldNames()))
    if not paths or not set(columns) <= set(texts_of(relation.dataSchema().fieldNames())):
        return None
    return PlainScan(paths, columns, ())


def file_index(plan: Any) -> Any:
    """Where Spark lists the files of a plain scan's plan."""
    leaf = plan.collectLeaves().head()
    return leaf.relation().location()


def local_paths(location: Any) -> tuple[str, ...] | None:
    """The paths of listed files, sorted: the listing has no order of its own. None if one is on another machine."""
    paths = [_local_path(uri) for uri in sorted(texts_of(location.inputFiles()))]
    return None if None in paths else tuple(path for path in paths if path is not None)


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


def _filters_of(condition: Any, names: dict[int | None, str | Constant | Position]) -> tuple[ScannedFilter, ...] | None:
    """The condition as comparisons of columns with integer or (binary-ordered) string literals; None for any other."""
    kind = class_name(condition)
    if kind == "And":
        left, right = _filters_of(condition.left(), names), _filters_of(condition.right(), names)
        return None if left is None or right is None else left + right
    if kind == "IsNotNull":
        column = names.get(column_id(condition.child()))
        return (ScannedFilter(column, "is not null"),) if isinstance(column, str) else None
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
    return (ScannedFilter(column, _COMPARISONS[kind][literal_first], value if isinstance(value, int) else str(value)),)
