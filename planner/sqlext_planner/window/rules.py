"""The rule about windows over unions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlext_planner.optimizer.executor import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.plan_patterns import same_query
from sqlext_planner.window.nodes import WindowGroup, WindowUnion


@rule(order="bottom_up", on=(WindowUnion,))
def merge_window_unions(node: LogicalPlan) -> LogicalPlan | None:
    """``WindowUnion(w2, WindowUnion(w1, a, b), b, c)`` -> ``WindowUnion(w1 and w2, a, b, c)``.

    ``SELECT sum(v) OVER w1, sum(v) OVER w2 FROM a WINDOW w1 AS (UNION b PARTITION BY k ORDER BY ts ...),
    w2 AS (UNION b, c PARTITION BY k ORDER BY ts ...)``::

        WindowUnion: UNION 2 sources ... [w2]           WindowUnion: UNION 2 sources ... [w1, w2]
          WindowUnion: UNION 1 sources ... [w1]    ->     Scan: a
            Scan: a                                       Scan: b
            Scan: b                                       Scan: c
          Scan: b
          Scan: c

    Legal if both have the same partition keys (in any order) and the same order key, the outer calls read no inner
    call's column, and no union source of the outer node is wider than the inner source. Every group keeps its
    own sources, in its own order of age: the merged list is the shortest one that holds both lists as subsequences,
    with equal queries shared. ``w1 AS (UNION b, c ...), w2 AS (UNION c, b ...)`` becomes b, c, b: one exchange that
    reads b twice still beats two that read a, b and c twice. The inner node's tie order holds for both: the analyzer
    gives all windows of a block the same one, and none to the first, whose source is in that order.

    Not legal for ``w1 AS (... ORDER BY ts), w2 AS (... ORDER BY ts2)``: there is no common sequence.
    """
    match node:
        case WindowUnion(source=WindowUnion() as inner) if _mergeable(node, inner):
            unions, inner_places, outer_places = _merge_sources(inner.unions, node.unions)
            windows = _renumber(inner.windows, inner_places) + _renumber(node.windows, outer_places)
            return replace(inner, windows=windows, unions=unions, phase=node.phase or inner.phase, span=node.span)
    return None


def _mergeable(outer: WindowUnion, inner: WindowUnion) -> bool:
    available = frozenset(inner.source.output_columns)
    return (
        outer.payload is None
        and inner.payload is None
        and frozenset(outer.partition_by) == frozenset(inner.partition_by)
        and outer.order_by == inner.order_by
        and outer.further == inner.further
        and all(column in available for item in outer.expressions() for column in item.references)
        and all(len(union.output) <= len(inner.source.output) for union in outer.unions)
    )


def _renumber(windows: tuple[WindowGroup, ...], places: Sequence[int]) -> tuple[WindowGroup, ...]:
    return tuple(replace(window, sources=tuple(places[i] for i in window.sources)) for window in windows)


def _merge_sources(
    left: tuple[LogicalPlan, ...], right: tuple[LogicalPlan, ...]
) -> tuple[tuple[LogicalPlan, ...], list[int], list[int]]:
    """The shortest common supersequence of two source lists, and the places of each list's items in it."""
    same = [[same_query(a, b) for b in right] for a in left]
    # shared[i][j]: how many sources left[i:] and right[j:] can share.
    shared = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in reversed(range(len(left))):
        for j in reversed(range(len(right))):
            best = max(shared[i + 1][j], shared[i][j + 1])
            shared[i][j] = max(best, 1 + shared[i + 1][j + 1]) if same[i][j] else best
    merged: list[LogicalPlan] = []
    left_places: list[int] = []
    right_places: list[int] = []
    i = j = 0
    while i < len(left) or j < len(right):
        both = i < len(left) and j < len(right)
        take_both = both and same[i][j] and shared[i][j] == 1 + shared[i + 1][j + 1]
        take_left = take_both or (i < len(left) and (not both or shared[i][j] == shared[i + 1][j]))
        if take_left:
            left_places.append(len(merged))
        if take_both or not take_left:
            right_places.append(len(merged))
        merged.append(left[i] if take_left else right[j])
        i += take_left
        j += take_both or not take_left
    return tuple(merged), left_places, right_places
