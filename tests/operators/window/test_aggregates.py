"""Aggregates of Spark over windows: known answers, ties, errors, values that have left."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlext_operators.errors import RowError
from sqlext_operators.sequences.sequence import Piece
from sqlext_operators.window.functions import FUNCTIONS, lookup
from sqlext_operators.window.processor import WindowUnionProcessor
from sqlext_operators.window.spec import Call, Frame, Scalar, Window, WindowUnionSpec

UNBOUNDED, LAST_TWO = Frame("rows", None, 0), Frame("rows", -1, 0)
EMPTY = Frame("rows", -9, -9)


def evaluate(name: str, *columns: Any, frame: Frame = UNBOUNDED, constants: tuple[Scalar, ...] = ()) -> list[Any]:
    """The results for all rows of one group, once in one piece and once row by row."""
    args = {f"c{n}": column if isinstance(column, pa.Array) else pa.array(column) for n, column in enumerate(columns)}
    count = len(args["c0"])
    spec = WindowUnionSpec(("k",), "ts", (), (Window(frame, (), (Call(name, tuple(args), "out", constants),)),))
    found = []
    for cuts in ([0, count], list(range(count + 1))):
        processor = WindowUnionProcessor(spec, {n: a.type for n, a in args.items()}, pa.schema([("id", pa.int64())]))
        rows = []
        for start, end in pairwise(cuts):
            order, zeros = np.arange(start, end), np.zeros(end - start, np.int64)
            part = {n: a.slice(start, end - start) for n, a in args.items()}
            piece = Piece(
                zeros, order, zeros.astype(np.uint8), part, pa.RecordBatch.from_pydict({"id": pa.array(order)})
            )
            rows += [v for b in processor.process(piece, end == count) for v in b.column("out").to_pylist()]
        found.append(rows)
    assert repr(found[0]) == repr(found[1])
    return found[0]


@pytest.mark.parametrize(
    ("name", "columns", "constants", "result"),
    [
        ("corr", ([1.0, 3.0, 5.0], [2.0, 4.0, 1.0]), (), -0.32732683535398854),
        ("covar_samp", ([1.0, 3.0, 5.0], [2.0, 4.0, 1.0]), (), -1.0),
        ("regr_slope", ([1.0, 3.0, 5.0], [2.0, 4.0, 1.0]), (), -0.42857142857142855),
        ("regr_intercept", ([1.0, 3.0, 5.0], [2.0, 4.0, 1.0]), (), 4.0),
        ("regr_r2", ([1, 1], [2, 5]), (), 1.0),
        ("regr_r2", ([1, 3], [2, 2]), (), None),
        ("regr_r2", ([1.0], [math.nan]), (), 1.0),  # so says Spark
        ("corr", ([math.nan, 2.0], [1.0, 1.0]), (), None),
        ("corr", ([1.0, 1.0], [math.nan, 2.0]), (), None),
        ("regr_count", ([1, None, 3], [2, 2, None]), (), 1),
        ("skewness", ([2.0, 2.0],), (), None),
        ("kurtosis", ([1.0, 2.0, 3.0, 4.0],), (), -1.36),
        ("product", ([1e200, 1e200, 1e-300],), (), 1e100),
        ("product", ([-2, 3, None],), (), -6.0),
        ("percentile", ([1, 2, 10],), (0.9,), 8.4),
        ("percentile", ([1, 2, 10], [0, 3, None]), (0.5,), 2.0),
        ("percentiles", ([1, 2, 10],), (0.1, 0.9), [1.2, 8.4]),
        ("percentile_cont", ([1, 2, 4, 10],), (True, 0.3), 4.6),
        ("percentile_disc", ([1, 2, 4, 10],), (True, 0.3), 4.0),
        ("percentile_approx", ([1, 2, 4, 10],), (0.5,), 2),
        ("mode", ([3, 1, 1, 3, 2],), (), 1),
        ("mode_within_group", ([3, 1, 1, 3, 2],), (True,), 3),
        ("max_by", ([1, 2, 3, None, 4, 5], [5, 5, None, 6, 1, 1]), (), None),
        ("max_by", ([1, 2, 3], [5, 5, None]), (), 2),
        ("min_by", ([1, 2, 3, None, 4, 5], [5, 5, None, 6, 1, 1]), (), 5),
        ("max_by", ([1, 2], [math.nan, 1.0]), (), 1),
        ("nth_value", ([None, 7, 8],), (2, True), 8),
        ("nth_value", ([None, 7, 8],), (2,), 7),
        ("collect_set", ([0.0, -0.0, math.inf, 0.0],), (), [0.0, math.inf]),
        ("listagg", (["a", None, "b"],), (",",), "a,b"),
        ("listagg", ([b"a", b"b"],), (",",), b"a,b"),
        ("listagg_within_group", (["a", "c", "b"], [1, None, 2]), (",", True, True), "c,b,a"),
        ("bit_and", (pa.array([12, 10], pa.int8()),), (), 8),
        ("bit_xor", ([12, 10],), (), 6),
        ("try_sum", ([2**63 - 1, 1],), (), None),
        ("try_sum", (pa.array([2**31 - 1, 1], pa.int32()),), (), 2**31),
        ("count_if", ([True, None, False, True],), (), 2),
        ("approx_count_distinct", ([None, -(2**63), -(2**63), 0],), (), 2),
    ],
)
def test_known_answers(name: str, columns: tuple[Any, ...], constants: tuple[Scalar, ...], result: Any) -> None:
    found = evaluate(name, *columns, constants=constants)[-1]
    assert found == (pytest.approx(result, rel=1e-15) if isinstance(result, float) else result)


@pytest.mark.parametrize("name", sorted(name for name, row in FUNCTIONS.items() if row.of_spark))
def test_empty_frames(name: str) -> None:
    """NULL, but for counts and lists."""
    kind = {"count_if": pa.bool_(), "bool_or": pa.bool_(), "bool_and": pa.bool_(), "listagg": pa.string()}
    needed = [parameter for parameter in FUNCTIONS[name].column_parameters if not parameter.optional]
    columns = [pa.array([None, None], kind.get(name, pa.int64()))] * len(needed)
    constants = (1,) if name == "nth_value" else (0.5,) if name.startswith("percentile") else ()
    wanted: Any = 0 if "count" in name else [] if name.startswith("collect") else None
    assert evaluate(name, *columns, frame=EMPTY, constants=constants) == [wanted] * 2
    assert evaluate(name, *columns, constants=constants) == [wanted] * 2


@pytest.mark.few
@pytest.mark.parametrize("odd", [1e300, math.inf, math.nan])
@pytest.mark.parametrize("name", ["corr", "covar_pop", "regr_slope", "skewness", "kurtosis", "product"])
def test_values_that_have_left_leave_no_trace(name: str, odd: float) -> None:
    values = [0.5, odd, 0.25, 0.75, 1.5]
    columns = [values] if len(FUNCTIONS[name].parameters) == 1 else [values, [1.0, 2.0, 4.0, 3.0, 7.0]]
    found = evaluate(name, *columns, frame=LAST_TWO)
    for end in (4, 5):
        assert found[end - 1] == evaluate(name, *(column[end - 2 : end] for column in columns))[1]


@pytest.mark.parametrize("offset", [2**40, 2**61])
def test_large_offsets_cost_no_digits(offset: int) -> None:
    x, y = [1, 5, 2, 8, 3], [2, 9, 4, 11, 7]
    for name in ("corr", "covar_pop", "regr_slope", "skewness", "kurtosis"):
        columns = [x] if len(FUNCTIONS[name].parameters) == 1 else [x, y]
        far = [[value + offset for value in column] for column in columns]
        assert evaluate(name, *far)[-1] == pytest.approx(evaluate(name, *columns)[-1], rel=1e-14)


def test_decimals_are_scaled() -> None:
    x = pa.array([Decimal("1.1"), Decimal("2.0"), Decimal("4.5")], pa.decimal128(10, 1))
    y = [1, 3, 4]
    for name in ("regr_slope", "regr_intercept", "covar_samp", "regr_syy", "corr"):
        for columns in ((x, y), (y, x), (x, x)):
            floats = [column if column is y else [1.1, 2.0, 4.5] for column in columns]
            assert evaluate(name, *columns)[-1] == pytest.approx(evaluate(name, *floats)[-1], rel=1e-13, abs=1e-14)
    assert evaluate("product", x)[-1] == pytest.approx(9.9)
    assert [evaluate("regr_avgx", y, x)[-1], evaluate("regr_avgy", x, y)[-1]] == [Decimal("2.53333")] * 2  # as avg
    assert evaluate("percentile", x, constants=(0.5,))[-1] == 2.0


def test_a_negative_frequency_is_an_error() -> None:
    with pytest.raises(RowError, match="negative frequency: -1") as error:
        evaluate("percentile", [1, 2], [1, -1], constants=(0.5,))
    assert error.value.condition == "invalid-value"


def test_names_of_spark() -> None:
    names = {"mean": "avg", "first": "first_value", "any_value": "first_value", "last": "last_value"}
    for name, row in (*names.items(), ("array_agg", "collect_list"), ("approx_percentile", "percentile_approx")):
        assert lookup(name) is FUNCTIONS[row]
        assert name not in FUNCTIONS[row].group_names
