"""Finds which window definition each OVER means, and whether it is ours or Spark's."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlext_operators.window.functions import lookup
from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.expressions.nodes import Expression
from sqlglot import exp

from sqlext.analyzer import list_aggregates
from sqlext.analyzer.context import ComputedNames, Context, Env
from sqlext.analyzer.items import Item, own_nodes
from sqlext.analyzer.scope import Scope, suggest
from sqlext.syntax.group_calls import EXTENSION_FUNCTIONS
from sqlext.syntax.parser import is_extension_window
from sqlext.syntax.spans import span_of
from sqlext.syntax.sql_settings import normal_text


@dataclass(frozen=True)
class Definition:
    """One window definition: `key` identifies it, `name` is the user's, or its number among anonymous ones."""

    key: str
    name: str
    node: exp.Window
    is_ours: bool


class Definitions:
    """The window definitions of one SELECT block and the calls over them."""

    def __init__(self, context: Context, select: exp.Select, calls: list[exp.Window]) -> None:
        self._context = context
        for call in calls if context.openmldb else ():
            list_aggregates.mark(call)
        self._named = self._collect_named(select)
        self._anonymous: dict[str, int] = {}
        by_key: dict[str, Definition] = {}
        self._by_call: dict[int, Definition] = {}
        keyed = [(call, *self._locate(call)) for call in calls]
        ours = {key for call, key, _, node in keyed if self._is_ours(call, node)}
        for call, key, name, node in keyed:
            definition = by_key.setdefault(key, Definition(key, name, node, key in ours))
            self._by_call[id(call)] = definition
            self._refuse_inner_window(call, definition)
        for name, node in self._named.items():
            if context.openmldb:
                self.follow(node, name)

    def _refuse_inner_window(self, call: exp.Window, definition: Definition) -> None:
        """Raises AnalysisError for an OVER inside our call or definition, and for one of ours inside Spark's."""
        for inner in (node for root in (call, definition.node) for node in own_nodes(root)):
            if not isinstance(inner, exp.Window) or inner is call or inner is definition.node:
                continue
            if definition.is_ours or self._is_ours(inner, self._locate(inner)[2]):
                raise AnalysisError(
                    "a window call cannot be inside another window call",
                    condition="misplaced-window",
                    span=span_of(inner),
                    help="compute it in a subquery of FROM, and use its column; over a sqlext window an aggregate "
                    "in an argument belongs to the window and takes no OVER of its own: sum(x - count(x)) OVER w",
                )

    def of(self, call: exp.Window) -> Definition:
        """The definition that a call's OVER means, also if it is inside another call or in HAVING."""
        known = self._by_call.get(id(call))
        if known is None:
            key, name, node = self._locate(call)
            known = self._by_call[id(call)] = Definition(key, name, node, self._is_ours(call, node))
        return known

    def is_ours(self, call: exp.Window) -> bool:
        """Whether a call's window is one of ours."""
        return self.of(call).is_ours

    def follow(self, node: exp.Window, name: str) -> exp.Window:
        """The definition that ``WINDOW w2 AS (w1)`` refers to."""
        seen = {self._context.fold(name)}
        while node.args.get("alias") is not None:
            base = node.args["alias"]
            if any(node.args.get(key) for key in ("partition_by", "order", "spec", "union")):
                raise AnalysisError(
                    f"a window cannot extend '{base.name}'",
                    condition="window-definition",
                    span=span_of(node),
                    help="write out the whole definition",
                )
            if self._context.openmldb:
                raise AnalysisError(
                    f"window '{name}' has no frame: AS {base.name} does not copy the other one's frame",
                    condition="window-definition",
                    span=span_of(node),
                    help=f"use OVER {base.name}, or write out the definition",
                )
            if len(seen) > 1:
                raise AnalysisError(
                    f"window '{base.name}' only names another one",
                    condition="window-definition",
                    span=span_of(base),
                    help="a window may be another name only for a window that is written out",
                )
            if self._context.fold(base.name) in seen:
                raise AnalysisError(
                    f"window '{name}' is defined by itself", condition="window-definition", span=span_of(base)
                )
            seen.add(self._context.fold(base.name))
            node = self._get(base)
        return node

    def _collect_named(self, select: exp.Select) -> dict[str, exp.Window]:
        named: dict[str, exp.Window] = {}
        for node in select.args.get("windows") or []:
            name = node.this.name
            if self._context.fold(name) in named:
                raise AnalysisError(
                    f"window '{name}' is defined twice",
                    condition="duplicate-name",
                    span=span_of(node.this),
                    help="give one of them another name",
                )
            named[self._context.fold(name)] = node
        return named

    def _get(self, name: exp.Expr) -> exp.Window:
        found = self._named.get(self._context.fold(name.name))
        if found is not None:
            return found
        names = [node.this.name for node in self._named.values()]
        nearest = suggest(name.name, names)
        if nearest:
            hint = f"did you mean '{nearest}'?"
        else:
            hint = f"windows here: {', '.join(names)}" if names else f"add WINDOW {name.name} AS (...) at the end"
        raise AnalysisError(
            f"window '{name.name}' not found", condition="unknown-window", span=span_of(name), help=hint
        )

    def _locate(self, call: exp.Window) -> tuple[str, str, exp.Window]:
        """Key, name and node of the definition that a call's OVER means."""
        base = call.args.get("alias")
        if base is None:
            span = definition_span(self._context, call)
            text = normal_text(self._context.slice(span), self._context.settings)
            number = self._anonymous.setdefault(text, len(self._anonymous) + 1)
            return f"({text})", f"window {number}", call
        if any(call.args.get(key) for key in ("partition_by", "order", "spec", "union")):
            raise AnalysisError(
                f"OVER ({base.name} ...) cannot extend window '{base.name}'",
                condition="window-definition",
                span=definition_span(self._context, call),
                help=f"write OVER {base.name}, or write out the whole definition",
            )
        node = self.follow(self._get(base), base.name)
        return self._context.fold(node.this.name), node.this.name, node

    def _is_ours(self, call: exp.Window, definition: exp.Window) -> bool:
        if self._context.openmldb or is_extension_window(definition):
            return True
        called = {node.name.lower() for node in own_nodes(call.this) if isinstance(node, exp.Anonymous)}
        return bool(called & EXTENSION_FUNCTIONS)


def definition_span(context: Context, call: exp.Window) -> Span:
    """The span of a call's OVER part."""
    start, end = span_of(call.this).end, span_of(call).end
    return Span(start + len(context.text[start:end]) - len(context.text[start:end].lstrip()), end)


def table_call(node: exp.Expr) -> bool:
    """Whether the node calls a function of the table of window functions."""
    if not isinstance(node, exp.Anonymous) or list_aggregates.template(node) is not None:
        return False
    function = lookup(node.name)
    return function is not None and not function.internal


@dataclass
class Block:
    """One SELECT block whose FROM is analyzed; its subclasses plan the clauses and windows."""

    context: Context
    node: exp.Select
    env: Env
    scope: Scope
    items: list[Item]
    definitions: Definitions
    names: ComputedNames = field(default_factory=ComputedNames)
    aliases: dict[str, Expression] = field(default_factory=dict)
