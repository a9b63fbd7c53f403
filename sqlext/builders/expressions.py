"""Expressions: SQL text with parts in it, such as functions over windows, periods, Columns and queries."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeAlias, Union

from sqlext_planner.errors import AnalysisError

from sqlext.builders.text import Literal, SqlPart, Writer, WrittenQuery, is_name, literal_text, python_value, quoted
from sqlext.run.parameters import is_foreign

if TYPE_CHECKING:
    from pyspark.sql import Column

#: What an expression is given as: SQL text, an expression of this package, a Column, or a value that is no text.
Value: TypeAlias = Union[str, "Expr", "Column", Literal]
#: A period: ``fx.period(...)``, its two ends, or a struct of two ends, by its name or as a Column.
PeriodLike: TypeAlias = Union["Expr", str, "Column", tuple[Value, Value]]
#: A distance: a number, ``"5 minutes"``, ``"5m"``, or a timedelta.
Amount: TypeAlias = str | int | float | datetime.timedelta


_OR = re.compile(r"\bor\b|\|\|", re.IGNORECASE)


class AnyWindow(Protocol):
    """A window that functions run over: `sqlext.builders.windows.Window`."""

    @property
    def name(self) -> str:
        """Its name in the text, if that is free."""


@dataclass(frozen=True)
class Over:
    """The place of OVER behind a function; `window` is a name, a window, or None: that of the query, if it has one."""

    window: str | AnyWindow | None = None

    def write(self, writer: Writer) -> None:
        """`` OVER w``, or nothing."""
        block, window = writer.block_now, self.window
        if window is None:
            window = block.default_window
        if window is not None:
            writer.write(" OVER ", quoted(window if isinstance(window, str) else block.windows[id(window)]))


@dataclass(frozen=True)
class ColumnPart:
    """A Column of PySpark in an expression."""

    column: Column

    def write(self, writer: Writer) -> None:
        """The column's name."""
        writer.column(self.column)


def _operator(sign: str) -> Callable[[Expr, Value], Expr]:
    """The method of an operator of Python."""
    return lambda left, right: _combined(left, sign, right)


@dataclass(frozen=True, eq=False)
class Expr:
    """An SQL expression. `alias` names it; `over` says which window its functions run over.

    ``+ - * /``, ``< <= > >=``, ``& | ~`` combine expressions as in PySpark; text on the other side of an operator is
    SQL. Equality is `eq`.
    """

    parts: tuple[str | SqlPart, ...]
    name: str | None = None
    #: Needs no parentheses inside another expression.
    is_atom: bool = False

    def write(self, writer: Writer) -> None:
        """The expression, without its alias."""
        writer.write(*self.parts)

    @property
    def holds_or(self) -> bool:
        """Whether it has to be in parentheses beside AND, for all that its text tells."""
        return any(
            part.holds_or if isinstance(part, Expr) else isinstance(part, str) and _OR.search(part) is not None
            for part in self.parts
        )

    def alias(self, name: str) -> Expr:
        """The expression under a name."""
        return replace(self, name=name)

    def over(self, window: str | AnyWindow) -> Expr:
        """Its functions over a window: ``fx.window(...)``, or the name of one of the query's windows."""
        parts = tuple(
            Over(window)
            if isinstance(part, Over) and part.window is None
            else part.over(window)
            if isinstance(part, Expr)
            else part
            for part in self.parts
        )
        return replace(self, parts=parts)

    def isin(self, *values: Value | WrittenQuery) -> Expr:
        """Whether it is one of these values or expressions, or in the rows of a query. A str is a text here, not SQL:
        ``fx.allen_relation(p, q).isin("overlaps", "meets")``."""
        items: list[str | SqlPart] = []
        for value in values:
            text = literal_text(value) if isinstance(value, str) else _operand(value)
            items += [", "] * bool(items) + [text]
        return Expr((_inside(self), " IN (", *items, ")"))

    def eq(self, other: Value) -> Expr:
        """Whether it is equal to another expression: SQL's ``=``."""
        return _combined(self, "=", other)

    __add__ = _operator("+")
    __sub__ = _operator("-")
    __mul__ = _operator("*")
    __truediv__ = _operator("/")
    __lt__ = _operator("<")
    __le__ = _operator("<=")
    __gt__ = _operator(">")
    __ge__ = _operator(">=")
    __and__ = _operator("AND")
    __or__ = _operator("OR")

    def __invert__(self) -> Expr:
        return Expr(("NOT ", _inside(self)))

    def __bool__(self) -> NoReturn:
        raise TypeError("an SQL expression is neither true nor false here: combine conditions with &, | and ~")

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("compare SQL expressions with .eq(...), or write the condition as text")

    __hash__ = object.__hash__


def _combined(left: Expr, sign: str, right: Value) -> Expr:
    return Expr((_inside(left), f" {sign} ", _inside(expression(right))))


def expression(value: Value) -> Expr:
    """Whatever an expression is given as, as an expression."""
    match value:
        case Expr():
            return value
        case str():
            text = value + "\n" if "--" in value else value  # ends a comment
            return Expr((text,), is_atom=all(map(is_name, value.split("."))))
        case None | bool() | int() | float() | Decimal() | datetime.date() | datetime.timedelta():
            return Expr((literal_text(value),), is_atom=True)
    if is_foreign(value):
        return Expr((literal_text(value),), is_atom=True)
    return Expr((ColumnPart(value),), is_atom=True)


def call(name: str, *arguments: str | SqlPart) -> Expr:
    """A call of a function that may run over a window. Functions in its arguments run over the same one."""
    parts: list[str | SqlPart] = []
    for argument in arguments:
        parts += [", "] * bool(parts) + [without_over(argument)]
    return Expr((f"{name}(", *parts, ")", Over()), is_atom=True)


def without_over(part: str | SqlPart) -> str | SqlPart:
    """The part without the places for windows in it that are not filled."""
    if isinstance(part, Expr):
        kept = (item for item in part.parts if not (isinstance(item, Over) and item.window is None))
        return replace(part, parts=tuple(map(without_over, kept)))
    return part


def period_call(
    name: str, *arguments: str | SqlPart, delta: Amount | None = None, epsilon: Amount | None = None
) -> Expr:
    """A period predicate as a function, with its bounds."""
    parts: list[str | SqlPart] = []
    for argument in arguments:
        parts += [", "] * bool(parts) + [argument]
    for word, amount in (("delta", delta), ("epsilon", epsilon)):
        if amount is not None:
            parts.append(f", {word} => {amount_text(amount)}")
    return Expr((f"{name}(", *parts, ")"), is_atom=True)


def period_of(value: PeriodLike) -> Expr:
    """A period as an operand of a predicate."""
    if isinstance(value, tuple):
        start, end = value
        return Expr(("PERIOD(", expression(start), ", ", expression(end), ")"), is_atom=True)
    return expression(value)


def period_or_point(value: PeriodLike | Value) -> Expr:
    """A period, or a point in time."""
    return period_of(value) if isinstance(value, tuple) else expression(value)


def amount_text(amount: Amount) -> str:
    """A distance as SQL."""
    amount = python_value(amount)
    if not isinstance(amount, str):
        return literal_text(amount) if isinstance(amount, datetime.timedelta) else repr(amount)
    plain = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s+([A-Za-z]+)\s*", amount)
    return f"INTERVAL {plain[1]} {plain[2]}" if plain is not None else amount


def template(text: str, values: Sequence[Value | WrittenQuery]) -> Expr:
    """Text whose ``{}`` are replaced by expressions and queries in their order; without values, the text as it is.

    Raises AnalysisError if there are more or fewer of them than values.
    """
    if not values:
        return expression(text)
    pieces = text.split("{}")
    if len(pieces) != len(values) + 1:
        help = "write {} where each value belongs"
        raise AnalysisError(
            f"{text!r} has {len(pieces) - 1} places for {len(values)} values", condition="function-arguments", help=help
        )
    parts: list[str | SqlPart] = [pieces[0]]
    for value, piece in zip(values, pieces[1:], strict=True):
        parts += [_operand(value), piece]
    return Expr(tuple(parts))


def several(values: Value | Sequence[Value]) -> tuple[Expr, ...]:
    """One value or a list of them as expressions."""
    return tuple(map(expression, values if isinstance(values, list | tuple) else [values]))


def columns_in(parts: Iterator[str | SqlPart] | tuple[str | SqlPart, ...]) -> Iterator[Column]:
    """The Columns of PySpark in expressions, each as often as it is used."""
    for part in parts:
        if isinstance(part, ColumnPart):
            yield part.column
        elif isinstance(part, Expr):
            yield from columns_in(part.parts)


def columns_in_calls(parts: tuple[str | SqlPart, ...], is_meant: Callable[[Over], bool]) -> Iterator[Column]:
    """The Columns of PySpark in arguments of calls over windows of one kind."""
    for part in parts:
        if isinstance(part, Expr):
            meant = any(isinstance(item, Over) and is_meant(item) for item in part.parts)
            yield from columns_in(part.parts) if meant else columns_in_calls(part.parts, is_meant)


def windows_in(parts: Iterator[str | SqlPart] | tuple[str | SqlPart, ...]) -> Iterator[AnyWindow]:
    """The windows that functions in expressions run over, other than by name."""
    for part in parts:
        if isinstance(part, Over) and part.window is not None and not isinstance(part.window, str):
            yield part.window
        elif isinstance(part, Expr):
            yield from windows_in(part.parts)


def _operand(value: Value | WrittenQuery) -> str | SqlPart:
    return value if isinstance(value, WrittenQuery) else expression(value)


def _inside(item: Expr) -> Expr:
    return item if item.is_atom else Expr(("(", item, ")"), is_atom=True)
