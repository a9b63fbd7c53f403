"""The twins of functions/bits.py in plain Python."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce

from sqlext_operators.window.twins.view import Twin, View, chosen


def _truths(view: View, combine: Callable[[list[bool]], bool]) -> bool | None:
    values = chosen(view)
    return combine(values) if values else None


def _bits(view: View, combine: Callable[[int, int], int]) -> int | None:
    values = chosen(view)
    return reduce(combine, values) if values else None


#: The twins of functions/bits.py.
TWINS: dict[str, Twin] = {
    "count_if": lambda view: sum(row[0] is True for row in view.rows),
    "bool_or": lambda view: _truths(view, any),
    "bool_and": lambda view: _truths(view, all),
    "bit_and": lambda view: _bits(view, operator.and_),
    "bit_or": lambda view: _bits(view, operator.or_),
    "bit_xor": lambda view: _bits(view, operator.xor),
}
