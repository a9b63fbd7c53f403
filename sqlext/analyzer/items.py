"""The items of a SELECT list: stars expanded, names as the user will see them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.errors import Span, SqlExtError
from sqlext_planner.expressions.types import normalize
from sqlglot import exp

from sqlext.analyzer.context import Context, LeftToSparkError, Scope, Visible
from sqlext.syntax.calls import is_group_call
from sqlext.syntax.spans import NoPlaceError, mistake, span_of
from sqlext.syntax.spark_functions import AGGREGATES, LITERAL_FUNCTIONS

if TYPE_CHECKING:
    from sqlext_planner.expressions.nodes import Expression

    from sqlext.analyzer.expressions import ExpressionBuilder

#: Generators that give several columns for one item; `explode` does so only for a map.
GENERATORS_OF_SEVERAL = frozenset(
    ("inline", "inline_outer", "json_tuple", "posexplode", "posexplode_outer", "stack", "variant_explode")
)

#: What may be around a call: FILTER (...), WITHIN GROUP (...), IGNORE NULLS.
WRAPPERS = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


@dataclass(frozen=True)
class Item:
    """One result column. `node` is its expression, None for a column that comes from a star."""

    name: str
    node: exp.Expr | None
    visible: Visible | None
    span: Span
    aliased: bool = False

    def build(self, builder: ExpressionBuilder) -> Expression:
        """Its expression, over the columns that `builder` sees."""
        if self.visible is not None:
            return self.visible.column
        assert self.node is not None
        return builder.build(self.node)


def select_items(context: Context, select: exp.Select, scope: Scope) -> list[Item]:
    """The SELECT list. Raises AnalysisError for a star that means no column."""
    items: list[Item] = []
    for node in select.expressions:
        span = span_of(select) if isinstance(node, exp.Star) and not node.meta else span_of(node)
        inner = node.this if isinstance(node, (exp.Alias, exp.Aliases)) else node
        if isinstance(inner, exp.QueryTransform):
            raise LeftToSparkError("TRANSFORM is left to Spark", span=span)
        if isinstance(inner, exp.Anonymous) and inner.name.lower() in GENERATORS_OF_SEVERAL:
            raise LeftToSparkError(f"{inner.name}() gives several columns, which is left to Spark", span=span)
        if isinstance(node, exp.Aliases):
            raise LeftToSparkError("several aliases of one expression are left to Spark", span=span)
        if isinstance(node, exp.Alias):
            items.append(Item(node.alias, node.this, None, span, aliased=True))
        elif isinstance(node, (exp.Star, exp.Column)) and node.is_star:  # not a query that selects one
            items.extend(Item(column.name, None, column, span) for column in _expand(node, scope, span))
        else:
            items.append(Item(_default_name(context, node, scope), node, None, span))
    return items


def _expand(node: exp.Expr, scope: Scope, span: Span) -> list[Visible]:
    star = node if isinstance(node, exp.Star) else node.this
    qualifier = tuple(part.name for part in node.parts[:-1]) if isinstance(node, exp.Column) else ()
    if star.args.get("replace") or star.args.get("rename"):
        raise LeftToSparkError("* REPLACE and * RENAME are left to Spark", span=span)
    columns = scope.star(qualifier)
    if not columns and qualifier and scope.find(qualifier, span) is not None:
        raise LeftToSparkError(f"the fields of struct '{'.'.join(qualifier)}' are left to Spark", span=span)
    if not columns:
        raise scope.unknown((*qualifier, "*"), span)
    dropped = {scope.fold(item.name): item for item in star.args.get("except_") or []}
    for name, item in dropped.items():
        if all(scope.fold(column.name) != name for column in columns):
            raise mistake("unknown-column", item, f"column '{name}' of EXCEPT not found")
    return [column for column in columns if scope.fold(column.name) not in dropped]


def _default_name(context: Context, node: exp.Expr, scope: Scope) -> str:
    """The name of an unnamed item: the column's own, Spark's name for a plain expression, else its text."""
    inner = unwrapped(node)
    if isinstance(inner, exp.Column) and len(inner.parts) == 1 and inner.name.lower() in LITERAL_FUNCTIONS:
        found = scope.find((inner.name,)) is not None
        return inner.name if found else LITERAL_FUNCTIONS[inner.name.lower()][1]
    if isinstance(inner, (exp.Column, exp.Dot)):
        return str(inner.name)
    if isinstance(inner, exp.Anonymous) and [type(item) for item in inner.expressions] == [exp.Star]:
        return f"{inner.name.lower()}(1)"
    if context.openmldb and isinstance(inner, exp.Window) and inner.args.get("alias") is not None:
        return f"{_text(context, inner.this)}over {inner.args['alias'].name}"
    name = None if context.openmldb else item_name(inner, lambda part: context.slice(span_of(part)))
    return _text(context, node) if name is None else name


def _text(context: Context, node: exp.Expr) -> str:
    return " ".join(context.slice(span_of(node)).split())


def unwrapped(node: exp.Expr) -> exp.Expr:
    """The node inside any parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def own_nodes(node: exp.Expr, stops: Callable[[exp.Expr], bool] = lambda node: False) -> Iterator[exp.Expr]:
    """Nodes of an expression, parents first, but those inside subqueries and below nodes for which `stops` holds."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        if not stops(top):
            stack.extend(reversed([child for child in top.iter_expressions() if not isinstance(child, exp.Query)]))


def outermost(node: exp.Expr, is_meant: Callable[[exp.Expr], bool]) -> Iterator[exp.Expr]:
    """The own nodes of an expression for which `is_meant` holds, but not those inside such a node."""
    return filter(is_meant, own_nodes(node, is_meant))


def roots(select: exp.Select, items: Sequence[Item]) -> list[tuple[exp.Expr, str | None]]:
    """The expressions of a block that may hold windows and aggregates: items with their aliases, QUALIFY,
    keys of ORDER BY."""
    found = [(item.node, item.name if item.aliased else None) for item in items if item.node is not None]
    order, qualify = select.args.get("order"), select.args.get("qualify")
    found += [(qualify.this, None)] if qualify is not None else []
    return found + [(key.this, None) for key in (order.expressions if order is not None else [])]


def outer_calls(node: exp.Expr) -> Iterator[exp.Window]:
    """OVER calls of an expression, outermost ones only."""
    return (item for item in own_nodes(node, lambda item: isinstance(item, exp.Window)) if isinstance(item, exp.Window))


def is_aggregate_call(node: exp.Expr) -> bool:
    """Whether the node is a call of one of Spark's aggregates (with OVER around it or not), or of ours without OVER."""
    if isinstance(node, WRAPPERS):
        return is_aggregate_call(node.this)
    return isinstance(node, exp.Anonymous) and (node.name.lower() in AGGREGATES or is_group_call(node))


def aggregate_calls(node: exp.Expr, is_ours: Callable[[exp.Window], bool] = lambda call: False) -> Iterator[exp.Expr]:
    """Outermost aggregate calls of an expression that belong to GROUP BY, also those in the arguments of OVER calls.

    Everything inside a call over one of our windows belongs to that window.
    """
    stack = [(node, False)]
    while stack:
        top, called_over = stack.pop()
        if isinstance(top, exp.Window) and is_ours(top):
            continue
        if is_aggregate_call(top) and not called_over:
            yield top
            continue
        for child in reversed(list(top.iter_expressions())):
            if not isinstance(child, exp.Query):
                over = (isinstance(top, exp.Window) and child is top.this) or (
                    called_over and isinstance(top, WRAPPERS)
                )
                stack.append((child, over))


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
        case exp.Column() if not node.is_star:
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
