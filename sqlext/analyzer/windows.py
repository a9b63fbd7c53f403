"""The windows of one SELECT block: ours become WindowUnion nodes, Spark's become items of a Window node.

Over streams Spark's become WindowUnion nodes too (plain_windows.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlext_planner.errors import Span
from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr, SparkExpr, holds_subquery
from sqlext_planner.last_join.nodes import LastJoin
from sqlext_planner.relational.joins import Join
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Project, SubqueryAlias, Window
from sqlext_planner.window.nodes import WindowCall, WindowUnion
from sqlglot import exp

from sqlext.analyzer import calls, computed_calls, definitions
from sqlext.analyzer.call_forms import called, is_scalar, ordered_call
from sqlext.analyzer.computed_calls import count_at, has_inner_calls, plan_nested
from sqlext.analyzer.context import ComputedNames, Context, Env, LeftToSparkError, Scope
from sqlext.analyzer.definitions import Definition, Definitions, definition_span, table_call
from sqlext.analyzer.edits import Draft, Edit, apply_edits
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.items import WRAPPERS, outer_calls, outermost, unwrapped
from sqlext.analyzer.plain_windows import PlainWindows
from sqlext.analyzer.union import Call, CommonTypes, UnionSources, WindowPlan, key_builder, window_union
from sqlext.syntax.spans import mistake, span_of, unsupported
from sqlext.syntax.sql_settings import normal_text

#: The column of a stream's results that tells late rows from others.
PHASE = "phase"


@dataclass
class _Pending:
    """The calls over one of our definitions, in order, each with its column; or the numbers of rows that ranks are made
    of. `scope` is FROM in the types of its UNION."""

    definition: Definition
    calls: dict[str, Call] = field(default_factory=dict)
    parts: dict[computed_calls.Part, Column] = field(default_factory=dict)
    scope: Scope = field(default_factory=Scope)


class BlockWindows:
    """Finds every OVER of a block and computes it; `replace` then returns the column that replaces it.

    `phase` is a column that the block's result has at its end without being asked, if late rows of streams come out.
    """

    def __init__(
        self, context: Context, env: Env, scope: Scope, names: ComputedNames, definitions: Definitions
    ) -> None:
        self._context = context
        self._definitions = definitions
        self._env = env
        self._scope = scope
        self._names = names
        self._columns: dict[int, Column] = {}
        self._expressions: dict[int, exp.Expr] = {}
        self._texts: dict[int, Expression] = {}
        self._rankings: dict[int, tuple[exp.Anonymous, _Pending]] = {}
        self.phase: Column | None = None

    def replace(self, node: exp.Expr) -> Expression | None:
        """The computed column (or text over computed columns) of an OVER call or of a call inside one."""
        return self._texts.get(id(node)) or self._columns.get(id(node))

    def plan(self, roots: Sequence[tuple[exp.Expr, str | None]], child: LogicalPlan) -> LogicalPlan:
        """`child` with the windows that the expressions use; a root is given with its alias, if it has one."""
        definitions = self._definitions
        found = [(call, root, name) for root, name in roots for call in outer_calls(root)]
        self._refuse_two_windows(roots)
        ours: dict[tuple[str, str], _Pending] = {}
        native: list[tuple[exp.Window, str | None, Definition]] = []
        for call, root, name in found:
            definition = definitions.of(call)
            if not definition.is_ours:
                native.append((call, name if unwrapped(root) is call else None, definition))
                continue
            kind = "rank" if self._is_ranking(call) else "call"
            pending = ours.setdefault((definition.key, kind), _Pending(definition))
            self._register(pending, call, unwrapped(root) is call, name)
        child = self._plan_ours([pending for pending in ours.values() if pending.calls or pending.parts], child)
        options = self._context.options
        if not (native and (options.deploys or (child.is_streaming and options.plain_windows))):
            return self._plan_native(native, child)
        plain = PlainWindows(self._context, self._env, self._scope, self._names)
        child = plain.plan(native, child)
        self._columns |= plain.columns
        self._texts |= plain.texts
        return child

    def _refuse_two_windows(self, roots: Sequence[tuple[exp.Expr, str | None]]) -> None:
        definitions = self._definitions
        for root, _ in roots:
            used: dict[str, exp.Window] = {}
            for call in outer_calls(root):
                if definitions.of(call).is_ours:
                    used.setdefault(definitions.of(call).key, call)
            if len(used) > 1:
                first, second = list(used.values())[:2]
                raise mistake(
                    "two-windows",
                    second,
                    "an expression may use only one window",
                    "give each aggregate a select item of its own, and combine them in an outer query",
                    notes=(f"the expression already uses the window of {self._text(first)}",),
                )

    def _is_ranking(self, call: exp.Window) -> bool:
        return computed_calls.is_ranking(call.this) and not self._context.openmldb

    def _text(self, node: exp.Expr) -> str:
        return self._context.slice(span_of(node))

    def _register(self, pending: _Pending, call: exp.Window, whole: bool, name: str | None) -> None:
        """Give a column to a call, or to each aggregate inside an expression before OVER."""
        ordered = ordered_call(call.this)
        inner = ordered or call.this
        if self._is_ranking(call):
            for number in computed_calls.parts_of(call.this, pending.definition.node):
                pending.parts.setdefault(number, self._names.column(number.replace(" ", "_")))
            self._rankings[id(call)] = (call.this, pending)
            return
        if ordered is not None or table_call(called(inner)):
            self._columns[id(call)] = self._column(pending, inner, whole, name)
            return
        parts = list(_outer_table_calls(inner))
        if not parts and not (self._context.openmldb and is_scalar(inner)):
            raise calls.unknown_function(inner)
        for part in parts:
            self._columns[id(part)] = self._column(pending, part, False, None)
        self._expressions[id(call)] = inner

    def _column(self, pending: _Pending, node: exp.Expr, whole: bool, name: str | None) -> Column:
        """The column of one call; the same call twice is computed once."""
        text = normal_text(self._text(node), self._context.settings)
        key = f"{text} {whole}"
        if key not in pending.calls:
            column = self._names.column(name if whole and name else called(node).name.lower())
            pending.calls[key] = (node, column, whole)
        return pending.calls[key][1]

    def _plan_ours(self, pending: list[_Pending], child: LogicalPlan) -> LogicalPlan:
        position: Column | None = None
        # On a stream nothing moves rows between the input and the one window operator that reads it.
        reordered = is_reordered(child) and not child.is_streaming
        if pending and not child.is_streaming and (reordered or len(pending) > 1):
            child, position = with_input_position(child, self._names)
        named = UnionSources(self._context, self._env, self._scope, self._names)
        types = CommonTypes(self._context)
        for group in pending:
            named.collect(group.definition.node)
            group.scope = types.scope(self._scope, named.pairs(group.definition.node))
        child = types.with_casts(named.with_extras(child))
        for number, group in enumerate(self._neighbours(pending)):
            # The first window reads its rows in input order; each later one gets them as an Exchange left them.
            ties = position if number or reordered else None
            window_plan = WindowPlan(self._context, self._env, group.scope, self._names, group.definition, named, ties)
            if group.parts:
                child = self._with_phase(computed_calls.counted(window_plan, group.parts, child))
            else:
                child = self._with_phase(_plan_window_union(window_plan, list(group.calls.values()), child))
        for key, (node, group) in self._rankings.items():
            columns = [group.parts[part] for part in computed_calls.parts_of(node, group.definition.node)]
            window_plan = WindowPlan(self._context, self._env, group.scope, self._names, group.definition, named)
            self._texts[key] = computed_calls.expression(window_plan, node, columns)
        for key, inner in self._expressions.items():
            builder = self._builder()
            self._texts[key] = builder.opaque(inner)
        return child

    def _with_phase(self, plan: LogicalPlan) -> LogicalPlan:
        """A window over streams with the column that tells late rows from others, if late rows are wanted."""
        if not (self._context.options.late_rows and isinstance(plan, WindowUnion) and plan.is_streaming):
            return plan
        self.phase = self.phase or self._names.column(PHASE)
        return plan if self.phase in plan.output_columns else replace(plan, phase=self.phase)

    def _neighbours(self, pending: list[_Pending]) -> list[_Pending]:
        """The definitions, with those of the same partitioning and order next to each other, so that they merge into
        one exchange; among these the ones with nested calls, which end in other nodes, come last."""
        builder = ExpressionBuilder(self._context, self._scope, self._env)
        alike: dict[tuple[frozenset[Expression], Expression | None, tuple[Expression, ...]], list[_Pending]] = {}
        for group in pending:
            node = group.definition.node
            of_keys = key_builder(self._context, group.scope, self._env)
            keys = definitions.partition_keys(node, of_keys)
            order, _ = definitions.order_key(node, of_keys)
            alike.setdefault((frozenset(keys), order, definitions.further_keys(node, of_keys)), []).append(group)

        def is_nested(group: _Pending) -> bool:
            return any(has_inner_calls(call[0]) and _flat_call(builder, call) is None for call in group.calls.values())

        return [group for same in alike.values() for group in sorted(same, key=is_nested)]

    def _builder(self) -> ExpressionBuilder:
        return ExpressionBuilder(self._context, self._scope, self._env, self.replace)

    def _plan_native(
        self, native: Sequence[tuple[exp.Window, str | None, Definition]], child: LogicalPlan
    ) -> LogicalPlan:
        items = []
        for call, name, definition in native:
            column = self._names.column(name or "window")
            builder = self._builder()
            items.append(NamedExpr(native_window(builder, call, definition), column, span=span_of(call)))
            self._columns[id(call)] = column
        return Window(tuple(items), child) if items else child


def native_window(builder: ExpressionBuilder, call: exp.Window, definition: Definition) -> Expression:
    """A call over a Spark window as text, with a named window written out."""
    draft = Draft(has_window=True)
    _collect_called(builder, call.this, draft)
    base = call.args.get("alias")
    if base is None:
        for key in ("partition_by", "order"):
            found = call.args.get(key)
            for node in found if isinstance(found, list) else [found] if found is not None else []:
                builder.collect(node, draft)
    else:
        draft.edits.append(
            Edit(definition_span(builder.context, call), ("OVER ", *_written_out(builder, definition.node)))
        )
    return builder.assemble(span_of(call), draft)


def _collect_called(builder: ExpressionBuilder, node: exp.Expr, draft: Draft) -> None:
    """Collect from the function before OVER: its arguments may be replaced, the function itself may not."""
    if not isinstance(node, WRAPPERS):
        builder.collect_inner(node, draft)
        return
    for child in node.iter_expressions():
        if child is node.this:
            _collect_called(builder, child, draft)
        else:
            builder.collect(child, draft)


def _written_out(builder: ExpressionBuilder, node: exp.Window) -> tuple[str | Expression, ...]:
    """The parenthesised specification of a named window."""
    draft = Draft()
    for child in node.iter_expressions():
        if child is not node.this and child.arg_key in ("partition_by", "order"):
            builder.collect(child, draft)
    text, whole = builder.context.text, span_of(node)
    start = text.find("(", span_of(node.this).end, whole.end)
    if start < 0:
        raise LeftToSparkError("a window that is another one's name is left to Spark", span=whole)
    return apply_edits(builder.context, Span(start, whole.end), draft.edits)


def _outer_table_calls(node: exp.Expr) -> Iterator[exp.Expr]:
    """Calls of the table's functions below a node, with their modifiers, outermost ones only."""
    for item in outermost(node, lambda item: table_call(called(item)) or isinstance(item, WRAPPERS)):
        if not table_call(called(item)):
            raise calls.unknown_function(item)
        yield item


def _plan_window_union(window_plan: WindowPlan, window_calls: Sequence[Call], source: LogicalPlan) -> LogicalPlan:
    """`source` with one more column for each call; those with aggregates in their arguments come last."""
    builder = ExpressionBuilder(window_plan.context, window_plan.call_scope, window_plan.env)
    flat = [(call, _flat_call(builder, call)) for call in window_calls]
    made = [made for _, made in flat if made is not None]
    deep = [call for call, made in flat if made is None]
    if not deep:
        return window_union(window_plan, made, source)
    return plan_nested(window_plan, made, deep, source)


def _flat_call(builder: ExpressionBuilder, call: Call) -> WindowCall | None:
    """The call as one function over the frame; None if aggregates in its arguments have to be computed first."""
    node, column, whole = call
    if has_inner_calls(node):
        plain = called(node)
        if plain is not node or not isinstance(plain, exp.Anonymous):
            raise unsupported(
                "call-modifier",
                node,
                "a call with an aggregate inside takes neither FILTER nor IGNORE NULLS",
                "compute the inner aggregate in a subquery of FROM",
            )
        return count_at(builder, plain, column)
    return calls.window_call(builder, node, column, whole=whole)


def is_reordered(plan: LogicalPlan) -> bool:
    """Whether a join that returns its left side's rows may have sent them through an exchange: a LAST JOIN, a semi
    or anti join, or a join made from a subquery, by us or by Catalyst."""
    match plan:
        case LastJoin() | Join(kind="semi" | "anti"):
            return True
        case Filter() | Project() if any(map(holds_subquery, plan.expressions())):
            return True
        case Filter(child=child) | Project(child=child) | SubqueryAlias(child=child):
            return is_reordered(child)
    return False


def with_input_position(plan: LogicalPlan, names: ComputedNames) -> tuple[LogicalPlan, Column]:
    """`plan` with its rows' position in the input, (partition index, position in the partition), as one more column.

    LAST JOINs and the joins of subqueries move rows: below them the position is taken where their left side still
    has its order.
    """
    taken = {column.name.lower() for node in plan.walk() for column in node.output_columns}
    name = names.column("input_position").name
    while name in taken:
        name = names.column("input_position").name
    return _numbered(plan, name)


def _numbered(plan: LogicalPlan, name: str) -> tuple[LogicalPlan, Column]:
    if is_reordered(plan):
        match plan:
            case LastJoin(left) | Join(left):
                below, column = _numbered(left, name)
                return replace(plan, left=below), column
            case Filter(child=child):
                below, column = _numbered(child, name)
                return replace(plan, child=below), column
            case Project(items, child):
                below, column = _numbered(child, name)
                return replace(plan, items=(*items, NamedExpr(column, column)), child=below), column
            case SubqueryAlias(relation, names, child):
                below, column = _numbered(child, name)
                places = dict(zip(child.output_columns, names, strict=True))
                shown = tuple(places.get(known, name) for known in below.output_columns)
                return replace(plan, names=shown, child=below), Column(relation, name)
    column = Column("", name)
    number = SparkExpr(("monotonically_increasing_id()",), deterministic=False, dtype="bigint")
    items = tuple(NamedExpr(known, known) for known in plan.output_columns)
    return Project((*items, NamedExpr(number, column)), plan), column
