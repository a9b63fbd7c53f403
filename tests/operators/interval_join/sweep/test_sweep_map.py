"""The gapless hash map against a dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.interval_join.sweep.gapless import GaplessMap
from sqlext_operators.interval_join.sweep.kernels.map import find, insert, remove

from tests.properties import examples

#: Keys that differ in high bits only, negative ones, and small ones: buckets are shared.
KEYS = st.one_of(
    st.integers(0, 40), st.integers(-3, 3).map(lambda k: k << 40), st.integers(0, 9).map(lambda k: k * 64 + 5)
)
STEPS = st.lists(st.tuples(st.sampled_from(["insert", "remove", "find"]), KEYS), max_size=300)


@given(steps=STEPS, paired=st.booleans())
@examples(200)
def test_it_does_what_a_dict_does(steps: list[tuple[str, int]], paired: bool) -> None:
    table = GaplessMap(np.int64, paired=paired)
    model: dict[int, tuple[int, int]] = {}
    for step, key in steps:
        if step == "find":
            entry = int(find(key, table.arrays))
            assert (entry >= 0) == (key in model)
            if entry >= 0:
                assert table.keys[entry] == key
        elif step == "remove":
            table.size = int(remove(key, table.size, table.arrays))
            model.pop(key, None)
        elif key not in model:
            table.reserve(table.size + 1)
            table.size = int(insert(key, key + 1, len(model), table.size, table.arrays))
            model[key] = (key + 1, len(model) - 1)
        _agrees(table, model, paired)


def _agrees(table: GaplessMap, model: dict[int, tuple[int, int]], paired: bool) -> None:
    """No gaps: the entries from 0 to size - 1 are the model's, each can be found, each knows what points to it."""
    arrays = table.arrays
    assert table.size == len(model)
    assert set(table.keys.tolist()) == set(model)
    for entry, key in enumerate(table.keys.tolist()):
        assert find(key, arrays) == entry
        before = int(arrays.before[entry])
        assert (arrays.table[~before] if before < 0 else arrays.after[before]) == entry
        if paired:
            assert arrays.lows[entry] == model[key][0]


@pytest.mark.parametrize("id_type", [np.int32, np.int64])
def test_it_grows_and_keeps_its_entries(id_type: type) -> None:
    table = GaplessMap(id_type, paired=True)
    rng = np.random.default_rng(3)
    keys = rng.permutation(5000).astype(id_type)
    for key in keys:
        table.reserve(table.size + 1)
        table.size = int(insert(key, int(key) * 2, 7, table.size, table.arrays))
    assert table.capacity == 8192
    assert (table.keys == keys).all()
    assert (table.arrays.lows[: table.size] == keys * 2).all()
    for key in keys[::2]:
        table.size = int(remove(key, table.size, table.arrays))
    assert sorted(table.keys.tolist()) == sorted(keys[1::2].tolist())
    assert all(find(key, table.arrays) < 0 for key in keys[::2])


def test_what_is_not_in_is_not_removed() -> None:
    table = GaplessMap(np.int32)
    assert remove(4, 0, table.arrays) == 0
    size = insert(4, 0, 0, 0, table.arrays)
    assert remove(5, size, table.arrays) == size == 1
