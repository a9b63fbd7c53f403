"""Expressions: a class only where a rule must look inside; everything else stays opaque Spark SQL.

In a plan every column has one exact name, `Column(relation, name)`, resolved by the analyzer: rules never
resolve names again, and self joins are not ambiguous. In a DataFrame that column is called
`Column.spark_name` (one identifier that may hold a dot), and `sql()` writes it in backticks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from sqlext_planner.errors import Span
from sqlext_planner.tree import TreeNode

#: What an expression may hold: rand() and the like, one of Spark's windows, a subquery, a function that turns one row
#: into several, a collation of its own.
RANDOM, WINDOW, SUBQUERY, GENERATOR, COLLATION = 1, 2, 4, 8, 16


@dataclass(frozen=True)
class Expression(TreeNode):
    """A scalar expression over the columns of a plan node's input."""

    span: Span | None = field(default=None, compare=False, kw_only=True, repr=False)

    @property
    def atomic(self) -> bool:
        """Whether its text is one operand whatever text surrounds it."""
        return False

    @classmethod
    def child_type(cls) -> type[TreeNode]:
        return Expression

    @property
    def own_traits(self) -> int:
        """`traits` of the node without its children."""
        return 0

    @cached_property
    def traits(self) -> int:
        """What the expression and its parts hold, as a sum of RANDOM, WINDOW, SUBQUERY, GENERATOR and COLLATION."""
        found = self.own_traits
        for child in self.children:
            found |= child.traits
        return found

    @cached_property
    def references(self) -> frozenset[Column]:
        """Every column that the expression reads."""
        return frozenset().union(*(child.references for child in self.children))

    def sql(self) -> str:
        """Spark SQL text over DataFrame columns named `Column.spark_name`."""
        raise NotImplementedError(type(self).__name__)

    def result_type(self, known: Mapping[Column, str | None]) -> str | None:
        """The type of the result over columns of `known` types, where it is certain: by default its `dtype`."""
        found: str | None = getattr(self, "dtype", None)
        return found

    def substitute(self, mapping: Mapping[Column, Expression]) -> Expression:
        """The expression with columns replaced; self if none of them occurs."""
        if self.references.isdisjoint(mapping):
            return self
        return self.map_children(lambda child: child.substitute(mapping))

    def __str__(self) -> str:
        raise NotImplementedError(type(self).__name__)

    def label(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Column(Expression):
    """A resolved column. `relation` is the alias it comes from, '' for a computed column."""

    relation: str
    name: str

    @cached_property
    def spark_name(self) -> str:
        """The DataFrame column's name."""
        return f"{self.relation}.{self.name}" if self.relation else self.name

    @cached_property
    def references(self) -> frozenset[Column]:
        return frozenset((self,))

    def sql(self) -> str:
        return "`" + self.spark_name.replace("`", "``") + "`"

    def result_type(self, known: Mapping[Column, str | None]) -> str | None:
        return known.get(self)

    def substitute(self, mapping: Mapping[Column, Expression]) -> Expression:
        return mapping.get(self, self)

    def __str__(self) -> str:
        return self.spark_name


@dataclass(frozen=True)
class Literal(Expression):
    """A constant, kept as the user's Spark SQL text (`1`, `'x'`, `NULL`).

    `digits` is the number of digits of a whole number: beside a decimal it counts as a decimal of that many. `string`
    is the value of a string, where the reader of the text knows it.
    """

    text: str
    dtype: str | None = field(default=None, compare=False, kw_only=True, repr=False)
    digits: int | None = field(default=None, compare=False, kw_only=True, repr=False)
    string: str | None = field(default=None, compare=False, kw_only=True, repr=False)

    def sql(self) -> str:
        return self.text

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Compare(Expression):
    """`left op right` with op one of = <=> <> < <= > >=."""

    op: str
    left: Expression
    right: Expression

    def sql(self) -> str:
        return f"({self.left.sql()} {self.op} {self.right.sql()})"

    @property
    def mirrored(self) -> Compare:
        """The same comparison with its operands exchanged."""
        op = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(self.op, self.op)
        return Compare(op, self.right, self.left, span=self.span)

    def result_type(self, known: Mapping[Column, str | None]) -> str | None:
        return "boolean"

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True)
class And(Expression):
    """A flat conjunction of two or more terms; never nested."""

    terms: tuple[Expression, ...]

    def __post_init__(self) -> None:
        if len(self.terms) < 2 or any(isinstance(term, And) for term in self.terms):
            raise ValueError("And holds two or more terms, none of them an And; use conjunction()")

    def sql(self) -> str:
        return "(" + " AND ".join(term.sql() for term in self.terms) + ")"

    def result_type(self, known: Mapping[Column, str | None]) -> str | None:
        return "boolean"

    def __str__(self) -> str:
        texts = map(str, self.terms)
        return " AND ".join(f"({text})" if " or " in text.lower() else text for text in texts)


@dataclass(frozen=True)
class SparkExpr(Expression):
    """Opaque Spark SQL: the user's own text, with resolved columns in place of the names in it.

    `parts` alternates text and expressions. What is known of the text's structure is in the subclasses of `typed.py`;
    the text of a plain SparkExpr holds operators only, every call in it is a part of its own.
    `deterministic` is False if the text calls rand(), uuid() or the like, `has_window` is True if it holds one of
    Spark's OVER clauses, `has_subquery` if its text holds a subquery (an analysed subquery is a part of its own, a
    `subquery.Subquery`), `names_collation` if it gives a string a collation.
    `dtype` is the type of the result where the analyzer is certain of it. `bare`: it stands where it was written inside
    another expression's text, which needs no parentheses around it.
    """

    parts: tuple[str | Expression, ...]
    deterministic: bool = True
    has_window: bool = False
    has_subquery: bool = False
    names_collation: bool = False
    dtype: str | None = field(default=None, compare=False, kw_only=True, repr=False)
    bare: bool = field(default=False, compare=False, kw_only=True, repr=False)

    @classmethod
    def of(cls, *parts: str | Expression, dtype: str | None = None, span: Span | None = None) -> SparkExpr:
        """An expression of these parts, neighbouring texts in one piece."""
        return SparkExpr(joined(parts), dtype=dtype, span=span)

    @property
    def own_traits(self) -> int:
        random = 0 if self.deterministic else RANDOM
        subquery = SUBQUERY if self.has_subquery else 0
        collation = COLLATION if self.names_collation else 0
        return random | subquery | collation | (WINDOW if self.has_window else 0)

    @cached_property
    def operands(self) -> tuple[Expression, ...]:
        """The expressions in the text, fit to stand anywhere."""
        return tuple(standing_alone(part) for part in self.parts if not isinstance(part, str))

    def sql(self) -> str:
        return f"({self._sql()})"

    def _sql(self) -> str:
        return "".join(
            p if isinstance(p, str) else p._sql() if isinstance(p, SparkExpr) and p.bare else p.sql()
            for p in self.parts
        )

    def __str__(self) -> str:
        return " ".join(self._shown().split())

    def _shown(self) -> str:
        return "".join(
            p if isinstance(p, str) else p._shown() if isinstance(p, SparkExpr) and p.bare else _operand(p)
            for p in self.parts
        )


def standing_alone(expression: Expression) -> Expression:
    """The expression for another place than the one where it was written: with parentheses where it needs them."""
    return replace(expression, bare=False) if isinstance(expression, SparkExpr) and expression.bare else expression


def joined(parts: Iterable[str | Expression]) -> tuple[str | Expression, ...]:
    """The parts with neighbouring texts in one piece, without empty ones."""
    pieces: list[str | Expression] = []
    for part in parts:
        if isinstance(part, str) and pieces and isinstance(pieces[-1], str):
            pieces[-1] += part
        elif part != "":
            pieces.append(part)
    return tuple(pieces)


def _operand(expression: Expression) -> str:
    """An expression inside another's text, in parentheses where it could be misread."""
    text = str(expression)
    plain = isinstance(expression, (Column, Literal)) or expression.atomic or not (" " in text or text.startswith("-"))
    return text if plain else f"({text})"


@dataclass(frozen=True)
class NamedExpr(Expression):
    """`expression AS column`: one item of a projection or an aggregate."""

    expression: Expression
    column: Column

    @cached_property
    def references(self) -> frozenset[Column]:
        return self.expression.references

    def map_children(self, function: Callable[[Any], Any]) -> NamedExpr:
        new = function(self.expression)
        return self if new is self.expression else NamedExpr(new, self.column, span=self.span)

    def substitute(self, mapping: Mapping[Column, Expression]) -> NamedExpr:
        return self.map_children(lambda child: child.substitute(mapping))

    def sql(self) -> str:
        return f"{self.expression.sql()} AS {self.column.sql()}"

    def __str__(self) -> str:
        if self.expression == self.column:
            return str(self.column)
        return f"{self.expression} AS {self.column}"


def is_generator(expression: Expression) -> bool:
    """True if the expression may turn one row into several."""
    return bool(expression.traits & GENERATOR)


def is_deterministic(expression: Expression) -> bool:
    """True if the value depends on the row alone: no rand(), and no Spark window over the other rows."""
    return not expression.traits & (RANDOM | WINDOW)


def is_movable(expression: Expression) -> bool:
    """True if a rule may evaluate the expression elsewhere in the plan.

    Not movable: rand() and the like (evaluated on other rows it gives other values), Spark windows (they look at
    the other rows at their place in the plan), subqueries (their text may name columns available at that place
    in ways that only Spark resolves), generators.
    """
    return not expression.traits & (RANDOM | WINDOW | SUBQUERY | GENERATOR)


def holds_subquery(expression: Expression) -> bool:
    """True if the expression holds a subquery, with a plan or as text."""
    return bool(expression.traits & SUBQUERY)


#: Types in which equal values are the same value. 0.0 = -0.0 and strings of some collations are equal but differ.
_EXACT_TYPES = frozenset(
    ("boolean", "tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz", "string", "binary")
)


def is_exact(dtype: str | None) -> bool:
    """True if two equal values of the type are the same value, so that a condition holds for both or for none."""
    return dtype is not None and (dtype in _EXACT_TYPES or dtype.startswith("decimal("))


def names_collation(expression: Expression) -> bool:
    """True if the text gives a string a collation. Spark prefers a collation in an expression to those of columns; in
    a column of its own it would be one among others."""
    return bool(expression.traits & COLLATION)


def reads_only(expression: Expression, columns: Collection[Column]) -> bool:
    """True if the expression reads at least one column, and all it reads are among `columns`."""
    return bool(expression.references) and all(column in columns for column in expression.references)


def conjunction(terms: tuple[Expression, ...] | list[Expression]) -> Expression | None:
    """One expression for all terms, flat; None for no term."""
    flat: list[Expression] = []
    for term in terms:
        flat.extend(term.terms if isinstance(term, And) else (term,))
    if not flat:
        return None
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def conjuncts(expression: Expression | None) -> tuple[Expression, ...]:
    """The terms of a conjunction; () for None."""
    if expression is None:
        return ()
    return expression.terms if isinstance(expression, And) else (expression,)


@dataclass(frozen=True)
class ShownCall:
    """A call that a node computes: its column, the text that the user knows, its arguments and its place in the SQL."""

    column: Column
    text: str
    args: tuple[Expression, ...] = ()
    span: Span | None = None
