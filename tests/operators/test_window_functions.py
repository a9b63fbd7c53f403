"""The table of window functions: types, refusals, literals."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from sqlext_operators.window.functions import FUNCTIONS, CallSite, FunctionTypeError, lookup
from sqlext_operators.window.functions.types import sql_name

from tests.operators.window_data import TYPES, arguments, literals

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
    assert lookup("lead") is None


@pytest.mark.parametrize(
    ("name", "given", "result"),
    [
        ("sum", pa.int8(), pa.int8()),
        ("sum", pa.int16(), pa.int16()),
        ("sum", pa.float32(), pa.float32()),
        ("sum", TIME, TIME),
        ("sum", pa.decimal128(10, 2), pa.decimal128(20, 2)),
        ("sum", pa.decimal128(35, 2), pa.decimal128(38, 2)),
        ("avg", pa.int32(), pa.float64()),
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


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *((name, dtype) for name in ("sum", "avg") for dtype in (pa.string(), pa.date32(), pa.bool_(), STRUCT)),
        ("avg", TIME),
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
