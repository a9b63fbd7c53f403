"""Columns that nobody reads are not carried."""

from __future__ import annotations

from sqlext_planner.expressions.nodes import Column
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan


@rule(order="root")
def prune_columns(root: LogicalPlan) -> LogicalPlan | None:
    """Narrows scans, projections, aggregates, window unions and joins to the columns that the root needs.

    ``SELECT sum(v) OVER w FROM a WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ...)`` with wide tables::

        Project: s                                 Project: s
          WindowUnion: UNION 1 sources ...           WindowUnion: UNION 1 sources ... PAYLOAD []
            Scan: a [k, ts, v, note]          ->       Scan: a [k, ts, v]
            Scan: b [k, ts, v, note]                   Scan: b [k, ts, v]

    Each node says what it reads of its children (`LogicalPlan.child_needs`) and what is left of it (`narrowed`).
    A root rule, because a node shared by two parents must keep what either of them reads. It walks once from the root
    to collect what each node's parents read, and once from the leaves to rebuild.

    Legal because a column that no parent reads has no effect, with these exceptions: nodes that match by position (set
    operations, union sources) lose the same positions on both sides, through a Project where a side gives more; sets
    without ALL, and DISTINCT, compare whole rows and keep every column: ``SELECT count(*) FROM (SELECT DISTINCT a, b
    FROM t)`` needs both; generators stay, since they make rows; a window union without a needed call becomes its
    source, which has the same rows, and a group aggregate without one becomes Spark's; a LAST JOIN of which no right
    column is needed becomes its left side, since every left row is output exactly once; no node loses its last column,
    except the payload of a window union and of a count of matches.
    """
    order = _parents_first(root)
    needs: dict[int, set[Column]] = {id(node): set() for node in order}
    needs[id(root)].update(root.output_columns)
    for node in order:
        for child, columns in node.child_needs(needs[id(node)]):
            needs[id(child)].update(columns)
    built: dict[int, LogicalPlan] = {}
    for node in reversed(order):
        built[id(node)] = node.narrowed(needs[id(node)], lambda child: built[id(child)])
    new = built[id(root)]
    return None if new is root else new


def _parents_first(root: LogicalPlan) -> list[LogicalPlan]:
    """Every node once, each after all of its parents."""
    done: list[LogicalPlan] = []
    seen: set[int] = set()

    def visit(node: LogicalPlan) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            for child in node.children:
                visit(child)
            done.append(node)

    visit(root)
    return done[::-1]
