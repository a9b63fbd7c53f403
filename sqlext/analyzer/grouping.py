"""GROUP BY: keys by expression, name or position; GROUPING SETS, ROLLUP and CUBE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.spark.versions import may_have
from sqlglot import exp

from sqlext.analyzer.context import LeftToSparkError
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.items import Item, aggregate_calls
from sqlext.analyzer.ordering import ordinal
from sqlext.syntax.spans import mistake, span_of

#: Grouping sets while they are being built: tuples of key nodes.
_Sets = list[tuple[exp.Expr, ...]]


@dataclass(frozen=True)
class Grouping:
    """The keys, each once, and the keys of each grouping set; None for a plain GROUP BY."""

    keys: tuple[Expression, ...]
    sets: tuple[tuple[int, ...], ...] | None


def grouping(group: exp.Group | None, items: Sequence[Item], builder: ExpressionBuilder) -> Grouping:
    """The parsed GROUP BY. Raises AnalysisError for a position out of range or a key that is an aggregate."""
    if group is None:
        return Grouping((), None)
    if group.args.get("totals"):
        raise LeftToSparkError("WITH TOTALS is left to Spark", span=span_of(group))
    keys = _Keys(items, builder)
    if group.args.get("all") and keys.add_named("all"):
        return Grouping(tuple(keys.found), None)
    if group.args.get("all"):
        for item in items:
            if item.visible is not None or (item.node is not None and next(aggregate_calls(item.node), None) is None):
                keys.add_item(item)
        return Grouping(tuple(keys.found), None)
    suffixes = [node for key in ("rollup", "cube", "grouping_sets") for node in group.args.get(key) or []]
    elements = list(group.expressions)
    _refuse_empty(group, elements, suffixes)
    if suffixes and not suffixes[0].expressions:  # GROUP BY a, b WITH ROLLUP
        elements = [type(suffixes[0])(expressions=elements)]
    elif suffixes:  # GROUP BY a, b GROUPING SETS (...)
        for node in elements:
            keys.add(node)
        elements = suffixes
    if not any(isinstance(node, (exp.Rollup, exp.Cube, exp.GroupingSets)) for node in elements):
        for node in elements:
            keys.add(node)
        return Grouping(tuple(keys.found), None)
    if not may_have("grouping sets"):
        raise LeftToSparkError("grouping sets are left to Spark", span=span_of(group))
    crossed = product(*(_sets(node) for node in elements))
    sets = [tuple(dict.fromkeys(keys.add(node) for part in choice for node in part)) for choice in crossed]
    return Grouping(tuple(keys.found), tuple(sets))


def _refuse_empty(group: exp.Group, elements: Sequence[exp.Expr], suffixes: Sequence[exp.Expr]) -> None:
    """Raises AnalysisError for () outside GROUPING SETS and for an empty ROLLUP or CUBE, as Spark does."""
    if suffixes and not suffixes[0].expressions and not elements:
        raise mistake("syntax-error", group, "GROUP BY WITH ROLLUP has no keys", "write the keys before WITH")
    for node in (item for one in (*elements, *suffixes) for item in one.find_all(exp.Rollup, exp.Cube)):
        kind = type(node).__name__.upper()
        if node.expressions and any(isinstance(item, exp.Tuple) and not item.expressions for item in node.expressions):
            help = f"remove it: {kind} always includes the set without keys"
            raise mistake("syntax-error", node, f"an empty set () inside {kind}", help)
        if not node.expressions and node in elements:
            raise mistake("syntax-error", node, f"{kind} has no keys", "write its keys in the parentheses")


def _sets(node: exp.Expr) -> _Sets:
    """The grouping sets of one element of GROUP BY."""
    match node:
        case exp.Rollup():
            parts = [_columns(item) for item in node.expressions]
            return [sum(parts[:size], ()) for size in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_columns(item) for item in node.expressions]
            sizes = range(len(parts), -1, -1)
            return [sum(choice, ()) for size in sizes for choice in combinations(parts, size)]
        case exp.GroupingSets():
            return [one for item in node.expressions for one in _sets(item)]
    return [_columns(node)]


def _columns(node: exp.Expr) -> tuple[exp.Expr, ...]:
    """``(a, b)``, ``(a)``, ``()`` or ``a`` as key nodes."""
    if isinstance(node, exp.Tuple):
        return tuple(node.expressions)
    if isinstance(node, exp.Paren):
        return (node.this,)
    return (node,)


class _Keys:
    """The distinct keys in order of first use."""

    def __init__(self, items: Sequence[Item], builder: ExpressionBuilder) -> None:
        self._items = items
        self._builder = builder
        self._settings = builder.context.settings
        self._fold = builder.context.fold
        self.found: list[Expression] = []

    def add(self, node: exp.Expr) -> int:
        """The index of a key, which may be a position or an alias of the select list."""
        position = None
        if self._settings.group_by_ordinal:
            position = ordinal(node, len(self._items), "GROUP BY")
        if position is not None:
            return self.add_item(self._items[position])
        _refuse_aggregates(node, "use HAVING")
        return self._index(self._builder.build(self._aliased(node)))

    def add_named(self, name: str) -> bool:
        """Add the column of FROM or the alias of the select list that a bare name means; False if it means nothing."""
        found = self._builder.scope.find((name,))
        if found is not None:
            self._index(found.visible.column)
            return True
        item = next((item for item in self._items if item.aliased and item.name.lower() == name), None)
        if item is not None:
            self.add_item(item)
        return item is not None

    def add_item(self, item: Item) -> int:
        """The index of a select item as a key."""
        if item.visible is not None:
            return self._index(item.visible.column)
        assert item.node is not None
        _refuse_aggregates(item.node, "group by a column")
        return self._index(self._builder.build(item.node))

    def _aliased(self, node: exp.Expr) -> exp.Expr:
        """The select item that a bare name means, unless a column of FROM has that name."""
        if not self._settings.group_by_aliases or not isinstance(node, exp.Column) or len(node.parts) > 1:
            return node
        if self._builder.scope.find((node.name,), span_of(node)) is None:
            for item in self._items:
                if item.aliased and self._fold(item.name) == self._fold(node.name) and item.node is not None:
                    return item.node
        return node

    def _index(self, key: Expression) -> int:
        if key not in self.found:
            self.found.append(key)
        return self.found.index(key)


def _refuse_aggregates(node: exp.Expr, help: str) -> None:
    call = next(aggregate_calls(node), None)
    if call is not None:
        raise mistake("misplaced-aggregate", call, "GROUP BY cannot contain an aggregate", help)
