"""The operator in memory against its brute-force twin: kinds, types, keys, NULLs, empties, shifts, alternatives."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.columns.empty_periods import Empty, EmptyPeriodError
from sqlext_operators.columns.keys import KeyTypeError
from sqlext_operators.expressions.nodes import (
    IsNull,
    TaskAnd,
    TaskColumn,
    TaskComparison,
    TaskExpression,
    TaskNot,
    TaskOr,
)
from sqlext_operators.interval_join.codes import is_plain, plain_codes, saturating_add, shifted_codes
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.output import IntervalOutput
from sqlext_operators.interval_join.processor import IntervalJoinProcessor, join_batches
from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.interval_join.spec import COUNT, IntervalJoinSpec, IntervalSide, Kind

from tests.operators.interval_join import reference
from tests.operators.interval_join.interval_data import DELTAS, EPSILONS, INF, named
from tests.properties import examples

KINDS: tuple[Kind, ...] = ("inner", "left", "right", "full", "semi", "anti", "count")
EDGE = 1 << 63
NAN = float("nan")
LONG = pa.int64()

#: Types with their values, shifts that they take, and whether there is a next value.
TYPES: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "tinyint": (pa.int8(), [-128, -2, -1, 0, 1, 2, 3, 127], [0, 1, -2, 5]),
    "int": (pa.int32(), [-(1 << 31), -2, 0, 1, 2, 3, (1 << 31) - 1], [0, 1, -2, 1 << 31]),
    "bigint": (pa.int64(), [-EDGE, 1 - EDGE, -1, 0, 1, 2, EDGE - 2, EDGE - 1], [0, 1, -3, EDGE - 1, -EDGE, 3 * EDGE]),
    "double": (
        pa.float64(),
        [NAN, -INF, -1.5, -0.0, 0.0, 0.1, 0.2, 0.3, 1e308, INF],
        [0, 0.1, -0.2, 1e308, 5e-324, 3],
    ),
    "float": (pa.float32(), [NAN, -INF, -1.5, -0.0, 0.0, 0.5, 1.0, INF], [0, 0.5, -1]),
    "date": (pa.date32(), [datetime.date(1969, 12, 30) + datetime.timedelta(day) for day in range(6)], [0, 1, -2]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=x) for x in range(-3, 4)],
        [0, 1, -2, 5],
    ),
    "timestamp_ntz": (
        pa.timestamp("us"),
        [datetime.datetime(2000, 1, day) for day in range(1, 6)],
        [0, 86_400_000_000],
    ),
    "decimal": (
        pa.decimal128(18, 2),
        [Decimal(text) for text in ("-9999999999999999.99", "-0.01", "0.00", "0.01", "1.00", "1.01")],
        [0, 1, 0.01, -0.5],
    ),
    "long decimal": (pa.decimal128(30, 2), [Decimal(text).scaleb(18) for text in ("-1", "0", "0.5", "1", "2")], [0]),
    "string": (pa.string(), ["", "a", "aa", "b", "ä", "z", "🙂"], [0]),
    "binary": (pa.binary(), [b"", b"\x00", b"a", b"\xff", b"\xff\x00"], [0]),
    "boolean": (pa.bool_(), [False, True], [0]),
}
POINTS = ("tinyint", "int", "bigint", "double", "date", "timestamp", "decimal")


def batch_of(names: Sequence[str], types: Sequence[pa.DataType], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]
    return pa.RecordBatch.from_arrays(
        [*columns, pa.array(range(len(rows)), pa.int64())], names=[*names, f"{names[0]}id"]
    )


def tuples(batches: Sequence[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]


def agree(spec: IntervalJoinSpec, left: pa.RecordBatch, right: pa.RecordBatch, batch_rows: int) -> None:
    """Operator and twin give the same rows, or the same refusal, for every kind."""
    try:
        expected = reference.interval_join(spec, left.to_pylist(), right.to_pylist())
    except EmptyPeriodError:
        with pytest.raises(EmptyPeriodError):
            list(join_batches(spec, left, right, batch_rows))
        return
    batches = list(join_batches(spec, left, right, batch_rows))
    assert all(0 < batch.num_rows <= batch_rows for batch in batches)
    assert sorted(tuples(batches), key=repr) == sorted(expected, key=repr)


def with_kind(spec: IntervalJoinSpec, kind: Kind) -> IntervalJoinSpec:
    return replace(spec, kind=kind)


def residuals(kind: pa.DataType) -> st.SearchStrategy[TaskExpression | None]:
    """None, or a condition over both sides' columns."""
    ours, theirs = (st.sampled_from([TaskColumn(f"{side}{i}", kind) for i in "01"]) for side in "lr")
    compared = st.builds(TaskComparison, st.sampled_from(["<>", "<", "=", "<=>"]), ours, theirs)
    known = st.builds(IsNull, st.sampled_from([TaskColumn("lj", pa.string()), TaskColumn("rj", pa.string())]))
    terms = st.lists(st.one_of(compared, known), min_size=1, max_size=3).map(tuple)
    return st.one_of(st.none(), compared, st.builds(TaskOr, terms), st.builds(TaskAnd, terms).map(TaskNot))


@st.composite
def joins(draw: st.DrawFn) -> tuple[IntervalJoinSpec, pa.RecordBatch, pa.RecordBatch, int]:
    """Any conjunctions of comparisons of two values a side, with or without periods and keys, of any type."""
    type_name = draw(st.sampled_from(sorted(TYPES)))
    kind, values, shifts = TYPES[type_name]
    empty: Empty = draw(st.sampled_from(["drop", "error", "point"] if type_name in POINTS else ["drop", "error"]))
    periods = draw(st.tuples(st.booleans(), st.booleans()))
    keys = draw(st.integers(0, 2))
    condition = st.builds(
        Condition,
        st.sampled_from(["l0", "l1"]),
        st.sampled_from(["<", "<=", "=", ">=", ">"]),
        st.sampled_from(["r0", "r1"]),
        st.sampled_from(shifts),
    )
    conditions = tuple(draw(st.lists(condition, min_size=1, max_size=5)))
    sides = []
    batches = []
    for name, has_period in zip("lr", periods, strict=True):
        columns = (f"{name}0", f"{name}1", f"{name}k", f"{name}j")
        value = st.one_of(st.none(), *[st.sampled_from(values)] * 6)
        row = st.tuples(value, value, st.sampled_from([1, 2, None]), st.sampled_from(["x", "", None]))
        batches.append(batch_of(columns, (kind, kind, pa.int64(), pa.string()), draw(st.lists(row, max_size=12))))
        period = ((columns[0], columns[1]),) if has_period else ()
        sides.append(IntervalSide(columns[2 : 2 + keys], columns[:2], period, (f"{name}0id",), columns))
    null_safe = tuple(draw(st.booleans()) for _ in range(keys))
    spec = IntervalJoinSpec(draw(st.sampled_from(KINDS)), sides[0], sides[1], null_safe, (conditions,), empty)
    spec = replace(spec, residual=draw(residuals(kind)))
    return spec, batches[0], batches[1], draw(st.sampled_from([1, 3, 1000]))


@given(joins())
@examples(400, share=8)
def test_any_join_agrees_with_twin(join: tuple[IntervalJoinSpec, pa.RecordBatch, pa.RecordBatch, int]) -> None:
    agree(*join)


@given(
    st.sampled_from(sorted(RELATIONS)),
    st.sampled_from(DELTAS),
    st.sampled_from(EPSILONS),
    st.sampled_from(["drop", "point"]),
    st.lists(st.tuples(st.integers(-5, 9), st.integers(-1, 5), st.sampled_from([1, 2, None])), max_size=15),
    st.lists(st.tuples(st.integers(-5, 9), st.integers(-1, 5), st.sampled_from([1, 2, None])), max_size=15),
    st.sampled_from([pa.int64(), pa.float64(), pa.timestamp("us")]),
    st.booleans(),
)
@examples(120)
def test_relations_agree_with_twin(
    relation: str,
    delta: float,
    epsilon: float,
    empty: Empty,
    left: list[tuple[int, int, int | None]],
    right: list[tuple[int, int, int | None]],
    kind: pa.DataType,
    keys: bool,
) -> None:
    row = RELATIONS[relation]
    conditions = named(row.conditions(**dict(zip(row.parameters, (delta, epsilon), strict=False))))
    sides, batches = [], []
    for name, rows in (("l", left), ("r", right)):
        columns = (f"{name}0", f"{name}1", f"{name}k")
        arrays = [pa.array([start for start, _, _ in rows], pa.int64()).cast(kind)]
        arrays.append(pa.array([start + length for start, length, _ in rows], pa.int64()).cast(kind))
        arrays.append(pa.array([key for _, _, key in rows], pa.int64()))
        batches.append(pa.RecordBatch.from_arrays(arrays, names=list(columns)))
        sides.append(IntervalSide(columns[2:] if keys else (), columns[:2], (columns[:2],), columns))
    spec = IntervalJoinSpec("inner", sides[0], sides[1], (False,) if keys else (), (conditions,), empty)
    for item in KINDS:
        agree(with_kind(spec, item), batches[0], batches[1], 7)


@given(st.lists(st.sampled_from(sorted(RELATIONS)), min_size=1, max_size=4), st.integers(0, 10_000))
@examples(200)
def test_disjoint_alternatives_agree_with_twin(names: list[str], seed: int) -> None:
    """Allen's relations with different values: NULLs of one alternative do not matter to another."""
    allen = list(dict.fromkeys(name for name in names if RELATIONS[name].strict))
    if not allen:
        return
    rng = np.random.default_rng(seed)
    alternatives = tuple(named(RELATIONS[name].conditions()) for name in allen)
    batches = []
    for name in "lr":
        start = rng.integers(-5, 9, 12)
        end = start + rng.integers(-1, 5, 12)
        arrays = [pa.array(values, mask=rng.random(12) < 0.1) for values in (start, end)]
        batches.append(pa.RecordBatch.from_arrays(arrays, names=[f"{name}0", f"{name}1"]))
    left = IntervalSide((), ("l0", "l1"), (("l0", "l1"),), ("l0", "l1"))
    right = IntervalSide((), ("r0", "r1"), (("r0", "r1"),), ("r0", "r1"))
    for kind in KINDS:
        agree(IntervalJoinSpec(kind, left, right, (), alternatives), batches[0], batches[1], 5)


def test_null_matters_only_to_alternatives_that_compare_it() -> None:
    alternatives = ((Condition("l0", "<", "r0"),), (Condition("l0", ">=", "r0"), Condition("l1", "=", "r0")))
    left = pa.RecordBatch.from_pydict({"l0": [1, 5, None], "l1": pa.array([None, None, 3], pa.int64())})
    right = pa.RecordBatch.from_pydict({"r0": [3]})
    for kind in KINDS:
        spec = IntervalJoinSpec(
            kind, IntervalSide(values=("l0", "l1"), payload=("l0",)), IntervalSide(values=("r0",)), (), alternatives
        )
        agree(spec, left, right, 10)


def test_kinds_have_their_columns() -> None:
    left = pa.RecordBatch.from_pydict({"l0": [1, 2, 9], "x": ["a", "b", "c"]})
    right = pa.RecordBatch.from_pydict({"r0": [1, 2, 3], "y": [True, None, False]})
    ours, theirs = IntervalSide(values=("l0",), payload=("x",)), IntervalSide(values=("r0",), payload=("y", "r0"))
    expected = {"semi": ["x"], "anti": ["x"], "count": ["x", COUNT]}
    for kind in KINDS:
        spec = IntervalJoinSpec(kind, ours, theirs, (), ((Condition("l0", "<=", "r0"),),))
        names = expected.get(kind, ["x", "y", "r0"])
        assert IntervalOutput(spec, left.schema, right.schema, 10).schema.names == names
        batches = list(join_batches(spec, left, right))
        assert {tuple(batch.schema.names) for batch in batches} == {tuple(names)}
        if kind == "count":
            assert tuples(batches) == [("a", 3), ("b", 2)]


def test_rows_without_payload_are_counted() -> None:
    left, right = pa.RecordBatch.from_pydict({"l0": [1, 2]}), pa.RecordBatch.from_pydict({"r0": [1, 2]})
    spec = IntervalJoinSpec(
        "inner", IntervalSide(values=("l0",)), IntervalSide(values=("r0",)), (), ((Condition("l0", "<=", "r0"),),)
    )
    assert [(batch.num_columns, batch.num_rows) for batch in join_batches(spec, left, right, 2)] == [(0, 2), (0, 1)]


def test_output_does_not_reuse_what_it_gave() -> None:
    """Row numbers are in buffers that are filled again; batches are not."""
    left, right = (
        pa.RecordBatch.from_pydict({"l0": list(range(50))}),
        pa.RecordBatch.from_pydict({"r0": list(range(50))}),
    )
    spec = IntervalJoinSpec(
        "inner",
        IntervalSide(values=("l0",), payload=("l0",)),
        IntervalSide(values=("r0",), payload=("r0",)),
        (),
        ((Condition("l0", "<", "r0"),),),
    )
    kept = list(join_batches(spec, left, right, 7))
    assert sorted(tuples(kept)) == [(i, j) for i in range(50) for j in range(i + 1, 50)]


def test_degenerate_rows_match_nothing_or_are_refused() -> None:
    left = pa.RecordBatch.from_pydict({"l0": [1.0, 5.0, 8.0, NAN, None, 2.0], "l1": [2.0, 5.0, 7.0, 9.0, 9.0, NAN]})
    right = pa.RecordBatch.from_pydict({"r0": [0.0, 5.0], "r1": [9.0, 5.0]})
    ours = IntervalSide(values=("l0", "l1"), periods=(("l0", "l1"),), payload=("l0",))
    theirs = IntervalSide(values=("r0", "r1"), periods=(("r0", "r1"),))
    overlaps = (Condition("l0", "<", "r1"), Condition("l1", ">", "r0"))
    for empty, rows in (("drop", [1.0]), ("point", [1.0, 5.0])):
        spec = IntervalJoinSpec("semi", ours, theirs, (), (overlaps,), empty)  # type: ignore[arg-type]
        output = IntervalOutput(spec, left.schema, right.schema, 10)
        processor = IntervalJoinProcessor(spec, "right", right, output)
        counts = np.zeros(left.num_rows, np.int64)
        assert list(processor.join(left, counts)) == []
        assert [value for batch in processor.decide(left, counts) for value in batch.column(0).to_pylist()] == rows
    spec = IntervalJoinSpec("semi", ours, theirs, (), (overlaps,), "error")
    with pytest.raises(EmptyPeriodError, match=r"1 of 2 rows have an empty or reversed period, such as \[5.0, 5.0\)"):
        list(join_batches(spec, left, right))


def test_batches_of_one_side_are_joined_with_the_held_one() -> None:
    """Held rows of an outer join wait for all batches."""
    left = pa.RecordBatch.from_pydict({"l0": ["a", "c", "x", None]})
    right = pa.RecordBatch.from_pydict({"r0": ["b", "d", "e", None]})
    ours, theirs = IntervalSide(values=("l0",), payload=("l0",)), IntervalSide(values=("r0",), payload=("r0",))
    spec = IntervalJoinSpec("full", ours, theirs, (), ((Condition("l0", "<", "r0"),),))
    processor = IntervalJoinProcessor(spec, "left", left, IntervalOutput(spec, left.schema, right.schema, 10))
    found = []
    for start in range(4):
        batch = right.slice(start, 1)
        counts = np.zeros(1, np.int64)
        found += list(processor.join(batch, counts))
        found += list(processor.decide(batch, counts))
    found += list(processor.decide_held())
    expected = reference.interval_join(spec, left.to_pylist(), right.to_pylist())
    assert sorted(tuples(found), key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("name", sorted(TYPES))
def test_codes_order_as_values_do(name: str) -> None:
    kind, values, shifts = TYPES[name]
    if not is_plain(kind):
        with pytest.raises(ValueError, match="nothing can be added"):
            plain_codes(pa.array(values, kind), 1)
        return
    array = pa.array(values, kind)
    for shift in shifts:
        codes = plain_codes(array, shift)
        assert (codes == shifted_codes(plain_codes(array), kind, shift)).all()
        for i, one in enumerate(array.to_pylist()):
            for j, other in enumerate(array.to_pylist()):
                for operator in ("<", "="):
                    row = {"l": reference._plain(one)}, {"r": reference._plain(other)}
                    expected = reference.holds(Condition("l", operator, "r", shift), *row)  # type: ignore[arg-type]
                    plain = int(plain_codes(array)[j])
                    assert (codes[i] < plain if operator == "<" else codes[i] == plain) == expected


@given(st.lists(st.integers(-EDGE, EDGE - 1), min_size=1), st.integers(-5 * EDGE, 5 * EDGE))
def test_additions_saturate(codes: list[int], amount: int) -> None:
    found = saturating_add(np.array(codes, np.int64), amount)
    assert found.tolist() == [min(max(code + amount, -EDGE), EDGE - 1) for code in codes]


def test_what_does_not_fit_is_refused() -> None:
    ours, theirs = IntervalSide(("lk",), ("l0",)), IntervalSide(("rk",), ("r0",))
    one = (Condition("l0", "<", "r0"),)
    for keys, alternatives, words in (
        ((), (one,), "keys of an interval join are pairs"),
        ((False,), (), "has conditions"),
        ((False,), ((),), "has conditions"),
        ((False,), ((Condition("r0", "<", "l0"),),), "not values of the two sides"),
        ((False,), ((Condition("l0", "<", "r0", (1, "delta")),),), "a shift is a finite number"),
        ((False,), ((Condition("l0", "<", "r0", INF),),), "a shift is a finite number"),
    ):
        with pytest.raises(ValueError, match=words):
            IntervalJoinSpec("inner", ours, theirs, keys, alternatives)
    with pytest.raises(ValueError, match="ends of periods are values"):
        IntervalJoinSpec("inner", IntervalSide((), ("l0",), (("l0", "l1"),)), IntervalSide((), ("r0",)), (), (one,))

    def run(kind: pa.DataType, shift: float, key: pa.DataType = LONG, empty: Empty = "drop") -> None:
        left = IntervalSide(("lk",), ("l0",), (("l0", "l0"),))
        spec = IntervalJoinSpec("inner", left, theirs, (False,), ((Condition("l0", "<", "r0", shift),),), empty)
        rows = [
            pa.RecordBatch.from_arrays([pa.nulls(1, key), pa.nulls(1, kind)], names=[f"{name}k", f"{name}0"])
            for name in "lr"
        ]
        assert list(join_batches(spec, rows[0], rows[1])) == []

    run(pa.int64(), 2.0)
    run(pa.null(), 1)
    for kind, shift, words in (
        (pa.int64(), 0.5, "0.5 is not a whole number of units of type int64"),
        (pa.decimal128(10, 2), 0.001, "0.001 is not a whole number of units"),
        (pa.bool_(), 1, "nothing can be added to values of type bool"),
        (pa.string(), 1, "nothing can be added to values of type string"),
    ):
        with pytest.raises(ValueError, match=words):
            run(kind, shift)
    with pytest.raises(ValueError, match="a period of string cannot be a point"):
        run(pa.string(), 0, empty="point")
    with pytest.raises(KeyTypeError):
        run(pa.int64(), 0, pa.list_(pa.int64()))
