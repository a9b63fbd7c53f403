"""Changes of the user's text: what replaces which slice, and the text with all changes made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlext_planner.errors import Span
from sqlext_planner.expressions.nodes import Expression

from sqlext.analyzer.context import Context


@dataclass(frozen=True)
class Edit:
    """Text to put in place of a slice of the statement."""

    span: Span
    parts: tuple[str | Expression, ...]


@dataclass
class Draft:
    """What is known about an opaque expression while its tree is walked."""

    edits: list[Edit] = field(default_factory=list)
    deterministic: bool = True
    has_window: bool = False
    has_subquery: bool = False


def apply_edits(context: Context, span: Span, edits: Sequence[Edit]) -> tuple[str | Expression, ...]:
    """The statement's text at `span` in parts, edits made; neighbouring texts are joined."""
    parts: list[str | Expression] = []

    def add(part: str | Expression) -> None:
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        elif part != "":
            parts.append(part)

    at = span.start
    for edit in sorted(edits, key=lambda item: (item.span.start, item.span.end)):
        if edit.span.start < at or edit.span.end > span.end:
            continue  # sqlglot's copy of a node, or a part of what was already replaced
        add(context.text[at : edit.span.start])
        for part in edit.parts:
            add(part)
        at = edit.span.end
    add(context.text[at : span.end])
    return tuple(parts)
