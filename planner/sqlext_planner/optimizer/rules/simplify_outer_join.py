"""Outer joins whose made-up NULL rows are dropped above become inner ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlext_planner.expressions.nodes import Column, Compare, Expression, conjuncts
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Join, JoinKind, Project, SubqueryAlias

#: For each side of a join: is a row dropped if a term above rejects what the row becomes, and if it fails ON?
_DROPS: dict[JoinKind, tuple[tuple[bool, bool], tuple[bool, bool]]] = {
    "inner": ((True, True), (True, True)),
    "cross": ((True, True), (True, True)),
    "left": ((True, False), (False, True)),
    "right": ((False, True), (True, False)),
    "full": ((False, False), (False, False)),
    "semi": ((True, True), (False, True)),
    "anti": ((True, False), (False, True)),
}


@rule(order="root")
def simplify_outer_join(root: LogicalPlan) -> LogicalPlan | None:
    """``Filter(u.y > 3, t LEFT JOIN u)`` -> ``Filter(u.y > 3, t JOIN u)``: a NULL is not above 3.

    ``SELECT * FROM t LEFT JOIN u ON t.a = u.x JOIN v ON u.y = v.p``::

        Join: inner ON u.y = v.p                Join: inner ON u.y = v.p
          Join: left ON t.a = u.x       ->        Join: inner ON t.a = u.x
            Scan: t [a, b]                          Scan: t [a, b]
            Scan: u [x, y]                          Scan: u [x, y]
          Scan: v [p, q]                          Scan: v [p, q]

    A comparison other than ``<=>`` with a column as one side is not true where the column is NULL. The rule looks at
    terms of filters and of inner and semi joins above, and at ON of an outer join for the side that it does not keep.

    | join  | a column of the left side must not be NULL | of the right side | of both |
    |-------|--------------------------------------------|-------------------|---------|
    | left  | stays                                      | inner             | inner   |
    | right | inner                                      | stays             | inner   |
    | full  | left                                       | right             | inner   |

    Legal because every row that the join makes up has NULLs in all columns of one side, and a term above drops it.
    Counter-example: ``WHERE u.y IS NULL`` and ``coalesce(u.y, 0) = 0`` keep such rows.
    """
    new = _Simplifier(root).plan(root, frozenset())
    return None if new is root else new


class _Simplifier:
    """One walk from the root, with the columns in which a NULL is dropped above. A node that two others read is
    simplified for neither."""

    def __init__(self, root: LogicalPlan) -> None:
        self._memo: dict[int, tuple[LogicalPlan, LogicalPlan]] = {}
        seen: set[int] = set()
        self._shared: set[int] = set()
        for node in root.walk():
            for child in node.children:
                (self._shared if id(child) in seen else seen).add(id(child))

    def plan(self, node: LogicalPlan, wanted: frozenset[Column]) -> LogicalPlan:
        """`node`, if its rows with a NULL in a column of `wanted` are dropped above."""
        known = self._memo.get(id(node))
        if known is not None:
            return known[1]
        new = self._rewritten(node, frozenset() if id(node) in self._shared else wanted)
        self._memo[id(node)] = (node, new)
        return new

    def _rewritten(self, node: LogicalPlan, wanted: frozenset[Column]) -> LogicalPlan:
        match node:
            case Filter(condition, child):
                below = wanted | rejecting_columns(conjuncts(condition))
                return node.map_children(lambda _: self.plan(child, below))
            case Project(items, child):
                columns = {item.expression for item in items if item.column in wanted}
                below = frozenset(item for item in columns if isinstance(item, Column))
                return node.map_children(lambda _: self.plan(child, below))
            case SubqueryAlias(child=child):
                pairs = zip(node.output_columns, child.output_columns, strict=True)
                below = frozenset(theirs for ours, theirs in pairs if ours in wanted)
                return node.map_children(lambda _: self.plan(child, below))
            case Join():
                return self._join(node, wanted)
        return node.map_children(lambda child: self.plan(child, frozenset()))

    def _join(self, node: Join, wanted: frozenset[Column]) -> LogicalPlan:
        kind = _kind(node, wanted)
        on = rejecting_columns(conjuncts(node.condition))
        left, right = (
            (wanted if by_above else frozenset()) | (on if by_on else frozenset()) for by_above, by_on in _DROPS[kind]
        )
        new = replace(node, kind=kind) if kind != node.kind else node
        sides = self.plan(node.left, left), self.plan(node.right, right)
        if sides[0] is node.left and sides[1] is node.right:
            return new
        return replace(new, left=sides[0], right=sides[1])


def _kind(node: Join, wanted: frozenset[Column]) -> JoinKind:
    left, right = (bool(wanted & set(side.output_columns)) for side in (node.left, node.right))
    match node.kind:
        case "left" if right:
            return "inner"
        case "right" if left:
            return "inner"
        case "full":
            if left and right:
                return "inner"
            return "left" if left else "right" if right else "full"
    return node.kind


def rejecting_columns(terms: Iterable[Expression]) -> frozenset[Column]:
    """Columns that are not NULL where all terms are true."""
    return frozenset(
        side
        for term in terms
        if isinstance(term, Compare) and term.op != "<=>"
        for side in (term.left, term.right)
        if isinstance(side, Column)
    )
