"""Scalar expressions whose structure is known: the user's own text, with each operand as a part of its own.

The analyzer builds them while the syntax tree is at hand, so that no rule has to read text again. ``a.x + 1 - b.y`` is
``Arithmetic((a.x, " + ", 1, " - ", b.y), signs=("+", "-"))``; what stands between the operands is never looked into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from sqlext_planner.errors import Span
from sqlext_planner.expressions.nodes import GENERATOR, RANDOM, And, Expression, Literal, SparkExpr

#: A longer list of IN is opaque text: no rule looks into it.
MOST_OPTIONS = 64

#: Spark's functions that turn one row into several; legal in a SELECT list only.
_GENERATORS = frozenset(
    ("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack", "json_tuple")
)


@dataclass(frozen=True)
class Paren(SparkExpr):
    """``(expression)``: its one operand."""


@dataclass(frozen=True)
class Arithmetic(SparkExpr):
    """A chain of operands with ``+ -``, or one with ``* / %``, computed from left to right; NULL if an operand is.

    `signs` stand between the operands. One operand with the sign ``-`` is its negative.
    """

    signs: tuple[str, ...] = field(kw_only=True)


@dataclass(frozen=True)
class In(SparkExpr):
    """``operand [NOT] IN (options)``: the operand, then at most `MOST_OPTIONS` options, none of them a subquery."""

    negated: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Cast(SparkExpr):
    """``CAST(operand AS to)``, also ``operand::to``; `to` is Spark's simple type string. `tries`: it is a TRY_CAST."""

    to: str = field(kw_only=True)
    tries: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Case(SparkExpr):
    """``CASE [subject] WHEN condition THEN value ... [ELSE value] END``."""

    has_subject: bool = field(default=False, kw_only=True)
    has_default: bool = field(default=False, kw_only=True)

    @property
    def values(self) -> tuple[Expression, ...]:
        """What stands behind THEN and ELSE."""
        branches = self.operands[self.has_subject : len(self.operands) - self.has_default]
        return (*branches[1::2], *(self.operands[-1:] if self.has_default else ()))


@dataclass(frozen=True)
class FunctionCall(SparkExpr):
    """``name([DISTINCT] arguments) [FILTER (WHERE condition)]``.

    `name` is in lower case, and empty for a function that is known only to Spark (``catalog.function``). `modifier` is
    "ignore nulls", "respect nulls", "within group" or empty.
    """

    name: str = field(kw_only=True)
    distinct: bool = field(default=False, kw_only=True)
    filtered: bool = field(default=False, kw_only=True)
    modifier: str = field(default="", kw_only=True)

    @property
    def own_traits(self) -> int:
        return super().own_traits | (GENERATOR if self.name in _GENERATORS else 0)

    @property
    def arguments(self) -> tuple[Expression, ...]:
        """The arguments; none for ``count(*)``."""
        return self.operands[: len(self.operands) - self.filtered]

    @property
    def condition(self) -> Expression | None:
        """The condition of FILTER."""
        return self.operands[-1] if self.filtered else None


@dataclass(frozen=True)
class Interval(SparkExpr):
    """``INTERVAL number unit`` with a whole number; `unit` is in lower case and in the singular."""

    number: int = field(kw_only=True)
    unit: str = field(kw_only=True)


@dataclass(frozen=True)
class Operation(SparkExpr):
    """Operands around words of SQL that no rule looks into, such as the logic of a select list: ``a.x IS NOT NULL``,
    ``a.s || b.s``. `name` is the words, in lower case ("is not null", "||"); of a chain it stands between all."""

    name: str = field(kw_only=True)


@dataclass(frozen=True)
class Or(SparkExpr):
    """``a OR b OR ...``: two or more operands, none of them an Or; use `disjunction()`."""

    def _shown(self) -> str:
        return " OR ".join(f"({item})" if isinstance(item, (And, Or)) else str(item) for item in self.operands)


@dataclass(frozen=True)
class Not(SparkExpr):
    """``NOT operand``."""


@dataclass(frozen=True)
class Is(SparkExpr):
    """``operand IS [NOT] value``, which is never NULL; `value` is "null", "true" or "false"."""

    value: str = field(kw_only=True)
    negated: bool = field(default=False, kw_only=True)


def disjunction(terms: Sequence[Expression], span: Span | None = None) -> Expression:
    """``a OR b OR ...`` as one flat expression, each term once but those with rand() and the like; the term itself if
    there is one."""
    flat: list[Expression] = []
    seen: set[Expression] = set()
    for inner in (inner for term in terms for inner in (term.operands if isinstance(term, Or) else (term,))):
        flat += [] if inner in seen else [inner]
        if not inner.traits & RANDOM:
            seen.add(inner)
    if len(flat) == 1:
        return flat[0]
    parts = [part for term in flat for part in (" OR ", term)][1:]
    return Or(tuple(parts), dtype="boolean", span=span)


def negation(operand: Expression, span: Span | None = None) -> Not:
    """``NOT operand`` of our own making."""
    return Not(("NOT ", operand), dtype="boolean", span=span)


def is_value(operand: Expression, value: str, *, negated: bool = False, span: Span | None = None) -> Is:
    """``operand IS [NOT] value`` of our own making; `value` is "null", "true" or "false"."""
    text = f" IS {'NOT ' if negated else ''}{value.upper()}"
    return Is((operand, text), value=value, negated=negated, dtype="boolean", span=span)


def call(name: str, *arguments: Expression, dtype: str | None = None, span: Span | None = None) -> FunctionCall:
    """``name(arguments)`` of our own making."""
    parts: list[str | Expression] = [f"{name}("]
    for place, argument in enumerate(arguments):
        parts += [", ", argument] if place else [argument]
    return FunctionCall((*parts, ")"), name=name, dtype=dtype, span=span)


def case(condition: Expression, value: Expression) -> Case:
    """``CASE WHEN condition THEN value END`` of our own making."""
    return Case(("CASE WHEN ", condition, " THEN ", value, " END"))


NULL = Literal("NULL")


def cast(expression: Expression, to: str) -> Cast:
    """``CAST(expression AS to)`` of our own making."""
    return Cast(("CAST(", expression, f" AS {to})"), to=to, dtype=to, span=expression.span)


def is_null(expression: Expression) -> bool:
    """True for the literal NULL."""
    return isinstance(expression, Literal) and expression.text.upper() == "NULL"


def is_constant(expression: Expression) -> bool:
    """True for a literal that is not NULL."""
    return isinstance(expression, Literal) and not is_null(expression)


def plain_number(expression: Expression) -> Decimal | None:
    """The value of a number written in digits, after a minus sign or not, in parentheses or not; None for others."""
    match expression:
        case Literal(text) if text.replace(".", "", 1).isdecimal():
            return Decimal(text)
        case Paren():
            return plain_number(expression.operands[0])
        case Arithmetic(signs=("-",), operands=(value,)):
            number = plain_number(value)
            return None if number is None else -number
    return None
