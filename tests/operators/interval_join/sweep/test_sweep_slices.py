"""The operator gives the same rows whichever algorithm goes through the pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.processor import join_batches
from sqlext_operators.interval_join.spec import IntervalJoinSpec, IntervalSide, PairAlgorithm

from tests.operators.interval_join.test_interval_processor import agree, joins

SWEEPS = [algorithm for algorithm in get_args(PairAlgorithm) if algorithm != "slices"]


@given(join=joins(), algorithm=st.sampled_from(SWEEPS))
def test_operator_and_twin_agree(
    join: tuple[IntervalJoinSpec, pa.RecordBatch, pa.RecordBatch, int], algorithm: PairAlgorithm
) -> None:
    spec, left, right, batch_rows = join
    agree(replace(spec, kind="inner", algorithm=algorithm), left, right, batch_rows)


@pytest.mark.parametrize(
    "residual", [(), (Condition("b", "<=", "d"),), (Condition("b", "<", "d"), Condition("b", ">", "c"))]
)
def test_many_pairs_in_many_batches(residual: tuple[Condition, ...]) -> None:
    rng = np.random.default_rng(8)
    sides = []
    for names in ("ab", "cd"):
        starts = rng.integers(0, 1000, 2000)
        ends = starts + rng.integers(1, 60, 2000)
        keys = rng.integers(0, 3, 2000)
        sides.append(pa.RecordBatch.from_pydict({names[0]: starts, names[1]: ends, f"{names[0]}k": keys}))
    conditions = (Condition("a", "<=", "c"), Condition("b", ">", "c"), *residual)
    left = IntervalSide(("ak",), ("a", "b"), (("a", "b"),), ("a", "b"))
    right = IntervalSide(("ck",), ("c", "d"), (("c", "d"),), ("c", "d"))
    found: list[list[Any]] = []
    for algorithm in get_args(PairAlgorithm):
        spec = IntervalJoinSpec("inner", left, right, (False,), (conditions,), algorithm=algorithm)
        batches = list(join_batches(spec, *sides, 997))
        assert all(0 < batch.num_rows <= 997 for batch in batches)
        found.append(sorted(tuple(row.values()) for batch in batches for row in batch.to_pylist()))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 2000
