"""The names that Spark gives to items of a SELECT list without an alias."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlext_planner.errors import SqlExtError
from sqlext_planner.expressions.types import normalize
from sqlglot import exp

from sqlext.syntax.spans import NoPlaceError, span_of

#: Returns the user's text of a node.
Text = Callable[[exp.Expr], str]

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "AND",
    exp.Or: "OR",
}
#: Calls that Spark does not name like the call, and words before parentheses that are not calls.
_SPECIAL = frozenset(
    {"if", "extract", "position", "overlay", "trim", "substring_index", "cast", "try_cast", "interval", "in", "exists"}
)


def item_name(node: exp.Expr, text: Text) -> str | None:
    """What Spark calls the result of an expression: ``SUM (t.x)`` -> ``sum(x)``, ``a+b*2`` -> ``(a + (b * 2))``.

    None for an expression that is not made of columns, literals, arithmetic, comparisons, CAST and calls with
    arguments between commas; those keep their text (Spark seldom names them so).
    """
    match node:
        case exp.Paren():
            return item_name(node.this, text)
        case exp.Column() if not isinstance(node.this, exp.Star):
            return str(node.name)
        case exp.Star():
            return "1" if isinstance(node.parent, exp.Count) else None
        case exp.Literal():
            return str(node.name) if node.is_string or re.fullmatch(r"\d+(\.\d+)?", text(node)) else None
        case exp.Null():
            return "NULL"
        case exp.Boolean():
            return "true" if node.this else "false"
        case exp.Cast():
            return _cast(node, text)
        case exp.Distinct() if len(node.expressions) == 1:
            return _joined("DISTINCT {}", [item_name(node.expressions[0], text)])
        case exp.Binary() if type(node) in _OPERATORS:
            names = [item_name(node.this, text), item_name(node.expression, text)]
            return _joined(f"({{}} {_OPERATORS[type(node)]} {{}})", names)
        case exp.Func():
            return _call(node, text)
    return None


def _joined(form: str, names: list[str | None]) -> str | None:
    return None if None in names else form.format(*names)


def _cast(node: exp.Cast, text: Text) -> str | None:
    if not re.match(r"cast\s*\(", text(node), re.IGNORECASE):
        return None
    try:
        kind = normalize(text(node.to))
    except SqlExtError:
        return None
    return _joined(f"CAST({{}} AS {kind.upper()})", [item_name(node.this, text)])


def _call(node: exp.Expr, text: Text) -> str | None:
    """The call as written, if there is nothing but its arguments between its parentheses."""
    written = text(node)
    head = re.match(r"(\w+)\s*\(", written)
    if head is None or head[1].lower() in _SPECIAL or not written.endswith(")"):
        return None
    try:
        arguments = sorted(node.iter_expressions(), key=lambda argument: span_of(argument).start)
        words = [text(argument) for argument in arguments]
    except NoPlaceError:
        return None
    between = re.sub(r"\s", "", written[head.end() : -1])
    if between != re.sub(r"\s", "", ",".join(words)):
        return None
    return _joined(f"{head[1].lower()}({', '.join('{}' for _ in words)})", [item_name(one, text) for one in arguments])
