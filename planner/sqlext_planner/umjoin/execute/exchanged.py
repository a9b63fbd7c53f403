"""What a multi-way join ships: the keys of each input in types that compare, and the columns that are passed on.

A multi-way join behind one Arrow-block exchange, by the hash of shared keys or in the cells of a hypercube; every
task reads small files itself instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sqlext_operators.umjoin.spec import COUNT, MultiwayInput, MultiwayJoinSpec

from sqlext_planner.exchange.arrow_scan import ArrowScan, scan_of, task_rows
from sqlext_planner.exchange.driver import (
    BUSY_BYTES,
    Shipment,
    join_partition_count,
    memory_bytes,
    run_stage,
    ship,
    size_of,
)
from sqlext_planner.exchange.wire import (
    Size,
    WireColumns,
    arrow_schema,
    as_months,
    from_months,
    is_shippable,
    months_schema,
)
from sqlext_planner.expressions.nodes import Column, Compare, Literal
from sqlext_planner.expressions.types import as_type
from sqlext_planner.relational.physical_plan import ExecutionContext, spark_column
from sqlext_planner.spark.session import cores
from sqlext_planner.spark.workers import check_workers
from sqlext_planner.umjoin.nodes import KeyLayout, class_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField, StructType
    from sqlext_operators.exchange.placed import Part
    from sqlext_operators.exchange.scatter import Router
    from sqlext_operators.umjoin.operator import MultiwayOperatorSpec

    from sqlext_planner.umjoin.execute.execution import UMJoinExec


#: Where Spark records that a text is a CHAR(n): it pads the shorter of two lengths when it compares them.
_CHAR_METADATA = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True)
class TypedInputs:
    """A multi-way join over real DataFrames: what the operator computes, and the inputs with their wire columns.

    `result` has the output's fields, the count under the operator's name for it; year-month intervals travel as months.
    """

    spec: MultiwayJoinSpec
    frames: tuple[DataFrame, ...]
    result: StructType

    @classmethod
    def of(
        cls, node: UMJoinExec, frames: Sequence[DataFrame], extra: Sequence[Sequence[Column]] = ()
    ) -> TypedInputs | None:
        """None if the operator does not compare as Spark does, or Spark does not hand a column's type to Python.

        `extra` are columns of each input that the operator reads besides."""
        types = _key_types(node, frames)
        classes = _class_types(node.layout, types)
        if classes is None:
            return None
        also = extra or [()] * len(frames)
        parts = [_Part.of(node, i, frame, types, classes, also[i]) for i, frame in enumerate(frames)]
        if not all(is_shippable(part.frame) for part in parts):
            return None
        spec = MultiwayJoinSpec(tuple(part.item for part in parts), node.layout.count, node.count is not None)
        return cls(spec, tuple(as_months(part.frame) for part in parts), _result_schema(node, frames))


@dataclass(frozen=True)
class _Part:
    """One input on the wire."""

    item: MultiwayInput
    frame: DataFrame

    @classmethod
    def of(
        cls,
        node: UMJoinExec,
        i: int,
        frame: DataFrame,
        types: Mapping[Column, str],
        classes: Sequence[str],
        extra: Sequence[Column],
    ) -> _Part:
        wire = WireColumns()
        names = []
        for held, kind in zip(node.layout.columns[i], classes, strict=True):
            keys = [as_type(column, types[column], kind) for column in held]
            names += [wire.name(key) for key in keys[:1]]
            for other in keys[1:]:
                frame = frame.filter(spark_column(Compare("=", keys[0], other)))
        payload = node.payload[i]
        if not names and not payload:
            wire.name(Literal("TRUE", dtype="boolean"))  # without a column, rows cannot be counted
        columns = tuple(column.spark_name for column in payload)
        item = MultiwayInput(node.kinds[i], node.layout.classes[i], tuple(names), columns)
        return cls(item, wire.select(frame, (*payload, *extra)))


def _key_types(node: UMJoinExec, frames: Sequence[DataFrame]) -> dict[Column, str]:
    """The types of all key columns."""
    held = {column for item in node.layout.columns for columns in item for column in columns}
    found: dict[Column, str] = {}
    for child, frame in zip(node.inputs, frames, strict=True):
        fields = {item.name: item for item in frame.schema}
        found |= {column: _type(fields[column.spark_name]) for column in child.output_columns if column in held}
    return found


def _type(item: StructField) -> str:
    text = str((item.metadata or {}).get(_CHAR_METADATA, ""))
    return text if text.startswith("char(") else item.dataType.simpleString()


def _class_types(layout: KeyLayout, types: Mapping[Column, str]) -> list[str] | None:
    """The type of each key class; None if one has none."""
    found = [
        class_type(_texts(types[a], types[b]) for n, a, b in layout.edges if n == number)
        for number in range(layout.count)
    ]
    known = [kind for kind in found if kind is not None]
    return known if len(known) == len(found) else None


def _texts(left: str, right: str) -> tuple[str, str]:
    """CHARs of equal length compare as texts, and so does a CHAR with any other type."""
    chars = [kind.startswith("char(") for kind in (left, right)]
    if all(chars) and left != right:
        return left, right
    return ("string" if chars[0] else left), ("string" if chars[1] else right)


def _result_schema(node: UMJoinExec, frames: Sequence[DataFrame]) -> StructType:
    """The output's fields; those of left inputs are nullable."""
    from pyspark.sql.types import LongType, StructField, StructType

    output_fields = []
    for frame, kind, payload in zip(frames, node.kinds, node.payload, strict=True):
        fields = {item.name: item for item in frame.schema}
        for column in payload:
            item = fields[column.spark_name]
            output_fields.append(StructField(item.name, item.dataType, item.nullable or kind == "left", item.metadata))
    if node.count is not None:
        output_fields.append(StructField(COUNT, LongType(), False))
    return StructType(output_fields)


def choose_shares(
    sizes: Sequence[float], classes: Sequence[Sequence[int]], number_of_classes: int, cells: int
) -> tuple[int, ...]:
    """The shares of all classes, with the product `cells`, that move the fewest bytes.

    `sizes[i]` are the bytes of input i, `classes[i]` the key classes that it has. An input is sent once to every
    place of the classes that it lacks, so the bytes moved are the sum of ``sizes[i] * product(shares[c] for c not in
    classes[i])``. A dominated class (another one is in all inputs that it is in) has the share 1: its places would be
    worth more in the other class. Among equal choices the first classes have the largest shares.

    Branch and bound over the factorisations of `cells`: shares of 1 for the remaining classes give a lower bound. 64
    cells of a triangle: 0.3 ms. Raises ValueError for less than one cell, and for several cells without a class.
    """
    if cells < 1 or (cells > 1 and number_of_classes == 0):
        raise ValueError(f"{cells} cells of {number_of_classes} key classes")
    free = [place for place in range(number_of_classes) if not _is_dominated(place, classes, number_of_classes)]
    found = _Search(sizes, classes, number_of_classes, free)
    found.search(0, cells)
    return found.best


def moved(sizes: Sequence[float], classes: Sequence[Sequence[int]], shares: Sequence[int]) -> float:
    """The bytes of inputs with these sizes and classes after replication."""
    cells = math.prod(shares)
    return sum(
        size * (cells // math.prod(shares[place] for place in own))
        for size, own in zip(sizes, map(set, classes), strict=True)
    )


def _is_dominated(place: int, classes: Sequence[Sequence[int]], number_of_classes: int) -> bool:
    """Whether another class is in all inputs that have this one; of two in the same inputs, the later is dominated."""
    own = {i for i, item in enumerate(classes) if place in item}
    for other in range(number_of_classes):
        inputs = {i for i, item in enumerate(classes) if other in item}
        if other != place and own <= inputs and (own != inputs or other < place):
            return True
    return False


class _Search:
    """The best shares so far of the classes in `free`; the others have 1."""

    def __init__(
        self, sizes: Sequence[float], classes: Sequence[Sequence[int]], number_of_classes: int, free: Sequence[int]
    ) -> None:
        self._sizes, self._classes, self._free = sizes, classes, free
        self._shares = [1] * number_of_classes
        self._least = math.inf
        self.best: tuple[int, ...] = tuple(self._shares)

    def search(self, depth: int, cells: int) -> None:
        """Try all shares of the classes from `depth` on with the product `cells`."""
        cost = moved(self._sizes, self._classes, self._shares)
        if cost >= self._least:
            return
        if depth == len(self._free):
            if cells == 1:
                self._least, self.best = cost, tuple(self._shares)
            return
        is_last = depth == len(self._free) - 1
        divisors = (part for part in range(cells, 0, -1) if cells % part == 0)
        for share in (cells,) if is_last else divisors:
            self._shares[self._free[depth]] = share
            self.search(depth + 1, cells // share)
        self._shares[self._free[depth]] = 1


#: More cells than this are not tried: the rows of a cell that is still too large go to disk.
_MOST_CELLS = 4096
#: As long as sizes are unknown, copies may cost more than cells save.
_MOST_UNKNOWN_CELLS = 64
_COUNT_BYTES = 8
#: Every task reads inputs of at most this many bytes in all, instead of a shuffle.
_MOST_READ_BYTES = 64 << 20


def join_by_exchange(typed: TypedInputs, planned: UMJoinExec, context: ExecutionContext) -> DataFrame:
    """The join's rows: every input is routed by its keys, each partition is joined alone.

    Raises ConfigurationError if the workers lack the package.
    """
    from sqlext_operators.umjoin.operator import MultiwayOperatorSpec

    spec = typed.spec
    sizes = [size_of(frame, context) for frame in typed.frames]
    operator = MultiwayOperatorSpec(
        spec,
        tuple(arrow_schema(frame.schema) for frame in typed.frames),
        memory_bytes=memory_bytes(context.config),
        batch_rows=context.config.output_batch_rows,
    )
    reads = not context.config.partitions and planned.placed is None
    if reads and (scans := _small_files(typed, sizes, context)) is not None:
        return _joined_from_files(typed, operator, scans, planned, sizes, context)
    partitions, routers = _routers(spec, planned, sizes, join_partition_count(sizes, context), context)
    shipments = [
        Shipment(tag, frame, item.keys, router)
        for tag, (frame, item, router) in enumerate(zip(typed.frames, spec.inputs, routers, strict=True))
    ]
    return ship(shipments, context, partitions).run(operator, typed.result, _total_size(typed, partitions))


def _small_files(
    typed: TypedInputs, sizes: Sequence[Size | None], context: ExecutionContext
) -> tuple[ArrowScan, ...] | None:
    """How a task reads all inputs; None if one is not plain Parquet, or all together are too many bytes for a task."""
    if sum(math.inf if size is None else size.bytes for size in sizes) > _MOST_READ_BYTES:
        return None
    scans = [scan_of(frame, context, 1) for frame in typed.frames]
    found = tuple(scan for scan in scans if scan is not None)
    return found if len(found) == len(scans) else None


def _joined_from_files(
    typed: TypedInputs,
    operator: MultiwayOperatorSpec,
    scans: tuple[ArrowScan, ...],
    planned: UMJoinExec,
    sizes: Sequence[Size | None],
    context: ExecutionContext,
) -> DataFrame:
    """The rows of small inputs without a shuffle: one task a core reads all files and keeps the rows of its cell."""
    from sqlext_operators.umjoin.operator import MultiwayFiles, join_files

    check_workers(context.spark)
    known = sum(size.bytes for size in sizes if size is not None)
    wanted = cores(context.spark) if known >= BUSY_BYTES else 1
    cells, routers = _routers(typed.spec, planned, sizes, wanted, context)
    entry = partial(join_files, operator, MultiwayFiles(tuple(scan.scan for scan in scans), tuple(routers), cells))
    tasks = task_rows(cells, scans, context)
    result = run_stage(tasks, entry, months_schema(typed.result), _total_size(typed, cells), context)
    return from_months(result, typed.result)


def _total_size(typed: TypedInputs, partitions: int) -> Size | None:
    """The size of a result that is one count a partition; None for any other."""
    totals = typed.spec.count and len(typed.result) == 1
    return Size(_COUNT_BYTES * partitions, partitions) if totals else None


def _routers(
    spec: MultiwayJoinSpec,
    planned: UMJoinExec,
    sizes: Sequence[Size | None],
    partitions: int,
    context: ExecutionContext,
) -> tuple[int, list[Router]]:
    """How many partitions there are (`partitions` or a few more), and the router of each input."""
    from sqlext_operators.exchange.placed import PlacedRouter, PlacedRows
    from sqlext_operators.exchange.scatter import MatchRouter
    from sqlext_operators.umjoin.shares_routing import SharesRouter

    if planned.routing == "shared key":
        named = shared_keys(spec)
        # One hash of all shared keys; a row in which one of them is NULL matches nothing.
        nulls = (False,) * len(spec.shared)
        partitioning = planned.placed
        if partitioning is None or partitioning.placement is None:
            return partitions, [MatchRouter(names, nulls, keep=False) for names in named]
        rows = PlacedRows(partitioning.placement)
        owned: Part = "both" if partitioning.copies == "all" else "owned"
        parts = [owned if place == planned.owner else "copies" for place in range(len(named))]
        return partitioning.partitions, [
            PlacedRouter(names, None, rows, part, nulls) for names, part in zip(named, parts, strict=True)
        ]
    chosen = shares_for(spec, sizes, partitions, context)
    return math.prod(chosen), [SharesRouter.of(item, chosen) for item in spec.inputs]


def shared_keys(spec: MultiwayJoinSpec) -> list[tuple[str, ...]]:
    """The columns of each input with the keys that all inputs have."""
    keys = [dict(zip(item.classes, item.keys, strict=True)) for item in spec.inputs]
    return [tuple(held[place] for place in spec.shared) for held in keys]


def shares_for(
    spec: MultiwayJoinSpec, sizes: Sequence[Size | None], cells: int, context: ExecutionContext
) -> tuple[int, ...]:
    """The shares of a hypercube of about `cells` cells: more if a cell's rows would be more than an exchange aims at,
    and a power of two (other numbers have few factorisations) unless the setting gives the number. Inputs of unknown
    size count as much as the known ones do on average."""
    classes = [item.classes for item in spec.inputs]
    known = [size.bytes for size in sizes if size is not None]
    average = sum(known) / len(known) if known else 1.0
    weights = [average if size is None else float(size.bytes) for size in sizes]
    if context.config.partitions:
        return choose_shares(weights, classes, spec.classes, cells)
    cells = min(1 << (cells - 1).bit_length(), _MOST_UNKNOWN_CELLS if None in sizes else _MOST_CELLS)
    shares = choose_shares(weights, classes, spec.classes, cells)
    while (
        known
        and cells < _MOST_CELLS
        and moved(weights, classes, shares) > cells * context.config.target_partition_bytes
    ):
        cells *= 2
        shares = choose_shares(weights, classes, spec.classes, cells)
    return shares
