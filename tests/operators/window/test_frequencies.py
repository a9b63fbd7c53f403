"""top, topn_frequency, top1_ratio and the window_split family: exact texts, and sizes beyond the twin tests."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlext_operators.columns.codes import order_codes, ranked
from sqlext_operators.errors import TaskError
from sqlext_operators.sequences.sequence import Piece
from sqlext_operators.window.evaluators import frequencies, lists
from sqlext_operators.window.evaluators.base import Rows
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions import FUNCTIONS, CallSite, FunctionTypeError
from sqlext_operators.window.processor import WindowUnionProcessor
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec
from sqlext_operators.window.texts import Texts, value_texts

NAN, INF = float("nan"), float("inf")


def run(
    function: str,
    values: pa.Array,
    *constants: int | str,
    frame: Frame | None = None,
    pieces: int = 1,
    zone: str = "UTC",
) -> list[Any]:
    """The results over a running window (or `frame`), the rows cut into equal pieces."""
    window = Window(frame or Frame("rows", None, 0), (), (Call(function, ("x",), "out", constants),))
    spec = WindowUnionSpec(("k",), "ts", ("id",), (window,), time_zone=zone)
    processor = WindowUnionProcessor(spec, {"x": values.type}, pa.schema([("id", pa.int64())]))
    found = []
    edges = np.linspace(0, len(values), pieces + 1).astype(int)
    for number, (start, end) in enumerate(pairwise(edges), 1):
        order = np.arange(start, end)
        source = np.zeros(end - start, np.uint8)
        batch = pa.RecordBatch.from_pydict({"id": pa.array(order)})
        piece = Piece(np.zeros_like(order), order, source, {"x": values.slice(start, end - start)}, batch)
        for result in processor.process(piece, number == pieces):
            found += result["out"].to_pylist()
    return found


MOMENT = datetime(2020, 5, 29, 23, 56, 29, 1_500, tzinfo=UTC)
TEXTS: list[tuple[pa.Array, str, str]] = [
    (pa.array([1, 4, None, 3, 4], pa.int8()), "4,4,3,1", "4,1,3,NULL"),
    (pa.array([-5, 2**63 - 1, -5], pa.int64()), "9223372036854775807,-5,-5", "-5,9223372036854775807,NULL,NULL"),
    (pa.array([1.1, 0.0, 1.1], pa.float32()), "1.100000,1.100000,0.000000", "1.100000,0.000000,NULL,NULL"),
    (
        pa.array([NAN, 1e20, -INF, NAN]),
        "nan,nan,100000000000000000000.000000,-inf",
        "nan,-inf,1" + "0" * 20 + ".000000,NULL",
    ),
    (pa.array([-0.0, 0.0, 1e-7]), "0.000000,0.000000,0.000000", "0.000000,0.000000,NULL,NULL"),
    (pa.array([Decimal("0.0000001")], pa.decimal128(20, 7)), "0.0000001", "0.0000001,NULL,NULL,NULL"),
    (pa.array([True, False, True]), "true,true,false", "true,false,NULL,NULL"),
    (pa.array([date(2020, 5, 1), date(1969, 12, 31)]), "2020-05-01,1969-12-31", "1969-12-31,2020-05-01,NULL,NULL"),
    (pa.array(["b", "é", "", "b", "aa"]), "é,b,b,aa", "b,,aa,é"),
    (pa.array([MOMENT], pa.timestamp("us", "UTC")), "2020-05-29 23:56:29", "2020-05-29 23:56:29,NULL,NULL,NULL"),
    (pa.array([None, None], pa.int32()), "", "NULL,NULL,NULL,NULL"),
]


@pytest.mark.parametrize(("values", "top", "frequent"), TEXTS, ids=lambda item: str(getattr(item, "type", "")))
@pytest.mark.parametrize("pieces", [1, 3])
def test_texts(values: pa.Array, top: str, frequent: str, pieces: int) -> None:
    assert run("top", values, 4, pieces=pieces)[-1] == top
    assert run("topn_frequency", values, 4, pieces=pieces)[-1] == frequent


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "2020-05-29 23:56:29"),
        ("Z", "2020-05-29 23:56:29"),
        ("Asia/Shanghai", "2020-05-30 07:56:29"),
        ("+08:00", "2020-05-30 07:56:29"),
        ("GMT+8", "2020-05-30 07:56:29"),
        ("UTC-01:30", "2020-05-29 22:26:29"),
        ("America/New_York", "2020-05-29 19:56:29"),
        ("CTT", "2020-05-30 07:56:29"),
    ],
)
def test_time_zones(zone: str, text: str) -> None:
    values = pa.array([MOMENT, None], pa.timestamp("us", "UTC"))
    assert value_texts(values, zone).to_pylist() == [text, None]
    assert run("top", values, 1, zone=zone) == [text, text]
    assert value_texts(values.cast(pa.timestamp("us")), zone)[0].as_py() == "2020-05-29 23:56:29"


def test_instants_of_one_second_are_different_values() -> None:
    """The texts are equal, the values are not; the second before 1970 is 23:59:59, not 00:00:00."""
    values = pa.array([-1, -2, -2], pa.timestamp("us", "UTC"))
    second = "1969-12-31 23:59:59"
    assert run("topn_frequency", values, 3)[-1] == f"{second},{second},NULL"


def test_unknown_zone() -> None:
    with pytest.raises(TaskError, match="do not know the time zone 'Mars/Base'"):
        value_texts(pa.array([MOMENT], pa.timestamp("us", "UTC")), "Mars/Base")


def test_no_rows_and_no_values() -> None:
    """Nothing for a window without rows; NULL, NULL for one whose rows have no value."""
    before = Frame("rows", -1, -1)
    values = pa.array([None, 7, 8], pa.int32())
    assert run("topn_frequency", values, 2, frame=before) == ["", "NULL,NULL", "7,NULL"]
    assert run("top", values, 2, frame=before) == ["", "", "7"]
    assert run("top1_ratio", values, frame=before) == [0.0, 0.0, 1.0]
    assert run("topn_frequency", values, 0) == ["", "", ""]
    assert run("top", values, 0) == ["", "", ""]


def test_top1_ratio() -> None:
    values = pa.array([1.0, NAN, 0.0, NAN, -0.0, -0.0, None])
    assert run("top1_ratio", values) == [1.0, 1 / 2, 1 / 3, 2 / 4, 2 / 5, 3 / 6, 3 / 6]
    assert run("top1_ratio", pa.array([b"a", b"b", b"a"]))[-1] == 2 / 3


@pytest.mark.parametrize("width", [0, 7, 300])
@pytest.mark.parametrize("distinct", [2, 40, 5000])
def test_long_sequences(width: int, distinct: int) -> None:
    """Thousands of rows in pieces, skewed and with NULLs, against a recount of every tenth frame."""
    rng = np.random.default_rng(width + distinct)
    raw = np.minimum(rng.zipf(1.2, 3000), distinct)
    values = pa.array(raw, mask=rng.random(3000) < 0.1)
    frame = Frame("rows", -width, 0)
    frequent = run("topn_frequency", values, 5, frame=frame, pieces=4)
    largest = run("top", values, 5, frame=frame, pieces=4)
    ratio = run("top1_ratio", values, frame=frame, pieces=4)
    for i in range(0, 3000, 10):
        held = [v for v in values.slice(max(0, i - width), min(i, width) + 1).to_pylist() if v is not None]
        ranks = sorted(Counter(held).items(), key=lambda item: (-item[1], item[0]))
        assert frequent[i] == ",".join([*(str(v) for v, _ in ranks), *["NULL"] * 5][:5])
        assert largest[i] == ",".join(map(str, sorted(held, reverse=True)[:5]))
        assert ratio[i] == (ranks[0][1] / len(held) if held else 0.0)


def test_the_output_grows() -> None:
    """Texts much longer than the buffer that the kernel is given at first."""
    values = pa.array(["x" * 5000, "y" * 3000, "z"])
    assert run("top", values, 3)[-1] == f"z,{'y' * 3000},{'x' * 5000}"
    assert run("topn_frequency", pa.array([1]), 1024) == ["1" + ",NULL" * 1023]


def test_many_frequent_values() -> None:
    values = pa.array(np.repeat(np.arange(900), np.arange(900) % 30 + 1))
    ranks = sorted(Counter(values.to_pylist()).items(), key=lambda item: (-item[1], item[0]))
    assert run("topn_frequency", values, 1024, pieces=2)[-1] == ",".join([*(str(v) for v, _ in ranks), *["NULL"] * 124])


@pytest.mark.parametrize(
    ("function", "constants", "parts"),
    [
        ("window_split", (",",), ["", "k3:v", "a", "", "k1:v1", "k2:v2:w"]),
        ("window_split", (":",), ["", "k3", "v,a,", "k1", "v1,k2", "v2", "w"]),
        ("window_split", ("v2:",), ["", "k3:v,a,", "k1:v1,k2:", "w"]),
        ("window_split", ("",), []),
        ("window_split_by_key", (",", ":"), ["k3", "k1", "k2"]),
        ("window_split_by_value", (",", ":"), ["v", "v1", "v2"]),
        ("window_split_by_value", (",", "v"), ["", "1", "2:w"]),
        ("window_split_by_key", (",", ""), []),
        ("window_split_by_value", (",", ","), []),
    ],
)
def test_parts(function: str, constants: tuple[str, ...], parts: list[str]) -> None:
    """The newest row first; '' has one part that is empty, NULL has none."""
    values = pa.array(["k1:v1,k2:v2:w", None, "k3:v,a,", ""])
    assert run(function, values, *constants)[-1] == parts
    assert run(function, values, *constants, pieces=4)[-1] == parts


def test_parts_beyond_4096_bytes() -> None:
    """OpenMLDB stops there; here nothing is left out."""
    values = pa.array(["x" * 3000, "y" * 3000])
    assert run("window_split", values, ",") == [["x" * 3000], ["y" * 3000, "x" * 3000]]


def site(name: str, dtype: pa.DataType, *constants: int | str) -> CallSite:
    function = FUNCTIONS[name]
    return CallSite(function, (dtype,), constants, function.result_type([dtype]), unbounded=False, ansi=False)


def one_frame(rows: int) -> Frames:
    zero, end = np.zeros(1, np.int64), np.full(1, rows)
    return Frames(end - 1, zero, end, None, None, None, zero, end, end, end, np.ones(1, np.bool_))


@pytest.mark.parametrize("by_value", [False, True])
def test_frames_that_grow_beyond_a_list(by_value: bool) -> None:
    """Codes are a list while frames are short; the state goes on as a heap, and what was counted stays."""
    values = np.random.default_rng(3).integers(0, 40, 400)
    name = "top" if by_value else "topn_frequency"
    evaluator = frequencies.TopTexts(site(name, pa.int64(), 3), by_value=by_value)
    evaluator.load(Rows((pa.array(values),), None, len(values)))
    rows = np.arange(len(values))
    lo = np.where(rows < 200, np.maximum(0, rows - 30), 170)
    frames = Frames(rows, lo, rows + 1, None, None, None, np.zeros_like(rows), *[rows + 1] * 3, rows == 0)
    parts = [frames[:100], frames[100:200], frames[200:]]
    found = [text for part in parts for text in evaluator.evaluate(part).to_pylist()]
    for i in range(len(values)):
        held = values[lo[i] : i + 1].tolist()
        ranks = [value for value, _ in sorted(Counter(held).items(), key=lambda item: (-item[1], item[0]))]
        best = sorted(held, reverse=True)[:3] if by_value else [*ranks, "NULL", "NULL"][:3]
        assert found[i] == ",".join(map(str, best))


def test_weights() -> None:
    """What decides how many rows an output batch has: n texts of the longest value, or the parts of the frame."""
    many = frequencies.TopTexts(site("topn_frequency", pa.string(), 100), by_value=False)
    many.load(Rows((pa.array(["x" * 79, "y"]),), None, 2))
    assert many.weights(one_frame(2)).tolist() == [100 * 80 // 8]
    largest = frequencies.TopTexts(site("top", pa.string(), 100), by_value=True)
    largest.load(Rows((pa.array(["x" * 79, "y"]),), None, 2))
    assert largest.weights(one_frame(2)).tolist() == [2 * 80 // 8]
    parts = lists.WindowSplit(site("window_split", pa.string(), ","), field=None)
    parts.load(Rows((pa.array(["a,b,c", "d"]),), None, 2))
    assert parts.weights(one_frame(2)) is not None
    assert parts.evaluate(one_frame(2)).to_pylist() == [["d", "a", "b", "c"]]


def test_counts_have_a_limit() -> None:
    evaluator = frequencies.TopTexts(site("topn_frequency", pa.int64(), 1), by_value=False)
    evaluator.folded = (pa.array([1]), np.array([2**32 - 1]))
    with pytest.raises(OverflowError, match="can count a value at most 4294967296 times"):
        evaluator.load(Rows((pa.array([1]),), None, 1))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("top", pa.binary()),
        ("top", pa.duration("us")),
        ("topn_frequency", pa.time64("ns")),
        ("topn_frequency", pa.list_(pa.int8())),
        ("topn_frequency", pa.null()),
        ("top1_ratio", pa.struct([("a", pa.int8())])),
        ("window_split", pa.binary()),
        ("window_split_by_key", pa.int64()),
    ],
)
def test_refused_types(name: str, dtype: pa.DataType) -> None:
    with pytest.raises(FunctionTypeError, match=rf"{name}\(\) does not take") as error:
        FUNCTIONS[name].result_type([dtype])
    assert error.value.argument == 0


@pytest.mark.parametrize(
    ("name", "constants", "message"),
    [
        ("top", (-1,), "n of top.* must be at least 0"),
        ("topn_frequency", (1025,), "n of topn_frequency.* must be at most 1024"),
        ("topn_frequency", (), "needs n"),
        ("window_split", (1,), "d of window_split.* must be a literal string"),
        ("window_split_by_key", (",",), "needs kv"),
    ],
)
def test_refused_literals(name: str, constants: tuple[Any, ...], message: str) -> None:
    with pytest.raises(FunctionTypeError, match=message):
        FUNCTIONS[name].complete_constants(constants)


@pytest.mark.parametrize("values", [item[0] for item in TEXTS], ids=lambda item: str(item.type))
def test_ranked(values: pa.Array) -> None:
    """Codes in the order of the values, for whole arrays and slices."""
    for array in (values, values.slice(1), values.slice(0, 0)):
        codes, distinct = ranked(array)
        present = array.is_valid().to_numpy(zero_copy_only=False)
        assert ((codes >= 0) == present).all()
        assert distinct.type == array.type
        assert len(distinct) == len(set(codes[present]))
        order = order_codes(array)[present]
        assert (np.argsort(codes[present], kind="stable") == np.argsort(order, kind="stable")).all()
        assert (order_codes(distinct.take(pa.array(codes[present]))) == order).all() or pa.types.is_string(array.type)


def test_texts_of_slices() -> None:
    texts = Texts.of(pa.array(["ab", "", "é", "c"]).slice(1))
    assert texts.offsets.tolist() == [0, 0, 2, 3]
    assert bytes(texts.data) == "éc".encode()
    assert texts.longest == 2
    assert Texts.of(pa.array([], pa.string())).longest == 0
    assert bytes(Texts.of(pa.array([b"\xff"])).data) == b"\xff"
