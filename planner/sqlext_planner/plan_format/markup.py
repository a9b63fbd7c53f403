"""HTML and SVG as text that is escaped where it is made: what is not `Markup` cannot become a tag.

The one place that writes angle brackets. Pages and pictures are built of `tag`, so that a user's name, alias or string
is text wherever it turns up.

With them, rows, bytes and seconds as people read them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

#: Control characters, halves of surrogate pairs, and marks that change the direction of the text around them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_VOID = frozenset({"br", "meta", "hr"})
_NAME = re.compile(r"[a-z][a-z0-9]*")
_ATTRIBUTE = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


#: What may stand in an element: text, which is escaped, elements, and None for nothing.
Content = str | Iterable["Content"] | None
Attribute = str | int | float | bool | None


def tag(name: str, /, *content: Content, **attributes: Attribute) -> Markup:
    """An element. `class_` and `data_x` stand for `class` and `data-x`; None and False leave an attribute out, True
    gives it without a value. Raises ValueError for what is no name of an element or attribute."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"not an element: {name!r}")
    head = name + "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    return Markup(f"<{head}>" if name in _VOID else f"<{head}>{text(*content)}</{name}>")


def text(*content: Content) -> Markup:
    """Contents one after the other."""
    return Markup("".join(_written(item) for item in content))


def shown(value: str) -> str:
    """The text with every character that is not seen, or that hides others, replaced."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", value)


def _written(item: Content) -> str:
    if item is None:
        return ""
    if isinstance(item, Markup):
        return item
    if isinstance(item, str):
        return escape(shown(item))
    return "".join(map(_written, item))


def _attribute(name: str, value: Attribute) -> str:
    if not _ATTRIBUTE.fullmatch(name):
        raise ValueError(f"not an attribute: {name!r}")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    written = f"{value:g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(shown(written))}"'


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
