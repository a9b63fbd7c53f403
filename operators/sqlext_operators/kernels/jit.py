"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile on first use, and keep the machine code on disk; the kernel runs without the GIL.

    Measured (numba 0.68, one window with six kernels): 1.5 s of compiling in a cold process, 0.17 s from the cache,
    which every Spark worker would pay. The known crashes of numba's cache (numba issues 4807, 7518, 10128) need
    parallel=True or a gufunc, which no kernel may use; 24 processes that started at once on an empty cache, and 24
    on a filled one, gave equal results. Numba writes cache files by renaming, so readers never see half a file.

    Where no cache folder is writable (NUMBA_CACHE_DIR, beside the source, the user's cache folder), every process
    compiles for itself.
    """
    try:
        return cast(F, njit(nogil=True, cache=True)(function))
    except RuntimeError:
        return cast(F, njit(nogil=True)(function))
