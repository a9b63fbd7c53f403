"""Texts by category with known answers: formats, orders, limits, wrapping, exactness, growth."""

from __future__ import annotations

import math
from datetime import date
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.sequences.sequence import Piece
from sqlext_operators.window.functions import FUNCTIONS, FunctionTypeError
from sqlext_operators.window.processor import WindowUnionProcessor
from sqlext_operators.window.spec import Call, Frame, Scalar, Window, WindowUnionSpec

from tests.operators.window.twins import TWINS, View
from tests.properties import examples

ALL = Frame("rows", None, 0)
STRING = pa.string()


def evaluate(
    function: str,
    *args: pa.Array,
    n: int | None = None,
    frame: Frame = ALL,
    pieces: int = 1,
    ansi: bool = False,
    zone: str = "UTC",
    openmldb: bool = False,
) -> list[str]:
    """The function over a window of one group, a row for each order 0, 1, 2, ..."""
    columns = {f"x{i}": array for i, array in enumerate(args)}
    constants: tuple[Scalar, ...] = () if n is None else (n,)
    window = Window(frame, (), (Call(function, tuple(columns), "out", constants, openmldb),))
    spec = WindowUnionSpec(("k",), "ts", (), (window,), ansi, zone)
    processor = WindowUnionProcessor(
        spec, {name: a.type for name, a in columns.items()}, pa.schema([("id", pa.int64())])
    )
    found: list[str] = []
    edges = np.linspace(0, len(args[0]), pieces + 1).astype(int)
    for i, (start, end) in enumerate(pairwise(edges)):
        order, zeros = np.arange(start, end), np.zeros(end - start, np.int64)
        part = {name: array.slice(start, end - start) for name, array in columns.items()}
        piece = Piece(zeros, order, zeros.astype(np.uint8), part, pa.RecordBatch.from_pydict({"id": pa.array(order)}))
        for batch in processor.process(piece, i == pieces - 1):
            found += batch.column("out").to_pylist()
    return found


X = pa.array([1, 5, 2, None, 7, 7], pa.int32())
C = pa.array([True, True, False, True, None, True])
KEY = pa.array(["a", "b", "a", "a", "b", None])
WHERE = pa.array([True] * 6)


@pytest.mark.parametrize(
    ("function", "args", "n", "last"),
    [
        ("count_cate", (X, KEY), None, "a:2,b:2"),
        ("sum_cate", (X, KEY), None, "a:3,b:12"),
        ("avg_cate", (X, KEY), None, "a:1.500000,b:6.000000"),
        ("min_cate", (X, KEY), None, "a:1,b:5"),
        ("max_cate", (X, KEY), None, "a:2,b:7"),
        ("sum_cate_where", (X, C, KEY), None, "a:1,b:5"),
        ("sum_cate_where", (X, pa.nulls(6), KEY), None, ""),
        ("top_n_key_sum_cate_where", (X, WHERE, KEY), 1, "b:12"),
        ("top_n_key_sum_cate_where", (X, WHERE, KEY), 0, ""),
        ("top_n_key_sum_cate_where", (X, WHERE, KEY), -1, "b:12,a:3"),
        ("top_n_value_count_cate_where", (X, WHERE, KEY), 5, "b:2,a:2"),
        ("top_n_value_min_cate_where", (X, C, KEY), 1, "b:5"),
        ("top_n_key_ratio_cate", (X, C, KEY), 2, "b:0.500000,a:0.500000"),
        ("top_n_value_ratio_cate", (X, pa.nulls(6), KEY), -7, "b:0.000000,a:0.000000"),
        ("count_cate", (KEY, KEY), None, "a:3,b:2"),
    ],
)
def test_known_answers(function: str, args: tuple[pa.Array, ...], n: int | None, last: str) -> None:
    assert evaluate(function, *args, n=n)[-1] == last
    assert evaluate(function, *args, n=n, pieces=6)[-1] == last


def test_upstream_case() -> None:
    """OpenMLDB's test_udaf_function 62: ties by value go to the larger key."""
    col1 = pa.array([1, 2, 3, 4, None, 5, 5], pa.int32())
    col3 = pa.array(["g1", None, "g2", "g1", "g2", "g2", "g2"])
    col4 = pa.array([2.0, 2.0, None, 4.0, 4.0, 4.0, 1.0])
    true = pa.array([True] * 7)
    assert evaluate("top_n_value_max_cate_where", col4, true, col3, n=2)[4:] == ["g2:4.000000,g1:4.000000"] * 3
    found = evaluate("top_n_value_avg_cate_where", col4, true, col1, n=3)
    assert found[5:] == ["5:4.000000,4:4.000000,2:2.000000", "4:4.000000,5:2.500000,2:2.000000"]


TIME = 1_590_738_990_123_456
KEYS = [
    (pa.array([-1, 10, 2, None], pa.int16()), "-1:1,2:1,10:1"),
    (pa.array([-(2**63), 2**63 - 1, 0, None], pa.int64()), "-9223372036854775808:1,0:1,9223372036854775807:1"),
    (pa.array(["é", "", "z", None]), ":1,z:1,é:1"),
    (pa.array(["a:b,c", "a", "a", None]), "a:2,a:b,c:1"),
    (
        pa.array([date(2020, 5, 2), date(1969, 12, 31), date(2020, 5, 1), None]),
        "1969-12-31:1,2020-05-01:1,2020-05-02:1",
    ),
    (pa.array([TIME, 0, 0, None], pa.timestamp("us")), "1970-01-01 00:00:00:2,2020-05-29 07:56:30:1"),
    (pa.array([TIME, 0, 0, None], pa.timestamp("us", "UTC")), "1970-01-01 08:00:00:2,2020-05-29 15:56:30:1"),
]


@pytest.mark.parametrize(("keys", "text"), KEYS, ids=lambda item: str(item.type) if isinstance(item, pa.Array) else "")
def test_texts_of_keys(keys: pa.Array, text: str) -> None:
    assert evaluate("count_cate", keys, keys, zone="Asia/Shanghai")[-1] == text


def test_texts_of_doubles() -> None:
    values = [0.0, -0.0, 1e-7, -1e-7, 2.5e-7, 5e-7, 2.0**-7, 1e22, 2.0**63, 1.7e308, math.nan, math.inf, -math.inf]
    array, keys = pa.array(values), pa.array(range(len(values)))
    want = ",".join(f"{key}:{value + 0.0:f}" for key, value in enumerate(values))
    for function in ("sum_cate", "avg_cate", "min_cate", "max_cate"):
        assert evaluate(function, array, keys)[-1] == want


def test_floats_are_added_in_double_and_rounded_once() -> None:
    x = pa.array([0.1] * 1000, pa.float32())
    key = pa.array([1] * 1000)
    exact = float(np.float32(0.1)) * 1000
    assert evaluate("sum_cate", x, key)[-1] == f"1:{exact:f}"
    assert evaluate("sum_cate", x, key, openmldb=True)[-1] == f"1:{np.float32(exact):f}" != f"1:{exact:f}"
    assert evaluate("avg_cate", x, key)[-1] == "1:0.100000"


def test_what_has_left_leaves_no_trace() -> None:
    big = [1e300, 0.1, math.inf, 1e-300, 0.2, -math.inf, math.nan, 0.3, 0.4, 2.0**60, 1.5, 2.5]
    x, key = pa.array(big), pa.array([7] * len(big))
    found = evaluate("sum_cate", x, key, frame=Frame("rows", -1, 0), pieces=3)
    assert found[8] == "7:0.700000"
    assert found[-1] == "7:4.000000"
    assert found[2] == "7:inf"
    assert found[6] == "7:nan"


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_integers_wrap_or_raise(bits: int) -> None:
    biggest = 2 ** (bits - 1) - 1
    x = pa.array([biggest, 1, -1, -1], pa.from_numpy_dtype(f"int{bits}"))
    key = pa.array(["k"] * 4)
    wrapped = [f"k:{biggest}", f"k:{-biggest - 1}", f"k:{biggest}", f"k:{biggest - 1}"]
    assert evaluate("sum_cate", x, key, openmldb=True) == wrapped
    assert evaluate("sum_cate", x[2:], key[2:], ansi=True) == ["k:-1", "k:-2"]
    message = r"sum_cate\(\) overflowed .*int\nhelp: cast its argument to a wider type"
    with pytest.raises(OverflowError, match=message):
        evaluate("sum_cate", x, key, ansi=True, openmldb=True)
    if bits == 64:
        with pytest.raises(OverflowError, match=message):
            evaluate("sum_cate", x, key, ansi=True)
    else:
        assert evaluate("sum_cate", x, key, ansi=True)[1] == f"k:{biggest + 1}"
    assert evaluate("avg_cate", x, key, ansi=True)[1] == f"k:{float(biggest + 1) / 2:f}"


@examples(60)
@given(st.data())
def test_many_categories_in_long_windows(data: st.DataObject) -> None:
    """More changes at once than are put into the list one by one, output that outgrows its buffer, long doubles."""
    size, kinds = data.draw(st.integers(1, 300)), data.draw(st.sampled_from([2, 50, 300]))
    seed = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scale = data.draw(st.sampled_from([1.0, 1e-3, 1e12, 1e200]))
    values = seed.normal(size=size) * scale * 10.0 ** seed.integers(-3, 3, size)
    x = pa.array(values if data.draw(st.booleans()) else seed.integers(-100, 100, size))
    condition, key = pa.array(seed.random(size) < 0.7), pa.array([f"key{i}" for i in seed.integers(0, kinds, size)])
    name = data.draw(st.sampled_from(["count", "sum", "avg", "min", "max"]))
    function = data.draw(st.sampled_from(["{}_cate_where", "top_n_key_{}_cate_where", "top_n_value_{}_cate_where"]))
    n = data.draw(st.sampled_from([-1, 3, 60])) if "top" in function else None
    start, step = data.draw(st.none() | st.integers(-200, 0)), data.draw(st.integers(-100, 0))
    frame = Frame("rows", start if start is None or start <= step else step, step)
    found = evaluate(function.format(name), x, condition, key, n=n, frame=frame, pieces=data.draw(st.integers(1, 4)))
    rows: list[Any] = list(zip(x.to_pylist(), condition.to_pylist(), key.to_pylist(), strict=True))
    for i in range(0, size, 7):
        members = rows[0 if frame.start is None else max(0, i + frame.start) : max(0, i + step + 1)]
        view = View(members, [], (x.type, pa.bool_(), STRING), () if n is None else (n,))
        assert found[i] == TWINS[function.format(name)](view)


@pytest.mark.parametrize(
    ("name", "types", "argument", "message"),
    [
        ("sum_cate", (STRING, STRING), 0, r"sum_cate\(\) does not take string$"),
        ("max_cate", (pa.bool_(), STRING), 0, "does not take boolean$"),
        ("avg_cate", (pa.decimal128(10, 2), STRING), 0, r"does not take decimal\(10,2\)$"),
        ("count_cate", (STRING, pa.float64()), 1, "does not take double as category"),
        ("sum_cate_where", (pa.int64(), pa.bool_(), pa.bool_()), 2, "does not take boolean as category"),
        (
            "top_n_key_ratio_cate",
            (STRING, pa.int32(), STRING),
            1,
            "condition of top_n_key_ratio_cate.* must be boolean",
        ),
    ],
)
def test_refused_types(name: str, types: tuple[pa.DataType, ...], argument: int, message: str) -> None:
    with pytest.raises(FunctionTypeError, match=message) as error:
        FUNCTIONS[name].result_type(types)
    assert error.value.argument == argument
    assert error.value.help
