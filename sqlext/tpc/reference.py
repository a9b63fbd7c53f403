"""What a query's answer is compared with: its text without LIMIT, with the keys of its ORDER BY as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlext_planner.errors import UnsupportedError
from sqlglot import exp, parse_one
from sqlglot.tokenizer_core import Token, TokenType

from sqlext.syntax.dialect import SqlExt
from sqlext.tpc.compare import OrderKey

#: Name of the columns that are added for keys that are not columns of the result.
KEY_NAME = "sqlext_key_{}"


@dataclass(frozen=True)
class Reference:
    """How to get all rows with their keys: a text for plain Spark, and which of its columns hold the keys.

    `is_query`: no key had to be added, so the answer of the query itself holds the keys too.
    """

    sql: str
    keys: tuple[OrderKey, ...]
    limit: int | None
    is_query: bool


def reference(sql: str, columns: Sequence[str]) -> Reference:
    """The reference of a query whose result has these columns.

    A key is a column of the result if ORDER BY gives its position, its name, or the expression that computes it. Any
    other key becomes a column: computed from the result if it reads nothing else, in the query's own SELECT otherwise.
    Raises UnsupportedError for a LIMIT that is not a number, an OFFSET, and keys of a set operation that are not its
    columns.
    """
    query = parse_one(sql, read="sqlext")
    limit = _limit(query)
    order = query.args.get("order")
    body = _without_limit(sql) if limit is not None else sql.strip().rstrip(";")
    added: list[exp.Expr] = []
    keys = []
    for ordered in order.expressions if order is not None else ():
        column = _column(ordered.this, query, columns)
        if column is None:
            column = len(columns) + len(added)
            added.append(ordered.this)
        descending = bool(ordered.args.get("desc"))
        keys.append(OrderKey(column, descending, bool(ordered.args.get("nulls_first", not descending))))
    return Reference(_with_keys(body, query, columns, added), tuple(keys), limit, not added)


def _limit(query: exp.Expr) -> int | None:
    limit = query.args.get("limit")
    if query.args.get("offset") is not None:
        raise UnsupportedError(
            "the answer of a query with OFFSET cannot be checked", condition="benchmark", help="check it without OFFSET"
        )
    if limit is None:
        return None
    value = limit.expression
    if not isinstance(value, exp.Literal) or value.is_string:
        raise UnsupportedError(
            "the LIMIT is not a number", condition="benchmark", help="write a number to check the answer"
        )
    return int(value.name)


def _column(key: exp.Expr, query: exp.Expr, columns: Sequence[str]) -> int | None:
    """The position of the result's column that holds the key, None if none does."""
    if isinstance(key, exp.Literal) and not key.is_string:
        return int(key.name) - 1
    names = [name.lower() for name in columns]
    if isinstance(key, exp.Column) and not key.table and names.count(key.name.lower()) == 1:
        return names.index(key.name.lower())
    if isinstance(query, exp.Select) and not query.is_star:
        return next((place for place, item in enumerate(query.selects) if item.unalias() == key), None)
    return None


def _with_keys(body: str, query: exp.Expr, columns: Sequence[str], keys: Sequence[exp.Expr]) -> str:
    if not keys:
        return body
    items = [f"{key.sql(dialect='sqlext')} AS {KEY_NAME.format(number)}" for number, key in enumerate(keys)]
    names = [name.lower() for name in columns]
    reads = [column for key in keys for column in key.find_all(exp.Column)]
    from_result = all(not column.table and names.count(column.name.lower()) == 1 for column in reads)
    if from_result and not any(key.find(exp.AggFunc, exp.Window) for key in keys):
        return f"SELECT *, {', '.join(items)} FROM (\n{body}\n) AS sqlext_answer"
    if not isinstance(query, exp.Select) or query.args.get("distinct"):
        raise UnsupportedError(
            "ORDER BY reads something that the result does not contain",
            condition="benchmark",
            help="add it to the SELECT",
        )
    place = _end_of_select_list(body)
    return f"{body[:place]}, {', '.join(items)}\n{body[place:]}"


def _without_limit(sql: str) -> str:
    """The text up to the LIMIT of the whole query."""
    place = [token.start for token in _outer_tokens(sql) if token.token_type == TokenType.LIMIT][-1]
    return sql[:place].rstrip()


def _end_of_select_list(sql: str) -> int:
    """The place before the FROM of the last SELECT outside parentheses."""
    tokens = _outer_tokens(sql)
    select = max(number for number, token in enumerate(tokens) if token.token_type == TokenType.SELECT)
    return next(token.start for token in tokens[select:] if token.token_type == TokenType.FROM)


def _outer_tokens(sql: str) -> list[Token]:
    """The tokens outside all parentheses."""
    depth = 0
    outer = []
    for token in SqlExt().tokenize(sql):
        depth -= token.token_type == TokenType.R_PAREN
        if depth == 0:
            outer.append(token)
        depth += token.token_type == TokenType.L_PAREN
    return outer
