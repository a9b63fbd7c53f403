"""Blocks that go to Spark as text: what in them is planned on its own.

``SELECT ... FROM (SELECT ... FROM a JOIN b ON p OVERLAPS q) LATERAL VIEW explode(...)`` has no node, but the query in
its FROM has one. Derived tables and common table expressions that hold our syntax become inputs of the block: its text
reads them by names of their own. When Spark analyses the block for us, empty relations with the same columns stand
there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlext_planner.relational.nodes import SparkRelation, SubqueryAlias
from sqlext_planner.relational.physical_plan import quoted
from sqlglot import exp

from sqlext.analyzer import hints, relations, subqueries
from sqlext.analyzer.block_check import refusal
from sqlext.analyzer.block_from import planned_from
from sqlext.analyzer.context import Analyzed, Context, Cte, Env, LeftToSparkError
from sqlext.analyzer.edits import Edit
from sqlext.syntax.parser import extension_nodes
from sqlext.syntax.spans import span_of, unsupported


@dataclass
class _Inputs:
    """What is planned on its own: `plans`, by their names in the text, and where each is named: in place of `parts` of
    the block, and in definitions of `ctes` that stand outside of it. `env` are all CTEs that the block sees."""

    context: Context
    env: Env
    plans: dict[str, SubqueryAlias] = field(default_factory=dict)
    parts: list[tuple[exp.Expr, str]] = field(default_factory=list)
    ctes: dict[str, str] = field(default_factory=dict)

    def add(self, query: Analyzed, alias: str) -> str | None:
        """The name of one more input; None for a query whose columns no empty relation has."""
        types = [item.dtype for item in query.plan.output]
        folded = {self.context.fold(name) for name in query.names}
        if len(folded) < len(query.names) or any(dtype in (None, "void") for dtype in types):
            return None
        plan = SubqueryAlias(self.context.names.unique(alias or "subquery"), query.names, query.plan)
        name = f"__sqlext_input_{len(self.plans)}"
        self.plans[name] = plan
        return name

    def text(self, node: exp.Expr, shown: Mapping[str, str]) -> str:
        """The block over its inputs, whose queries are `shown` by their names."""
        edits = [Edit(span_of(part), (shown[name],)) for part, name in self.parts]
        ctes = {name: self._definition(self.env[name], shown[given]) for name, given in self.ctes.items()}
        skipped = [part for part, _ in self.parts]
        return subqueries.with_prefix(self.context, node, self.env, edits, skipped, ctes)

    def _definition(self, cte: Cte, query: str) -> str:
        own = f"({self.context.slice(span_of(cte.tree))})"
        return f"{cte.text.removesuffix(own)}({query})"

    def stand_in(self, plan: SubqueryAlias) -> str:
        """A query without rows that has the plan's columns."""
        columns = (
            f"CAST(NULL AS {item.dtype}) AS {quoted(name)}" for item, name in zip(plan.output, plan.names, strict=True)
        )
        return f"SELECT {', '.join(columns)} WHERE false"


def spark_block(context: Context, node: exp.Expr, env: Env, cause: LeftToSparkError) -> Analyzed:
    """The block as text, over the plans of what is planned on its own. Raises UnsupportedError for one of our operators
    or hints in the rest of it, and where no running Spark knows the columns."""
    inputs = _inputs(context, node, env) if context.extended else _Inputs(context, env)
    skipped = [part for part, _ in inputs.parts]
    if subqueries.holds_operator(context, node, skipped):
        raise unsupported(
            "spark-block",
            cause.span,
            f"{cause.message}, so it cannot be used in one block with a sqlext window, LAST JOIN or ASOF JOIN",
            "put that part into a subquery in FROM, without the window and the join",
        ) from None
    planned = planned_from(context, node, env) if context.extended else None
    if planned is None:
        hints.refuse_orders(node, cause.message, skipped)
    text = inputs.text(node, {name: inputs.stand_in(plan) for name, plan in inputs.plans.items()})
    columns = context.catalog.query_columns(text)
    if columns is None:
        raise refusal(context, text, node) or unsupported(
            "spark-block",
            cause.span,
            f"{cause.message}, and without a running Spark its columns are unknown",
            cause.help or "run the statement in a Session",
        ) from None
    plan, _ = relations.spark_relation(context, text, columns, ("spark_query",), node, env)
    assert isinstance(plan, SparkRelation)
    names = tuple(name for name, _ in columns)
    if planned is not None and _types(context, planned.text(inputs.stand_in(planned.plan))) == [
        dtype for _, dtype in columns
    ]:
        name = "__sqlext_input_0"
        given = ((name, planned.plan.names),)
        cut = replace(plan, sql=planned.text(f"SELECT * FROM {name}"), inputs=(planned.plan,), input_names=given)
        return Analyzed(cut, names)
    hints.refuse_orders(node, cause.message, skipped)
    written_out = subqueries.holds_predicate(node, skipped)
    real = text if not inputs.plans else inputs.text(node, {name: f"SELECT * FROM {name}" for name in inputs.plans})
    plan = replace(
        plan,
        sql=real,
        inputs=tuple(inputs.plans.values()),
        input_names=tuple((name, item.names) for name, item in inputs.plans.items()),
        because=cause.message if written_out else "",
    )
    return Analyzed(plan, names)


def _types(context: Context, text: str) -> list[str] | None:
    columns = context.catalog.query_columns(text)
    return None if columns is None else [dtype for _, dtype in columns]


def _inputs(context: Context, node: exp.Expr, env: Env) -> _Inputs:
    inputs = _Inputs(context, dict(env))
    unplanned = _own_ctes(inputs, node)
    for query, alias in _derived(node):
        if _is_ours(context, query) and not _names(context, query) & unplanned:
            name = inputs.add(context.parts.query(context.inside(), query, inputs.env), alias)
            if name is not None:
                inputs.parts.append((query, name))
    local = {context.fold(cte.alias) for cte in _definitions(node)}
    _outer_ctes(inputs, node, env, local)
    return inputs


def _own_ctes(inputs: _Inputs, node: exp.Expr) -> set[str]:
    """Adds the CTEs of the block itself; returns the names of those that stay text and are not known: recursive ones,
    and those that read them."""
    context, unplanned = inputs.context, set[str]()
    for cte in _definitions(node):
        name, read = context.fold(cte.alias), _names(context, cte.this)
        if read & (unplanned | {name}):
            unplanned.add(name)
            inputs.env = {key: value for key, value in inputs.env.items() if key != name}
            continue
        defined = subqueries.definition(context, cte, inputs.env)
        if _is_ours(context, cte.this):
            given = inputs.add(defined.query, cte.alias)
            if given is not None:
                inputs.parts.append((cte.this, given))
        inputs.env = {**inputs.env, name: defined}
    return unplanned


def _outer_ctes(inputs: _Inputs, node: exp.Expr, env: Env, local: set[str]) -> None:
    """Adds the CTEs around the block that it reads, directly or through others."""
    context = inputs.context
    skipped = {id(part) for part, _ in inputs.parts}
    for table in subqueries.outside(node, exp.Table, skipped):
        name = context.fold(table.name)
        if len(table.parts) != 1 or name not in env or name in local or name in inputs.ctes:
            continue
        cte = env[name]
        given = inputs.add(cte.query, cte.name) if _is_ours(context, cte.tree) else None
        if given is not None:
            inputs.ctes[name] = given
        else:
            _outer_ctes(inputs, cte.tree, cte.env, set())


def _definitions(node: exp.Expr) -> list[exp.CTE]:
    with_ = node.args.get("with_")
    return [] if with_ is None else list(with_.expressions)


def _names(context: Context, node: exp.Expr) -> set[str]:
    """The names of the tables and CTEs that a query reads."""
    return {context.fold(table.name) for table in node.find_all(exp.Table) if len(table.parts) == 1}


def _is_ours(context: Context, query: exp.Expr) -> bool:
    return next(extension_nodes(query, context.options.compat), None) is not None


def _derived(node: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """The queries in the block's FROM, with their aliases, and the sides of its set operations."""
    stack: list[exp.Expr] = [node]
    while stack:
        top = stack.pop()
        match top:
            case exp.SetOperation():
                for side in (top.this, top.expression):
                    if isinstance(side, exp.SetOperation):
                        stack.append(side)
                    else:
                        yield side, ""
            case exp.Select():
                from_ = top.args.get("from_")
                stack += [item.this for item in ([from_] if from_ is not None else []) + (top.args.get("joins") or [])]
            case exp.Subquery(this=exp.Query() as query) if top is not node:
                yield query, top.alias
                stack += [join.this for join in top.args.get("joins") or []]
            case exp.Subquery() | exp.Paren() | exp.Table():
                stack += [join.this for join in top.args.get("joins") or []]
                stack += [top.this] if not isinstance(top, exp.Table) else []
