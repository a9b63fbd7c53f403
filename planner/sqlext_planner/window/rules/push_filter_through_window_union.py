"""A filter on partition keys moves below a window over a union of tables, into every one of them."""

from __future__ import annotations

from sqlext_planner.expressions.nodes import Column, Expression, conjuncts
from sqlext_planner.expressions.patterns import is_exact, is_movable, reads_only
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan, with_fields
from sqlext_planner.relational.nodes import Filter
from sqlext_planner.relational.plan_patterns import filtered
from sqlext_planner.window.nodes import WindowUnion


@rule(order="top_down", on=(Filter, WindowUnion))
def push_filter_through_window_union(node: LogicalPlan) -> LogicalPlan | None:
    """``Filter(p(key), WindowUnion(a, b))`` -> ``WindowUnion(Filter(p(key), a), Filter(p(key), b))``.

    ``SELECT * FROM (SELECT k, sum(v) OVER w AS s FROM a WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ...))
    WHERE k = 7``::

        Filter: a.k = 7                          WindowUnion: UNION 1 sources PARTITION BY a.k ...
          WindowUnion: UNION 1 sources ...   ->    Filter: a.k = 7
            Scan: a [k, ts, v]                       Scan: a [k, ts, v]
            Scan: b [k, ts, v]                     Filter: b.k = 7
                                                     Scan: b [k, ts, v]

    Legal for a movable conjunct over partition keys that are plain columns of the source: it drops whole partitions,
    and rows of one partition never see another's. The union sources are filtered by position, on their own
    key columns; their rows in the dropped partitions would vanish anyway. A key column beyond a narrow union
    source's width leaves that source as it is. Keys must be of a type whose equal values are the same
    value: with a double key, 0.0 and -0.0 are one partition, and ``1 / k > 0`` would split it.

    Not legal for other columns: ``WHERE ts > 100`` drops a's row with ts 99, which is in the window of the row with
    ts 101 and belongs to its sum. The exception: if every window has INSTANCE_NOT_IN_WINDOW, a row of a is in no
    window but its own, so any movable conjunct over a's columns may filter a alone (never b).
    """
    match node:
        case Filter(condition, WindowUnion() as window_union):
            return _push(condition, window_union)
    return None


def _push(condition: Expression, node: WindowUnion) -> LogicalPlan | None:
    keys = _exact_keys(node)
    loners = all(window.frame.instance_not_in_window for window in node.windows)
    everywhere: list[Expression] = []
    source_only: list[Expression] = []
    rest: list[Expression] = []
    for term in conjuncts(condition):
        if not is_movable(term):
            rest.append(term)
        elif reads_only(term, keys):
            everywhere.append(term)
        elif loners and reads_only(term, node.source.output_columns):
            source_only.append(term)
        else:
            rest.append(term)
    if not (everywhere or source_only):
        return None
    source = filtered([*everywhere, *source_only], node.source)
    unions = tuple(_filtered_union(union, everywhere, node.source) for union in node.unions)
    return filtered(rest, with_fields(node, source=source, unions=unions))


def _exact_keys(node: WindowUnion) -> frozenset[Column]:
    known = node.source.dtypes
    columns = (key for key in node.partition_by if isinstance(key, Column))
    return frozenset(column for column in columns if is_exact(known.get(column)))


def _filtered_union(union: LogicalPlan, terms: list[Expression], source: LogicalPlan) -> LogicalPlan:
    by_position = dict(zip(source.output_columns, union.output_columns, strict=False))
    own = [term.substitute(by_position) for term in terms if all(column in by_position for column in term.references)]
    return filtered(own, union)
