"""Texts in two languages that mean the same: ours, and plain SQL for DuckDB; relations and columns made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Text(NamedTuple):
    """One expression, condition or query: `ours` for Session.sql, `duck` for DuckDB."""

    ours: str
    duck: str

    def both(self, template: str) -> Text:
        """`template` around it, with {} for the text."""
        return Text(template.replace("{}", self.ours), template.replace("{}", self.duck))


def same(text: str) -> Text:
    """A text that both languages read alike."""
    return Text(text, text)


def join(parts: list[Text], separator: str) -> Text:
    return Text(separator.join(p.ours for p in parts), separator.join(p.duck for p in parts))


def fill(template: str, *parts: Text) -> Text:
    """`template` with {0}, {1}, ... replaced by the parts, in each language."""
    return Text(template.format(*(p.ours for p in parts)), template.format(*(p.duck for p in parts)))


@dataclass(frozen=True)
class Col:
    """A column of a relation. `role`: key (few values), time, value, special (NaN and infinities), payload (no order),
    end (of a period)."""

    name: str
    dtype: str
    role: str = "value"

    def at(self, alias: str) -> str:
        return f"{alias}.{self.name}"


@dataclass(frozen=True)
class Rel:
    """What can stand in FROM. `uniq` is a column without NULLs or duplicates, its values below `uniq_below`. If
    `ordered`, the rows have an input order, and DuckDB's relation has it as the column `_pos`. `periods` are
    (type, start, end); `rows` is about how many there are."""

    text: Text
    cols: tuple[Col, ...]
    rows: int
    uniq: str | None = None
    uniq_below: int = 0
    ordered: bool = False
    periods: tuple[tuple[str, str, str], ...] = ()
    is_table: bool = False

    def of_role(self, *roles: str) -> list[Col]:
        return [c for c in self.cols if c.role in roles]

    def of_type(self, *dtypes: str) -> list[Col]:
        return [c for c in self.cols if c.dtype in dtypes]

    def col(self, name: str) -> Col:
        return next(c for c in self.cols if c.name == name)


def settled_of(cols: Sequence[Col]) -> list[Col]:
    """Without means that were computed before: they differ in their last digit, and functions of equality show that."""
    return [c for c in cols if is_settled(c)]


def is_settled(col: Col) -> bool:
    """Whether it is no mean that was computed before."""
    return col.dtype != "double" or col.role != "payload"
