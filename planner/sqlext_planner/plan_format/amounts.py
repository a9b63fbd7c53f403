"""Rows, bytes and seconds as people read them."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB")


def bytes_text(size: float) -> str:
    """`12 B` or `1.2 MB`."""
    unit = 0
    while size >= 999.95 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size:.0f} B"


def rows_text(count: float) -> str:
    """`1 row` or `60,175 rows`."""
    return f"{count:,.0f} row" + ("" if count == 1 else "s")


def seconds_text(seconds: float) -> str:
    """`1.25 s` or `0.3 ms`."""
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1000 * seconds:.1f} ms"
