"""Sorting the rows of N inputs into one sequence: group, order key, further keys, source, input order; and the runs of
consecutive rows of it that the exchange hands to operators that sweep it.

docs/reference/windows.md, section 3, says why in this order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.columns.batches import take_rows
from sqlext_operators.columns.codes import order_codes, order_with_nulls
from sqlext_operators.columns.compact import concatenate, plain_column, plain_type, together
from sqlext_operators.columns.flat import valid_mask
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.columns.reshape import rows_without_columns, stacked
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.placed import COPY
from sqlext_operators.exchange.profile import measured
from sqlext_operators.kernels.sequence_sort import (
    COPIED,
    fill_groups,
    fill_sources,
    first_rows,
    group_rows,
    sort_groups,
)

FROM = 0
#: Groups are ranked by their keys up to this many: sorting the keys then takes 5 ms (integers) to 13 ms (strings).
MOST_RANKED_GROUPS = 65_536


@dataclass(frozen=True)
class Piece:
    """n rows in sequence order: group, then order, then union rows before FROM rows, then input order.

    At equal order the union sources come last listed first (source 3, 2, 1), then FROM (source 0), so that the
    first listed union is the newest (docs/reference/windows.md, section 3).

    group    int64[n], non-decreasing; equal keys have equal ids, and ids keep their meaning in later pieces of the
             same partition (a key that is cut in two continues under the same id)
    order    int64[n], non-decreasing in a group; all zero without an order column; columns.order.NULL_ORDER for NULL
    source   uint8[n], 0 for FROM, i for the i-th union source, COPIED for FROM rows that have no result here
    args     argument columns by name, length n each
    payload  the columns passed through, one row for each row of source 0, in sequence order
    """

    group: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    source: npt.NDArray[np.uint8]
    args: dict[str, pa.Array]
    payload: pa.RecordBatch

    def part(self, rows: slice, payload: slice) -> Piece:
        """Some consecutive rows, and rows of the payload, as views."""
        start, stop, _ = rows.indices(len(self.group))
        first, last, _ = payload.indices(self.payload.num_rows)
        args = {name: array.slice(start, stop - start) for name, array in self.args.items()}
        shown = (
            self.payload.slice(first, last - first) if self.payload.num_columns else rows_without_columns(last - first)
        )
        return Piece(self.group[rows], self.order[rows], self.source[rows], args, shown)

    def copied(self) -> Piece:
        """The rows by themselves: a view keeps the whole piece in memory."""
        args = {name: array.take(pa.array(np.arange(len(array)))) for name, array in self.args.items()}
        payload = take_rows(self.payload, np.arange(self.payload.num_rows))
        return Piece(self.group.copy(), self.order.copy(), self.source.copy(), args, payload)


def joined(pieces: Sequence[Piece]) -> Piece:
    """Consecutive pieces (at least one) as one."""
    if len(pieces) == 1:
        return pieces[0]
    payloads = [piece.payload for piece in pieces if piece.payload.num_rows]
    return Piece(
        group=np.concatenate([piece.group for piece in pieces]),
        order=np.concatenate([piece.order for piece in pieces]),
        source=np.concatenate([piece.source for piece in pieces]),
        args={name: pa.concat_arrays([piece.args[name] for piece in pieces]) for name in pieces[0].args},
        payload=stacked(payloads) if payloads else pieces[-1].payload,
    )


class Processor(Protocol):
    """Takes pieces in order. `held` is how many rows or values it keeps from earlier pieces and goes through with
    every new one."""

    @property
    def held(self) -> int: ...

    def process(self, piece: Piece, last: bool) -> Iterator[pa.RecordBatch]: ...


#: A piece has at least one row for this many that its processor holds.
_HELD_A_ROW = 4


def processed(
    pieces: Iterable[tuple[Piece, bool]], processor_of: Callable[[Piece], Processor], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """The results for (piece, is it the last one), in batches of at most `batch_rows` rows; nothing without a piece.

    `processor_of` gets the first piece. Pieces are joined until they are worth going through what the processor holds:
    pieces of one size would make that quadratic in the rows of a group. Memory grows by a quarter of what is held.
    """
    processor: Processor | None = None
    waiting: list[Piece] = []
    for piece, last in pieces:
        processor = processor or processor_of(piece)
        waiting.append(piece)
        if not last and _HELD_A_ROW * sum(len(one.group) for one in waiting) < processor.held:
            continue
        for batch in processor.process(joined(waiting), last):
            for start in range(0, batch.num_rows, batch_rows):
                yield batch.slice(start, batch_rows)
        waiting = []


@dataclass(frozen=True)
class FurtherKey:
    """A column of any type with an order, by which rows of equal order keys are sorted."""

    name: str
    descending: bool = False
    nulls_first: bool = True

    def codes(self, column: pa.Array) -> list[npt.NDArray[np.int64]]:
        """Arrays int64[n], the first one first, in the order of the key; those of two columns cannot be compared."""
        column = plain_column(column)
        valid, codes = valid_mask(column), order_codes(column)
        codes = ~codes if self.descending else codes
        if valid is None:
            return [codes]
        return [(valid if self.nulls_first else ~valid).astype(np.int64), np.where(valid, codes, 0)]


@dataclass(frozen=True)
class SequenceSpec:
    """How the rows of a partition become pieces; names are those of the columns on the wire.

    Every input has the key, order and argument columns and those of `further`, which sort rows of equal order keys
    before their source and input order do. Input FROM (tag 0) has the payload columns too. FROM rows that are equal in
    all else come in the order of its column `tie_order` (bigint, unique), without it in input order.
    Those that a column COPY marks have the source COPIED.
    Strings of blocks may be dictionaries (`columns/compact.py`), and those of pieces are then.
    Blocks are collected up to `memory_bytes`, then sorted runs go to disk; a task's peak is about four times
    that (blocks, their concatenation, codes and permutation at 25 bytes a row, one piece).
    """

    keys: tuple[str, ...]
    order: str | None
    args: tuple[str, ...]
    payload: tuple[str, ...]
    tie_order: str | None = None
    further: tuple[FurtherKey, ...] = ()
    memory_bytes: int = 256 << 20
    piece_rows: int = 4_000_000


class SortedRun:
    """The sequence of some blocks of a partition, in memory.

    Rows are kept where they are (unions, last listed first, then FROM; each by input position) and a
    permutation of them is sorted: columns are gathered piece by piece.

    Groups are in the order of their codes, which is that of first appearance. `ranked` (only for codes that have
    seen no other rows): they are in descending order of the keys, NULL last, the order in which OpenMLDB's batch
    engine returns them, if there are at most MOST_RANKED_GROUPS; group numbers are then ranks, not codes.
    Ranking costs less than the noise of the whole sort (10M rows with 100 keys 235 ms, 2M with 50,000 string keys
    180 ms); with 1M distinct keys it would add 125 ms to 250 (integers) and 510 ms to 550 (strings), hence the limit.
    """

    def __init__(self, spec: SequenceSpec, codes: KeyCodes, blocks: Sequence[Block], *, ranked: bool = False) -> None:
        ordered = sorted(blocks, key=lambda block: (-block.tag, block.seq))
        if spec.tie_order is not None:
            ordered = _from_in_order(ordered, spec.tie_order)
        tags = np.array([block.tag for block in ordered], np.uint8)
        ends = np.cumsum([block.batch.num_rows for block in ordered])
        from_blocks = [block.batch for block in ordered if block.tag == FROM]
        batches = [block.batch for block in ordered]
        types = (from_blocks or batches)[0].schema  # FROM's types are the common ones

        def column(name: str) -> pa.Array:
            return concatenate([batch.column(name) for batch in batches], plain_type(types.field(name).type))

        self._positions = [_positions(block, spec.tie_order) for block in ordered]
        self.rows_in_memory = int(ends[-1])
        self._from_start = self.rows_in_memory - sum(batch.num_rows for batch in from_blocks)
        self.args = {name: column(name) for name in spec.args}
        self.payload = _payload(from_blocks, spec.payload) if from_blocks else None
        keys = [column(name) for name in spec.keys]
        order = order_with_nulls(column(spec.order)) if spec.order else None
        self.further = {key.name: column(key.name) for key in spec.further}
        minor = [part for key in spec.further for part in key.codes(self.further[key.name])]
        self._sort(keys, order, minor, codes, ranked)
        self.source = np.empty(self.rows_in_memory, np.uint8)
        fill_sources(self._rows, ends, tags, self.source)
        if any(COPY in batch.schema.names for batch in from_blocks):
            self._mark_copies(concatenate([batch.column(COPY) for batch in from_blocks], pa.bool_()))

    def _sort(
        self,
        keys: list[pa.Array],
        order: npt.NDArray[np.int64] | None,
        minor: list[npt.NDArray[np.int64]],
        codes: KeyCodes,
        ranked: bool,
    ) -> None:
        count = self.rows_in_memory
        group = codes.encode(keys) if keys else np.zeros(count, np.int64)
        groups = len(codes) if keys else 1
        ranking = descending(keys, group, groups) if ranked and groups <= MOST_RANKED_GROUPS else np.arange(groups)
        starts = np.empty(groups + 1, np.int64)
        self._rows = np.empty(count, np.int32)
        self.order = np.empty(count, np.int64)
        values = np.zeros(count, np.int64) if order is None else order
        given = np.lexsort(minor[::-1]).astype(np.int32) if minor else None
        if given is None:
            group_rows(group, values, ranking, starts, self._rows, self.order)
        else:
            group_rows(group[given], values[given], ranking, starts, self._rows, self.order)
            self._rows = given[self._rows]
        if order is not None:
            sort_groups(starts, self.order, self._rows)
        self.group = group  # every value is overwritten, in the sorted order
        fill_groups(starts, self.group)

    def _mark_copies(self, column: pa.Array) -> None:
        places = np.flatnonzero(self.source == FROM)
        is_copy = column.to_numpy(zero_copy_only=False)[self._rows[places] - self._from_start]
        self.source[places[is_copy]] = COPIED

    def pieces(self, rows: int) -> Iterator[Piece]:
        """The sequence in pieces of at most `rows` rows."""
        for start in range(0, self.rows_in_memory, rows):
            yield self._piece(slice(start, min(start + rows, self.rows_in_memory)))

    def further_columns(self, part: slice) -> dict[str, pa.Array]:
        """The further keys of a part of the sequence."""
        return {name: column.take(pa.array(self._rows[part])) for name, column in self.further.items()}

    def ties(self) -> npt.NDArray[np.int64]:
        """int64[n]: input positions in sequence order; they order rows that are equal in all else."""
        return np.asarray(np.concatenate([position() for position in self._positions])[self._rows])

    def _piece(self, part: slice) -> Piece:
        rows, source = self._rows[part], self.source[part]
        indices = pa.array(rows)
        args = {name: column.take(indices) for name, column in self.args.items()}
        if self.payload is None:
            payload = rows_without_columns(0)
        else:
            with measured("output"):
                payload = take_rows(self.payload, rows[source == FROM] - np.int32(self._from_start))
        return Piece(self.group[part], self.order[part], source, args, payload)


def _from_in_order(blocks: Sequence[Block], tie_order: str) -> list[Block]:
    """The blocks with those of FROM as one, its rows in the order of the column `tie_order`."""
    rows = [block.batch for block in blocks if block.tag == FROM]
    if not rows:
        return list(blocks)
    from_rows = together(rows)
    ties = from_rows.column(tie_order).to_numpy(zero_copy_only=False)
    in_order = from_rows.take(pa.array(np.argsort(ties, kind="stable")))
    others = [block for block in blocks if block.tag != FROM]
    return [*others, Block(blocks[0].pid, FROM, 0, in_order)]


def _positions(block: Block, tie_order: str | None) -> Callable[[], npt.NDArray[np.int64]]:
    """Returns a function for the input positions of a block's rows: only spilled runs need them."""
    if tie_order is None or block.tag != FROM:
        return partial(np.arange, block.seq, block.seq + block.batch.num_rows, dtype=np.int64)
    ties = block.batch.column(tie_order)
    return partial(ties.to_numpy, zero_copy_only=False)


def descending(keys: Sequence[pa.Array], group: npt.NDArray[np.int64], groups: int) -> npt.NDArray[np.int64]:
    """int64[groups], the codes (dense, by first appearance) in descending order of their keys, NULL last."""
    if groups == 1:
        return np.zeros(1, np.int64)
    firsts = np.empty(groups, np.int64)
    first_rows(group, firsts)
    names = [str(place) for place in range(len(keys))]
    distinct = pa.table([plain_column(column.take(pa.array(firsts))) for column in keys], names=names)
    ranking = pc.sort_indices(distinct, sort_keys=[(name, "descending") for name in names])
    return np.asarray(ranking.to_numpy(), dtype=np.int64)


def _payload(batches: Sequence[pa.RecordBatch], names: Sequence[str]) -> pa.RecordBatch:
    return together([batch.select(list(names)) for batch in batches])
