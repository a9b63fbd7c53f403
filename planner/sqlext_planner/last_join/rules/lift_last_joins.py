"""LAST JOINs inside the right side of a LAST JOIN, on the key of that right side, become right sides beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr, SparkExpr
from sqlext_planner.expressions.typed import case
from sqlext_planner.last_join.nodes import LastJoin, LastMatch
from sqlext_planner.optimizer.rule import rule
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project

_Side = tuple[LogicalPlan, LastMatch]


@rule(order="bottom_up", on=(LastJoin,))
def lift_last_joins(node: LogicalPlan) -> LogicalPlan | None:
    """``LastJoin(a, LastJoin(b, c) ON b.k = c.k) ON a.k = b.k`` -> ``LastJoin(a, b, c)``, c's columns where b matched.

    ``SELECT * FROM a LAST JOIN (SELECT b.k, b.v, c.w FROM b LAST JOIN c ON b.k = c.k) d ON a.k = d.k``::

        LastJoin: ON a.k = d.k              Project: a.k, d.k, d.v, CASE WHEN d.k IS NOT NULL THEN c.w END
          Scan: a [k]                         LastJoin: ON a.k = d.k, ON a.k = c.k
          Project: b.k, b.v, c.w      ->        Scan: a [k]
            LastJoin: ON b.k = c.k              Project: b.k, b.v
              Scan: b [k, v]                      Scan: b [k, v]
              Scan: c [k, w]                    Scan: c [k, w]

    One exchange of all sides instead of two, the second of which had the columns of c once for each row of b. Scripts
    for features are written so: each group of features is a subquery that joins the table of requests to itself by
    its id.

    Legal because a LAST JOIN leaves the rows of b as they are, so that a row of a finds the same row of b without c
    beside it, and with it c's row, which depends on the key alone. Hence the conditions: all keys are compared by ``=``
    (so that a key of b that is NULL means that b has no match) and have one type in a, b and c (so that equality is
    transitive; an int beside a string compares as numbers here and as text there); the lifted match has no other
    condition; and nothing but the selection above reads the columns of c.

    Not legal for ``LAST JOIN c ON b.j = c.j``: j is only known once b is joined. Nor for an expression over the columns
    of c, ``coalesce(c.w, 0)``: it is NULL, not 0, for a row of a without a match in b.
    """
    match node:
        case LastJoin(left, rights, matches, None):
            pairs = list(zip(rights, matches, strict=True))
            for place, (right, found) in enumerate(pairs):
                lifted = _lifted(left, right, found)
                if lifted is not None:
                    return _rebuilt(node, pairs, place, lifted)
    return None


@dataclass(frozen=True)
class _Lifted:
    """What is left of a right side, the sides that came out of it, and which of its columns were theirs."""

    rest: LogicalPlan
    sides: tuple[_Side, ...]
    columns: Mapping[Column, Column]


def _lifted(left: LogicalPlan, right: LogicalPlan, found: LastMatch) -> _Lifted | None:
    items, chain = (right.items, right.child) if isinstance(right, Project) else (_itself(right), right)
    sources = {item.column: item.expression for item in items}
    keys = [sources.get(key) if isinstance(key, Column) else None for key in found.right_keys]
    kinds = [key.result_type(left.dtypes) for key in found.left_keys]
    if not keys or any(found.null_safe) or None in keys or None in kinds or not isinstance(chain, LastJoin):
        return None
    taken = _taken(chain, keys, kinds)
    if taken is None or [key.result_type(right.dtypes) for key in found.right_keys] != kinds:
        return None
    base, sides = taken
    theirs = {column for side, _ in sides for column in side.output_columns}
    columns = {column: source for column, source in sources.items() if isinstance(source, Column) and source in theirs}
    kept = tuple(item for item in items if item.column not in columns)
    elsewhere = [*(item.expression for item in kept), found.substitute(sources), *_read_in(base)]
    if any(not theirs.isdisjoint(expression.references) for expression in elsewhere):
        return None
    moved = tuple((side, replace(match, left_keys=found.left_keys)) for side, match in sides)
    return _Lifted(Project(kept, base), moved, columns)


def _taken(
    chain: LastJoin, keys: list[Expression | None], kinds: list[str | None]
) -> tuple[LogicalPlan, tuple[_Side, ...]] | None:
    """A chain of LAST JOINs without the first node in it that joins on `keys` alone, and that node's sides, with their
    equalities in the order of `keys`; None if there is none."""
    sides = [
        (side, _by_keys(side, match, keys, kinds)) for side, match in zip(chain.rights, chain.matches, strict=True)
    ]
    ordered = tuple((side, match) for side, match in sides if match is not None)
    if chain.partitioner is None and len(ordered) == len(sides):
        return chain.left, ordered
    if not isinstance(chain.left, LastJoin):
        return None
    deeper = _taken(chain.left, keys, kinds)
    return None if deeper is None else (replace(chain, left=deeper[0]), deeper[1])


def _by_keys(
    side: LogicalPlan, match: LastMatch, keys: list[Expression | None], kinds: list[str | None]
) -> LastMatch | None:
    if match.residual is not None or any(match.null_safe) or len(match.left_keys) != len(keys):
        return None
    places = [match.left_keys.index(key) if key in match.left_keys else None for key in keys if key is not None]
    found = [place for place in places if place is not None]
    if sorted(found) != list(range(len(keys))):
        return None
    theirs = tuple(match.right_keys[place] for place in found)
    if [key.result_type(side.dtypes) for key in theirs] != kinds:
        return None
    return replace(match, right_keys=theirs)


def _rebuilt(node: LastJoin, pairs: list[_Side], place: int, lifted: _Lifted) -> LogicalPlan | None:
    found = pairs[place][1]
    sides = [*pairs[:place], (lifted.rest, found), *pairs[place + 1 :], *lifted.sides]
    outputs = [node.left.output_columns, *(side.output_columns for side, _ in sides)]
    if len({column for columns in outputs for column in columns}) < sum(map(len, outputs)):
        return None
    joined = LastJoin(node.left, tuple(s for s, _ in sides), tuple(m for _, m in sides), span=node.span)
    matched = SparkExpr.of(found.right_keys[0], " IS NOT NULL", dtype="boolean")
    items = []
    for field in node.output:
        source = lifted.columns.get(field.column)
        value: Expression = field.column
        if source is not None:
            value = replace(case(matched, source), dtype=field.dtype)
        items.append(NamedExpr(value, field.column))
    return Project(tuple(items), joined)


def _itself(plan: LogicalPlan) -> tuple[NamedExpr, ...]:
    return tuple(NamedExpr(column, column) for column in plan.output_columns)


def _read_in(plan: LogicalPlan) -> Iterable[Expression]:
    """What the LAST JOINs of a chain read."""
    while isinstance(plan, LastJoin):
        yield from plan.matches
        plan = plan.left
