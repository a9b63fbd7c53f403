"""Queries: WITH, set operations, and the choice which part of a query is left to Spark as text."""

from __future__ import annotations

from dataclasses import replace

from sqlext_planner.catalog import Catalog
from sqlext_planner.errors import InternalError, SqlExtError, UnsupportedError
from sqlext_planner.expressions.nodes import Column, Expression, NamedExpr
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Output, SetKind, SetOperation
from sqlglot import exp

from sqlext.analyzer import (
    aggregates,
    block_check,
    emits,
    hints,
    joins,
    ordering,
    relations,
    spark_blocks,
    subqueries,
    subquery_plans,
)
from sqlext.analyzer.context import (
    Analyzed,
    AnalyzerOptions,
    Context,
    Env,
    LeftToSparkError,
    Parts,
    Questions,
    Scope,
    inner_name,
)
from sqlext.analyzer.definitions import Definitions, SelectBlock
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.items import Item, aggregate_calls, outer_calls, own_nodes, roots, select_items
from sqlext.analyzer.windows import PHASE, BlockWindows
from sqlext.syntax.parser import Statement
from sqlext.syntax.spans import NoPlaceError, has_place, mistake, span_of, unsupported

_KINDS: dict[type[exp.Expr], SetKind] = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}


def analyze_query(context: Context, node: exp.Expr, env: Env) -> Analyzed:
    """The plan of a query. A block that the analyzer has no nodes for becomes a SparkRelation if possible.

    Raises AnalysisError, UnsupportedError.
    """
    try:
        return _analyze(context, node, env)
    except LeftToSparkError as cause:
        return spark_blocks.spark_block(context, node, env, cause)


def _analyze(context: Context, node: exp.Expr, env: Env) -> Analyzed:
    env = with_ctes(context, node, env)
    if node.args.get("emit") is not None:
        if not isinstance(node, exp.Select):
            raise unsupported(
                "early-answer",
                node.args["emit"],
                "EMIT AFTER belongs to a single SELECT",
                "write it inside the parentheses of the SELECT with the aggregates",
            )
        return emits.analyze_emit(context, node, env)
    match node:
        case exp.Select():
            return analyze_select(context, node, env)
        case exp.SetOperation():
            return _set_operation(context, node, env)
        case exp.Subquery() if isinstance(node.this, exp.Query):
            return ordering.order_and_limit(context, node, analyze_query(context, node.this, env), env)
    raise LeftToSparkError(f"{type(node).__name__.upper()} is left to Spark", span=span_of(node))


def with_ctes(context: Context, node: exp.Expr, env: Env) -> Env:
    """The CTEs visible inside `node`: each is analysed once, and everything that names it shares its plan."""
    with_ = node.args.get("with_")
    if with_ is None:
        return env
    if with_.args.get("recursive"):
        raise LeftToSparkError("WITH RECURSIVE is left to Spark", span=span_of(with_))
    reach = dict(env)
    defined: set[str] = set()
    for cte in with_.expressions:
        name = cte.alias
        if name.lower() in defined:
            message, help = f"'{name}' is defined twice in one WITH", "give one of them another name"
            raise mistake("duplicate-name", cte.args["alias"], message, help)
        defined.add(name.lower())
        reach[context.fold(name)] = subqueries.definition(context, cte, dict(reach))
    return reach


def _set_operation(context: Context, node: exp.SetOperation, env: Env) -> Analyzed:
    if node.args.get("by_name") or node.args.get("side") or node.args.get("kind"):
        raise LeftToSparkError("UNION BY NAME is left to Spark", span=span_of(node))
    left = analyze_query(context, node.this, env)
    right = analyze_query(context, node.expression, env)
    if len(left.names) != len(right.names):
        kind = _KINDS[type(node)].upper()
        raise mistake(
            "column-count",
            node.expression,
            f"the sides of {kind} have {len(left.names)} and {len(right.names)} columns",
            "select the same number of columns on both sides",
        )
    columns = tuple(Column("", name) for name in relations.unique_names([inner_name(name) for name in left.names]))
    plan = SetOperation(
        _KINDS[type(node)], not node.args.get("distinct"), columns, left.plan, right.plan, span=span_of(node)
    )
    return ordering.order_and_limit(context, node, Analyzed(plan, left.names), env)


#: The analysis of what a part of a query may hold, for `Context`.
PARTS = Parts(
    query=analyze_query,
    subquery=_analyze,
    ctes=with_ctes,
    joins=joins.join_all,
    edits=subqueries.subquery_edits,
    planned=subquery_plans.subquery,
)


_SPARK_ONLY = {
    "laterals": "LATERAL VIEW",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "connect": "CONNECT BY",
    "into": "INTO",
    "kind": "SELECT AS STRUCT",
    "match": "MATCH_RECOGNIZE",
    "operation_modifiers": "this modifier",
}


def analyze_select(context: Context, node: exp.Select, env: Env) -> Analyzed:
    """The plan of one SELECT block. Raises AnalysisError, UnsupportedError; LeftToSparkError if there is no node."""
    for key, name in _SPARK_ONLY.items():
        if node.args.get(key):
            place = node.args[key][0] if isinstance(node.args[key], list) else node.args[key]
            placed = isinstance(place, exp.Expr) and has_place(place)
            raise LeftToSparkError(f"{name} is left to Spark", span=span_of(place if placed else node))
    ordering.refuse_sorts(node)
    plan, scope = joins.from_clause(context, node, env)
    if node.args.get("hint") is None:
        return _block(context, node, env, plan, scope)
    marked = hints.on_relations(node, plan, scope)
    return hints.on_result(context, node, _block(context, node, env, marked, scope))


def _block(context: Context, node: exp.Select, env: Env, plan: LogicalPlan, scope: Scope) -> Analyzed:
    """The block above FROM."""
    if node.args.get("where") is not None:
        _refuse_in_where(node.args["where"])
        plan = subquery_plans.filtered(node, plan, ExpressionBuilder(context, scope, env))
    items = select_items(context, node, scope)
    definitions = Definitions(context, node, [call for root, _ in roots(node, items) for call in outer_calls(root)])
    verdict = block_check.check_block(context, node, env, scope, items, definitions)
    items = verdict.named(items)
    if _is_aggregate(node, items, definitions):
        if node.args.get("qualify"):
            raise LeftToSparkError("QUALIFY with aggregates is left to Spark", span=span_of(node.args["qualify"]))
        block = aggregates.analyze_aggregate(context, node, env, plan, scope, items, definitions)
    else:
        block = _Block(context, node, env, scope, items, definitions).analyze(plan)
    verdict.check()
    return block


def _refuse_in_where(where: exp.Where) -> None:
    for inner in own_nodes(where.this):
        if isinstance(inner, exp.Window):
            raise mistake(
                "misplaced-window",
                inner,
                "WHERE cannot contain a window function",
                "compute it in a subquery of FROM and filter its column",
            )
    call = next(aggregate_calls(where.this), None)
    if call is not None:
        raise mistake("misplaced-aggregate", call, "WHERE cannot contain an aggregate", "use HAVING")


def _is_aggregate(node: exp.Select, items: list[Item], definitions: Definitions) -> bool:
    if node.args.get("group") or node.args.get("having"):
        return True
    return any(next(aggregate_calls(root, definitions.is_ours), None) is not None for root, _ in roots(node, items))


class _Block(SelectBlock):
    """A SELECT without GROUP BY."""

    def analyze(self, plan: LogicalPlan) -> Analyzed:
        """Windows below, the select list above them, then DISTINCT, ORDER BY and LIMIT."""
        self.names.reserve(plan)
        windows = None
        if any(next(outer_calls(root), None) is not None for root, _ in roots(self.node, self.items)):
            windows = BlockWindows(self.context.inside(), self.env, self.scope, self.names, self.definitions)
            plan = windows.plan(roots(self.node, self.items), plan)
        lateral = self.aliases if self.context.settings.lateral_aliases else {}
        builder = ExpressionBuilder(self.context, self.scope, self.env, aliases=lateral)
        if windows is not None:
            builder = replace(builder, replace=windows.replace)
        outputs: list[NamedExpr] = []
        taken: set[Column] = set()
        for item in self.items:
            expression = item.build(builder)
            column = self._column(item, expression, taken)
            taken.add(column)
            outputs.append(NamedExpr(expression, column, span=item.span))
            if item.aliased:
                self.aliases.setdefault(self.context.fold(item.name), expression)
        names = [item.name for item in self.items]
        if windows is not None and windows.phase is not None:
            self._refuse_named_phase()
            outputs.append(NamedExpr(windows.phase, windows.phase))
            names.append(PHASE)
        qualify = self.node.args.get("qualify")
        if qualify is not None:
            self._refuse_two_meanings(qualify)
            plan = Filter(builder.build(qualify.this), plan, span=span_of(qualify))
        reach = [column.name for column in self.scope.columns]
        order = ordering.ordering(self.node, outputs, tuple(names), builder, self.names, reach)
        return ordering.arrange(self.node, plan, outputs, order, tuple(names))

    def _refuse_named_phase(self) -> None:
        """Raises AnalysisError for a result column with the name of the one that is added."""
        item = next((item for item in self.items if self.context.fold(item.name) == PHASE), None)
        if item is not None:
            raise mistake(
                "duplicate-name",
                item.span,
                f"with sqlext.stream.late = rows the result has a column '{PHASE}' of its own",
                f"give the item another name, for example {PHASE}_1",
            )

    def _refuse_two_meanings(self, qualify: exp.Expr) -> None:
        """Raises AnalysisError for a name in QUALIFY that is both a column of FROM and an alias, as Spark does."""
        for node in own_nodes(qualify.this):
            if not isinstance(node, exp.Column) or len(node.parts) > 1:
                continue
            if self.context.fold(node.name) in self.aliases and self.scope.find((node.name,)) is not None:
                message = f"'{node.name}' is both a column of FROM and an alias of the select list"
                raise mistake("ambiguous-name", node, message, "give the item another alias")

    def _column(self, item: Item, expression: Expression, taken: set[Column]) -> Column:
        """The item's column in the plan: a plain column keeps its name, and so does a window call's column."""
        if isinstance(expression, Column) and expression not in taken:
            same = expression.name == item.name
            if same or (not expression.relation and not item.aliased):
                return expression
        return self.names.column(item.name)


#: How many blocks of a statement we ask Spark about: at 2-5 ms each, a third of a second at most.
_QUESTIONS = 64


def analyze(statement: Statement, catalog: Catalog, options: AnalyzerOptions | None = None) -> LogicalPlan:
    """The logical plan of a statement's query: an `Output` root over resolved nodes.

    A statement without extension syntax that the analyzer cannot follow becomes one SparkRelation, if the
    catalog knows its columns. Raises AnalysisError, UnsupportedError, with the place in the text.
    """
    if statement.query is None or statement.query_span is None:
        raise InternalError("a statement of Spark's own is not analysed")
    asks = Questions(_QUESTIONS if statement.uses_extension and statement.compat is None else 0)
    found, extended = options or AnalyzerOptions(statement.compat), statement.uses_extension
    context = Context(statement.text, catalog, found, PARTS, questions=asks, extended=extended)
    try:
        query = _analyzed(context, statement.query)
    except SqlExtError as error:
        refused = statement.uses_extension or error.of_hint or error.of_window
        columns = None if refused else catalog.query_columns(context.slice(statement.query_span))
        if columns is None:
            raise error.with_sql(statement.sql) from error.__cause__
        text = context.slice(statement.query_span)
        plan, _ = relations.spark_relation(context, text, columns, ("spark_query",), statement.query)
        query = Analyzed(plan, tuple(name for name, _ in columns))
    return Output(query.names, query.plan)


def _analyzed(context: Context, query: exp.Query) -> Analyzed:
    try:
        return analyze_query(context, query, {})
    except NoPlaceError as error:
        raise UnsupportedError(
            f"the statement is written in a way that is left to Spark ({error})", condition="spark-block"
        ) from None
