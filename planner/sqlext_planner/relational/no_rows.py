"""The value of an expression over aggregates if there are no rows: ``0.5 * sum(x)`` is NULL, ``count(*) + 1`` is 1."""

from __future__ import annotations

from sqlext_planner.expressions.nodes import And, Column, Compare, Expression, Literal, SparkExpr
from sqlext_planner.expressions.typed import NULL, Arithmetic, FunctionCall, Paren, is_null
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Aggregate, Distinct, Filter, Hint, Limit, Project, Sort

ZERO = Literal("0L", dtype="bigint")

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
    abs bround ceil ceiling coalesce concat cos exp floor greatest if ifnull int isnotnull isnull least length ln
    log lower mod negative nullif nvl nvl2 pow power round sign sqrt substr substring trim upper bigint double float
    decimal date string
    """.split()  # noqa: SIM905 - a table of words
)


def value_of_no_rows(plan: LogicalPlan, column: Column) -> Expression | None:
    """The value of `column` in a scalar subquery over no rows; the literal NULL if it has no row. None if unknown.

    `plan` is one block: an aggregation and the nodes above it.
    """
    match plan:
        case Project(items, child):
            expression = next((item.expression for item in items if item.column == column), None)
            return value_of_no_rows(child, expression) if isinstance(expression, Column) else None
        case Sort(child=child) | Distinct(child) | Hint(child=child) | Limit(child=child):
            return value_of_no_rows(child, column)
        case Filter(child=child):  # HAVING: the row with NULL, or no row, which is NULL too
            return NULL if value_of_no_rows(child, column) == NULL else None
        case Aggregate(keys, _, items):
            if keys:
                return NULL
            expression = next((item.expression for item in items if item.column == column), None)
            return None if expression is None else at_no_rows(expression)
    return None


def at_no_rows(expression: Expression) -> Expression | None:
    """The value of an aggregate expression without grouping keys over no rows; None if that is unknown."""
    value = _value(expression)
    return NULL if value is not None and _is_null_arithmetic(value) else value


def _value(expression: Expression) -> Expression | None:
    match expression:
        case Literal():
            return expression
        case SparkExpr() if not expression.deterministic or expression.has_window or expression.has_subquery:
            return None
        case FunctionCall(name=name) if name in _ZERO or name in _NULL:
            return None if expression.modifier else ZERO if name in _ZERO else NULL
        case SparkExpr() | Compare() | And() if not isinstance(expression, FunctionCall) or expression.name in _PLAIN:
            parts = [_value(part) for part in expression.children]
            values = iter(parts)
            return None if None in parts else expression.map_children(lambda child: next(values))
    return None


def _is_null_arithmetic(expression: Expression) -> bool:
    """Whether a constant expression is NULL or arithmetic on a NULL."""
    if isinstance(expression, (Arithmetic, Paren)) and not any(map(_is_text, expression.operands)):
        return any(map(_is_null_arithmetic, expression.operands))
    return is_null(expression)


def is_strict(expression: Expression, column: Column) -> bool:
    """Whether the expression is NULL wherever `column` is: the column, or arithmetic on it."""
    if expression == column:
        return True
    if not isinstance(expression, (Arithmetic, Paren)) or expression.has_window or not expression.deterministic:
        return False
    return not any(map(_is_text, expression.operands)) and any(is_strict(item, column) for item in expression.operands)


def _is_text(expression: Expression) -> bool:
    """Whether it is a string, which may be no number: then arithmetic with NULL may be an error."""
    return isinstance(expression, Literal) and expression.dtype == "string"
