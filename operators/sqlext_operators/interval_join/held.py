"""Rows that have come in earlier micro-batches, prepared once for all that follow: grouped by key and sorted.

A few new rows are windows over them. What a micro-batch costs is then about its own rows and its pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Int32s, Int64s, first_places, ranges
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.columns.reshape import rows_without_columns
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.kernels.held import block_maxima, fill_held_pairs
from sqlext_operators.interval_join.matches import Buffers, CodedProbes, WindowSlices, shift_of, strictness, values_used
from sqlext_operators.interval_join.passes import Pass, Side, other_side
from sqlext_operators.interval_join.rows import Sorted
from sqlext_operators.interval_join.spec import IntervalJoinSpec
from sqlext_operators.interval_join.stream_sides import StreamRows

_ALL = np.iinfo(np.int64).max

#: A way to look at held rows: the conditions of a pair, and the pass that finds the pairs by the other side's windows.
Search = tuple[Sequence[Condition], Pass]


def searches_of(join: IntervalJoinSpec, side: Side) -> tuple[Search, ...]:
    """For each alternative of a join, how rows of `side` are found."""
    return tuple(zip(join.alternatives, join.window_passes(other_side(side)), strict=True))


@dataclass(frozen=True)
class HeldProbes:
    """The probe side of a pass (`matches.Probes`): conditions on the probe value with a shift have their own ranks."""

    order: Sorted
    shifted: Mapping[Condition, Int64s]
    compared: Int64s

    def ranks(self, condition: Condition) -> Int64s:
        """Of each place, what the condition compares."""
        return self.shifted.get(condition, self.order.codes)

    def residual(self) -> Int64s:
        """Of each place, what each residual condition compares."""
        return self.compared


class HeldRows:
    """Prepared rows of one side, as `prepared` has made them. Memory for each row besides its payload: 8 bytes for its
    id, and for each alternative 12, and 8 for each condition that does not only cut the sorted values."""

    def __init__(self, join: IntervalJoinSpec, side: Side, parts: pa.RecordBatch, searches: Sequence[Search]) -> None:
        self._side, self._parts, self._searches = side, parts, searches
        self.ids = self._array("ids")
        payload = join.side(side).payload
        columns = [self._column(f"payload {place}") for place in range(len(payload))]
        self.rows = (
            pa.RecordBatch.from_arrays(columns, names=list(payload)) if payload else rows_without_columns(len(self.ids))
        )

    def pairs(
        self, new: StreamRows, buffers: Buffers, numbers: Sequence[int] | None = None, *, first: bool = False
    ) -> Iterator[tuple[Int32s, Int32s]]:
        """(new rows, held rows) of the pairs with rows of the other side, in slices of the buffers, each pair once for
        each search (of these numbers); with `first` one pair at least of each new row that has one, and not many
        more."""
        window = other_side(self._side)
        coded = new.coded(self._groups_of(new), self._group_count)
        for number in range(len(self._searches)) if numbers is None else numbers:
            conditions, item = self._searches[number]
            probes = self._probes(number, item)
            used = values_used(conditions)[0 if window == "left" else 1]
            slices = WindowSlices(item, coded, used, probes)
            head = (slices.rows, slices.low, slices.high, probes.order.rows)
            tested = (slices.residual(), probes.compared, strictness(item.residual))
            tree = self._array(f"maxima {number}"), self._array(f"levels {number}")
            state = np.zeros(3, np.int64)
            while state[0] < len(slices.rows):
                most = 1 if first else _ALL
                count = fill_held_pairs(*head, *tested, *tree, most, state, buffers.window, buffers.probe)
                if count:
                    yield buffers.window[:count], buffers.probe[:count]

    @property
    def _group_count(self) -> int:
        return max(1, len(self._hashes))

    @cached_property
    def _hashes(self) -> npt.NDArray[np.uint64]:
        """Those of the keys of all groups, ascending."""
        return self._array("hashes").view(np.uint64)

    def _groups_of(self, new: StreamRows) -> Int64s:
        """int64[n], the group that has a row's keys, -1 where none has. Only groups with a hash that occurs are looked
        at; equal hashes decide nothing."""
        if not new.keys:
            return np.zeros(len(new), np.int64)
        low = np.searchsorted(self._hashes, new.distinct_hashes, "left")
        counts = np.searchsorted(self._hashes, new.distinct_hashes, "right") - low
        places = ranges(low, counts)
        known = KeyCodes(len(new.keys))
        known.encode([self._column(f"key {n}").take(pa.array(places)) for n in range(len(new.keys))])
        codes = known.find(new.keys)
        return np.append(places, -1)[codes]

    def _probes(self, number: int, item: Pass) -> HeldProbes:
        rows: Int32s = self._column(f"rows {number}").to_numpy()
        order = Sorted(rows, self._array(f"codes {number}"), self._array(f"starts {number}"))
        shifted = {
            condition: self._array(f"shifted {number} {place}")
            for place, condition in enumerate(item.lowers + item.uppers)
            if shift_of(item, condition, "probe")
        }
        compared = self._array(f"compared {number}").reshape(len(item.residual), len(order.rows))
        return HeldProbes(order, shifted, compared)

    def _column(self, name: str) -> pa.Array:
        return self._parts.column(name).values

    def _array(self, name: str) -> npt.NDArray[np.int64]:
        found: npt.NDArray[np.int64] = self._column(name).to_numpy()
        return found


def prepared(
    join: IntervalJoinSpec, side: Side, rows: pa.RecordBatch, ids: Int64s, searches: Sequence[Search]
) -> pa.RecordBatch:
    """What `HeldRows` needs of rows, all of which may match, and their ids, as one row with a list in each column."""
    held = StreamRows(join, side, rows)
    group, parts = _grouped(held)
    groups = max(1, len(parts["hashes"]))
    coded = held.coded(group, groups)
    rank: Int64s | None = None
    for number, (conditions, item) in enumerate(searches):
        probes = CodedProbes(item, coded, values_used(conditions)[0 if side == "left" else 1])
        if rank is None:  # rows that are near in the first order are near in memory
            taken, rank = _leading(probes.order.rows, len(held))
            for place, name in enumerate(join.side(side).payload):
                parts[f"payload {place}"] = rows.column(name).take(pa.array(taken))
            parts["ids"] = ids[taken]
        parts[f"rows {number}"] = rank[probes.order.rows].astype(np.int32)
        parts[f"codes {number}"] = probes.order.codes
        parts[f"starts {number}"] = probes.order.starts
        for place, condition in enumerate(item.lowers + item.uppers):
            if shift_of(item, condition, "probe"):
                parts[f"shifted {number} {place}"] = probes.ranks(condition)
        compared = probes.residual()
        parts[f"compared {number}"] = compared.ravel()
        maxima = block_maxima(compared[0] if len(compared) else np.zeros(0, np.int64))
        parts[f"maxima {number}"], parts[f"levels {number}"] = maxima
    return listed(parts)


def listed(parts: Mapping[str, pa.Array | npt.NDArray[np.generic]]) -> pa.RecordBatch:
    """Columns of any length as one row with a list in each."""
    columns = [_as_list(part if isinstance(part, pa.Array) else pa.array(part)) for part in parts.values()]
    return pa.RecordBatch.from_arrays(columns, names=list(parts))


def _grouped(held: StreamRows) -> tuple[Int64s, dict[str, pa.Array | npt.NDArray[np.generic]]]:
    """(each row's group, of each group its hash as int64 and its keys), in the order of the hashes as uint64."""
    if not held.keys:
        return np.zeros(len(held), np.int64), {"hashes": np.zeros(0, np.int64)}
    codes = KeyCodes(len(held.keys))
    code = codes.encode(held.keys)
    first = first_places(code, len(codes))
    order = np.argsort(held.hashes[first], kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    first = first[order]
    parts: dict[str, pa.Array | npt.NDArray[np.generic]] = {"hashes": held.hashes[first].view(np.int64)}
    parts |= {f"key {place}": column.take(pa.array(first)) for place, column in enumerate(held.keys)}
    return rank[code], parts


def _leading(rows: Int32s, count: int) -> tuple[Int64s, Int64s]:
    """(all rows, these first, the place of each row there)."""
    others = np.ones(count, np.bool_)
    others[rows] = False
    taken = np.concatenate([rows.astype(np.int64), np.flatnonzero(others)])
    rank = np.empty(count, np.int64)
    rank[taken] = np.arange(count)
    return taken, rank


def _as_list(values: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)
