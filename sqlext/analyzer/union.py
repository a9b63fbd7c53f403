"""One of our window definitions as WindowUnion nodes: its sources, its frame, its calls level by level.

The sources of a block's windows, and UNION ... BY NAME, whose sources' columns are found by name, in any order.

``views WINDOW w AS (UNION orders BY NAME PARTITION BY user_id ORDER BY ts ...)``: a column that only `views` has is
NULL in the rows of `orders`. A column that only `orders` has (an *extra*) is NULL in the rows of `views`, and calls
over the window may read it: ``sum(price) OVER w``. FROM gets the extras of all windows of its block once, behind its
own columns.

The types of a window's columns: those that Spark's UNION of FROM and the sources would have.

``views WINDOW w AS (UNION orders ...)`` where `k` is an int in `views` and a bigint in `orders`: the window reads `k`
as a bigint. FROM gets one more column for each of its columns that is cast, so that the result keeps FROM's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial

from sqlext_planner.errors import AnalysisError
from sqlext_planner.expressions.nodes import Column, Expression, Literal, NamedExpr
from sqlext_planner.expressions.typed import NULL, cast
from sqlext_planner.expressions.types import union_type
from sqlext_planner.relational.logical_plan import LogicalPlan, reads
from sqlext_planner.relational.nodes import Project
from sqlext_planner.window.nodes import WindowCall, WindowGroup, WindowUnion
from sqlglot import exp

from sqlext.analyzer import definitions, hints, relations
from sqlext.analyzer.context import ComputedNames, Context, Env, Relation, Scope, Visible
from sqlext.analyzer.definitions import Definition
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.syntax.nodes import UnionWindow
from sqlext.syntax.spans import mistake, span_of

_wrong_columns = partial(mistake, "union-columns")

#: A call with its modifiers, its column, and whether it is a whole select item.
Call = tuple[exp.Expr, Column, bool]


@dataclass(frozen=True)
class WindowPlan:
    """What is needed to plan one definition. `scope` is FROM in the types of its UNION."""

    context: Context
    env: Env
    scope: Scope
    names: ComputedNames
    definition: Definition
    named: UnionSources
    tie_order: Column | None = None

    @property
    def call_scope(self) -> Scope:
        """What the arguments of calls see."""
        return self.named.call_scope(self.definition.node, self.scope)


def window_union(window_plan: WindowPlan, made: Sequence[WindowCall], source: LogicalPlan) -> WindowUnion:
    """The node for plain calls. Raises AnalysisError for a definition that is not allowed."""
    context, node = window_plan.context, window_plan.definition.node
    builder = key_builder(context, window_plan.scope, window_plan.env)
    keys = definitions.partition_keys(node, builder)
    order, order_dtype = definitions.order_key(node, builder)
    further = definitions.further_keys(node, builder)
    frame = definitions.window_frame(context, node, order_dtype)
    needed = reads((*keys, *further, *(() if order is None else (order,))))
    unions = tuple(_source(window_plan, item, needed) for item in node.args.get("union") or [])
    if unions:
        source = _in_star_order((*window_plan.scope.star(), *window_plan.named.extras), source)
    group = WindowGroup(window_plan.definition.name, frame, tuple(range(len(unions))), tuple(made), span=span_of(node))
    block = node.find_ancestor(exp.Select)
    partitioner = hints.partitioner(block) if block is not None and block.args.get("hint") else None
    return WindowUnion(
        keys,
        order,
        (group,),
        source,
        unions,
        tie_order=window_plan.tie_order,
        partitioner=partitioner,
        further=further,
        span=span_of(node),
    )


def key_builder(context: Context, scope: Scope, env: Env) -> ExpressionBuilder:
    """A builder of partition and order keys: in OpenMLDB mode their bare names mean the left table of LAST JOINs."""
    return ExpressionBuilder(context, scope.left_first() if context.openmldb else scope, env)


def _in_star_order(columns: Sequence[Visible], source: LogicalPlan) -> LogicalPlan:
    """The source with the columns of ``*`` first, to which union rows correspond by position (USING reorders them)."""
    first = tuple(item.column for item in columns)
    if source.output_columns[: len(first)] == first:
        return source
    rest = tuple(column for column in source.output_columns if column not in set(first))
    return Project(tuple(NamedExpr(column, column) for column in (*first, *rest)), source)


def _source(window_plan: WindowPlan, node: exp.Expr, needed: Set[Column]) -> LogicalPlan:
    """A UNION source with the columns of FROM (docs/reference/windows.md, section 2): found by their names
    (`UnionSources.pairs`), or the same ones in the same order, or those of the part of FROM before a LAST JOIN. Its
    rows have NULL in the columns that it lacks."""
    if is_by_name(window_plan.definition.node):
        return window_plan.named.arranged(node, window_plan.scope, needed)
    context = window_plan.context
    plan, scope = window_plan.named.relation(node)
    ours = window_plan.scope.star()
    theirs = scope.star()
    shown = label(context, node)
    if len(ours) != len(theirs) and len(theirs) not in window_plan.scope.prefixes:
        widths = " or ".join(map(str, (*window_plan.scope.prefixes, len(ours))))
        raise _wrong_columns(
            node,
            f"UNION source {shown} has {len(theirs)} columns, FROM has {widths}",
            "select the same columns in the same order: UNION (SELECT ... FROM ...), or write BY NAME behind it",
            notes=(f"FROM has the columns {', '.join(item.name for item in ours)}",),
        )
    values: list[Expression] = []
    for position, (mine, other) in enumerate(zip(ours, theirs, strict=False), 1):
        if scope.fold(mine.name) != scope.fold(other.name):
            raise _wrong_columns(
                node,
                f"column {position} of UNION source {shown} is called '{other.name}', in FROM '{mine.name}'",
                f"rename it in a subquery: UNION (SELECT ..., {other.name} AS {mine.name}, ... FROM ...), or "
                "write BY NAME behind the source if its columns only have another order",
            )
        values.append(as_wanted(context, mine, other, node, shown))
    if all(value is other.column for value, other in zip(values, theirs, strict=True)):
        return plan
    renamed = {item.column.relation: context.names.unique("union") for item in theirs}
    columns = (Column(renamed[item.column.relation], item.column.name) for item in theirs)
    return Project(tuple(map(NamedExpr, values, columns)), plan, span=span_of(node))


@dataclass
class UnionSources:
    """The sources of a block's windows, and the columns that those BY NAME add to FROM, in order of appearance."""

    context: Context
    env: Env
    scope: Scope
    names: ComputedNames
    extras: list[Visible] = field(default_factory=list)
    _found: dict[int, Relation] = field(default_factory=dict)

    def collect(self, window: exp.Window) -> None:
        """Take in a definition's sources. Raises AnalysisError for an extra whose type is not known, or that has no
        common type in all sources."""
        known = {self.scope.fold(item.name) for item in self.scope.star()}
        for node in window.args.get("union") or []:
            relation = self._found[id(node)] = relations.relation(self.context, node, self.env)
            for item in relation[1].star() if is_by_name(window) else ():
                if self.scope.fold(item.name) not in known:
                    self._add(item, node)

    def relation(self, node: exp.Expr) -> Relation:
        """The plan and the columns of a source."""
        return self._found[id(node)]

    def pairs(self, window: exp.Window) -> Iterator[tuple[Visible, Visible]]:
        """FROM's columns with those of a definition's sources that have their places, or their names."""
        for node in window.args.get("union") or []:
            theirs = self._found[id(node)][1]
            if not is_by_name(window):
                yield from zip(self.scope.star(), theirs.star(), strict=False)
                continue
            for mine in self._targets(self.scope, theirs, node):
                found = self._source_of(mine, theirs, node)
                if found is not None:
                    yield mine, found

    def _add(self, item: Visible, node: exp.Expr) -> None:
        if item.dtype is None:
            raise _wrong_columns(
                node,
                f"the type of column '{item.name}' is not known here, and FROM has no such column",
                f"write the type in a subquery: UNION (SELECT ..., CAST(... AS type) AS {item.name} FROM ...) "
                "BY NAME, or leave the column out",
            )
        folded = self.scope.fold(item.name)
        other = next((extra for extra in self.extras if self.scope.fold(extra.name) == folded), None)
        if other is None:
            self.extras.append(Visible((), item.name, self.names.column(item.name), item.dtype))
            return
        dtype = union_type(str(other.dtype), item.dtype, ansi=self.context.settings.ansi)
        if dtype is None:
            raise _wrong_columns(
                node,
                f"column '{item.name}' has type {item.dtype} here and {other.dtype} in another source BY NAME",
                f"cast it in a subquery: CAST({item.name} AS {other.dtype}) AS {item.name}",
            )
        self.extras[self.extras.index(other)] = replace(other, dtype=dtype)

    def with_extras(self, plan: LogicalPlan) -> LogicalPlan:
        """FROM with NULL in the extras."""
        if not self.extras:
            return plan
        kept = (NamedExpr(column, column) for column in plan.output_columns)
        nulls = (NamedExpr(cast(NULL, item.dtype or ""), item.column) for item in self.extras)
        return Project((*kept, *nulls), plan)

    def call_scope(self, window: exp.Window, scope: Scope) -> Scope:
        """What the arguments of calls over a definition see: FROM's columns, and the extras if it is BY NAME."""
        if not (is_by_name(window) and self.extras):
            return scope
        return replace(scope, columns=(*scope.columns, *self.extras))

    def arranged(self, node: exp.Expr, scope: Scope, needed: Set[Column]) -> LogicalPlan:
        """A source with FROM's columns and the extras in their order, NULL where it has none of the name.

        `scope` is FROM as the window sees it; `needed` are the columns of FROM that the window is partitioned and
        ordered by. Raises AnalysisError if the source lacks one of these, for a name that stands for two columns, and
        for columns without a common type.
        """
        plan, theirs = self._found[id(node)]
        sources = {
            item.column: self._source_of(item, theirs, node)
            for item in (*self._targets(scope, theirs, node), *self.extras)
        }
        # FROM may have one name in two relations.
        ours = dict.fromkeys(mine.column.relation for mine in (*scope.star(), *self.extras))
        renamed = {relation: self.context.names.unique("by_name") for relation in ours}
        items: list[NamedExpr] = []
        for mine in (*scope.star(), *self.extras):
            source = sources.get(mine.column)
            if source is None and mine.column in needed:
                raise _wrong_columns(
                    node,
                    f"UNION source {label(self.context, node)} has no column '{mine.name}', which the window needs",
                    f"add it in a subquery: UNION (SELECT ... AS {mine.name}, ... FROM ...) BY NAME",
                )
            value: Expression = Literal("NULL")
            if source is not None:
                value = as_wanted(self.context, mine, source, node, label(self.context, node))
            items.append(NamedExpr(value, Column(renamed[mine.column.relation], mine.column.name)))
        return Project(tuple(items), plan, span=span_of(node))

    def _targets(self, scope: Scope, theirs: Scope, node: exp.Expr) -> Iterator[Visible]:
        """The columns of FROM that a column of the source has the name of. Of two with one name it is that of the table
        before a LAST JOIN."""
        ours = scope.star()
        width = scope.prefixes[0] if scope.prefixes else len(ours)
        for name in dict.fromkeys(self.scope.fold(item.name) for item in theirs.star()):
            named = [(place, item) for place, item in enumerate(ours) if self.scope.fold(item.name) == name]
            first = [item for place, item in named if place < width]
            found = first if len(named) > 1 and len(first) == 1 else [item for _, item in named]
            if len({item.column for item in found}) > 1:
                raise _ambiguous(found[0].name, "FROM", node)
            yield from found[:1]

    def _source_of(self, mine: Visible, theirs: Scope, node: exp.Expr) -> Visible | None:
        """The source's column of this name."""
        found = [item for item in theirs.star() if self.scope.fold(item.name) == self.scope.fold(mine.name)]
        if len(found) > 1:
            raise _ambiguous(mine.name, f"UNION source {label(self.context, node)}", node)
        return found[0] if found else None


def is_by_name(window: exp.Window) -> bool:
    """Whether a definition's sources are found by name."""
    return isinstance(window, UnionWindow) and bool(window.args.get("by_name"))


def label(context: Context, node: exp.Expr) -> str:
    """What an error message calls a source."""
    shown = context.slice(span_of(node))
    return f"'{shown}'" if len(shown) <= 40 else "this source"


def _ambiguous(name: str, where: str, node: exp.Expr) -> AnalysisError:
    return mistake(
        "ambiguous-name",
        node,
        f"{where} has two columns '{name}', so BY NAME is ambiguous",
        "rename one of them in a subquery, or leave it out",
    )


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
        raise _wrong_columns(
            node,
            f"column '{mine.name}' of UNION source {shown} has type {theirs.dtype}, in FROM {mine.dtype}",
            f"cast it in a subquery: CAST({theirs.name} AS {mine.dtype}) AS {mine.name}",
        )
    return cast(theirs.column, mine.dtype)
