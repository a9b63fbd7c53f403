"""What an operator on streams is to the exchange: it goes from one watermark to the next, with its rows in chunks.

New rows come in through `admitted`, which tells late rows from others and counts them in `Progress` (early/stream.py
has one of its own). `check_size` has the most that a bucket may keep: beyond it the query fails, with the key that has
the most rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.batches import whole
from sqlext_operators.columns.codes import NULL_ORDER, order_values
from sqlext_operators.errors import RowError, TaskError
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.chunks import ChunkStore
from sqlext_operators.exchange.placed import owned_rows

#: What is done with rows that are late or have no time: leave them out, fail, or give them out as they are.
Late = Literal["drop", "fail", "rows"]
_MIB = 1 << 20
#: Beyond all times.
FAR = 1 << 62
#: The most chunks that one input's rows of one micro-batch are cut into.
_MOST_CHUNKS = 16
#: The longest shown key, in characters.
_SHOWN = 80


@dataclass
class Progress:
    """What one step did, in rows: read, of them too late, of them without a time, and given out (the caller of the step
    counts these)."""

    rows: int = 0
    late: int = 0
    timeless: int = 0
    results: int = 0


@dataclass(frozen=True)
class Expiry:
    """From when on rows to come have nothing to do with the rows that are kept; None: none is kept.

    owned   the least watermark at which no row to come is in a result with a kept row of the owned input
    copied  the least time at which no row of the owned input is in a result with a kept row of the others

    Both hold whatever the order of arrival is: they follow from the values of single rows.
    """

    owned: int | None = None
    copied: int | None = None


class StreamOperator(Protocol):
    """An operator over one bucket of a stream. It holds nothing between two steps: all that lasts is in the store.

    step      new rows of one micro-batch, then the watermark (in units of the order column; None: there is none yet):
              no row below it is answered any more. `store.watermark` is that of the step before. Gives the results
              that have become final. The iterator must be exhausted.
    wakes_at  the least watermark at which there is something to do without new rows; None: never
    expiry    until when the rows that are kept may be in a result, on streams that place their keys
    rows      how many rows are kept
    keys      the places of the key columns in chunks of a kind; none for chunks that do not hold rows by key
    """

    def step(
        self, store: ChunkStore, new: Sequence[Block], watermark: int | None, progress: Progress
    ) -> Iterator[pa.RecordBatch]: ...

    def wakes_at(self, store: ChunkStore) -> int | None: ...

    def expiry(self, store: ChunkStore) -> Expiry: ...

    def rows(self, store: ChunkStore) -> int: ...

    def keys(self, kind: int) -> tuple[int, ...]: ...


class StreamSpec(Protocol):
    """Plain frozen data from which a worker makes an operator on streams; picklable, with no SQL and no Spark in it.

    `cache_bytes` are the bytes of decoded chunks that a worker process should keep at hand.
    """

    @property
    def cache_bytes(self) -> int: ...

    def stream(self) -> StreamOperator: ...


@dataclass(frozen=True)
class Admitted:
    """The new rows of an input: all of them in `batch`, the numbers of those in time (int64), and their times; and the
    numbers of others, those below the watermark and those without a time."""

    batch: pa.RecordBatch
    rows: Int64s
    times: Int64s
    late: Int64s
    timeless: Int64s


def admitted(
    batches: Sequence[pa.RecordBatch],
    order: str,
    watermark: int | None,
    progress: Progress,
    *,
    fails: bool,
    timed: bool = True,
) -> Admitted:
    """The rows of an input (one batch at least) with a time in the column `order` that is not below `watermark`, the
    one of the step before. Counts the rows. Raises RowError for others if `fails` is set. Copies (`placed.COPY`) are
    neither counted nor among the others: their owners tell of them. Where nothing reads the times (not `timed`), a row
    without one counts as one that has just come."""
    batch = batches[0] if len(batches) == 1 else whole(batches[0].schema, batches)
    times = order_values(batch.column(order))
    owned = owned_rows(batch)
    timeless = times == NULL_ORDER
    if not timed:
        times, timeless = np.where(timeless, watermark or 0, times), np.zeros_like(timeless)
    late = ~timeless & (times < watermark) if watermark is not None else np.zeros_like(timeless)
    rows = np.flatnonzero(~(timeless | late))
    split = Admitted(batch, rows, times[rows], np.flatnonzero(late & owned), np.flatnonzero(timeless & owned))
    progress.rows += int(np.count_nonzero(owned))
    progress.late += len(split.late)
    progress.timeless += len(split.timeless)
    if fails and (len(split.late) or len(split.timeless)):
        raise late_error(len(split.late), len(split.timeless))
    return split


def cut_by_time(times: Int64s, span: int | None) -> Iterator[tuple[int, int]]:
    """Stretches [start, end) of rows that become chunks: one whose rows are kept for `span` (None: for ever) spans no
    more, so that it can go soon after them, but for rows whose times span very much. `times` are ascending."""
    extent = int(times[-1]) - int(times[0])
    width = max(extent if span is None else span, extent // _MOST_CHUNKS) + 1
    edges = list(range(int(times[0]), int(times[-1]) + 1, width))
    return pairwise(np.unique([*np.searchsorted(times, edges).tolist(), len(times)]).tolist())


def late_error(late: int, timeless: int) -> RowError:
    """The error for rows that are left out, where they are not to be."""
    told = [f"{_counted(late)} older than the watermark"] if late else []
    told += [f"{_counted(timeless)} without a time"] if timeless else []
    return RowError(
        f"a statement over a stream got {' and '.join(told)}",
        "allow more delay in the watermark, leave out rows without a time, or set sqlext.stream.late to drop, "
        "which counts and drops such rows, or to rows, which gives them out without results",
        condition="late-rows",
    )


def _counted(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"


def check_size(store: ChunkStore, operator: StreamOperator, limit: int) -> None:
    """Raises TaskError if the chunks have more than `limit` bytes. What the step has done does not count then: it is
    done again when the query starts again, and no row is lost."""
    size = sum(chunk.size for chunk in store.all())
    if size <= limit:
        return
    rows = f"{operator.rows(store):,} rows"
    largest = largest_key(store, operator)
    most = "" if largest is None else f"; the largest key is {largest[0]} with {_counted(largest[1])}"
    raise TaskError(
        f"the state of the stream has {size / _MIB:,.1f} MiB ({rows}) in one bucket of keys, and "
        f"sqlext.stream.stateBytes allows {limit / _MIB:,.1f} MiB{most}",
        "bound how long rows are kept (EXPLAIN shows it), leave out such a key, or raise sqlext.stream.stateBytes; "
        "the query then goes on from its checkpoint",
        condition="stream-state-too-large",
    )


def largest_key(store: ChunkStore, operator: StreamOperator) -> tuple[str, int] | None:
    """The key with the most rows of one kind of chunks, as text, and these rows; None without keys."""
    counts_by_kind: dict[int, pa.Table] = {}
    for chunk in store.all():
        places = operator.keys(chunk.kind)
        if places and chunk.rows:
            batch = store.read(chunk)
            names = [f"k{n}" for n in range(len(places))]
            keys = pa.table([batch.column(place) for place in places], names=names)
            counts = keys.group_by(names).aggregate([([], "count_all")]).rename_columns([*names, "rows"])
            before = counts_by_kind.get(chunk.kind)
            if before is not None:
                both = pa.concat_tables([before, counts])
                counts = both.group_by(names).aggregate([("rows", "sum")]).rename_columns([*names, "rows"])
            counts_by_kind[chunk.kind] = counts
    most = [table.sort_by([("rows", "descending")]).slice(0, 1).to_pylist()[0] for table in counts_by_kind.values()]
    if not most:
        return None
    *keys, rows = max(most, key=lambda row: int(row["rows"])).values()
    shown = repr(keys[0]) if len(keys) == 1 else f"({', '.join(map(repr, keys))})"
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}...", int(rows)
