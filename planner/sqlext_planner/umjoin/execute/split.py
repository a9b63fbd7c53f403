"""Which part of a multi-way join our operator computes, and what plain Spark does around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlext_planner.errors import InternalError, UnsupportedError
from sqlext_planner.expressions.nodes import Column, Expression, conjunction, conjuncts, is_movable, reads_only
from sqlext_planner.expressions.types import to_arrow
from sqlext_planner.relational.logical_plan import Field, LogicalPlan, relation_name
from sqlext_planner.relational.nodes import Aggregate, Filter, Project, SubqueryAlias
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.relational.spark_exec import filtered_by_spark
from sqlext_planner.umjoin.execute.cascade import with_columns, with_members
from sqlext_planner.umjoin.execute.execution import Routing, UMJoinExec
from sqlext_planner.umjoin.nodes import KeyLayout, MemberKind, UMJoin, UMJoinGroup, class_type, equality, linked


@dataclass(frozen=True)
class UMJoinSplit:
    """The parts of a multi-way join, by input: `filters` are the terms over it alone, `ours` says whether the operator
    joins it. `condition` and `matches` are the equalities that the operator joins on, for its own inputs.

    The rest runs above the operator: `members` are the numbers of the inputs that Spark joins there, with their
    whole matches, `residual` the terms over several inputs.

    The operator joins all inner inputs. It joins a left, semi or anti input if its match is equalities of its columns
    with those of inner inputs, and terms over itself alone. Rows with a NULL key never reach the operator's result, so
    those columns of a left or anti input's match must not be NULL in any joined row: they are also compared with
    another inner input's column or with a semi input's. Not ours::

        SELECT * FROM a JOIN b ON a.x = b.x LEFT JOIN d ON d.k = a.z        -- rows whose a.z is NULL stay

    Legal for every kind: joins with left, semi and anti inputs whose matches read only inner columns commute with one
    another and with inner joins, because each of them looks at one row of the inner inputs' join at a time. The same
    holds for rows that stand for several (`UMJoin.count`): they agree in all columns that are read above.
    """

    filters: tuple[Expression | None, ...]
    ours: tuple[bool, ...]
    condition: Expression | None
    matches: tuple[Expression | None, ...]
    members: tuple[int, ...]
    residual: tuple[Expression, ...]
    layout: KeyLayout

    @classmethod
    def of(cls, node: UMJoin) -> UMJoinSplit:
        """The parts of a node."""
        columns = [frozenset(child.output_columns) for child in node.inputs]
        inner = {
            column: i
            for i, kind in enumerate(node.kinds)
            if kind == "inner"
            for column in node.inputs[i].output_columns
        }
        filters: list[list[Expression]] = [[] for _ in columns]
        keys, residual = [], []
        for term in conjuncts(node.condition):
            pair = equality(term)
            only = {inner.get(column) for column in term.references}
            if pair is not None and None not in only and len(only) == 2:
                keys.append(term)
            elif len(only) == 1 and (place := only.pop()) is not None:
                filters[place].append(term)
            else:
                residual.append(term)
        matched = _our_matches(node, columns, inner, keys)
        ours = tuple(kind == "inner" or i in matched for i, kind in enumerate(node.kinds))
        for i, (_, alone) in matched.items():
            filters[i] += alone
        condition = conjunction(keys)
        places = [i for i, is_ours in enumerate(ours) if is_ours]
        matches = tuple(conjunction(matched[i][0]) if i in matched else None for i in places)
        layout = KeyLayout.of(
            [node.inputs[i].output_columns for i in places], [node.kinds[i] for i in places], condition, matches
        )
        members = tuple(i for i, is_ours in enumerate(ours) if not is_ours)
        return cls(tuple(map(conjunction, filters)), ours, condition, matches, members, tuple(residual), layout)

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The numbers of the operator's inputs, in the order of `matches` and `layout`."""
        return tuple(i for i, is_ours in enumerate(self.ours) if is_ours)


def _our_matches(
    node: UMJoin, columns: Sequence[frozenset[Column]], inner: dict[Column, int], keys: Iterable[Expression]
) -> dict[int, tuple[list[Expression], list[Expression]]]:
    """For each input whose match the operator can test: its equalities, and the terms over the input alone."""
    bound = {column for term in keys for column in term.references}
    matched = {}
    members = [i for i, kind in enumerate(node.kinds) if kind != "inner"]
    # Semi inputs first: they drop the rows in which their columns are NULL.
    for i in sorted(members, key=lambda i: node.kinds[i] != "semi"):
        alone = [term for term in conjuncts(node.matches[i]) if reads_only(term, columns[i])]
        links = [term for term in conjuncts(node.matches[i]) if not reads_only(term, columns[i])]
        theirs = [linked(term, inner, columns[i]) for term in links]
        known = [pair[0] for pair in theirs if pair is not None]
        if not known or len(known) < len(theirs):
            continue
        if node.kinds[i] == "semi":
            bound.update(known)
        elif not bound.issuperset(known):
            continue
        matched[i] = links, alone
    return matched


def ineligible(node: UMJoin) -> str | None:
    """Why our operator cannot compute a multi-way join, for EXPLAIN and for whoever asks for it with a hint; None if it
    can. Inputs without a key have one row: such an input goes to every cell, and multiplies the rows of all of them.

    Types are checked as far as the plan knows them: `UMJoinExec` joins by cascade if the real ones do not fit.
    """
    return next(_obstacles(node), None)


def _obstacles(node: UMJoin) -> Iterator[str]:
    for condition in (node.condition, *node.matches):
        yield from (f"only Spark can evaluate {term}" for term in conjuncts(condition) if not is_movable(term))
    split = UMJoinSplit.of(node)
    layout = split.layout
    if layout.count == 0:
        yield "no two of its inputs are joined on equal columns"
    for i, classes in zip(split.places, layout.classes, strict=True):
        if not classes and not _is_single_row(node.inputs[i]):
            yield f"no column of {relation_name(node.inputs[i])} must be equal to another input's"
    yield from _type_obstacles(node, layout)


def _is_single_row(plan: LogicalPlan) -> bool:
    """Whether a plan has at most one row: an aggregate over everything, like scalar subqueries."""
    while isinstance(plan, (Project, Filter, SubqueryAlias)):
        plan = plan.child
    return isinstance(plan, Aggregate) and not plan.keys and plan.grouping_sets is None


def _type_obstacles(node: UMJoin, layout: KeyLayout) -> Iterator[str]:
    known = {column: kind for child in node.inputs for column, kind in child.dtypes.items() if kind is not None}
    for number, name in enumerate(layout.names):
        edges = [(a, b) for n, a, b in layout.edges if n == number and a in known and b in known]
        if edges and class_type((known[a], known[b]) for a, b in edges) is None:
            kinds = ", ".join(dict.fromkeys(known[column] for edge in edges for column in edge))
            yield f"the operator has no common type for the keys {name} ({kinds})"
    for item in node.output:
        if item.dtype is not None and not _is_handed_on(item.dtype):
            yield f"{item.column} has the type {item.dtype}, which Spark cannot pass to an operator"


def _is_handed_on(dtype: str) -> bool:
    """Whether values of a Spark type travel to Python and back; year-month intervals travel as months."""
    if dtype.startswith(("interval year", "interval month")) or "collate" in dtype.lower():
        return True
    try:
        to_arrow(dtype)
    except UnsupportedError:
        return False
    return True


def operator_plan(
    node: UMJoin,
    inputs: Sequence[PhysicalPlan],
    routing: Routing,
    facts: Mapping[str, Any] | None = None,
    mark: Callable[[PhysicalPlan], PhysicalPlan] = lambda child: child,
    make: Callable[..., UMJoinExec] = UMJoinExec,
) -> PhysicalPlan:
    """The physical plan of a multi-way join with our operator in it; `node` is not `ineligible`.

    `inputs` are the plans of the node's inputs, `mark` is applied to those that the operator's exchange reads. `make`
    makes the operator's node, which gets the `facts` of the choice (why, rivals). Raises InternalError for a routing
    that the keys do not allow.
    """
    split = UMJoinSplit.of(node)
    below = [filtered_by_spark(condition, child) for child, condition in zip(inputs, split.filters, strict=True)]
    kinds = tuple(node.kinds[i] for i in split.places)
    core = make(
        inputs=tuple(mark(below[i]) for i in split.places),
        kinds=kinds,
        condition=split.condition,
        matches=split.matches,
        fields=_core_fields(node, split, kinds),
        count=node.count,
        routing=routing,
        group=UMJoinGroup.of(node),
        **(facts or {}),
    )
    plan = with_members(core, [(inputs[i], node.kinds[i], node.matches[i]) for i in split.members])
    return with_columns(filtered_by_spark(conjunction(split.residual), plan), node)


def _core_fields(node: UMJoin, split: UMJoinSplit, kinds: Sequence[MemberKind]) -> tuple[Field, ...]:
    """The columns that are wanted or read above the operator; its first key if there are none and nothing counts."""
    read = {column for term in split.residual for column in term.references}
    for i in split.members:
        match = node.matches[i]
        read |= frozenset() if match is None else match.references
    wanted = read | {item.column for item in node.output}
    pairs = zip(split.places, kinds, strict=True)
    given = [item for i, kind in pairs if kind in ("inner", "left") for item in node.inputs[i].output]
    kept = tuple(item for item in given if item.column in wanted)
    if node.count is not None:
        return (*kept, Field(node.count, "bigint"))
    if kept:
        return kept
    if not split.layout.edges:
        raise InternalError("a multi-way join without keys is no operator's")
    return tuple(item for item in given if item.column == split.layout.edges[0][1])
