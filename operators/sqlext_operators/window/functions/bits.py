"""The rows of conditions and bits: count_if, bool_and, bool_or, bit_and, bit_or, bit_xor."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sqlext_operators.window.functions import types
from sqlext_operators.window.functions.definition import Evaluation, Parameter, WindowFunction
from sqlext_operators.window.functions.types import FunctionTypeError, sql_name

_VALUE = Parameter("x")
_TRUTH = Parameter("b")


def _truth(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """boolean for booleans."""
    if not pa.types.is_boolean(dtypes[0]):
        help = "write a comparison, for example x > 0"
        raise FunctionTypeError(f"{name}() does not take {sql_name(dtypes[0])}", help, 0)
    return pa.bool_()


def _integer(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """The input's type, an integer."""
    if not pa.types.is_signed_integer(dtypes[0]):
        help = "it takes integers; cast the argument, for example to bigint"
        raise FunctionTypeError(f"{name}() does not take {sql_name(dtypes[0])}", help, 0)
    return dtypes[0]


def _bits(name: str, what: str, operation: str) -> WindowFunction:
    doc = f"{what} of all values, bit by bit. NULL if no value is left."
    return WindowFunction(
        name, (_VALUE,), _integer, Evaluation("bits", "Bits", {"operation": operation}), doc, of_spark=True
    )


ROWS: tuple[WindowFunction, ...] = (
    WindowFunction(
        "count_if",
        (Parameter("condition", "condition"),),
        types.bigint,
        Evaluation("sums", "Count"),
        "Number of rows where the condition is true (NULL counts as false); 0 for an empty window.",
        of_spark=True,
    ),
    WindowFunction(
        "bool_or",
        (_TRUTH,),
        _truth,
        Evaluation("bits", "Truths", {"every": False}),
        "Whether one of the values is true. NULL if no value is left.",
        spark_names=("some",),
        of_spark=True,
    ),
    WindowFunction(
        "bool_and",
        (_TRUTH,),
        _truth,
        Evaluation("bits", "Truths", {"every": True}),
        "Whether all values are true. NULL if no value is left.",
        spark_names=("every",),
        of_spark=True,
    ),
    _bits("bit_and", "AND", "and"),
    _bits("bit_or", "OR", "or"),
    _bits("bit_xor", "XOR (exclusive or)", "xor"),
)
