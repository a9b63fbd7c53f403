"""The tasks of a window union over tables in memory, without Spark: what the product's routers send to each of them,
and how long its operator takes there. For measurements."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sqlext_planner.config import Config
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.exchange.wire import WireColumns
from sqlext_planner.window.inputs import operator_spec, wire_calls, wire_windows
from sqlext_planner.window.routing import window_routers

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlext_operators.exchange.routing import Router
    from sqlext_operators.window.spec import WindowUnionSpec

    from sqlext_planner.window.execution import WindowUnionExec


@dataclass(frozen=True, eq=False)
class Sent:
    """Where the rows of one input go: row rows[i] (int64) to partition pids[i] (int32), in any order. owned[i] (bool):
    its result is computed there; False for rows of union sources and for copies of FROM rows."""

    rows: npt.NDArray[np.int64]
    pids: npt.NDArray[np.int32]
    owned: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class WindowTasks:
    """A planned window union over one table for each input, FROM first, whose columns are the sources' in their order.

    Keys, order and arguments are plain columns. `partitions` are those of the exchange.
    """

    spec: WindowUnionSpec
    routers: tuple[Router, ...]
    inputs: tuple[pa.RecordBatch, ...]
    partitions: int
    config: Config

    @classmethod
    def of(cls, planned: WindowUnionExec, tables: Sequence[pa.Table], partitions: int, config: Config) -> WindowTasks:
        """Raises UnsupportedError for computed keys, orders and arguments, and for what orders ties."""
        from sqlext_operators.window.spec import WindowUnionSpec

        wire = WireColumns()
        node = planned.node
        calls = wire_calls(node, wire)
        keys = tuple(wire.name(key) for key in node.partition_by)
        order = None if node.order_by is None else wire.name(node.order_by)
        if wire.computed or node.tie_order is not None or node.further:
            raise UnsupportedError(
                "windows over tables in memory have plain columns as keys and arguments, and one as order",
                condition="unsupported-clause",
            )
        order_type = next((item.dtype for item in node.source.output if item.column == node.order_by), None)
        payload = tuple(item.column.spark_name for item in node.payload_fields)
        spec = WindowUnionSpec(keys, order, payload, wire_windows(node, calls, order_type))
        names = [item.column.spark_name for item in node.source.output]
        read = [column.spark_name for column in wire.plain]
        wanted = [list(dict.fromkeys((*payload, *read))), *[read] * (len(tables) - 1)]
        inputs = tuple(
            table.rename_columns(names).select(columns).combine_chunks().to_batches()[0]
            for table, columns in zip(tables, wanted, strict=True)
        )
        routers = window_routers(spec, planned.partitioning, len(inputs))
        return cls(spec, routers, inputs, partitions, config)

    @property
    def reach(self) -> tuple[int, int] | None:
        """How far the windows reach before and after a row, in units of the order; None: without bounds in time."""
        from sqlext_operators.window.reach import time_reach

        return time_reach(self.spec)

    def sent(self, number: int) -> Iterator[Sent]:
        """Where the rows of an input go, a part of its rows at a time."""
        from sqlext_operators.exchange.placed import COPY

        batch, start = self.inputs[number], 0
        while start < batch.num_rows:
            rest = batch.slice(start)
            routes = self.routers[number].route(rest, self.partitions)
            rows = np.arange(len(routes.pids)) if routes.rows is None else routes.rows
            owned = np.full(len(rows), number == 0)
            marks = {} if routes.added is None else routes.added(start)
            if COPY in marks:
                owned = ~marks[COPY].to_numpy(zero_copy_only=False)
            yield Sent(rows + start, routes.pids, owned)
            start += rest.num_rows if routes.done is None else routes.done

    def seconds(self, pid: int) -> float:
        """How long one thread takes for the task of a partition: from the wire rows, which are in memory, to the last
        result."""
        from sqlext_operators.exchange.operator import run_operator

        operator = operator_spec(self.spec, None, len(self.inputs), self.config)
        wires = self._wires.get(pid, [])
        start = time.perf_counter()
        for _ in run_operator(operator, pid, wires):
            pass
        return time.perf_counter() - start

    @cached_property
    def _wires(self) -> dict[int, list[pa.RecordBatch]]:
        """The wire rows of each partition."""
        from sqlext_operators.exchange.scatter import ScatterSpec, scatter

        found: dict[int, list[pa.RecordBatch]] = {}
        for tag, (batch, router) in enumerate(zip(self.inputs, self.routers, strict=True)):
            spec = ScatterSpec(tag, tuple(batch.schema.names), router, self.partitions, self.config.block_bytes)
            for wire in scatter(spec, 0, [batch]):
                for place, pid in enumerate(wire.column(0).to_pylist()):
                    found.setdefault(pid, []).append(wire.slice(place, 1))
        return found


def key_places(node: WindowUnionExec, keys: pa.Array) -> npt.NDArray[np.int64]:
    """int64[keys], in how many partitions the rows of each key may be, for one partition key."""
    from sqlext_operators.columns.keys import hash_keys

    from sqlext_planner.exchange.partitioning.loads import slot_of

    placement = None if node.partitioning is None else node.partitioning.placement
    if placement is None:
        return np.ones(len(keys), np.int64)
    hashes = hash_keys([keys])
    own = {place.key: len(place.team) for place in placement.keys}
    slots = slot_of(hashes, len(placement.slots)).tolist()
    sizes = [own.get(key, len(placement.slots[slot])) for key, slot in zip(hashes.tolist(), slots, strict=True)]
    return np.array(sizes, np.int64)


def key_cuts(node: WindowUnionExec, keys: pa.Array) -> list[tuple[int, ...]]:
    """Where the times of each key are cut, in units of the order; none for keys that are not cut."""
    from sqlext_operators.columns.keys import hash_keys

    placement = None if node.partitioning is None else node.partitioning.placement
    own = {} if placement is None else {place.key: place.cuts or () for place in placement.keys}
    return [own.get(key, ()) for key in hash_keys([keys]).tolist()]
