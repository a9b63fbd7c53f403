"""Changes of the user's text: what replaces which slice, and the text with all changes made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sqlext_planner.errors import Span
from sqlext_planner.expressions.nodes import Expression, SparkExpr, joined

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
    names_collation: bool = False

    def insert(self, span: Span, expression: SparkExpr) -> None:
        """Put an expression made of the text at `span` in its place."""
        self.edits.append(Edit(span, (expression,)))
        self.note(expression)

    def note(self, part: SparkExpr | Draft) -> None:
        """Record what is known about a part of the expression."""
        self.deterministic = self.deterministic and part.deterministic
        self.has_window = self.has_window or part.has_window
        self.has_subquery = self.has_subquery or part.has_subquery
        self.names_collation = self.names_collation or part.names_collation


def filled(text: str, value: Callable[[str], str | Expression]) -> tuple[str | Expression, ...]:
    """The parts of a text with values in place of ``{names}``."""
    return tuple(value(part) if at % 2 else part for at, part in enumerate(re.split(r"\{(\w+)\}", text)))


def sql_of(parts: Iterable[str | Expression]) -> str:
    """The text of parts."""
    return "".join(part if isinstance(part, str) else part.sql() for part in parts)


def apply_edits(context: Context, span: Span, edits: Sequence[Edit]) -> tuple[str | Expression, ...]:
    """The statement's text at `span` in parts, edits made; neighbouring texts are joined."""
    parts: list[str | Expression] = []
    at = span.start
    for edit in sorted(edits, key=lambda item: (item.span.start, item.span.end)):
        if edit.span.start < at or edit.span.end > span.end:
            continue  # sqlglot's copy of a node, or a part of what was already replaced
        parts.append(context.text[at : edit.span.start])
        parts.extend(edit.parts)
        at = edit.span.end
    parts.append(context.text[at : span.end])
    return joined(parts)
