"""Differences of two times in the condition of a LAST JOIN or an ASOF JOIN: ``a.ts - b.ts <= INTERVAL 1 HOUR``."""

from __future__ import annotations

from dataclasses import replace

from sqlext_planner.expressions.nodes import Compare, Expression, conjunction, conjuncts, reads_only
from sqlext_planner.expressions.typed import Arithmetic, Cast, Interval, Paren, cast
from sqlext_planner.last_join.nodes import LastJoin, LastMatch
from sqlext_planner.optimizer.executor import rule
from sqlext_planner.periods.types import TIMES
from sqlext_planner.relational.logical_plan import LogicalPlan


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
                a, b = (cast(time, "timestamp_ntz") for time in times)
                if reads_only(a, left.column_set) and reads_only(b, right.column_set):
                    return replace(one, left=_sum(a, "-", amount), right=b)
                if reads_only(b, left.column_set) and reads_only(a, right.column_set):
                    return replace(one, left=a, right=_sum(b, "+", amount))
    return term


def _sum(time: Cast, sign: str, amount: Interval) -> Arithmetic:
    parts = (replace(time, bare=True), f" {sign} ", replace(amount, bare=True))
    return Arithmetic(parts, signs=(sign,), dtype=time.dtype, span=time.span)
