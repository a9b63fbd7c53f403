"""The period algebra against its brute-force twin: through memory and disk, in pieces of any size."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.columns.empty_periods import Empty, EmptyPeriodError
from sqlext_operators.exchange.operator import run_operator
from sqlext_operators.exchange.scatter import KeyRouter, ScatterSpec, scatter
from sqlext_operators.period_algebra import operator
from sqlext_operators.period_algebra.operator import PeriodOperatorSpec
from sqlext_operators.period_algebra.spec import Operation, PeriodAlgebraSpec

from tests.operators.period_algebra import reference
from tests.properties import examples

OPERATIONS: tuple[Operation, ...] = ("normalize", "gaps", "concurrent", "difference")
KINDS = (
    pa.int64(),
    pa.int16(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.float64(),
    pa.float32(),
    pa.decimal128(12, 0),
)
END = st.one_of(st.none(), st.integers(-6, 12))
ROWS = st.lists(st.tuples(st.sampled_from(["a", "a", "a", "b", None]), END, END), max_size=25)


def spec_of(operation: Operation, *, keys: bool, kind: pa.DataType, empty: Empty = "drop") -> PeriodAlgebraSpec:
    return PeriodAlgebraSpec(
        operation, ("k",) if keys else (), "ts", "te", kind, "n" if operation == "concurrent" else "", empty
    )


def values(numbers: list[int | None], kind: pa.DataType) -> pa.Array:
    narrow = pa.types.is_date32(kind) or pa.types.is_decimal(kind)
    return pa.array(numbers, pa.int32() if narrow else pa.int64()).cast(kind)


def batch_of(rows: list[tuple[Any, ...]], kind: pa.DataType) -> pa.RecordBatch:
    columns = [
        pa.array([row[0] for row in rows], pa.string()),
        *(values([row[i] for row in rows], kind) for i in (1, 2)),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["k", "ts", "te"])


def computed(
    spec: PeriodAlgebraSpec, batches: list[pa.RecordBatch], memory_bytes: int = 1 << 20, piece_rows: int = 1 << 20
) -> list[tuple[Any, ...]]:
    """The rows of the operator, whose inputs come in blocks of at most seven rows."""
    operator = PeriodOperatorSpec(spec, memory_bytes, piece_rows, batch_rows=4)
    wires = [
        wire
        for tag, batch in enumerate(batches)
        for wire in scatter(
            ScatterSpec(tag, ("k", "ts", "te"), KeyRouter(spec.keys), 1, block_bytes=1, compact=True),
            0,
            [batch.slice(start, 7) for start in range(0, batch.num_rows, 7)],
        )
    ]
    found = list(run_operator(operator, 0, wires))
    assert all(batch.num_rows <= 4 for batch in found)
    assert all(column.type == spec.ends for batch in found for column in batch.select(["ts", "te"]).columns)
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


def expected(spec: PeriodAlgebraSpec, batches: list[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return reference.period_algebra(spec, [batch.to_pylist() for batch in batches])


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: tuple((value is None, value if value is not None else 0) for value in row))


@pytest.mark.parametrize("operation", OPERATIONS)
@examples(60, share=8)
@given(
    rows=st.tuples(ROWS, ROWS),
    keys=st.booleans(),
    kind=st.sampled_from(KINDS),
    memory_bytes=st.sampled_from([1, 300, 1 << 20]),
    piece_rows=st.integers(1, 9),
    run_rows=st.integers(1, 9),
)
def test_every_operation_gives_its_twins_rows(
    operation: Operation,
    rows: tuple[list[Any], list[Any]],
    keys: bool,
    kind: pa.DataType,
    memory_bytes: int,
    piece_rows: int,
    run_rows: int,
) -> None:
    spec = spec_of(operation, keys=keys, kind=kind)
    batches = [batch_of(side, kind) for side in rows[: spec.inputs]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator, "_RUN_ROWS", run_rows)
        found = computed(spec, batches, memory_bytes, piece_rows)
    assert in_order(found) == in_order(expected(spec, batches))
    by_key = [[row[1:3] for row in found if row[0] == key] for key in ("a", "b", None)] if keys else [found]
    assert all(periods == sorted(periods) for periods in by_key)


@examples(40)
@given(rows=ROWS, kind=st.sampled_from(KINDS[:4]))
def test_a_point_covers_one_instant(rows: list[Any], kind: pa.DataType) -> None:
    spec = spec_of("concurrent", keys=True, kind=kind, empty="point")
    numbers = spec_of("concurrent", keys=True, kind=pa.int64(), empty="point")
    wanted = expected(numbers, [batch_of(rows, pa.int64())])
    ends = [values([row[i] for row in wanted], kind).to_pylist() for i in (1, 2)]
    assert in_order(computed(spec, [batch_of(rows, kind)])) == in_order(
        [(row[0], start, end, row[3]) for row, start, end in zip(wanted, *ends, strict=True)]
    )


def test_the_last_value_of_a_type_has_no_instant() -> None:
    spec = spec_of("normalize", keys=False, kind=pa.int16(), empty="point")
    assert computed(spec, [batch_of([("a", 32767, 32767), ("a", 32766, 32766)], pa.int16())]) == [(32766, 32767)]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_reversed_period_stops_the_job_if_asked_for(operation: Operation) -> None:
    spec = spec_of(operation, keys=True, kind=pa.int64(), empty="error")
    good, bad = batch_of([("a", 1, 2), ("a", None, 2)], pa.int64()), batch_of([("a", 1, 2), ("a", 3, 1)], pa.int64())
    computed(spec, [good] * spec.inputs)
    with pytest.raises(EmptyPeriodError, match=r"1 of 1 rows have an empty or reversed period, such as \[3, 1\)"):
        computed(spec, [good, bad] if spec.inputs == 2 else [bad])


def test_nan_covers_nothing_and_infinity_does() -> None:
    nan, inf = float("nan"), float("inf")
    ends = pa.array([1.0, nan, 5.0, -inf]), pa.array([nan, 2.0, inf, -3.0])
    batch = pa.RecordBatch.from_arrays([pa.array(["a"] * 4), *ends], names=["k", "ts", "te"])
    assert computed(spec_of("gaps", keys=False, kind=pa.float64()), [batch]) == [(-3.0, 5.0)]


@pytest.mark.parametrize("count", [1_500, pytest.param(8_000, marks=pytest.mark.slow)])
def test_one_long_key_is_swept_in_pieces_from_disk(count: int) -> None:
    batch = batch_of([("a", i, count + i) for i in range(count)], pa.int64())
    sizes = {"memory_bytes": count * 5 // 2, "piece_rows": count // 8}
    assert computed(spec_of("normalize", keys=True, kind=pa.int64()), [batch], **sizes) == [("a", 0, 2 * count - 1)]
    steps = computed(spec_of("concurrent", keys=True, kind=pa.int64()), [batch], **sizes)
    rising = [("a", i, i + 1, i + 1) for i in range(count)]
    assert steps == rising + [("a", count + i, count + i + 1, count - 1 - i) for i in range(count - 1)]
