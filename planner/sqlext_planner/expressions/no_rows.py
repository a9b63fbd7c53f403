"""The value of an expression over aggregates if there are no rows: ``0.5 * sum(x)`` is NULL, ``count(*) + 1`` is 1."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlext_planner.expressions.nodes import And, Column, Compare, Expression, Literal, SparkExpr
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Distinct, Filter, Hint, Limit, Project, Sort

NULL = Literal("NULL")

#: Aggregates that are 0 over no rows; those that are NULL; functions that compute a value from others of the same row.
_ZERO = frozenset(("count", "count_if", "approx_count_distinct", "regr_count"))
_NULL = frozenset(
    """
    sum avg mean min max any_value first first_value last last_value stddev std stddev_samp stddev_pop variance var_samp
    var_pop corr covar_pop covar_samp skewness kurtosis median mode percentile percentile_approx approx_percentile
    min_by max_by bool_and bool_or every some any bit_and bit_or bit_xor try_sum try_avg
    """.split()  # noqa: SIM905 - a table of words
)
_PLAIN = frozenset(
    """
    abs bround cast ceil ceiling coalesce concat cos exp floor greatest if ifnull int isnotnull isnull least length ln
    log lower mod negative nullif nvl nvl2 pow power round sign sqrt substr substring trim upper bigint double float
    decimal date string and or not in case when then else between
    """.split()  # noqa: SIM905 - a table of words
)
_TOKEN = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`)|(?P<word>[A-Za-z_]\w*)|(?P<other>.)""",
    re.DOTALL,
)
#: Arithmetic, which is NULL if any operand is.
_STRICT = re.compile(r"(?:[\s\d.()+*/%-]|\d[eE]|\d(?:L|D|BD)\b|\bNULL\b)*")


def value_of_no_rows(plan: LogicalPlan, column: Column) -> Expression | None:
    """The value of `column` in a scalar subquery over no rows; the literal NULL if it has no row. None if unknown.

    `plan` is one block: an aggregation and the nodes above it.
    """
    match plan:
        case Project(items, child):
            found = next((item.expression for item in items if item.column == column), None)
            return value_of_no_rows(child, found) if isinstance(found, Column) else None
        case Sort(child=child) | Distinct(child) | Hint(child=child) | Limit(child=child):
            return value_of_no_rows(child, column)
        case Filter(child=child):  # HAVING: the row with NULL, or no row, which is NULL too
            return NULL if value_of_no_rows(child, column) == NULL else None
        case Aggregate(keys, _, items):
            if keys:
                return NULL
            found = next((item.expression for item in items if item.column == column), None)
            return None if found is None else at_no_rows(found)
    return None


def at_no_rows(expression: Expression) -> Expression | None:
    """The value of an aggregate expression without grouping keys over no rows; None if that is unknown."""
    if isinstance(expression, Literal):
        return expression
    if isinstance(expression, (Compare, And)):
        parts = [at_no_rows(part) for part in expression.children]
        if any(part is None for part in parts):
            return None
        values = iter(parts)
        return expression.map_children(lambda child: next(values))
    if not isinstance(expression, SparkExpr) or not expression.deterministic:
        return None
    if expression.has_window or expression.has_subquery:
        return None
    text = _Reader(expression).text()
    if text is None:
        return None
    return NULL if is_null_text(text) else SparkExpr((text,), dtype=expression.dtype, span=expression.span)


def is_null_text(text: str) -> bool:
    """Whether a constant expression is arithmetic on a NULL."""
    return "NULL" in text and _STRICT.fullmatch(text) is not None


def is_strict(expression: Expression, column: Column) -> bool:
    """Whether the expression is NULL wherever `column` is: the column, or arithmetic on it."""
    if expression == column:
        return True
    if not isinstance(expression, SparkExpr) or expression.has_window or not expression.deterministic:
        return False
    if not any(isinstance(part, Expression) and is_strict(part, column) for part in expression.parts):
        return False
    return _STRICT.fullmatch("".join(part if isinstance(part, str) else "1" for part in expression.parts)) is not None


class _Reader:
    """Reads the tokens of an expression's text and replaces each aggregate by its value over no rows."""

    def __init__(self, expression: SparkExpr) -> None:
        self._tokens: list[str | Expression] = list(_tokens(expression))
        self._at = 0

    def text(self) -> str | None:
        """The whole text; None for text that is neither an aggregate nor computed from aggregates and constants."""
        parts: list[str] = []
        while self._at < len(self._tokens):
            part = self._part()
            if part is None:
                return None
            parts.append(part)
        return "".join(parts)

    def _part(self) -> str | None:
        token = self._tokens[self._at]
        self._at += 1
        if isinstance(token, Expression):
            inner = at_no_rows(token)
            return None if inner is None else inner.sql()
        word = token.lower()
        if not (token[0].isalpha() or token[0] == "_") or self._peek() != "(":
            return token
        if word in _ZERO or word in _NULL:
            return self._call("0L" if word in _ZERO else "NULL")
        return token if word in _PLAIN else None

    def _call(self, value: str) -> str | None:
        """`value` for a call whose name was read, also with a FILTER (...); None if OVER or the like follows."""
        self._skip_group()
        following = self._peek()
        if following.lower() == "filter":
            self._at = self._next() + 1
            self._skip_group()
            following = self._peek()
        return None if following.lower() in ("over", "within", "ignore", "respect") else value

    def _skip_group(self) -> None:
        """Go past the next group in parentheses."""
        depth = 0
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            depth += 1 if token == "(" else -1 if token == ")" else 0
            if depth == 0 and token == ")":
                return

    def _next(self) -> int:
        """The place of the next token that is not blank."""
        at = self._at
        while at < len(self._tokens) and isinstance(self._tokens[at], str) and str(self._tokens[at]).isspace():
            at += 1
        return at

    def _peek(self) -> str:
        at = self._next()
        return str(self._tokens[at]) if at < len(self._tokens) and isinstance(self._tokens[at], str) else ""


def _tokens(expression: SparkExpr) -> Iterator[str | Expression]:
    for part in expression.parts:
        if isinstance(part, Expression):
            yield part
        else:
            yield from (match[0] for match in _TOKEN.finditer(part))
