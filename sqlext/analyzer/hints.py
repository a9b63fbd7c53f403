"""Hints of a SELECT block: kept for Catalyst when the block is lowered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from sqlext_planner.errors import Span, SqlExtError
from sqlext_planner.expressions.nodes import Column, Expression, Literal
from sqlext_planner.last_join.nodes import LastJoin
from sqlext_planner.relational.joins import Join, PartitionerHint, UMJoinHint
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Hint, Limit, Project, Sort
from sqlglot import exp

from sqlext.analyzer.context import Analyzed, Context, Scope, did_you_mean
from sqlext.syntax.hint_nodes import PARTITIONER, SWEEP, UMJOIN, HintCall, HintParameter
from sqlext.syntax.spans import has_place, mistake, span_of, unsupported

#: Spark's hints on joins; their parameters are the relations that they are about.
_JOINS = frozenset(
    "BROADCAST BROADCASTJOIN MAPJOIN MERGE SHUFFLEMERGE MERGEJOIN SHUFFLE_HASH SHUFFLE_REPLICATE_NL".split()  # noqa: SIM905
)
#: Spark's hints on the result's partitions; their parameters are numbers and columns.
_PARTITIONS = frozenset(("COALESCE", "REPARTITION", "REPARTITION_BY_RANGE", "REBALANCE"))


def on_relations(node: exp.Select, plan: LogicalPlan, scope: Scope) -> LogicalPlan:
    """FROM's plan, with the join hints (``BROADCAST(d)``) on the relations that they name, and SWEEP, NO_SWEEP,
    ``UMJOIN(a, b, c)``, NO_UMJOIN or PARTITIONER on its joins. A name that is not a relation of this block has no
    effect, as in Spark, but raises AnalysisError in UMJOIN. Raises UnsupportedError for a hint outside Spark's
    grammar."""
    for hint in _hints(node):
        if hint.args.get("problem"):
            help = "hints are written /*+ NAME(parameter, ...), NAME */"
            raise unsupported("malformed-hint", hint, f"a hint cannot be read: {hint.args['problem']}", help)
        if not _may_join(node) and (UMJOIN.get(hint.name) or (SWEEP.get(hint.name) and not _is_operand(node))):
            raise unsupported(
                "hint-not-followed",
                hint,
                f"the hint {hint.name} cannot be followed: this SELECT joins nothing",
                "a hint is for the SELECT in which it stands: write it behind the SELECT with the joins",
            ).about_hint()
        if hint.name in SWEEP:
            plan = _marked(plan, sweep=SWEEP[hint.name])
        elif hint.name in UMJOIN:
            plan = _marked(plan, umjoin=_umjoin(hint, _relations(node, plan, scope)))
        elif hint.name == PARTITIONER:
            plan = _marked(plan, partitioner=_partitioner(hint))
        elif hint.name in _JOINS:
            wanted = {(item.relation or "").lower() for item in hint.expressions}
            relations = {
                item.column.relation
                for item in scope.columns
                if item.qualifier and item.qualifier[-1].lower() in wanted
            }
            plan = _hinted(plan, hint.name, relations)
    return plan


def _may_join(node: exp.Select) -> bool:
    """Whether a block's FROM has joins, or its other clauses a subquery that may become one."""
    from_ = node.args.get("from_")
    table = None if from_ is None else from_.this
    if node.args.get("joins") or (table is not None and table.args.get("joins")):
        return True
    if table is not None and not isinstance(table, exp.Table) and not isinstance(table.this, exp.Query):  # (a JOIN b)
        return True
    clauses = (node.args.get(key) for key in ("expressions", "where", "having", "qualify"))
    items = (item for clause in clauses for item in (clause if isinstance(clause, list) else [clause]))
    return any(item is not None and next(item.find_all(exp.Query), None) is not None for item in items)


def _is_operand(node: exp.Select) -> bool:
    """Whether a block is a subquery in an expression, of which a join with the block around it may be made."""
    inside: exp.Expr = node
    parent = node.parent
    while isinstance(parent, exp.Subquery):
        inside, parent = parent, parent.parent
    if isinstance(parent, (exp.Exists, exp.In)):
        return True
    rows = (exp.From, exp.Join, exp.Lateral, exp.SetOperation, exp.CTE, exp.DDL)
    return isinstance(inside, exp.Subquery) and isinstance(parent, exp.Expression) and not isinstance(parent, rows)


def partitioner(block: exp.Select) -> PartitionerHint | None:
    """The hint PARTITIONER of a block; the last one of several."""
    found = [hint for hint in _hints(block) if hint.name == PARTITIONER]
    return _partitioner(found[-1]) if found else None


def _partitioner(hint: HintCall) -> PartitionerHint:
    return PartitionerHint(hint.expressions[0].name.lower(), span=span_of(hint))


def sweep(node: exp.Expr | None) -> bool | None:
    """A block's SWEEP (True) or NO_SWEEP (False), for a join made from an EXISTS in its WHERE; None without a hint."""
    found = [SWEEP[hint.name] for hint in _hints(node) if hint.name in SWEEP] if isinstance(node, exp.Select) else []
    return found[-1] if found else None


def sweep_order(node: exp.Expr) -> Span | None:
    """Where a block has the hint SWEEP itself."""
    hint = next((hint for hint in _hints(node) if SWEEP.get(hint.name)), None) if isinstance(node, exp.Select) else None
    return None if hint is None else span_of(hint)


def refuse_orders(node: exp.Expr, cause: str, skipped: Sequence[exp.Expr]) -> None:
    """Raises UnsupportedError for a hint in a text that goes to Spark, outside of its skipped parts, which asks for one
    of our operators."""
    below = {id(item) for part in skipped for item in part.walk()}
    for hint in node.find_all(HintCall):
        if id(hint) not in below and (SWEEP.get(hint.name) or UMJOIN.get(hint.name) or hint.name == PARTITIONER):
            raise unsupported(
                "hint-not-followed",
                hint,
                f"the hint {hint.name} cannot be followed: {cause}",
                "leave the hint out, or put the joins into a subquery in FROM, with the hint",
            ).about_hint()


def _relations(node: exp.Select, plan: LogicalPlan, scope: Scope) -> dict[str, str]:
    """The relations of a FROM by their names in lower case, with the right sides of its semi and anti joins, of which
    nothing is visible outside ON."""
    by_name = {item.qualifier[-1].lower(): item.column.relation for item in scope.columns if item.qualifier}
    joins = (join for join in _own_joins(plan) if join.kind in ("semi", "anti") and join.span is not None)
    hidden = {join.span: join.right for join in joins}
    for join in node.find_all(exp.Join) if hidden else ():
        right = hidden.get(span_of(join) if has_place(join) else None)
        columns = () if right is None else right.output_columns
        if columns:
            by_name.setdefault(join.this.alias_or_name.lower(), columns[0].relation)
    return by_name


def _own_joins(plan: LogicalPlan) -> Iterator[Join]:
    if isinstance(plan, Join):
        yield plan
        yield from _own_joins(plan.left)
        yield from _own_joins(plan.right)


def _umjoin(hint: HintCall, relations: dict[str, str]) -> UMJoinHint:
    names = []
    for item in hint.expressions:
        relation = relations.get((item.relation or "").lower())
        if relation is None:
            raise _unknown(hint, item, relations)
        names.append(relation)
    return UMJoinHint(tuple(names), UMJOIN[hint.name], span=span_of(hint))


def _unknown(hint: HintCall, item: HintParameter, relations: dict[str, str]) -> SqlExtError:
    return mistake(
        "malformed-hint",
        item,
        f"'{item.name}' in the hint {hint.name} is not a relation of this FROM",
        did_you_mean(item.name, relations, f"relations here: {', '.join(relations)}"),
    ).about_hint()


def _marked(plan: LogicalPlan, **hint: object) -> LogicalPlan:
    """FROM's plan with its own joins marked, but not those of subqueries. A FULL JOIN with
    USING and an ASOF JOIN by a computed time have a projection."""
    if isinstance(plan, Join):
        sides = {"left": _marked(plan.left, **hint), "right": _marked(plan.right, **hint)}
        return replace(plan, **sides, **hint)  # type: ignore[arg-type]
    if isinstance(plan, (LastJoin, Filter, Project)):
        return plan.map_children(lambda child: _marked(child, **hint))
    return plan


def _hinted(plan: LogicalPlan, name: str, relations: set[str]) -> LogicalPlan:
    if isinstance(plan, (Join, LastJoin, Filter, Project)):
        return plan.map_children(lambda child: _hinted(child, name, relations))
    columns = plan.output_columns
    named = bool(columns) and all(column.relation in relations for column in columns)
    return Hint(name, (), plan) if named else plan


def on_result(context: Context, node: exp.Select, query: Analyzed) -> Analyzed:
    """The block's result, with the hints on partitions (``REPARTITION(8, k)``) on it. A hint that Spark does not know
    keeps only its name: Spark warns about it, whatever its parameters are.

    Raises UnsupportedError for a parameter that is neither a whole number nor a column of the result.
    """
    plan = query.plan
    shown = {context.fold(name): column for name, column in zip(query.names, plan.output_columns, strict=True)}
    for hint in _hints(node):
        if hint.name in _PARTITIONS:
            parameters = tuple(_parameter(context, item, shown) for item in hint.expressions)
        elif hint.name not in _JOINS and not hint.is_ours:
            parameters = ()
        else:
            continue
        plan = _below_order(node, plan, partial(Hint, hint.name, parameters))
    return Analyzed(plan, query.names)


def _below_order(node: exp.Select, plan: LogicalPlan, hinted: Callable[[LogicalPlan], LogicalPlan]) -> LogicalPlan:
    """`plan` with a hint where Spark puts it: on the select list, below the ORDER BY and LIMIT of the block."""
    if isinstance(plan, Limit) and (node.args.get("limit") or node.args.get("offset")):
        return replace(plan, child=_below_order(node, plan.child, hinted))
    if node.args.get("order") is not None:
        if isinstance(plan, Sort):
            return replace(plan, child=hinted(plan.child))
        if isinstance(plan, Project) and isinstance(plan.child, Sort):  # drops what was carried for the order
            return replace(plan, child=_below_order(node, plan.child, hinted))
    return hinted(plan)


def _hints(node: exp.Select | None) -> Iterator[HintCall]:
    hint = None if node is None else node.args.get("hint")
    if hint is not None:
        yield from hint.expressions


def _parameter(context: Context, item: HintParameter, shown: dict[str, Column]) -> Expression:
    if item.name.isascii() and item.name.isdigit() and int(item.name) < 2**31:
        return Literal(item.name)
    column = shown.get(context.fold(item.relation or ""))
    if column is not None:
        return column
    raise unsupported(
        "malformed-hint",
        item,
        f"the hint's parameter '{item.name}' is neither a whole number nor a column of the result",
        "name a column of the select list",
    )
