"""What a multi-way join has to compute: plain frozen data, picklable, with no SQL and no Spark in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal["inner", "left", "semi", "anti"]

#: The column that `MultiwayJoinSpec.count` adds.
COUNT = "__sqlext_count"


@dataclass(frozen=True)
class MultiwayInput:
    """The columns of one input, by their names on the wire.

    `keys[i]` holds values of the key class number `classes[i]`; a class occurs at most once (an input whose columns
    must equal each other was filtered before). `payload` are passed on, in that order.
    """

    kind: Kind
    classes: tuple[int, ...]
    keys: tuple[str, ...]
    payload: tuple[str, ...] = ()


@dataclass(frozen=True)
class MultiwayJoinSpec:
    """A join of all inputs on key classes numbered 0 to `classes` - 1.

    A binding gives every class of the inner inputs one value, such that every inner input has rows with it. The rows of
    a binding are the product of the inputs' rows that agree with it: of the inner inputs, and of the left ones, where
    an input without such a row gives one of NULLs. A binding without a matching row of a semi input, or with one of an
    anti input, has no rows. The classes of left, semi and anti inputs are among those of the inner ones. NULL keys
    match nothing. Keys of a class have one type on all inputs, and compare as in keys.py (NaN is NaN, -0.0 is 0.0).

    Output columns: the payload of the inner and left inputs, input by input. With `count`, inputs without payload are
    not enumerated: rows come with the product of their numbers of rows in the int64 column `COUNT`; without any payload
    a partition gives one row with the sum, or none. Rows come in no particular order. Raises ValueError if parts do not
    fit.
    """

    inputs: tuple[MultiwayInput, ...]
    classes: int
    count: bool = False

    def __post_init__(self) -> None:
        inner = {place for item in self.inputs if item.kind == "inner" for place in item.classes}
        if inner != set(range(self.classes)):
            raise ValueError("every key class is bound by an inner input")
        for item in self.inputs:
            if len(item.classes) != len(item.keys) or len(set(item.classes)) != len(item.classes):
                raise ValueError("an input has one key for each of its classes")
            if not set(item.classes) <= inner:
                raise ValueError("the classes of an input are among those of the inner ones")
            if item.kind in ("semi", "anti") and item.payload:
                raise ValueError(f"a {item.kind} input has no payload")

    @cached_property
    def shared(self) -> tuple[int, ...]:
        """The classes that every input has."""
        common = set(range(self.classes)).intersection(*(item.classes for item in self.inputs))
        return tuple(sorted(common))
