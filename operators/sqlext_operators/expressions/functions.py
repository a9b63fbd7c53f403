"""The table of kernels by name, from the modules of their families."""

from __future__ import annotations

from collections.abc import Mapping

from sqlext_operators.expressions import casts, comparisons, decimals, numbers, strings, times
from sqlext_operators.expressions.values import Kernel

KERNELS: Mapping[str, Kernel] = {
    name: kernel
    for family in (comparisons, numbers, decimals, strings, times, casts)
    for name, kernel in family.KERNELS.items()
}
