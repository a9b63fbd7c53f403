"""Columns that nobody reads are not carried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr
from sqlext_planner.expressions.patterns import is_generator
from sqlext_planner.interval_join.nodes import IntervalJoin
from sqlext_planner.last_join.nodes import LastJoin, LastMatch
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Project,
    Scan,
    SetOperation,
    Sort,
    SubqueryAlias,
    Window,
)
from sqlext_planner.relational.plan_patterns import with_fields
from sqlext_planner.umjoin.nodes import UMJoin
from sqlext_planner.window.group_nodes import GroupAggregate
from sqlext_planner.window.nodes import WindowCall, WindowGroup, WindowUnion

Needs = list[tuple[LogicalPlan, Iterable[Column]]]


@rule(order="root")
def prune_columns(root: LogicalPlan) -> LogicalPlan | None:
    """Narrows scans, projections, aggregates, window unions and joins to the columns that the root needs.

    ``SELECT sum(v) OVER w FROM a WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ...)`` with wide tables::

        Project: s                                 Project: s
          WindowUnion: UNION 1 sources ...           WindowUnion: UNION 1 sources ... PAYLOAD []
            Scan: a [k, ts, v, note]          ->       Scan: a [k, ts, v]
            Scan: b [k, ts, v, note]                   Scan: b [k, ts, v]

    A root rule, because a node shared by two parents must keep what either of them reads. It walks once from the root
    to collect what each node's parents read, and once from the leaves to rebuild.

    Legal because a column that no parent reads has no effect, with these cares: nodes that match by position (set
    operations, union sources) lose the same positions on both sides, through a Project where a side gives more; sets
    without ALL, and DISTINCT, compare whole rows and keep every column: ``SELECT count(*) FROM (SELECT DISTINCT a, b
    FROM t)`` needs both; generators stay, since they make rows; a window union without a needed call is its
    source, which has the same rows, and a group aggregate without one is Spark's; a LAST JOIN of which no right
    column is needed is its left side, since every left row comes out exactly once; no node loses its last column,
    except the payload of a window union and of a count of matches.
    """
    order = _parents_first(root)
    needs: dict[int, set[Column]] = {id(node): set() for node in order}
    needs[id(root)].update(root.output_columns)
    for node in order:
        for child, columns in _child_needs(node, needs[id(node)]):
            needs[id(child)].update(columns)
    built: dict[int, LogicalPlan] = {}
    for node in reversed(order):
        built[id(node)] = _narrow(node, needs[id(node)], built)
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


def _child_needs(node: LogicalPlan, needed: set[Column]) -> Needs:
    """What `node` reads from each child, if its parents read `needed`."""
    match node:
        case Project(items, child) | Aggregate(items=items, child=child):
            return [(child, _reads(_kept_items(items, needed)) | _own_reads(node, Aggregate))]
        case Window(items, child):
            kept = [item for item in items if item.column in needed]
            return [(child, (needed - {item.column for item in items}) | _reads(kept))]
        case Filter(child=child) | Sort(child=child):
            return [(child, needed | _reads(node.expressions()))]
        case Join(left, right) | IntervalJoin(left, right):
            columns = needed | _reads(node.expressions())
            return [(side, columns & set(side.output_columns)) for side in (left, right)]
        case UMJoin(inputs):
            columns = needed | _reads(node.expressions())
            return [(item, columns & set(item.output_columns)) for item in inputs]
        case LastJoin(left):
            kept_rights = _kept_rights(node, needed)
            columns = needed | {column for _, found in kept_rights for column in found.references}
            return [(side, columns & set(side.output_columns)) for side in (left, *(right for right, _ in kept_rights))]
        case SubqueryAlias(child=child):
            return [(child, _by_position(node.output_columns, child, needed))]
        case SetOperation(columns=columns, left=left, right=right):
            wanted = set(_set_columns(node, needed))
            return [(side, _by_position(columns, side, wanted)) for side in (left, right)]
        case GroupAggregate(keys=keys, child=child):
            return [(child, _reads((*keys, *_kept_of_group(node, needed))))]
        case WindowUnion(source=source, unions=unions):
            windows = _kept_windows(node, needed)
            if not windows:
                return [(source, needed)]
            wanted = set(_source_columns(node, windows, needed))
            used = {i for window in windows for i in window.sources}
            others = [(unions[i], _by_position(source.output_columns, unions[i], wanted)) for i in sorted(used)]
            return [(source, wanted), *others]
        case _ if len(node.children) == 1 and not isinstance(node, Distinct):
            return [(node.children[0], needed & set(node.children[0].output_columns))]
        case _:
            return [(child, child.output_columns) for child in node.children]


def _narrow(node: LogicalPlan, needed: set[Column], built: dict[int, LogicalPlan]) -> LogicalPlan:
    """`node` over the narrowed children; its output holds at least `needed`, in the old order."""
    match node:
        case Scan(fields=fields):
            return with_fields(node, fields=tuple(f for f in fields if f.column in needed) or fields[:1])
        case Project(items, child) | Aggregate(items=items, child=child):
            return with_fields(node, items=_kept_items(items, needed), child=built[id(child)])
        case Window(items, child):
            kept = tuple(item for item in items if item.column in needed)
            return with_fields(node, items=kept, child=built[id(child)]) if kept else built[id(child)]
        case SubqueryAlias(names=names, child=child):
            name_of = dict(zip(child.output_columns, names, strict=True))
            new = built[id(child)]
            return with_fields(node, names=tuple(name_of[column] for column in new.output_columns), child=new)
        case SetOperation(columns=columns, left=left, right=right):
            wanted = _set_columns(node, needed)
            places = [i for i, column in enumerate(columns) if column in wanted]
            sides = {"left": _exactly(left, places, built), "right": _exactly(right, places, built)}
            return with_fields(node, columns=wanted, **sides)
        case GroupAggregate():
            return _narrow_group_aggregate(node, needed, built)
        case WindowUnion():
            return _narrow_window_union(node, needed, built)
        case IntervalJoin():
            return _narrow_interval_join(node, needed, built)
        case UMJoin(inputs):
            new = with_fields(node, inputs=tuple(built[id(item)] for item in inputs))
            everything = tuple(field.column for field in new.joined)
            payload = tuple(column for column in everything if column in needed) or everything[:1]
            return with_fields(new, payload=None if payload == everything else payload)
        case LastJoin(left):
            kept_rights = _kept_rights(node, needed)
            if not kept_rights:
                return built[id(left)]
            rights = tuple(built[id(right)] for right, _ in kept_rights)
            return with_fields(node, left=built[id(left)], rights=rights, matches=tuple(m for _, m in kept_rights))
        case _:
            return node.map_children(lambda child: built[id(child)])


def _narrow_interval_join(node: IntervalJoin, needed: set[Column], built: dict[int, LogicalPlan]) -> LogicalPlan:
    left, right = built[id(node.left)], built[id(node.right)]
    sides = left.output_columns + (() if node.kind in ("semi", "anti", "count") else right.output_columns)
    kept = tuple(column for column in node.output_columns if column in needed and column != node.count)
    kept = kept or (() if node.count is not None else sides[:1])
    return with_fields(node, left=left, right=right, payload=None if kept == sides else kept)


def _kept_rights(node: LastJoin, needed: set[Column]) -> list[tuple[LogicalPlan, LastMatch]]:
    """The right sides of which any column is needed, with their matches."""
    pairs = zip(node.rights, node.matches, strict=True)
    return [(right, found) for right, found in pairs if needed & set(right.output_columns)]


def _narrow_group_aggregate(node: GroupAggregate, needed: set[Column], built: dict[int, LogicalPlan]) -> LogicalPlan:
    kept = _kept_of_group(node, needed)
    items = tuple(item for item in kept if isinstance(item, NamedExpr))
    calls = tuple(item for item in kept if isinstance(item, WindowCall))
    child = built[id(node.child)]
    if not calls:
        keys = tuple(key.expression for key in node.keys)
        return Aggregate(keys, None, (*node.keys, *items), child, span=node.span)
    return with_fields(node, items=items, calls=calls, child=child)


def _kept_of_group(node: GroupAggregate, needed: set[Column]) -> tuple[NamedExpr | WindowCall, ...]:
    """Spark's aggregates and the calls that are needed; one if nothing would be left."""
    items = tuple(item for item in node.items if item.column in needed)
    calls = tuple(call for call in node.calls if call.column in needed)
    return (*items, *calls) or (() if node.keys else node.calls[:1])


def _narrow_window_union(node: WindowUnion, needed: set[Column], built: dict[int, LogicalPlan]) -> LogicalPlan:
    windows = _kept_windows(node, needed)
    if not windows:
        return built[id(node.source)]
    wanted = set(_source_columns(node, windows, needed))
    places = [i for i, column in enumerate(node.source.output_columns) if column in wanted]
    used = sorted({i for window in windows for i in window.sources})
    source = _exactly(node.source, places, built)
    unions = tuple(_exactly(node.unions[i], places, built) for i in used)
    payload = tuple(field.column for field in node.payload_fields if field.column in needed)
    renumbered = tuple(_with_sources(window, tuple(used.index(i) for i in window.sources)) for window in windows)
    return with_fields(
        node,
        windows=renumbered,
        source=source,
        unions=unions,
        payload=None if payload == source.output_columns else payload,
    )


def _with_sources(window: WindowGroup, sources: tuple[int, ...]) -> WindowGroup:
    return window if window.sources == sources else replace(window, sources=sources)


def _kept_windows(node: WindowUnion, needed: set[Column]) -> tuple[WindowGroup, ...]:
    """The groups with the calls that are needed; groups without any are left out."""
    kept = []
    for window in node.windows:
        calls = tuple(call for call in window.calls if call.column in needed)
        if calls:
            kept.append(window if calls == window.calls else replace(window, calls=calls))
    return tuple(kept)


def _source_columns(node: WindowUnion, windows: Sequence[WindowGroup], needed: set[Column]) -> tuple[Column, ...]:
    """Source columns that are passed through or read by keys, order or calls; one at least."""
    read = _reads(node.partition_by) | {column for w in windows for call in w.calls for column in call.references}
    read |= node.order_by.references if node.order_by is not None else frozenset()
    read |= {field.column for field in node.payload_fields if field.column in needed}
    read |= {node.tie_order} if node.tie_order is not None else set()
    columns = node.source.output_columns
    return tuple(column for column in columns if column in read) or columns[:1]


def _kept_items(items: tuple[NamedExpr, ...], needed: set[Column]) -> tuple[NamedExpr, ...]:
    return tuple(item for item in items if item.column in needed or is_generator(item.expression)) or items[:1]


def _set_columns(node: SetOperation, needed: set[Column]) -> tuple[Column, ...]:
    """The columns a set operation keeps: only UNION ALL does not compare rows."""
    if node.kind != "union" or not node.all:
        return node.columns
    return tuple(column for column in node.columns if column in needed) or node.columns[:1]


def _own_reads(node: LogicalPlan, kind: type[Aggregate]) -> set[Column]:
    return _reads(node.keys) if isinstance(node, kind) else set()


def _reads(expressions: Iterable[Expression]) -> set[Column]:
    return {column for item in expressions for column in item.references}


def _by_position(columns: Sequence[Column], child: LogicalPlan, wanted: set[Column]) -> set[Column]:
    """The child's columns at the places where `columns` has wanted ones; a child may be narrower."""
    return {theirs for ours, theirs in zip(columns, child.output_columns, strict=False) if ours in wanted}


def _exactly(child: LogicalPlan, places: Sequence[int], built: dict[int, LogicalPlan]) -> LogicalPlan:
    """The narrowed child with exactly the columns that it had at `places`."""
    width = len(child.output_columns)
    columns = tuple(child.output_columns[i] for i in places if i < width)
    new = built[id(child)]
    return new if new.output_columns == columns else Project(tuple(NamedExpr(c, c) for c in columns), new)
