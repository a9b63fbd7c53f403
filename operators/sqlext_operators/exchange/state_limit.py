"""The most that a bucket of a stream may keep: beyond it the query fails, with the key that has the most rows."""

from __future__ import annotations

import pyarrow as pa

from sqlext_operators.errors import TaskError
from sqlext_operators.exchange.chunks import ChunkStore
from sqlext_operators.exchange.stream import StreamOperator

_MIB = 1 << 20
#: The longest shown key, in characters.
_SHOWN = 80


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
    found: dict[int, pa.Table] = {}
    for chunk in store.all():
        places = operator.keys(chunk.kind)
        if places and chunk.rows:
            batch = store.read(chunk)
            names = [f"k{n}" for n in range(len(places))]
            keys = pa.table([batch.column(place) for place in places], names=names)
            counts = keys.group_by(names).aggregate([([], "count_all")]).rename_columns([*names, "rows"])
            before = found.get(chunk.kind)
            if before is not None:
                both = pa.concat_tables([before, counts])
                counts = both.group_by(names).aggregate([("rows", "sum")]).rename_columns([*names, "rows"])
            found[chunk.kind] = counts
    most = [table.sort_by([("rows", "descending")]).slice(0, 1).to_pylist()[0] for table in found.values()]
    if not most:
        return None
    *keys, rows = max(most, key=lambda row: int(row["rows"])).values()
    shown = repr(keys[0]) if len(keys) == 1 else f"({', '.join(map(repr, keys))})"
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}...", int(rows)


def _counted(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"
