"""The table of window functions: types, refusals, literals."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from sqlext_operators.columns.reshape import rows_without_columns
from sqlext_operators.sequences.sequence import Piece
from sqlext_operators.window.functions import FUNCTIONS, CallSite, FunctionTypeError, lookup
from sqlext_operators.window.functions.types import sql_name
from sqlext_operators.window.processor import WindowUnionProcessor
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec

from tests.operators.window.window_data import TYPES, arguments, literals

INTERVAL = pa.duration("us")
STRUCT = pa.struct([("a", pa.int32())])
TIME = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_evaluator_can_be_made(name: str) -> None:
    function = FUNCTIONS[name]
    types = tuple(TYPES[name] for name in arguments(function)[0])
    constants = literals(function)[0]
    site = CallSite(function, types, constants, function.result_type(types), unbounded=True, ansi=False)
    assert function.evaluation.create(site).site is site
    assert function.doc


def test_lookup_knows_aliases_in_any_case() -> None:
    assert lookup("AT") is lookup("lag") is FUNCTIONS["lag"]
    assert lookup("Distinct_Count") is FUNCTIONS["distinct_count"]
    assert lookup("histogram_numeric") is None


@pytest.mark.parametrize(
    ("name", "given", "result"),
    [
        ("sum", pa.int8(), pa.int64()),
        ("sum", pa.int16(), pa.int64()),
        ("sum", pa.float32(), pa.float64()),
        ("sum", INTERVAL, INTERVAL),
        ("sum", pa.decimal128(10, 2), pa.decimal128(20, 2)),
        ("sum", pa.decimal128(35, 2), pa.decimal128(38, 2)),
        ("avg", pa.int32(), pa.float64()),
        ("avg", INTERVAL, INTERVAL),
        ("avg", pa.float32(), pa.float64()),
        ("avg", pa.decimal128(10, 2), pa.decimal128(14, 6)),
        ("avg", pa.decimal128(38, 36), pa.decimal128(38, 38)),
        ("min", pa.string(), pa.string()),
        ("max", pa.bool_(), pa.bool_()),
        ("count", STRUCT, pa.int64()),
        ("first_value", pa.map_(pa.string(), STRUCT), pa.map_(pa.string(), STRUCT)),
        ("lag", pa.binary(), pa.binary()),
    ],
)
def test_result_type(name: str, given: pa.DataType, result: pa.DataType) -> None:
    assert FUNCTIONS[name].result_type([given]) == result


@pytest.mark.parametrize("name", ["sum", "sum_where"])
@pytest.mark.parametrize("dtype", [pa.int8(), pa.int32(), pa.float32(), TIME])
def test_sums_keep_their_type_in_openmldb(name: str, dtype: pa.DataType) -> None:
    given = [dtype, pa.bool_()] if name == "sum_where" else [dtype]
    assert FUNCTIONS[name].result_type(given, openmldb=True) == dtype
    with pytest.raises(FunctionTypeError, match="does not take interval day to second"):
        FUNCTIONS[name].result_type([INTERVAL, *given[1:]], openmldb=True)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *((name, dtype) for name in ("sum", "avg") for dtype in (pa.string(), pa.date32(), pa.bool_(), STRUCT, TIME)),
        *((name, dtype) for name in ("min", "max", "distinct_count") for dtype in (STRUCT, pa.list_(pa.int8()))),
    ],
)
def test_refused_types(name: str, given: pa.DataType) -> None:
    with pytest.raises(FunctionTypeError, match=rf"{name}\(\) does not take {sql_name(given)}") as error:
        FUNCTIONS[name].result_type([given])
    assert error.value.argument == 0
    assert error.value.help
    assert pickle.loads(pickle.dumps(error.value)).help == error.value.help


def test_conditions_must_be_boolean() -> None:
    with pytest.raises(FunctionTypeError, match=r"the condition of sum_where.* must be boolean, not int") as error:
        FUNCTIONS["sum_where"].result_type([pa.int64(), pa.int32()])
    assert error.value.argument == 1
    assert FUNCTIONS["count_where"].result_type([pa.bool_()]) == pa.int64()
    assert FUNCTIONS["count_where"].result_type([STRUCT, pa.null()]) == pa.int64()


def test_number_of_arguments() -> None:
    assert FUNCTIONS["count"].result_type([]) == pa.int64()
    for name, types in (("sum", []), ("sum", [pa.int8(), pa.int8()]), ("frame_rows", [])):
        with pytest.raises(FunctionTypeError, match="does not take") as error:
            FUNCTIONS[name].result_type(types)
        assert error.value.help == f"write {FUNCTIONS[name].signature}"


def test_literals() -> None:
    lag = FUNCTIONS["lag"]
    assert lag.complete_constants(()) == (1,)
    assert lag.complete_constants((3,)) == (3,)
    for bad, message in (((-1,), "at least 0"), ((True,), "literal integer"), ((1, 2), "too many")):
        with pytest.raises(FunctionTypeError, match=message):
            lag.complete_constants(bad)
    with pytest.raises(FunctionTypeError, match="needs n"):
        FUNCTIONS["frame_at"].complete_constants(())
    assert FUNCTIONS["first_value"].signature == "first_value(x[, ignore_null])"
    assert FUNCTIONS["count_where"].signature == "count_where(x or *, condition)"


COUNTING = sorted(
    (name, place)
    for name, function in FUNCTIONS.items()
    for place, parameter in enumerate(function.constant_parameters)
    if parameter.kind == "integer" and parameter.maximum is None
)
#: Both keep rows in their state, and MAXSIZE and bounds count like them.
FRAMES = (Frame("rows", None, 0), Frame("rows", -3, 0), Frame("range", -2, 1, end_following=True))


@pytest.mark.few(6)
@pytest.mark.parametrize(("name", "place"), COUNTING)
@pytest.mark.parametrize("frame", FRAMES, ids=["unbounded", "rows", "range"])
def test_the_largest_numbers_count_as_any_that_is_larger_than_the_window(name: str, place: int, frame: Frame) -> None:
    function = FUNCTIONS[name]
    values = {"i64": [3, None, 1, 2], "text": ["b", None, "a", "c"], "c": [True, False, None, True]}
    columns = next(names for names in arguments(function) if set(names) <= set(values))
    args = {f"x{i}": pa.array(values[name] * 3, TYPES[name]) for i, name in enumerate(columns)}
    constants = list(literals(function)[0])

    def results(n: int) -> list[object]:
        given = (*constants[:place], n, *constants[place + 1 :])
        window = Window(frame, (), (Call(name, tuple(args), "out", given),))
        spec = WindowUnionSpec(("k",), "ts", (), (window,))
        processor = WindowUnionProcessor(spec, {key: a.type for key, a in args.items()}, pa.schema([]))
        found: list[object] = []
        for start, last in ((0, False), (6, True)):
            order, zeros = np.arange(start, start + 6), np.zeros(6, np.int64)
            part = {key: array.slice(start, 6) for key, array in args.items()}
            piece = Piece(zeros, order, zeros.astype(np.uint8), part, rows_without_columns(6))
            for batch in processor.process(piece, last):
                found += batch.column("out").to_pylist()
        return found

    expected = results(1000)
    for n in (2**31, 2**40 + 1, 2**62, 2**63 - 1):
        assert results(n) == expected
    least = function.constant_parameters[place].minimum
    if least is None:
        expected = results(-1000)
        for n in (-(2**31), -(2**62), -(2**63) + 1, -(2**63)):
            assert results(n) == expected


@pytest.mark.parametrize("largest", [10**6, 2**31, 2**53, 2**63 - 1])
def test_the_largest_frames_hold_all_rows(largest: int) -> None:
    array = pa.array([5, 7, None, 1], pa.int64())
    zeros, order = np.zeros(4, np.int64), np.arange(4)
    piece = Piece(zeros, order, zeros.astype(np.uint8), {"x": array}, rows_without_columns(4))
    frames = (
        Frame("rows", -largest, 0),
        Frame("range", -largest, 0),
        Frame("range", None, 0, maxsize=largest),
        Frame("range", -5, 0, maxsize=largest),
    )
    for frame in frames:
        spec = WindowUnionSpec(("k",), "ts", (), (Window(frame, (), (Call("sum", ("x",), "out"),)),))
        (batch,) = WindowUnionProcessor(spec, {"x": array.type}, pa.schema([])).process(piece, True)
        assert batch.column("out").to_pylist() == [5, 12, 12, 13]
