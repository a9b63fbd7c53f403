"""Random multi-way joins with their rows, and how results are compared."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from sqlext_operators.umjoin.spec import COUNT, Kind, MultiwayInput, MultiwayJoinSpec

from tests.operators.umjoin.reference import counted, multiway_join

NAN = float("nan")
EDGE = 1 << 63

#: Types of keys with values that meet, among them all that are equal and do not look it.
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tinyint": (pa.int8(), [-128, 0, 1, 127]),
    "int": (pa.int32(), [-3, 0, 1, 2]),
    "bigint": (pa.int64(), [-EDGE, 0, 1, EDGE - 1]),
    "double": (pa.float64(), [NAN, -0.0, 0.0, 1.5]),
    "float": (pa.float32(), [NAN, -0.0, 0.0, -1.5]),
    "date": (pa.date32(), [datetime.date(1969, 12, 30) + datetime.timedelta(day) for day in range(4)]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [datetime.datetime(1970, 1, day, tzinfo=datetime.UTC) for day in range(1, 5)],
    ),
    "decimal": (pa.decimal128(12, 2), [Decimal(text) for text in ("-0.01", "0.00", "0.01", "1.00")]),
    "long decimal": (pa.decimal128(38, 2), [Decimal(text).scaleb(30) for text in ("-1", "0", "1", "2")]),
    "string": (pa.string(), ["", "a", "ä", "🙂"]),
    "binary": (pa.binary(), [b"", b"\x00", b"a", b"\xff"]),
    "boolean": (pa.bool_(), [False, True]),
    "null": (pa.null(), [None]),
}
KINDS: tuple[Kind, ...] = ("inner", "left", "semi", "anti")
#: Combinations of inner rows that the twin goes through.
_COMBINATIONS = 800


@st.composite
def joins(draw: st.DrawFn, *, shared: bool = False) -> tuple[MultiwayJoinSpec, list[pa.RecordBatch]]:
    """Two to six inputs of any kinds, over up to four classes of any types: chains, stars, cycles, cross products. With
    `shared`, all inputs have one class in common."""
    inputs = draw(st.integers(2, 6))
    inner = draw(st.integers(1, inputs))
    classes = draw(st.sampled_from([1, 2, 3] if shared else [0, 1, 1, 2, 2, 3, 3, 4]))
    common = {0} if shared else set()
    least = min(classes, draw(st.sampled_from([0, 1, 1, 1])))
    few = st.sets(st.sampled_from(range(classes)), min_size=least, max_size=2) if classes else st.just(set())
    sets = [draw(few) | common for _ in range(inner)]
    bound = sorted(set().union(*sets))
    number = {place: n for n, place in enumerate(bound)}
    chosen = [[number[place] for place in found] for found in sets]
    for _ in range(inner, inputs):  # class 0 is the first of those in use
        chosen.append(sorted(draw(st.sets(st.sampled_from(range(len(bound))))) | common) if bound else [])
    kinds: list[Kind] = ["inner"] * inner + [draw(st.sampled_from(KINDS[1:])) for _ in range(inner, inputs)]
    types = [TYPES[draw(st.sampled_from(sorted(TYPES)))] for _ in bound]
    order = draw(st.permutations(range(inputs)))
    most = max(2, min(10, int(_COMBINATIONS ** (1 / kinds.count("inner")))))
    values = [kind_values[: draw(st.sampled_from([2, 2, 4]))] for _, kind_values in types]
    items, tables = [], []
    for place in order:
        own = draw(st.permutations(chosen[place]))
        rows = draw(_rows([values[key] for key in own], most))
        names = [f"k{key}" for key in own]
        columns = [pa.array([row[i] for row in rows], types[key][0]) for i, key in enumerate(own)]
        payload = draw(st.sampled_from([(), ("id",), ("text", "id"), (*names, "id")]))
        if kinds[place] in ("semi", "anti"):
            payload = ()
        items.append(MultiwayInput(kinds[place], tuple(own), tuple(names), payload))
        texts = pa.array([None if i % 3 else f"row {i}" for i in range(len(rows))], pa.string())
        columns += [pa.array(range(len(rows)), pa.int64()), texts]
        tables.append(pa.RecordBatch.from_arrays(columns, names=[*names, "id", "text"]))
    return MultiwayJoinSpec(tuple(items), len(bound), draw(st.booleans())), tables


@st.composite
def _rows(draw: st.DrawFn, values: Sequence[Sequence[Any]], most: int) -> list[tuple[Any, ...]]:
    """Up to `most` rows of these keys, some NULL; seldom none, which makes the whole join empty."""
    count = draw(st.one_of(st.just(most), st.integers(1, most), st.integers(0, most)))
    seed = draw(st.integers(0, 1 << 30))
    random_ = random.Random(seed)
    nulls = draw(st.sampled_from([0, 0, 0.2]))
    return [tuple(None if random_.random() < nulls else random_.choice(own) for own in values) for _ in range(count)]


def expected_rows(spec: MultiwayJoinSpec, tables: Sequence[pa.RecordBatch]) -> Counter[tuple[Any, ...]]:
    """The twin's rows, with their numbers."""
    return counted(multiway_join(spec, [rows.to_pylist() for rows in tables]))


def found_rows(spec: MultiwayJoinSpec, batches: Iterable[pa.RecordBatch], most: int) -> Counter[tuple[Any, ...]]:
    """The operator's rows, with their numbers. No batch is empty, or has more than `most` rows."""
    found: Counter[tuple[Any, ...]] = Counter()
    for batch in batches:
        assert 0 < batch.num_rows <= most
        if not batch.num_columns:
            found[()] += batch.num_rows
            continue
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if not spec.count:
                found += counted([row])
                continue
            assert row[-1] > 0
            (values,) = counted([row[:-1]])
            found[values] += row[-1]
    return found


def check_schema(spec: MultiwayJoinSpec, tables: Sequence[pa.RecordBatch], schema: pa.Schema) -> None:
    """Columns come in order, those of left inputs may be NULL."""
    names = [name for item in spec.inputs for name in item.payload] + ([COUNT] if spec.count else [])
    assert schema.names == names
    lefts = [item.kind == "left" for item in spec.inputs for _ in item.payload]
    assert all(field.nullable for field, left in zip(schema, lefts, strict=False) if left)
