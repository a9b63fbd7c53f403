"""Random window unions for the twin tests: sequences, frames, calls, and cuts into pieces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from sqlext_operators.columns.codes import NULL_ORDER
from sqlext_operators.sequences.sequence import Piece
from sqlext_operators.window.functions import FUNCTIONS, FunctionTypeError, WindowFunction
from sqlext_operators.window.spec import Call, Frame, Window

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    bound = 10**precision - 1
    return st.integers(-bound, bound).map(
        lambda unscaled: Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))
    )


def _floats(width: int) -> st.SearchStrategy[float]:
    special = st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("inf"), float("-inf"), 2.0**53, -(2.0**53), 0.5])
    big = 2.0**100
    return special | st.floats(-big, big, width=width, allow_subnormal=False)


_PAIR = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int8()))])

#: column name -> (type, values); small domains, so that values repeat.
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i8": (pa.int8(), st.integers(-128, 127)),
    "i16": (pa.int16(), st.sampled_from([-(2**15), -1, 0, 1, 2**15 - 1])),
    "i32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "i64": (pa.int64(), st.integers(-3, 3) | st.sampled_from([INT64_MIN, INT64_MAX])),
    "f32": (pa.float32(), _floats(32)),
    "f64": (pa.float64(), _floats(64)),
    "d10": (pa.decimal128(10, 2), _decimals(10, 2)),
    "d38": (pa.decimal128(38, 6), _decimals(38, 6) | _decimals(20, 6)),
    "text": (pa.string(), st.sampled_from(["", "a", "b", "é", "\U0001f600", "aa", ",a::b,", "::é::"])),
    "bytes": (pa.binary(), st.sampled_from([b"", b"\xff", b"a"])),
    "flag": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.integers(-1, 2).map(lambda n: date(1970, 1, 1) + timedelta(days=n))),
    "time": (pa.timestamp("us", tz="UTC"), st.integers(-2, 2)),
    "span": (pa.duration("us"), st.integers(-3, 3)),
    "pair": (_PAIR, st.sampled_from([{"a": 1, "b": [1]}, {"a": None, "b": []}])),
    "tags": (pa.map_(pa.string(), pa.int32()), st.just([("k", 1)])),
    "c": (pa.bool_(), st.booleans()),
    "often": (pa.int16(), st.integers(0, 3)),
}  # fmt: skip
TYPES = {name: dtype for name, (dtype, _) in COLUMNS.items()}


@dataclass(frozen=True)
class Line:
    """One row of the whole sequence."""

    group: int
    order: int | None
    source: int
    values: dict[str, Any]


@st.composite
def lines(draw: st.DrawFn, columns: list[str], *, max_rows: int = 14, ordered: bool = True) -> list[Line]:
    """Rows of a few groups and sources in sequence order, with many ties."""
    orders = st.integers(-1, draw(st.integers(0, 6)))
    if draw(st.booleans()):
        orders = orders | st.none()
    if draw(st.integers(0, 7)) == 0:
        orders = st.sampled_from([INT64_MIN + 1, INT64_MIN + 3, -1, INT64_MAX - 2, INT64_MAX])
    if not ordered:
        orders = st.just(0)
    sources = st.integers(0, draw(st.integers(0, 3)))
    values = {name: COLUMNS[name][1] | st.none() if draw(st.booleans()) else COLUMNS[name][1] for name in columns}
    row = st.builds(Line, st.integers(0, draw(st.integers(0, 2))), orders, sources, st.fixed_dictionaries(values))
    rows: list[Line] = draw(st.lists(row, min_size=draw(st.sampled_from([0, 0, 1, 8])), max_size=max_rows))
    return sorted(rows, key=lambda r: (r.group, r.order is not None, r.order or 0, -r.source))


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    """Every kind of legal frame."""
    unit = draw(st.sampled_from(["rows", "range"]))
    distance = st.integers(-3, 3)
    if draw(st.integers(0, 5)) == 0:
        distance = st.sampled_from([-INT64_MAX, -3, 0, 3, INT64_MAX])
    start, end = draw(st.none() | distance), draw(distance | st.just(0) | st.none())
    if start is not None and end is not None and start > end:
        start, end = end, start
    following = end is None or end > 0 or draw(st.booleans())
    maxsize = draw(st.none() | st.integers(1, 4)) if unit == "range" else None
    return Frame(
        unit,
        start,
        end,
        start_following=start is not None and start > 0,
        end_following=following and (end is None or end >= 0),
        maxsize=maxsize,
        exclude_current_row=draw(st.booleans()),
        exclude_current_time=draw(st.booleans()),
        instance_not_in_window=draw(st.booleans()),
    )


#: Literals of each kind of parameter, for the functions that ask for one.
LITERALS: dict[str, tuple[Any, ...]] = {
    "integer": (0, 1, 2, -1, -2),
    "boolean": (False, True),
    "number": (0, 0.25, 0.5, 1, None),
    "string": (",", "::", ""),
}
#: Columns for the parameters behind the first: few, for the calls are all combinations.
FURTHER_COLUMNS = ("text", "i16", "f64", "day", "flag", "time")


def literals(function: WindowFunction) -> list[tuple[Any, ...]]:
    """Every combination of a function's literals that it takes."""
    chosen = product(*(LITERALS[parameter.kind] for parameter in function.constant_parameters))
    return [constants for constants in chosen if _takes(function, constants)]


def _takes(function: WindowFunction, constants: tuple[Any, ...]) -> bool:
    try:
        function.complete_constants(constants)
    except FunctionTypeError:
        return False
    return True


def arguments(function: WindowFunction, *, openmldb: bool = False) -> list[tuple[str, ...]]:
    """Every combination of columns that a function takes: any first one, `FURTHER_COLUMNS` for others."""
    columns: list[tuple[str, ...]] = []
    for i, parameter in enumerate(function.column_parameters):
        special = {"condition": ("c",), "frequency": ("often",)}
        named = special.get(parameter.kind) or special.get(parameter.name)
        columns.append(named or (tuple(TYPES) if i == 0 or parameter.name == "default" else FURTHER_COLUMNS))
    candidates = list(product(*columns))
    if function.column_parameters and function.column_parameters[-1].optional:
        candidates += list(product(*columns[:-1]))
    if function.accepts_star:
        candidates += list(product(*columns[1:]))
    found = []
    for names in candidates:
        try:
            function.result_type([TYPES[name] for name in names], openmldb=openmldb)
        except FunctionTypeError:
            continue
        found.append(names)
    return found


def all_calls() -> list[Call]:
    """Every function over every column whose type it takes, with each way of writing its literals."""
    found = [
        Call(function.name, names, "out", constants, openmldb)
        for openmldb in (False, True)
        for function in FUNCTIONS.values()
        if not openmldb or function.openmldb_rule is not None or "sum" in function.name
        for names in arguments(function, openmldb=openmldb)
        for constants in literals(function)
    ]
    several = [
        Call(name, ("f64",), "out", (*constants, 0.25, 1, 0.9))
        for name, constants in (("percentiles", ()), ("approx_percentiles", ()), ("percentile_discs", (True,)))
    ]
    return [*found, *several, Call("frame_rows", ("i64", "text"), "out")]


ALL_CALLS = all_calls()


@st.composite
def modified(draw: st.DrawFn, call: Call) -> Call:
    """A call with FILTER or without it; no statement puts it around the calls that read one row of the frame."""
    is_plain = call.function in ("frame_at", "count_where_at") or draw(st.booleans())
    return call if is_plain else replace(call, args=(*call.args, "c"), filtered=True)


@st.composite
def windows(draw: st.DrawFn, number: int, *, size: int = 4) -> Window:
    """A frame over some of three union sources with a few calls."""
    sources = tuple(sorted(draw(st.sets(st.integers(1, 3)))))
    chosen = draw(st.lists(st.sampled_from(ALL_CALLS), min_size=1, max_size=size))
    calls = tuple(replace(draw(modified(call)), output=f"w{number}_{i}") for i, call in enumerate(chosen))
    return Window(draw(frames()), sources, calls)


def to_piece(rows: list[Line], columns: list[str], first_from_row: int = 0) -> Piece:
    """The rows as a piece; the payload is the FROM rows' number in the whole sequence."""
    numbers = first_from_row + np.arange(sum(row.source == 0 for row in rows))
    return Piece(
        group=np.array([row.group for row in rows], np.int64),
        order=np.array([NULL_ORDER if row.order is None else row.order for row in rows], np.int64),
        source=np.array([row.source for row in rows], np.uint8),
        args={name: _shifted([row.values[name] for row in rows], TYPES[name]) for name in columns},
        payload=pa.RecordBatch.from_pydict({"id": pa.array(numbers)}),
    )


def cut(rows: list[Line], places: list[int], columns: list[str]) -> list[Piece]:
    """The rows as consecutive pieces, cut at `places`; pieces may be empty."""
    edges = [0, *sorted(min(place, len(rows)) for place in places), len(rows)]
    pieces, done = [], 0
    for start, end in pairwise(edges):
        pieces.append(to_piece(rows[start:end], columns, done))
        done += pieces[-1].payload.num_rows
    return pieces


def _shifted(values: list[Any], dtype: pa.DataType) -> pa.Array:
    """An array with a non-zero offset, as slices have."""
    return pa.array([None, *values], dtype).slice(1)
