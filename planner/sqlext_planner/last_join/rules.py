"""The rules about LAST JOIN."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from sqlext_planner.expressions import typed
from sqlext_planner.expressions.nodes import (
    Column,
    Compare,
    Expression,
    Literal,
    NamedExpr,
    conjunction,
    conjuncts,
    is_movable,
    names_collation,
    reads_only,
)
from sqlext_planner.expressions.typed import Arithmetic, Cast, Interval, Operation, Paren, case
from sqlext_planner.last_join.nodes import LastJoin, LastMatch
from sqlext_planner.optimizer.executor import rule
from sqlext_planner.periods.types import TIMES
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project, Scan, filtered


@rule(order="top_down", on=(LastJoin,))
def separate_last_join_differences(node: LogicalPlan) -> LogicalPlan | None:
    """``a.ts - b.ts <= INTERVAL 1 HOUR`` becomes a comparison of a value of a with one of b, which the operator tests.

    ``SELECT * FROM a LAST JOIN b ORDER BY b.ts ON a.k = b.k AND a.ts - b.ts <= INTERVAL 1 HOUR``::

        LastJoin: ORDER BY b.ts ON a.k = b.k         LastJoin: ORDER BY b.ts ON a.k = b.k
          AND a.ts - b.ts <= INTERVAL 1 HOUR   ->      AND CAST(a.ts AS timestamp_ntz) - INTERVAL 1 HOUR
          Scan: a [k, ts]                                <= CAST(b.ts AS timestamp_ntz)
          Scan: b [k, ts]                              Scan: a [k, ts]
                                                       Scan: b [k, ts]

    Otherwise Spark makes every pair of rows of a key. Legal for two times of one type: Spark's difference is that of
    their local times, which TIMESTAMP_NTZ are, without a day of 23 hours.

    Not legal for numbers: Spark's overflow, and a double's rounding, are part of the meaning of ``a.x - b.x <= 5``.
    """
    match node:
        case LastJoin(left, rights, matches):
            found = [_separated(match, left, right) for right, match in zip(rights, matches, strict=True)]
            if any(new is not old for new, old in zip(found, matches, strict=True)):
                return replace(node, matches=tuple(found))
    return None


def _separated(match: LastMatch, left: LogicalPlan, right: LogicalPlan) -> LastMatch:
    old = conjuncts(match.residual)
    new = [_separated_term(term, left, right) for term in old]
    is_same = all(one is other for one, other in zip(new, old, strict=True))
    return match if is_same else replace(match, residual=conjunction(new))


def _separated_term(term: Expression, left: LogicalPlan, right: LogicalPlan) -> Expression:
    for one in (term, term.mirrored) if isinstance(term, Compare) else ():
        match one:
            case Compare("<" | "<=" | ">" | ">=", difference, Interval() as amount):
                difference = difference.operands[0] if isinstance(difference, Paren) else difference
                times = difference.operands if isinstance(difference, Arithmetic) and difference.signs == ("-",) else ()
                kinds = {time.result_type({**left.dtypes, **right.dtypes}) for time in times}
                if len(times) != 2 or len(kinds) > 1 or kinds.isdisjoint(TIMES):
                    continue
                a, b = (typed.cast(time, "timestamp_ntz") for time in times)
                if reads_only(a, left.column_set) and reads_only(b, right.column_set):
                    return replace(one, left=_sum(a, "-", amount), right=b)
                if reads_only(b, left.column_set) and reads_only(a, right.column_set):
                    return replace(one, left=a, right=_sum(b, "+", amount))
    return term


def _sum(time: Cast, sign: str, amount: Interval) -> Arithmetic:
    parts = (replace(time, bare=True), f" {sign} ", replace(amount, bare=True))
    return Arithmetic(parts, signs=(sign,), dtype=time.dtype, span=time.span)


@rule(order="top_down", on=(LastJoin,))
def compute_last_join_operands(node: LogicalPlan) -> LogicalPlan | None:
    """``LastJoin(LastJoin(a, b), c) ON f(a.x) > c.y``: f(a.x) becomes a column of a.

    ``SELECT ... FROM a LAST JOIN b ON a.j = b.j LAST JOIN c ORDER BY c.ts ON a.k = c.k AND c.ts < a.ts - 60``::

        LastJoin: ORDER BY c.ts ON a.k = c.k             Project: a.j, a.k, a.ts, b.j, c.k, c.ts
                  AND c.ts < (a.ts - 60)                   LastJoin: ORDER BY c.ts ON a.k = c.k AND c.ts < (a.ts - 60)
          LastJoin: ON a.j = b.j                   ->        LastJoin: ON a.j = b.j
            Scan: a                                            Project: a.j, a.k, a.ts, a.ts - 60 AS (a.ts - 60)
            Scan: b                                              Scan: a
          Scan: c                                            Scan: b
                                                           Scan: c

    A column computed between two joins sends all that has been joined so far through Spark's rows; computed below it
    costs one column. Legal for a movable operand over the first table's columns alone: a LAST JOIN passes each left
    row on once, unchanged. Operands of the lowest join stay: they are computed where the table is read anyway.
    """
    match node:
        case LastJoin(LastJoin() as inner, rights, matches):
            base = _base(inner)
            operands = {operand: Column("", str(operand)) for found in matches for operand in _operands(found, base)}
            if not operands:
                return None
            moved = tuple(_with(found, operands) for found in matches)
            join = replace(node, left=_above(inner, operands), rights=rights, matches=moved)
            return Project(tuple(NamedExpr(column, column) for column in node.output_columns), join)
    return None


def _base(join: LastJoin) -> LogicalPlan:
    return _base(join.left) if isinstance(join.left, LastJoin) else join.left


def _operands(match: LastMatch, base: LogicalPlan) -> list[Expression]:
    """The operands of keys and comparisons that are computed from columns of `base`."""
    sides = [
        side for term in conjuncts(match.residual) if isinstance(term, Compare) for side in (term.left, term.right)
    ]
    return [
        side
        for side in (*match.left_keys, *sides)
        if not isinstance(side, Column | Literal)
        and reads_only(side, base.output_columns)
        and is_movable(side)
        and not names_collation(side)
    ]


def _with(match: LastMatch, operands: dict[Expression, Column]) -> LastMatch:
    terms = [
        replace(term, left=operands.get(term.left, term.left), right=operands.get(term.right, term.right))
        if isinstance(term, Compare)
        else term
        for term in conjuncts(match.residual)
    ]
    keys = tuple(operands.get(key, key) for key in match.left_keys)
    return replace(match, left_keys=keys, residual=conjunction(terms))


def _above(join: LastJoin, operands: dict[Expression, Column]) -> LastJoin:
    """The chain with the operands computed on its first table."""
    if isinstance(join.left, LastJoin):
        return replace(join, left=_above(join.left, operands))
    known = set(join.left.output_columns)
    items = [NamedExpr(column, column) for column in join.left.output_columns]
    items += [NamedExpr(operand, column) for operand, column in operands.items() if column not in known]
    return replace(join, left=Project(tuple(items), join.left))


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


def _lifted(left: LogicalPlan, right: LogicalPlan, outer: LastMatch) -> _Lifted | None:
    items, chain = tuple(NamedExpr(column, column) for column in right.output_columns), right
    if isinstance(right, Project):
        items, chain = right.items, right.child
    sources = {item.column: item.expression for item in items}
    keys = [sources.get(key) if isinstance(key, Column) else None for key in outer.right_keys]
    kinds = [key.result_type(left.dtypes) for key in outer.left_keys]
    if not keys or any(outer.null_safe) or None in keys or None in kinds or not isinstance(chain, LastJoin):
        return None
    taken = _taken(chain, keys, kinds)
    if taken is None or [key.result_type(right.dtypes) for key in outer.right_keys] != kinds:
        return None
    base, sides = taken
    theirs = {column for side, _ in sides for column in side.output_columns}
    columns = {column: source for column, source in sources.items() if isinstance(source, Column) and source in theirs}
    kept = tuple(item for item in items if item.column not in columns)
    elsewhere = [*(item.expression for item in kept), outer.substitute(sources), *_read_in(base)]
    if any(not theirs.isdisjoint(expression.references) for expression in elsewhere):
        return None
    moved = tuple((side, replace(match, left_keys=outer.left_keys)) for side, match in sides)
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
    match = pairs[place][1]
    sides = [*pairs[:place], (lifted.rest, match), *pairs[place + 1 :], *lifted.sides]
    outputs = [node.left.output_columns, *(side.output_columns for side, _ in sides)]
    if len({column for columns in outputs for column in columns}) < sum(map(len, outputs)):
        return None
    joined = LastJoin(node.left, tuple(s for s, _ in sides), tuple(m for _, m in sides), span=node.span)
    matched = Operation((match.right_keys[0], " IS NOT NULL"), name="is not null", dtype="boolean")
    items = []
    for field in node.output:
        source = lifted.columns.get(field.column)
        value: Expression = field.column
        if source is not None:
            value = replace(case(matched, source), dtype=field.dtype)
        items.append(NamedExpr(value, field.column))
    return Project(tuple(items), joined)


def _read_in(plan: LogicalPlan) -> Iterable[Expression]:
    """What the LAST JOINs of a chain read."""
    while isinstance(plan, LastJoin):
        yield from plan.matches
        plan = plan.left


@rule(order="bottom_up", on=(LastJoin,))
def merge_last_joins(node: LogicalPlan) -> LogicalPlan | None:
    """``LastJoin(LastJoin(a, b), c)`` -> ``LastJoin(a, b, c)`` where both join on the same columns of a.

    ``SELECT * FROM a LAST JOIN b ORDER BY b.ts ON a.k = b.k LAST JOIN c ORDER BY c.ts ON a.k = c.k``::

        LastJoin: ORDER BY c.ts ON a.k = c.k             LastJoin: ORDER BY b.ts ON a.k = b.k,
          LastJoin: ORDER BY b.ts ON a.k = b.k     ->              ORDER BY c.ts ON a.k = c.k
            Scan: a                                        Scan: a
            Scan: b                                        Scan: b
          Scan: c                                          Scan: c

    One exchange of a instead of two. Legal if the left keys are the same expressions, in any order, if the outer match
    reads no column of the inner right sides (then it finds the same row for a row of a with or without b beside it),
    and if the right keys have the same types in both, all known: the keys of one exchange are compared
    as one type. ``<=>`` may be mixed with ``=``; residuals and order keys are each right side's own.

    Joins on other keys in between are skipped, because LAST JOINs that do not read each other's right sides commute;
    a Project above then restores the order of the columns.

    Not legal for ``a LAST JOIN b ON a.k = b.k LAST JOIN c ON b.j = c.j``: c's key is only known once b is joined; nor
    for an int key beside a string key: ``a.k = b.i AND a.k = c.s`` compares a.k as int here and as text there.
    """
    match node:
        case LastJoin(LastJoin() as inner) as outer:
            merged = _into(inner, outer)
            if merged is None or merged.output_columns == outer.output_columns:
                return merged
            return Project(tuple(NamedExpr(column, column) for column in outer.output_columns), merged)
    return None


def _into(inner: LastJoin, outer: LastJoin) -> LastJoin | None:
    """`inner` with the right sides of `outer` added to it, or to the first join of its chain that takes them."""
    theirs = {column for right in inner.rights for column in right.output_columns}
    if any(theirs & match.references for match in outer.matches):
        return None
    ordered = [_in_order_of(inner.matches[0], match) for match in outer.matches]
    types = _key_types(inner.matches[0], inner.rights[0])
    merged = tuple(match for match in ordered if match is not None)
    same = all(_key_types(match, right) == types for match, right in zip(merged, outer.rights, strict=False))
    if len(merged) == len(outer.matches) and None not in types and same:
        rights, matches = inner.rights + outer.rights, inner.matches + merged
        return replace(inner, rights=rights, matches=matches, span=outer.span)
    deeper = _into(inner.left, outer) if isinstance(inner.left, LastJoin) else None
    return None if deeper is None else replace(inner, left=deeper)


def _in_order_of(model: LastMatch, match: LastMatch) -> LastMatch | None:
    """`match` with its equalities in the order of the model's left keys; None if the left keys differ."""
    if match.left_keys == model.left_keys:
        return match
    left = list(enumerate(match.left_keys))
    places: list[int] = []
    for key in model.left_keys:
        found = next((item for item in left if item[1] == key), None)
        if found is None:
            return None
        left.remove(found)
        places.append(found[0])
    if left:
        return None
    return replace(
        match,
        left_keys=model.left_keys,
        right_keys=tuple(match.right_keys[i] for i in places),
        null_safe=tuple(match.null_safe[i] for i in places),
    )


def _key_types(match: LastMatch, right: LogicalPlan) -> tuple[str | None, ...]:
    return tuple(key.result_type(right.dtypes) for key in match.right_keys)


@rule(order="bottom_up", on=(LastJoin, Project))
def pull_project_above_last_join(node: LogicalPlan) -> LogicalPlan | None:
    """``LastJoin(Project(f(x) AS y, w), b)`` -> ``Project(f(x) AS y, LastJoin(w, b))``, w an operator or a table.

    ``SELECT ... FROM (SELECT k, s / 2 AS h FROM (... OVER w ...)) LAST JOIN b ON k = b.k``::

        LastJoin: ON k = b.k                Project: k, s / 2 AS h, b.k
          Project: k, s / 2 AS h      ->      LastJoin: ON k = b.k
            WindowUnion: ...                    WindowUnion: ...
          Scan: b                               Scan: b

    Between two operators a computed column sends the rows through Spark; a plain selection of columns costs nothing:
    the join's exchange then runs the first operator itself. A Project that only reorders is pulled too: it would
    separate two joins that can merge. Above a table it is pulled if what it computes reads no other columns than those
    that it outputs as well: the exchange then reads the files itself, and sends less.

    Legal because a LAST JOIN gives every left row once, so a movable expression is computed for the same rows as
    before; what the join's condition reads must also be a column below. Not legal for an expression of the right
    side: a left row without a match has NULL there, and ``coalesce(b.v, 0)`` computed above would be 0. Not legal for
    rand(), which would be drawn in another order.
    """
    match node:
        case LastJoin(Project(items, child), rights, matches) if child.feeds_exchange or _is_table(child, items):
            mapping = {item.column: item.expression for item in items}
            read = {column for match in matches for column in match.references if column in mapping}
            computed = [item for item in items if not isinstance(item.expression, Column)]
            reorders = {item.expression for item in items} == set(child.output_columns)
            if not (computed or reorders) or not all(is_movable(item.expression) for item in computed):
                return None
            if not all(isinstance(mapping[column], Column) for column in read):
                return None
            moved = tuple(cast(LastMatch, match.substitute(mapping)) for match in matches)
            join = LastJoin(child, rights, moved, span=node.span)
            kept = tuple(NamedExpr(field.column, field.column) for right in rights for field in right.output)
            return Project((*items, *kept), join)
    return None


def _is_table(child: LogicalPlan, items: tuple[NamedExpr, ...]) -> bool:
    """Whether the child is a table, of which `items` output all columns that they read."""
    plain = {item.expression for item in items}
    return isinstance(child, Scan) and not child.is_stream and all(plain >= item.references for item in items)


@rule(order="top_down", on=(LastJoin,))
def push_last_join_condition(node: LogicalPlan) -> LogicalPlan | None:
    """``LastJoin(a, b) ON a.k = b.k AND p(b)`` -> ``LastJoin(a, Filter(p, b)) ON a.k = b.k``.

    ``SELECT * FROM a LAST JOIN b ORDER BY b.ts ON a.k = b.k AND b.ts <= a.ts AND b.v > 3``::

        LastJoin: ORDER BY b.ts ON a.k = b.k             LastJoin: ORDER BY b.ts ON a.k = b.k
                  AND b.ts <= a.ts AND b.v > 3     ->               AND b.ts <= a.ts
          Scan: a [k, ts]                                  Scan: a [k, ts]
          Scan: b [k, ts, v]                               Filter: b.v > 3
                                                             Scan: b [k, ts, v]

    Legal for a movable conjunct over one right side's columns: the condition comes before the choice of the last
    row, so a right row that fails it is never chosen by any left row; the others keep their order.

    Counter-example: a conjunct over the left side stays. ``a LAST JOIN b ON a.v > 0 AND a.k = b.k`` returns the rows
    of a with v <= 0 too, with NULLs.
    """
    match node:
        case LastJoin(rights=rights, matches=matches):
            pairs = [_push(right, found) for right, found in zip(rights, matches, strict=True)]
            if all(new is old for (_, new), old in zip(pairs, matches, strict=True)):
                return None
            return replace(node, rights=tuple(right for right, _ in pairs), matches=tuple(m for _, m in pairs))
    return None


def _push(right: LogicalPlan, match: LastMatch) -> tuple[LogicalPlan, LastMatch]:
    terms = conjuncts(match.residual)
    pushed = [term for term in terms if is_movable(term) and reads_only(term, right.output_columns)]
    if not pushed:
        return right, match
    rest = [term for term in terms if not any(term is other for other in pushed)]
    return filtered(pushed, right), replace(match, residual=conjunction(rest))
