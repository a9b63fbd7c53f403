"""What a placement refuses, and that it travels. Needs no Spark."""

from __future__ import annotations

import pickle

import pytest
from sqlext_operators.exchange.placement import KeyPlace, Placement


def test_a_placement_travels() -> None:
    keys = (KeyPlace(3, (1, 0), (-5,)), KeyPlace((1 << 64) - 1, (2,)))
    placement = Placement(3, ((0,), (2, 1)), keys)
    assert pickle.loads(pickle.dumps(placement)) == placement
    assert Placement(1, ((0,),)).keys == ()


def test_key_places_that_cannot_be() -> None:
    for arguments, message in (
        ((-1, (0,)), "the hash of a key is a uint64"),
        ((1 << 64, (0,)), "the hash of a key is a uint64"),
        ((1, (0, 1), (5, 6)), "2 cuts do not make 2 time ranges"),
        ((1, (0, 1, 2), (6, 6)), "the cuts of a key ascend"),
        ((1, (0, 1), (1 << 63,)), "the cuts of a key are int64"),
    ):
        with pytest.raises(ValueError, match=message):
            KeyPlace(*arguments)  # type: ignore[arg-type]


def test_placements_that_cannot_be() -> None:
    place = KeyPlace(1, (0,))
    for arguments, message in (
        ((0, ((0,),)), "at least one partition"),
        ((2, ()), "at least one hash slot"),
        ((2, ((0,),), (place, place)), "the keys of a placement ascend"),
        ((2, ((),)), r"different partitions from 0 to 1, not \(\)"),
        ((2, ((0, 0),)), r"different partitions from 0 to 1, not \(0, 0\)"),
        ((2, ((2,),)), r"different partitions from 0 to 1, not \(2,\)"),
        ((2, ((0,),), (KeyPlace(1, (-1,)),)), r"different partitions from 0 to 1, not \(-1,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            Placement(*arguments)  # type: ignore[arg-type]
