"""A multi-way join behind one Arrow-block exchange, by the hash of shared keys or in the cells of a hypercube; every
task reads small files itself instead."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sqlext_planner.exchange.driver import BUSY_BYTES, Shipment, join_partition_count, memory_bytes, ship, size_of
from sqlext_planner.exchange.wire import Size, arrow_schema, from_months, months_schema
from sqlext_planner.relational.physical_plan import ExecutionContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlext_operators.exchange.placed import Part
    from sqlext_operators.exchange.scatter import Router
    from sqlext_operators.umjoin.operator import MultiwayOperatorSpec
    from sqlext_operators.umjoin.spec import MultiwayJoinSpec

    from sqlext_planner.exchange.arrow_scan import ArrowScan
    from sqlext_planner.exchange.partitioning.choice import Partitioning
    from sqlext_planner.umjoin.execute.execution import Routing
    from sqlext_planner.umjoin.execute.inputs import TypedInputs


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
        for share in (cells,) if is_last else _divisors(cells):
            self._shares[self._free[depth]] = share
            self.search(depth + 1, cells // share)
        self._shares[self._free[depth]] = 1


def _divisors(number: int) -> Iterator[int]:
    """All divisors, the largest first."""
    return (part for part in range(number, 0, -1) if number % part == 0)


#: More cells than this are not tried: the rows of a cell that is still too large go to disk.
_MOST_CELLS = 4096
#: As long as sizes are unknown, copies may cost more than cells save.
_MOST_UNKNOWN_CELLS = 64
_COUNT_BYTES = 8
#: Every task reads inputs of at most this many bytes in all, instead of a shuffle.
_MOST_READ_BYTES = 64 << 20


@dataclass(frozen=True)
class Routed:
    """How the rows of a join meet: by shared keys or in the cells of a hypercube with these shares (None: chosen by the
    inputs' sizes). With a partitioning, shared keys have several partitions, over which the rows of input `owner` are
    split."""

    routing: Routing
    shares: tuple[int, ...] | None = None
    partitioning: Partitioning | None = None
    owner: int = 0


def join_by_exchange(typed: TypedInputs, routed: Routed, context: ExecutionContext) -> DataFrame:
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
    reads = not context.config.partitions and routed.partitioning is None
    if reads and (scans := _small_files(typed, sizes, context)) is not None:
        return _joined_from_files(typed, operator, scans, routed, sizes, context)
    partitions, routers = _routers(spec, routed, sizes, join_partition_count(sizes, context), context)
    shipments = [
        Shipment(tag, frame, item.keys, router)
        for tag, (frame, item, router) in enumerate(zip(typed.frames, spec.inputs, routers, strict=True))
    ]
    return ship(shipments, context, partitions).run(operator, typed.result, _total_size(typed, partitions))


def _small_files(
    typed: TypedInputs, sizes: Sequence[Size | None], context: ExecutionContext
) -> tuple[ArrowScan, ...] | None:
    """How a task reads all inputs; None if one is not plain Parquet, or all together are too many bytes for a task."""
    from sqlext_planner.exchange.arrow_scan import scan_of

    if sum(math.inf if size is None else size.bytes for size in sizes) > _MOST_READ_BYTES:
        return None
    scans = [scan_of(frame, context, 1) for frame in typed.frames]
    found = tuple(scan for scan in scans if scan is not None)
    return found if len(found) == len(scans) else None


def _joined_from_files(
    typed: TypedInputs,
    operator: MultiwayOperatorSpec,
    scans: tuple[ArrowScan, ...],
    routed: Routed,
    sizes: Sequence[Size | None],
    context: ExecutionContext,
) -> DataFrame:
    """The rows of small inputs without a shuffle: one task a core reads all files and keeps the rows of its cell."""
    from sqlext_operators.umjoin.operator import MultiwayFiles, join_files

    from sqlext_planner.exchange.arrow_scan import task_rows
    from sqlext_planner.exchange.driver import run_stage
    from sqlext_planner.spark.session import cores
    from sqlext_planner.spark.workers import check_workers

    check_workers(context.spark)
    known = sum(size.bytes for size in sizes if size is not None)
    wanted = cores(context.spark) if known >= BUSY_BYTES else 1
    cells, routers = _routers(typed.spec, routed, sizes, wanted, context)
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
    routed: Routed,
    sizes: Sequence[Size | None],
    partitions: int,
    context: ExecutionContext,
) -> tuple[int, list[Router]]:
    """How many partitions there are (`partitions` or a few more), and the router of each input."""
    from sqlext_operators.exchange.placed import PlacedRouter, PlacedRows
    from sqlext_operators.exchange.scatter import MatchRouter
    from sqlext_operators.umjoin.shares_routing import SharesRouter

    if routed.routing == "shared key":
        keys = [dict(zip(item.classes, item.keys, strict=True)) for item in spec.inputs]
        named = [tuple(held[place] for place in spec.shared) for held in keys]
        # One hash of all shared keys; a row in which one of them is NULL matches nothing.
        nulls = (False,) * len(spec.shared)
        partitioning = routed.partitioning
        if partitioning is None or partitioning.placement is None:
            return partitions, [MatchRouter(names, nulls, keep=False) for names in named]
        rows = PlacedRows(partitioning.placement)
        owned: Part = "both" if partitioning.copies == "all" else "owned"
        parts = [owned if place == routed.owner else "copies" for place in range(len(named))]
        return partitioning.partitions, [
            PlacedRouter(names, None, rows, part, nulls) for names, part in zip(named, parts, strict=True)
        ]
    chosen = routed.shares or shares_for(spec, sizes, partitions, context)
    return math.prod(chosen), [SharesRouter.of(item, chosen) for item in spec.inputs]


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
    while known and cells < _MOST_CELLS and moved(weights, classes, shares) > cells * _target(context):
        cells *= 2
        shares = choose_shares(weights, classes, spec.classes, cells)
    return shares


def _target(context: ExecutionContext) -> int:
    return context.config.target_partition_bytes
