"""The LAST JOIN processor against its brute-force twin, on random tables cut into random batches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.last_join.kernels import BLOCK
from sqlext_operators.last_join.operator import LastJoinProcessor
from sqlext_operators.last_join.spec import JoinComparison, LastJoinSpec, Operator, RightSide

from tests.operators.last_join import reference
from tests.properties import examples

LEAST, MOST = -(2**63), 2**63 - 1
NAN, INFINITY = float("nan"), float("inf")
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)

#: kind -> (type, few values, so that they meet)
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, 0, 1, 127]),
    "i32": (pa.int32(), [-3, 0, 1, 2]),
    "i64": (pa.int64(), [LEAST, -1, 0, 1, MOST]),
    "f32": (pa.float32(), [0.0, -0.0, 1.5, NAN, -INFINITY]),
    "f64": (pa.float64(), [0.0, -0.0, 1.5, NAN, INFINITY, -2.0]),
    "d10": (pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("7.25")]),
    "d38": (pa.decimal128(38, 3), [Decimal("-1e30"), Decimal("0"), Decimal("0.001"), Decimal("9e3")]),
    "text": (pa.string(), ["", "a", "ab", "b", "é", "\U0001f600", "\uffff"]),
    "bytes": (pa.binary(), [b"", b"\x00", b"\xff", b"a"]),
    "flag": (pa.bool_(), [False, True]),
    "day": (pa.date32(), [date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29)]),
    "time": (pa.timestamp("us", tz="UTC"), [NOON, NOON.replace(hour=13), NOON.replace(microsecond=1)]),
}  # fmt: skip
ORDERS = tuple(KINDS)
OPERATORS: tuple[Operator, ...] = get_args(Operator)


@dataclass(frozen=True)
class Case:
    """A specification and its tables, with the types of their columns: of the left side, and of each right one."""

    spec: LastJoinSpec
    left: list[dict[str, Any]]
    rights: list[list[dict[str, Any]]]
    types: dict[str, pa.DataType]
    others: tuple[dict[str, pa.DataType], ...]


def value(draw: st.DrawFn, kind: str, name: str) -> st.SearchStrategy[Any]:
    values = st.sampled_from(KINDS[kind][1][:2] if name.startswith("k") else KINDS[kind][1])
    return values | st.none() if draw(st.booleans()) else values


@st.composite
def tables(draw: st.DrawFn, columns: dict[str, str], most: int) -> list[dict[str, Any]]:
    row = st.fixed_dictionaries({name: value(draw, kind, name) for name, kind in columns.items()})
    rows = draw(st.lists(row, min_size=draw(st.sampled_from([0, most // 2])), max_size=most))
    return [{"id": number, **values} for number, values in enumerate(rows)]


@st.composite
def right_sides(draw: st.DrawFn, kinds: list[str], left: dict[str, str]) -> tuple[RightSide, dict[str, str]]:
    """A right side and its columns; adds what its comparisons read to the left columns."""
    columns = {f"k{place}": kind for place, kind in enumerate(kinds)}
    orders = draw(st.lists(st.sampled_from(ORDERS), max_size=draw(st.sampled_from([1, 1, 3]))))
    order = orders[0] if orders else None
    names = tuple(f"o{place or ''}" for place in range(len(orders)))
    columns |= dict(zip(names, orders, strict=True))
    comparisons = []
    for _ in range(draw(st.integers(0, 3))):
        on_order = order is not None and draw(st.booleans())
        kind = order if on_order and order is not None else draw(st.sampled_from(list(KINDS)))
        right = "o" if on_order else f"r_{kind}"
        columns.setdefault(right, kind)
        left[f"l_{kind}"] = kind
        comparisons.append(JoinComparison(f"l_{kind}", draw(st.sampled_from(OPERATORS)), right))
    null_safe = tuple(draw(st.booleans()) for _ in kinds)
    keys = tuple(f"k{place}" for place in range(len(kinds)))
    descending = tuple(draw(st.booleans()) for _ in names)
    return RightSide(keys, null_safe, ("id", *keys[:1]), names, descending, tuple(comparisons)), columns


@st.composite
def cases(draw: st.DrawFn) -> Case:
    kinds = draw(st.lists(st.sampled_from(list(KINDS)), max_size=draw(st.sampled_from([0, 1, 1, 2, 3]))))
    columns = {f"k{place}": kind for place, kind in enumerate(kinds)}
    sides, rights, others = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        side, right_columns = draw(right_sides(kinds, columns))
        sides.append(side)
        others.append({name: KINDS[kind][0] for name, kind in right_columns.items()} | {"id": pa.int64()})
        rights.append(draw(tables(right_columns, draw(st.sampled_from([12, 80])))))
    keys = tuple(f"k{place}" for place in range(len(kinds)))
    spec = LastJoinSpec(keys, ("id",), tuple(sides))
    types = {name: KINDS[kind][0] for name, kind in columns.items()} | {"id": pa.int64()}
    return Case(spec, draw(tables(columns, 12)), rights, types, tuple(others))


def batch(rows: list[dict[str, Any]], names: list[str], kinds: dict[str, pa.DataType]) -> pa.RecordBatch:
    arrays = [pa.array([row[name] for row in rows], kinds[name]) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def run(case: Case, cuts: list[int]) -> list[tuple[Any, ...]]:
    rights = [batch(rows, list(kinds), kinds) for rows, kinds in zip(case.rights, case.others, strict=True)]
    processor = LastJoinProcessor(case.spec, rights)
    left = batch(case.left, ["id", *(name for name in case.types if name in left_names(case) - {"id"})], case.types)
    places = sorted({min(cut, len(case.left)) for cut in cuts} | {0, len(case.left)})
    result = []
    for start, end in pairwise(places):
        joined = pa.Table.from_batches(processor.join(left.slice(start, end - start), 5))
        result += list(zip(*(column.to_pylist() for column in joined.columns), strict=True))
    return result


def left_names(case: Case) -> set[str]:
    sides = case.spec.rights
    read = {item.left for side in sides for item in side.comparisons} | {side.condition or "id" for side in sides}
    return read | set(case.spec.keys)


def same(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(map(text, row))


def text(item: Any) -> str:
    if isinstance(item, Decimal):
        return str(item.normalize())
    return item.isoformat() if isinstance(item, datetime) else repr(item)


@given(cases(), st.lists(st.integers(0, 12), max_size=3))
@examples(400, share=8)
def test_processor_agrees_with_twin(case: Case, cuts: list[int]) -> None:
    expected = reference.last_join(case.spec, case.left, case.rights)
    assert list(map(same, run(case, cuts))) == list(map(same, expected))


@pytest.mark.parametrize("kinds", [("i64",), ("text",), ("d38",), ("f64", "text"), ("i8", "d38", "bytes")])
def test_find_gives_the_codes_of_encode_and_remembers_nothing(kinds: tuple[str, ...]) -> None:
    columns = [pa.array([*KINDS[kind][1][:3], None] * 2, KINDS[kind][0]) for kind in kinds]
    codes = KeyCodes(len(kinds))
    unknown = [column.slice(0, 2) for column in columns]
    assert codes.find(unknown).tolist() == [-1, -1]
    given_codes = codes.encode([column.slice(1) for column in columns])
    found = codes.find(columns)
    assert found[1:].tolist() == given_codes.tolist()
    assert found[0] == found[4] == given_codes[3]
    assert len(codes) == 4


@pytest.mark.few(3)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("operators", [("<",), (">=",), ("<", ">"), ("<>",), ("=",)])
def test_scans_of_long_groups(operators: tuple[Operator, ...], descending: bool) -> None:
    """Groups of many blocks, so that whole subtrees are skipped."""
    random = np.random.default_rng(len(operators) + descending)
    count = 40 * BLOCK + 3
    right = {name: random.integers(0, 50, count).tolist() for name in ("o", "x", "y")} | {
        "k": random.integers(0, 3, count).tolist(),
        "id": list(range(count)),
    }
    right["x"][::7] = [None] * len(right["x"][::7])
    left = {name: random.integers(-5, 55, 200).tolist() for name in ("x", "y")} | {
        "k": random.integers(0, 4, 200).tolist(),
        "id": list(range(200)),
    }
    comparisons = tuple(JoinComparison(name, op, name) for name, op in zip("xy", operators, strict=False))
    side = RightSide(("k",), (False,), ("id",), ("o",), (descending,), comparisons)
    spec = LastJoinSpec(("k",), ("id",), (side,))
    rows = [dict(zip(right, values, strict=True)) for values in zip(*right.values(), strict=True)]
    others = [dict(zip(left, values, strict=True)) for values in zip(*left.values(), strict=True)]
    processor = LastJoinProcessor(spec, [pa.RecordBatch.from_pydict(right)])
    (joined,) = processor.join(pa.RecordBatch.from_pydict(left), 1000)
    expected = reference.last_join(spec, others, [rows])
    assert list(zip(*(column.to_pylist() for column in joined.columns), strict=True)) == expected


@pytest.mark.few
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", ORDERS)
def test_comparisons_with_the_order_column(operator: Operator, descending: bool, kind: str) -> None:
    """Every operator, on both sides of every value, with ties and NULLs."""
    dtype, values = KINDS[kind]
    orders = [None, *values, None, *values[1:]]
    rows = [{"id": number, "k": number % 2, "o": order} for number, order in enumerate([*orders, *orders])]
    left = [{"id": number, "k": number % 3, "x": x} for number, x in enumerate([*values, None] * 3)]
    side = RightSide(("k",), (False,), ("id",), ("o",), (descending,), (JoinComparison("x", operator, "o"),))
    spec = LastJoinSpec(("k",), ("id",), (side,))
    types = {"id": pa.int64(), "k": pa.int64(), "o": dtype, "x": dtype}
    processor = LastJoinProcessor(spec, [batch(rows, ["id", "k", "o"], types)])
    (joined,) = processor.join(batch(left, ["id", "k", "x"], types), 1000)
    found = list(zip(*(column.to_pylist() for column in joined.columns), strict=True))
    assert found == reference.last_join(spec, left, [rows])


def test_a_null_order_loses_against_the_least_integer() -> None:
    """Neither end of the type stands for NULL."""
    for descending, value_ in ((False, LEAST), (True, MOST)):
        right = pa.RecordBatch.from_pydict({"id": [0, 1], "o": pa.array([value_, None], pa.int64())})
        left = pa.RecordBatch.from_pydict({"id": [5]})
        side = RightSide((), (), ("id",), ("o",), (descending,))
        (joined,) = LastJoinProcessor(LastJoinSpec((), ("id",), (side,)), [right]).join(left, 10)
        assert joined.column(1).to_pylist() == [0]
