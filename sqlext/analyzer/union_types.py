"""The types of a window's columns: those that Spark's UNION of FROM and the sources would have.

``views WINDOW w AS (UNION orders ...)`` where `k` is an int in `views` and a bigint in `orders`: the window reads `k`
as a bigint. FROM gets one more column for each of its columns that is cast, so that the result keeps FROM's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sqlext_planner.errors import AnalysisError
from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr
from sqlext_planner.expressions.typed import cast
from sqlext_planner.expressions.types import union_type
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Project
from sqlglot import exp

from sqlext.analyzer.context import Context
from sqlext.analyzer.scope import Scope, Visible
from sqlext.syntax.spans import span_of

#: A column of FROM and the one of a source that has its place.
Pair = tuple[Visible, Visible]


@dataclass
class CommonTypes:
    """FROM's columns in the types of a block's windows."""

    context: Context
    _cast: dict[tuple[Column, str], Visible] = field(default_factory=dict)

    def scope(self, scope: Scope, pairs: Iterable[Pair]) -> Scope:
        """FROM as a window sees it whose sources have these columns. OpenMLDB has no such casts."""
        wanted: dict[Column, str] = {}
        for mine, theirs in pairs if not self.context.openmldb else ():
            known = wanted.get(mine.column, mine.dtype)
            if known is not None and theirs.dtype is not None:
                wanted[mine.column] = union_type(known, theirs.dtype, ansi=self.context.settings.ansi) or known
        return replace(scope, columns=tuple(self._as(item, wanted.get(item.column)) for item in scope.columns))

    def _as(self, item: Visible, dtype: str | None) -> Visible:
        if dtype is None or dtype == item.dtype:
            return item
        key = (item.column, dtype)
        if key not in self._cast:
            column = Column(self.context.names.unique("union"), item.column.name)
            self._cast[key] = replace(item, column=column, dtype=dtype)
        return replace(item, column=self._cast[key].column, dtype=dtype)

    def with_casts(self, plan: LogicalPlan) -> LogicalPlan:
        """FROM with the columns that windows read in another type."""
        if not self._cast:
            return plan
        kept = (NamedExpr(column, column) for column in plan.output_columns)
        more = (NamedExpr(cast(column, dtype), item.column) for (column, dtype), item in self._cast.items())
        return Project((*kept, *more), plan)


def as_wanted(context: Context, mine: Visible, theirs: Visible, node: exp.Expr, shown: str) -> Expression:
    """A source's column in the type of FROM's. Raises AnalysisError if the two have no common type."""
    if mine.dtype is None or theirs.dtype is None or mine.dtype == theirs.dtype:
        return theirs.column
    if context.openmldb or union_type(mine.dtype, theirs.dtype, ansi=context.settings.ansi) != mine.dtype:
        raise AnalysisError(
            f"column '{mine.name}' of UNION source {shown} has type {theirs.dtype}, in FROM {mine.dtype}",
            condition="union-columns",
            span=span_of(node),
            help=f"cast it in a subquery: CAST({theirs.name} AS {mine.dtype}) AS {mine.name}",
        )
    return cast(theirs.column, mine.dtype)
