"""The kernels of interval joins on tables in memory, one thread, without Spark: what benchmarks measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from sqlext_operators.arrays import Int32s
from sqlext_operators.interval_join.relations import LEFT_PERIOD, RELATIONS, RIGHT_PERIOD

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlext_operators.interval_join.rows import CodedRows

Pairs = Iterator[tuple[Int32s, Int32s]]

#: Pairs in a batch, which stays in a core's cache. 1M x 1M rows, 50M pairs: 0.30 s; with 2^20 pairs 0.41 s.
BATCH_PAIRS = 1 << 16


def kernel_pairs(kernel: str, relation: str, left: pa.Table, right: pa.Table, **parameters: float) -> Pairs:
    """The pairs (left rows int32[k], right rows int32[k]) of two tables with columns ts and te, int64 without NULLs.

    `kernel` is one of KERNELS, `relation` a name of the table of relations, `parameters` its delta and epsilon. The
    arrays are valid until the next ones are requested. Raises KeyError for an unknown kernel or relation, ValueError
    for a parameter that does not fit.
    """
    return KERNELS[kernel](relation, left, right, parameters)


def kernel_checksums(
    kernel: str, relation: str, left: pa.Table, right: pa.Table, *, mix: bool = False, **parameters: float
) -> dict[str, int]:
    """All pairs, consumed: n, their number; l and r, the sums of both row numbers; and with `mix` the sum of
    l * (r % 1009). Raises as `kernel_pairs`."""
    count = first = second = mixed = 0
    for rows, others in kernel_pairs(kernel, relation, left, right, **parameters):
        count += len(rows)
        first += int(rows.sum(dtype=np.int64))
        second += int(others.sum(dtype=np.int64))
        if mix:
            mixed += int(np.dot(rows.astype(np.int64), (others % 1009).astype(np.int64)))
    return {"n": count, "l": first, "r": second} | ({"mix": mixed} if mix else {})


def _slices(relation: str, left: pa.Table, right: pa.Table, parameters: Mapping[str, float]) -> Pairs:
    """The batch form: slices of sorted probe values (docs/reference/sweeps.md, section 5)."""
    from sqlext_operators.interval_join.matches import Buffers, PassMatches, values_used

    sides = {"left": _coded(left, LEFT_PERIOD), "right": _coded(right, RIGHT_PERIOD)}
    used = values_used(RELATIONS[relation].conditions(**parameters))
    buffers = Buffers.of(BATCH_PAIRS)
    for item in RELATIONS[relation].passes(**parameters):
        ours = item.window == "left"
        window, probe = (sides["left"], sides["right"]) if ours else (sides["right"], sides["left"])
        rows, others = (buffers.window, buffers.probe) if ours else (buffers.probe, buffers.window)
        for count in PassMatches(item, window, probe, used if ours else used[::-1]).pairs(buffers):
            yield rows[:count], others[:count]


def _coded(table: pa.Table, period: tuple[str, str]) -> CodedRows:
    import pyarrow as pa
    from sqlext_operators.interval_join.codes import periods_of, plain_codes
    from sqlext_operators.interval_join.rows import CodedRows
    from sqlext_operators.interval_join.spec import IntervalSide

    columns = {name: table[column].combine_chunks() for name, column in zip(period, ("ts", "te"), strict=True)}
    rows = pa.RecordBatch.from_pydict(columns)
    periods = periods_of(IntervalSide(values=period, periods=(period,)), rows, "drop")
    return CodedRows(rows, np.zeros(len(rows), np.int64), 1, dict.fromkeys(period, plain_codes), periods)


def _sweep(lazy: bool) -> Callable[[str, pa.Table, pa.Table, Mapping[str, float]], Pairs]:
    """A sweep over endpoints (docs/reference/sweeps.md, section 2)."""

    def pairs(relation: str, left: pa.Table, right: pa.Table, parameters: Mapping[str, float]) -> Pairs:
        from sqlext_operators.interval_join.sweep.batch import sweep_join

        a, b, c, d = (table[column].to_numpy() for table in (left, right) for column in ("ts", "te"))
        bounds = (parameters.get("delta"), parameters.get("epsilon"))
        return sweep_join(relation, a, b, c, d, *bounds, lazy=lazy, batch_rows=BATCH_PAIRS)

    return pairs


#: By name: the form that interval joins use, and the paper's two algorithms.
KERNELS: Mapping[str, Callable[[str, pa.Table, pa.Table, Mapping[str, float]], Pairs]] = {
    "slices": _slices,
    "join-by-s": _sweep(lazy=False),
    "lazy-join-by-s": _sweep(lazy=True),
}
