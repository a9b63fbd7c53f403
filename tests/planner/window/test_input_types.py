"""Types of window functions over strings with a collation: a value may be handed on, but not compared by its bytes."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, DataType, IntegerType, StringType, StructField, StructType
from sqlext_operators.window.functions.definition import Parameter
from sqlext_operators.window.functions.table import FUNCTIONS
from sqlext_operators.window.spec import Call, Scalar
from sqlext_planner.errors import AnalysisError
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.spark.versions import spark_version
from sqlext_planner.window.inputs import result_type
from sqlext_planner.window.nodes import WindowCall

from tests.operators.window.twins import TWINS
from tests.operators.window.twins.view import View

pytestmark = pytest.mark.spark_since("4.0", "collations")

LOWER = StringType("UTF8_LCASE") if spark_version() >= (4, 0) else StringType()
#: The same texts but for their case, which UTF8_LCASE takes no notice of.
MIXED, SMALL = ["a", "B", "A", "b", "A", "c", "b"], ["a", "b", "a", "b", "a", "c", "b"]
_CONSTANTS: dict[str, Scalar] = {"integer": 1, "boolean": False, "number": 1, "string": ","}


def column_types(parameters: tuple[Parameter, ...], place: int, other: pa.DataType) -> list[pa.DataType]:
    """The argument types of a call: text at `place`, booleans for conditions, `other` elsewhere."""
    types = [pa.bool_() if parameter.kind == "condition" else other for parameter in parameters]
    types[place] = pa.string()
    return types


def spark_result(function: str, types: list[pa.DataType], kinds: dict[int, DataType]) -> DataType:
    """`result_type` for arguments of these Arrow types; `kinds` are those whose Spark types matter."""
    names = tuple(f"a{place}" for place in range(len(types)))
    call = Call(function, names, "r", ())
    logical = WindowCall(function, (), Column("w", "r"), ())
    return result_type(
        logical,
        call,
        dict(zip(names, types, strict=True)),
        {name: kinds.get(place, IntegerType()) for place, name in enumerate(names)},
    )


def refused(function: str, types: list[pa.DataType], kinds: dict[int, DataType]) -> AnalysisError | None:
    """Why the function does not take the arguments; None if it does."""
    try:
        spark_result(function, types, kinds)
    except AnalysisError as error:
        return error
    return None


def lowered(value: Any) -> Any:
    if isinstance(value, str):
        return value.lower()
    if isinstance(value, dict):
        return {lowered(k): lowered(v) for k, v in value.items()}
    return type(value)(map(lowered, value)) if isinstance(value, list | tuple) else value


def answer(function: str, types: list[pa.DataType], place: int, texts: list[str]) -> Any:
    """The twin's answer over rows with these texts at `place`."""
    fill = {pa.bool_(): [True, True, False], pa.string(): ["a", "x"]}
    rows = [
        tuple(
            text if other == place else fill.get(dtype, [3, 1, 2])[number % len(fill.get(dtype, [3, 1, 2]))]
            for other, dtype in enumerate(types)
        )
        for number, text in enumerate(texts)
    ]
    constants = FUNCTIONS[function].complete_constants(
        [_CONSTANTS[parameter.kind] for parameter in FUNCTIONS[function].constant_parameters if not parameter.optional]
    )
    return TWINS[function](View(rows, rows, tuple(types), constants))


@pytest.mark.few(4)
@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_a_function_that_compares_takes_no_collation(function: str) -> None:
    """What is accepted gives the same for texts that are equal under the collation, but for their case."""
    parameters = FUNCTIONS[function].column_parameters
    for place, other in itertools.product(range(len(parameters)), (pa.int64(), pa.string())):
        types = column_types(parameters, place, other)
        if parameters[place].kind == "condition":
            continue
        if refused(function, types, {}) is not None:
            continue  # no text here at all
        refusal = refused(function, types, {place: LOWER})
        if refusal is not None:
            assert "string collate UTF8_LCASE" in refusal.message
            assert "COLLATE UTF8_BINARY" in (refusal.help or "")
            continue
        mixed, small = (answer(function, types, place, texts) for texts in (MIXED, SMALL))
        assert lowered(mixed) == lowered(small), f"{function} compares argument {place}"


@pytest.mark.parametrize("function", ["max", "min", "distinct_count", "topn_frequency", "top", "count_cate", "entropy"])
def test_refused(function: str) -> None:
    place = len(FUNCTIONS[function].column_parameters) - 1
    types = column_types(FUNCTIONS[function].column_parameters, place, pa.int64())
    with pytest.raises(AnalysisError, match="string collate UTF8_LCASE"):
        spark_result(function, types, {place: LOWER})


@pytest.mark.parametrize(
    ("kind", "arrow"),
    [
        (LOWER, pa.string()),
        (ArrayType(LOWER), pa.list_(pa.string())),
        (StructType([StructField("x", LOWER)]), pa.struct([("x", pa.string())])),
    ],
)
@pytest.mark.parametrize("function", ["first_value", "last_value", "lag"])
def test_a_value_keeps_its_collation(function: str, kind: DataType, arrow: pa.DataType) -> None:
    assert spark_result(function, [arrow], {0: kind}) == kind
