"""Exchange inputs that are plain Parquet files: pyarrow reads them in the scatter task, not Spark's scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.relational.physical_plan import ExecutionContext, PhysicalPlan
from sqlext_planner.spark.scans import MOST_FILES, PlainScan, plain_parquet_scan
from sqlext_planner.spark.session import arrow_type, is_local
from sqlext_planner.spark.tables import over_sources

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame
    from sqlext_operators.exchange.parquet_scan import ParquetScan, ParquetTask
    from sqlext_operators.exchange.source_files import FileState

#: A smaller task is not worth its start (about 10 ms); larger ones are cut for parallelism.
LEAST_TASK_BYTES = 4 << 20
_MOST_TASK_BYTES = 64 << 20
#: A string column with at most so many bytes a value is read as a dictionary. Indices of 32,768 values take 15 bits.
_CODED_BYTES = 2.5


@dataclass(frozen=True)
class ArrowScanExec(PhysicalPlan):
    """Marks an exchange's input that pyarrow may read; as a DataFrame it is its child.

    The exchange decides when it runs, with the files' footers at hand (`plain_files`).
    """

    child: PhysicalPlan

    stands_for_child = True

    def label(self) -> str:
        return f"ArrowScanExec: [{', '.join(self.frame_columns)}]"


@dataclass(frozen=True)
class ArrowScan:
    """A scan, its size as Arrow data, its rows before any filter, and the frame that it reads for Spark."""

    scan: ParquetScan
    bytes: int
    rows: int
    frame: DataFrame


@dataclass(frozen=True)
class PlainFiles:
    """Parquet files that pyarrow reads as Spark would: what `frame` selects of them, its Arrow types, their footers,
    and the files' states, by which tasks recognise them."""

    frame: DataFrame
    plain: PlainScan
    kinds: tuple[pa.DataType, ...]
    stored: dict[str, pa.DataType]
    footers: tuple[pq.FileMetaData, ...]
    states: tuple[FileState, ...]

    def scan(self, parallelism: int, least_bytes: int = LEAST_TASK_BYTES) -> ArrowScan:
        """How to read them: in `parallelism` tasks of at least `least_bytes`, or in more tasks if they are large."""
        from sqlext_operators.exchange.parquet_scan import ParquetScan

        sizes = [_group_bytes(footer, self.stored) for footer in self.footers]
        rows = sum(footer.num_rows for footer in self.footers)
        total = sum(map(sum, sizes)) + rows * _constant_bytes(self.plain)
        tasks = _tasks(self, sizes, parallelism, least_bytes)
        filters = self.plain.filters
        coded = _coded(self.footers, self.stored) - {item.column for item in filters}
        scan = ParquetScan(tuple(tasks), self.plain.columns, self.kinds, filters, coded)
        return ArrowScan(scan, total, rows, self.frame)


class ExaminedFrames(dict[int, "tuple[DataFrame, PlainFiles | None]"]):
    """id(frame) -> (the frame, the Parquet files that it only selects from), of a statement."""


def scan_of(
    frame: DataFrame, context: ExecutionContext, parallelism: int, least_bytes: int = LEAST_TASK_BYTES
) -> ArrowScan | None:
    """How pyarrow reads what a frame selects; None to leave it to Spark. Each frame is examined once."""
    wanted = context.config.arrow_scan
    if wanted == "false" or (wanted == "auto" and not is_local(context.spark)):
        return None
    examined = context.remembered(ExaminedFrames)
    if id(frame) not in examined:
        examined[id(frame)] = (frame, plain_files(frame))
    files = examined[id(frame)][1]
    return None if files is None else files.scan(parallelism, least_bytes)


def task_rows(count: int, scans: Iterable[ArrowScan], context: ExecutionContext) -> DataFrame:
    """The numbers of the tasks that read files themselves, each in its own partition."""
    rows = context.spark.range(0, count, 1, max(1, count))
    return over_sources(rows, [scan.frame for scan in scans])


@contextmanager
def reading_files() -> Iterator[None]:
    """Wraps the driver's own reads of planned files. Raises ConfigurationError for a file that has changed."""
    from sqlext_operators.exchange.source_files import SourceChangedError

    try:
        yield
    except SourceChangedError as error:
        raise ConfigurationError(error.message, condition="changed-file", help=error.help) from None


def plain_files(frame: DataFrame) -> PlainFiles | None:
    """The files, if `frame` only selects rows and columns of them; None for any other frame.

    Only where pyarrow and Spark read the same: local files of one schema, types that need no rebasing
    (no INT96, no files of Spark 2) and agree with Spark's, no settings that change Spark's reading.
    """
    from pyarrow import ArrowException

    plain = plain_parquet_scan(frame)
    kinds = [arrow_type(field.dataType) for field in frame.schema]
    if plain is None or len(plain.paths) > MOST_FILES or not plain.columns:
        return None
    collated = any("COLLATE" in field.dataType.simpleString().upper() for field in frame.schema)
    try:
        return None if collated else _files(frame, plain, [kind for kind in kinds if kind is not None])
    except (OSError, ArrowException):
        return None  # Spark reports unreadable files in its own words, when it reads them


def _files(frame: DataFrame, plain: PlainScan, kinds: list[pa.DataType]) -> PlainFiles | None:
    from sqlext_operators.exchange.source_files import opened

    if len(kinds) != len(plain.columns):
        return None
    pairs = zip(plain.columns, kinds, strict=True)
    stored = {name: kind for name, kind in pairs if isinstance(name, str)}
    if not stored:
        return None
    footers, states = [], []
    for path in plain.paths:
        with opened(path) as (file, state):
            if not _reads_alike(file, plain, stored):
                return None
            footers.append(file.metadata)
            states.append(state)
    return PlainFiles(frame, plain, tuple(kinds), stored, tuple(footers), tuple(states))


def _reads_alike(file: pq.ParquetFile, plain: PlainScan, stored: dict[str, pa.DataType]) -> bool:
    """Whether Spark would read the file's columns as these types, value for value."""
    metadata = file.metadata.metadata or {}
    if b"org.apache.spark.legacyDateTime" in metadata or b"org.apache.spark.legacyINT96" in metadata:
        return False
    if metadata.get(b"org.apache.spark.version", b"3").startswith((b"1.", b"2.")):
        return False
    schema = file.schema_arrow
    physical = {file.schema.column(i).path: file.schema.column(i).physical_type for i in range(len(file.schema.names))}
    for name in (*stored, *(item.column for item in plain.filters)):
        if schema.get_field_index(name) < 0 or physical.get(name) == "INT96":
            return False
    return all(_same_values(schema.field(name).type, kind) for name, kind in stored.items()) and all(
        _comparable(schema.field(item.column).type, item.value) for item in plain.filters
    )


def _same_values(stored: pa.DataType, spark_type: pa.DataType) -> bool:
    """Whether a stored column becomes Spark's column by at most a change of representation."""
    import pyarrow as pa

    if stored == spark_type:
        return not pa.types.is_nested(stored)
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(spark_type):
        return stored.unit in ("ms", "us") and (stored.tz is None) == (spark_type.tz is None)
    if pa.types.is_string(spark_type):
        return bool(pa.types.is_string(stored) or pa.types.is_large_string(stored))
    if pa.types.is_binary(spark_type):
        return bool(pa.types.is_binary(stored) or pa.types.is_large_binary(stored))
    return False


def _comparable(stored: pa.DataType, value: int | str | None) -> bool:
    import pyarrow as pa

    if value is None:
        return True
    if isinstance(value, str):
        return bool(pa.types.is_string(stored) or pa.types.is_large_string(stored))
    return bool(pa.types.is_signed_integer(stored))


def _group_bytes(footer: pq.FileMetaData, stored: dict[str, pa.DataType]) -> list[int]:
    """Estimated Arrow bytes of each row group: widths of fixed-width columns, uncompressed pages of the others."""
    places = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
    sizes = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        size = 0
        for name, kind in stored.items():
            try:
                size += group.num_rows * max(1, kind.bit_width // 8)
            except ValueError:  # a type without a width
                size += group.column(places[name]).total_uncompressed_size + 4 * group.num_rows
        sizes.append(size)
    return sizes


def _coded(footers: Sequence[pq.FileMetaData], stored: dict[str, pa.DataType]) -> frozenset[str]:
    """The string columns that the files hold in few bytes a value: as indices of a small dictionary."""
    import pyarrow as pa

    texts = {name for name, kind in stored.items() if pa.types.is_string(kind) or pa.types.is_binary(kind)}
    bytes_of, values_of = dict.fromkeys(texts, 0), dict.fromkeys(texts, 0)
    for footer in footers:
        places = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
        for group in map(footer.row_group, range(footer.num_row_groups)):
            for name in texts:
                column = group.column(places[name])
                bytes_of[name] += column.total_uncompressed_size
                values_of[name] += column.num_values
    return frozenset(name for name in texts if bytes_of[name] <= _CODED_BYTES * values_of[name])


def _constant_bytes(plain: PlainScan) -> int:
    """Estimated Arrow bytes that literals and partition columns add to a row."""
    from sqlext_operators.exchange.parquet_scan import Partition, ScanConstant

    first = plain.partitions[0] if plain.partitions else ()
    values = [column.value for column in plain.columns if isinstance(column, ScanConstant)]
    values += [first[column.place] for column in plain.columns if isinstance(column, Partition)]
    return sum(4 + len(value) if isinstance(value, str) else 8 for value in values)


def _tasks(files: PlainFiles, sizes: list[list[int]], parallelism: int, least_bytes: int) -> list[ParquetTask]:
    """Neighbouring row groups of a file in one task up to a target of bytes, in input order; larger groups in parts,
    small files together."""
    from sqlext_operators.exchange.parquet_scan import ParquetTask

    target = min(max(sum(map(sum, sizes)) // parallelism, least_bytes), _MOST_TASK_BYTES)
    tasks: list[tuple[ParquetTask, int]] = []
    partitions = files.plain.partitions or ((),) * len(sizes)
    for path, footer, state, groups, values in zip(
        files.plain.paths, files.footers, files.states, sizes, partitions, strict=True
    ):
        whole = ParquetTask(path, state, (), partition=values)
        held: list[int] = []
        for number, size in enumerate(groups):
            if held and sum(groups[i] for i in held) + size > target:
                tasks += _parts(whole, footer, held, sum(groups[i] for i in held), target, parallelism)
                held = []
            held.append(number)
        if held:
            tasks += _parts(whole, footer, held, sum(groups[i] for i in held), target, parallelism)
    return _together(tasks, target)


def _together(tasks: Sequence[tuple[ParquetTask, int]], target: int) -> list[ParquetTask]:
    """Neighbouring tasks with their bytes as one, up to a target: partition folders have many small files, and each
    task costs Spark 65 ms."""
    merged: list[ParquetTask] = []
    held = 0
    for task, size in tasks:
        if merged and held + size <= target:
            merged[-1] = replace(merged[-1], also=(*merged[-1].also, task))
            held += size
        else:
            merged.append(task)
            held = size
    return merged


def _parts(
    file: ParquetTask, footer: pq.FileMetaData, groups: list[int], size: int, target: int, parallelism: int
) -> list[tuple[ParquetTask, int]]:
    """One task for a file with its bytes, or several for one large row group: each of these also decodes the rows
    before its own, which costs less than cutting, hashing and sending its own rows (0.3 s of CPU against 0.8 s for
    10M)."""
    count = min(-(-size // target), parallelism) if len(groups) == 1 and size > 1.5 * target else 1
    if count == 1:
        return [(replace(file, row_groups=tuple(groups)), size)]
    rows = footer.row_group(groups[0]).num_rows
    edges = [rows * i // count for i in range(count + 1)]
    parts = (replace(file, row_groups=tuple(groups), start=start, stop=stop) for start, stop in pairwise(edges))
    return [(part, size) for part in parts]
