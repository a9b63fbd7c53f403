"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile on first use, and keep the machine code on disk; the kernel runs without the GIL.

    Where no cache folder is writable (neither NUMBA_CACHE_DIR, nor beside the source, nor the user's cache folder),
    every process compiles for itself.
    """
    try:
        return cast(F, njit(nogil=True, cache=True)(function))
    except RuntimeError:
        return cast(F, njit(nogil=True)(function))
