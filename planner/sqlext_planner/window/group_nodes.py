"""GROUP BY with functions that only the window table has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from sqlext_planner.errors import InternalError
from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr
from sqlext_planner.expressions.patterns import is_exact, is_movable, reads_only
from sqlext_planner.relational.logical_plan import (
    Built,
    Field,
    LogicalPlan,
    Needs,
    Passed,
    comma,
    reads,
    with_fields,
)
from sqlext_planner.relational.nodes import Aggregate, filtered
from sqlext_planner.window.nodes import WindowCall


@dataclass(frozen=True)
class GroupAggregate(LogicalPlan):
    """One row for each group: its keys, Spark's aggregates, and functions of the window table over all its rows.

    ``SELECT k, sum_cate(v, c), max(v) FROM t GROUP BY k`` is ``GroupAggregate([k], [max(v)], [sum_cate(v, c)], t)``.
    Groups are Spark's: NULL keys are one group, all NaNs are one, -0.0 is 0.0. `items` hold only Spark's aggregate
    functions; without keys there is one group, even over no rows. Rows of a group are in input order; the last one is
    the newest.
    """

    is_extension = True
    feeds_exchange = True
    operator_name = "a grouped sqlext aggregate"

    keys: tuple[NamedExpr, ...]
    items: tuple[NamedExpr, ...]
    calls: tuple[WindowCall, ...]
    child: LogicalPlan

    def child_needs(self, needed: Set[Column]) -> Needs:
        return [(self.child, reads((*self.keys, *self._kept(needed))))]

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        kept = self._kept(needed)
        items = tuple(item for item in kept if isinstance(item, NamedExpr))
        calls = tuple(item for item in kept if isinstance(item, WindowCall))
        child = built(self.child)
        if not calls:
            keys = tuple(key.expression for key in self.keys)
            return Aggregate(keys, None, (*self.keys, *items), child, span=self.span)
        return with_fields(self, items=items, calls=calls, child=child)

    def filtered_below(self, terms: Sequence[Expression]) -> Passed | None:
        """Terms over keys that are movable themselves: they drop whole groups, and the rows of one group have no part
        in another. ``SELECT k, sum_cate(v, c) FROM t GROUP BY k HAVING k > 5`` filters t.

        Keys must be of a type whose equal values are the same value: with a double key, 0.0 and -0.0 are one group, and
        ``1 / k > 0`` would split it. (Catalyst takes care of Spark's own aggregates.) Not legal for other columns:
        ``HAVING count_where(v, c) > 5`` is about the group. Nor without keys: ``SELECT sum_cate(v, c) FROM t HAVING
        false`` has no row, while the aggregate over no rows has one; so a term must read a key.
        """
        known = self.dtypes
        movable = {
            key.column: key.expression
            for key in self.keys
            if is_exact(known.get(key.column)) and is_movable(key.expression)
        }
        passed = [term for term in terms if reads_only(term, movable)]
        if not passed:
            return None
        return with_fields(self, child=filtered([term.substitute(movable) for term in passed], self.child)), passed

    def _kept(self, needed: Set[Column]) -> tuple[NamedExpr | WindowCall, ...]:
        """Spark's aggregates and the calls that are needed; at least one."""
        items = tuple(item for item in self.items if item.column in needed)
        calls = tuple(call for call in self.calls if call.column in needed)
        return (*items, *calls) or (() if self.keys else self.calls[:1])

    def __post_init__(self) -> None:
        if not self.calls:
            raise InternalError("a group aggregate without a call is Spark's own Aggregate")
        self.check_unique_output()

    @cached_property
    def output(self) -> tuple[Field, ...]:
        known = self.child.dtypes
        named = (*self.keys, *self.items)
        fields = tuple(Field(item.column, item.expression.result_type(known)) for item in named)
        return fields + tuple(Field(call.column, call.dtype) for call in self.calls)

    def expressions(self) -> Iterator[Expression]:
        yield from self.keys
        yield from self.items
        yield from self.calls

    def label(self) -> str:
        return f"GroupAggregate: [{comma(self.keys)}] {comma((*self.items, *self.calls))}"
