"""Random sides of an interval join, sent through its exchange without Spark and joined partition by partition."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlext_operators.exchange.operator import run_operator
from sqlext_operators.exchange.scatter import ScatterSpec, scatter
from sqlext_operators.expressions.evaluation import true_rows
from sqlext_operators.expressions.nodes import TaskArithmetic, TaskColumn, TaskComparison, TaskConstant, TaskOr
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.operator import IntervalOperatorSpec
from sqlext_operators.interval_join.output import NUMBER, CompletionSpec, ResultPart, candidate_columns, completed
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.interval_join.spec import COUNT, MATCHES, ROW, IntervalJoinSpec, IntervalSide, Kind
from sqlext_operators.interval_join.tiles import TileRouter, Tiles

from tests.operators.interval_join import reference

KINDS: tuple[Kind, ...] = ("inner", "left", "right", "full", "semi", "anti", "count")
PARTITIONS = 3
SIDES: tuple[Side, Side] = ("left", "right")
Rows = list[tuple[Any, ...]]


def schema_of(side: str, kind: pa.DataType) -> pa.Schema:
    return pa.schema([(f"{side}id", pa.int64()), (f"{side}k", pa.string()), (f"{side}0", kind), (f"{side}1", kind)])


def numbers(values: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """An array of any type that whole numbers can be cast to."""
    return pa.array(values, pa.int32() if pa.types.is_decimal(kind) else pa.int64()).cast(kind)


def rows_of(side: str, count: int, seed: int, kind: pa.DataType) -> pa.RecordBatch:
    """Rows with NULLs, empty and reversed periods, most of them of key "a"."""
    random_ = random.Random(f"{side}{seed}")
    starts = [random_.choice([None, *range(-8, 16)]) for _ in range(count)]
    ends = [None if s is None or random_.random() < 0.05 else s + random_.randint(-1, 7) for s in starts]
    keys = [random_.choice(["a", "a", "a", "b", None]) for _ in range(count)]
    arrays = [pa.array(list(range(count))), pa.array(keys)]
    arrays += [numbers(values, kind) for values in (starts, ends)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(side, kind))


def conditions_of(name: str, amounts: tuple[int | None, int | None]) -> tuple[Condition, ...]:
    relation = RELATIONS[name]
    values = dict(zip(relation.parameters, amounts, strict=False))
    named = {"a": "l0", "b": "l1", "c": "r0", "d": "r1"}
    return tuple(
        Condition(named[item.left], item.operator, named[item.right], item.shift)
        for item in relation.conditions(**values)
    )


def spec_of(
    kind: Kind,
    alternatives: Sequence[tuple[Condition, ...]],
    *,
    keys: bool,
    null_safe: bool,
    periods: bool,
    seed: int = 0,
) -> IntervalJoinSpec:
    """Two thirds of the seeds give a residual, half of these to be tested by someone else."""
    left = IntervalSide(
        ("lk",) if keys else (), ("l0", "l1"), (("l0", "l1"),) if periods else (), ("lid", "lk"), ("lid", "lk")
    )
    right = IntervalSide(
        ("rk",) if keys else (), ("r0", "r1"), (("r0", "r1"),) if periods else (), ("rid",), ("rid", "rk")
    )
    spec = IntervalJoinSpec(kind, left, right, (null_safe,) if keys else (), tuple(alternatives))
    return spec if seed % 3 == 0 else replace(spec, residual=_RESIDUAL, candidates=seed % 3 == 2 and kind in TESTED)


def inner_spec(spec: IntervalJoinSpec) -> IntervalJoinSpec:
    """What the operator computes: without the residual where someone else tests it."""
    return replace(spec, residual=None) if spec.candidates else spec


def with_test(spec: IntervalJoinSpec, part: ResultPart, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of a task; candidates as they are after the test, completed."""
    if not spec.candidates:
        yield from batches
        return
    assert spec.residual is not None
    columns = [candidate_columns(spec, side) for side in SIDES]
    payload = [spec.left.payload, spec.right.payload if spec.pairs else ()]
    undecided = part == "undecided"
    passed = []
    for batch in batches:
        ends = batch.column(NUMBER).to_numpy(zero_copy_only=False) < 0
        passing = true_rows(spec.residual, batch.column, batch.num_rows) | ends
        kept = [*payload[0], *payload[1], NUMBER, *([ROW] if undecided else [])]
        assert set(kept) | set(columns[0]) | set(columns[1]) == set(batch.schema.names)
        passed.append(batch.filter(pa.array(passing)).select(kept))
    names = (*payload[0], *payload[1], *((ROW, MATCHES) if undecided else ()))
    yield from completed(CompletionSpec.of(spec, names, undecided=undecided), 0, passed)


#: The kinds whose residual someone else may test.
TESTED = ("left", "right", "full", "semi", "anti")
_IDS = TaskArithmetic(
    "%",
    TaskArithmetic("+", *(TaskColumn(n, pa.int64()) for n in ("lid", "rid")), pa.int64()),
    TaskConstant(3, pa.int64()),
    pa.int64(),
)
_KEYS = TaskComparison("<", TaskColumn("lk", pa.string()), TaskColumn("rk", pa.string()))
_RESIDUAL = TaskOr((TaskComparison("=", _IDS, TaskConstant(1, pa.int64())), _KEYS))


def wires_of(
    tag: int, rows: pa.RecordBatch, router: TileRouter, block_bytes: int, partitions: int = PARTITIONS
) -> list[pa.RecordBatch]:
    """What two tasks send of one input."""
    spec = ScatterSpec(tag, tuple(rows.schema.names), router, partitions, block_bytes)
    half = rows.num_rows // 2
    parts = (rows.slice(0, half), rows.slice(half))
    return [wire for number, part in enumerate(parts) for wire in scatter(spec, number, [part])]


def tuples(batch: pa.RecordBatch) -> Rows:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def merged(spec: IntervalJoinSpec, batches: Sequence[pa.RecordBatch]) -> Rows:
    """The output with undecided rows put together, as the plan does behind the operator."""
    result: Rows = []
    copies: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in (row for batch in batches for row in batch.to_pylist()):
        number = row.pop(ROW, None)
        if number is not None:
            copies[number].append(row)
        else:
            result.append(tuple(value for name, value in row.items() if name != MATCHES))
    for rows in copies.values():
        assert len(rows) > 1
        matches = sum(row.pop(MATCHES) for row in rows)
        assert all(row == rows[0] for row in rows)
        if (matches > 0) == (spec.kind in ("semi", "count")):
            result.append(tuple((rows[0] | ({COUNT: matches} if spec.kind == "count" else {})).values()))
    return result


def arrived(
    spec: IntervalJoinSpec,
    left: pa.RecordBatch,
    right: pa.RecordBatch,
    tiles: Tiles | None,
    routers: Sequence[TileRouter],
    seed: int,
    memory: int,
    block: int,
    partitions: int = PARTITIONS,
) -> Rows:
    """The join by way of all partitions of these routers; blocks arrive in random order."""
    wires = wires_of(0, left, routers[0], block, partitions) + wires_of(1, right, routers[1], block, partitions)
    rows_on_wire = [wire.slice(i, 1) for wire in wires for i in range(wire.num_rows)]
    random.Random(seed).shuffle(rows_on_wire)
    found = []
    split = bool(seed % 2) if not spec.candidates else tiles is not None
    parts: tuple[ResultPart, ...] = ("decided", "undecided") if split else ("all",)
    for part in parts:
        gather = IntervalOperatorSpec(inner_spec(spec), left.schema, right.schema, memory, 7, tiles, part)
        for partition in range(partitions):
            own = [wire for wire in rows_on_wire if wire.column(0)[0].as_py() == partition]
            batches = list(run_operator(gather, partition, own))
            assert all(0 < batch.num_rows <= 7 and batch.schema == gather.output for batch in batches)
            for batch in with_test(spec, part, batches):
                assert part != "undecided" or batch.column(ROW).null_count == 0
                found.append(batch)
    return merged(spec, found)


def agree(spec: IntervalJoinSpec, left: pa.RecordBatch, right: pa.RecordBatch, found: Rows) -> None:
    expected = reference.interval_join(spec, left.to_pylist(), right.to_pylist())
    assert sorted(found, key=repr) == sorted(expected, key=repr)
