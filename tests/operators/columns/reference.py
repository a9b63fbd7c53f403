"""What the brute-force twins of the operators share: values compared in plain Python."""

from __future__ import annotations

import math
import operator
from typing import Any

_COMPARE = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare(left: Any, op: str, right: Any) -> bool:
    """`left op right` as in Spark: NULL compares with nothing, NaN is equal to itself and the largest."""
    if left is None or right is None:
        return op == "<=>" and left is None and right is None
    return bool(_COMPARE["=" if op == "<=>" else op](_ordered(left), _ordered(right)))


def _ordered(value: Any) -> tuple[bool, Any]:
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value
