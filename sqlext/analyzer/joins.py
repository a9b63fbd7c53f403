"""Joins of FROM: every kind that Spark has, except LATERAL; LAST JOIN and ASOF JOIN (docs/reference/last-join.md).

The condition of a LAST JOIN is read as equalities and a rest; with its order keys, and what it refuses. An ASOF JOIN is
one whose order is in its condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlext_planner.errors import Span, SqlExtError
from sqlext_planner.expressions.nodes import (
    RANDOM,
    Column,
    Compare,
    Expression,
    Literal,
    NamedExpr,
    SparkExpr,
    conjunction,
    conjuncts,
    is_generator,
    reads_only,
)
from sqlext_planner.expressions.types import ORDER_TYPES, common_type
from sqlext_planner.last_join.nodes import LastJoin, LastMatch
from sqlext_planner.relational.joins import Join, JoinKind
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.nodes import Filter, Project, Values
from sqlglot import exp

from sqlext.analyzer import asof, hints, relations
from sqlext.analyzer.context import Context, Env, LeftToSparkError, Relation, Scope, Visible
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.analyzer.items import aggregate_calls, own_nodes
from sqlext.syntax.nodes import AsofJoinClause, LastJoinClause
from sqlext.syntax.spans import has_place, mistake, span_of

_EXAMPLE = "write for example a LAST JOIN b ORDER BY b.ts ON a.k = b.k AND a.ts >= b.ts"


@dataclass(frozen=True)
class _JoinedRelations:
    """Both relations of a join, and builders over the right one and over both."""

    context: Context
    node: LastJoinClause
    left: LogicalPlan
    right: LogicalPlan
    of_right: ExpressionBuilder
    of_both: ExpressionBuilder

    def sided(self, term: Expression, operators: Sequence[str]) -> Compare | None:
        """The term as a comparison by one of `operators` of a value of the left side with one of the right side."""
        for one in (term, term.mirrored) if isinstance(term, Compare) else ():
            is_sided = reads_only(one.left, self.left.column_set) and reads_only(one.right, self.right.column_set)
            if is_sided and one.op in operators:
                return one
        return None


def _last_join(context: Context, left: Relation, node: LastJoinClause, env: Env) -> Relation:
    """`left` with the last matching row of the right side. Raises AnalysisError for what is not allowed."""
    is_asof, using = isinstance(node, AsofJoinClause), node.args.get("using")
    if using and not is_asof:
        raise mistake(
            "last-join-condition", node, "LAST JOIN does not take USING", "write the condition out: ON a.k = b.k"
        )
    if is_asof and not (node.args.get("match_condition") or node.args.get("on")):
        raise mistake("asof-match", node, "ASOF JOIN needs a comparison of two times", f"{asof.EXAMPLE}; {asof.ALIAS}")
    if not is_asof and node.args.get("on") is None:
        raise mistake("last-join-condition", node, "LAST JOIN needs a condition", _EXAMPLE)
    right = relations.relation(context, node.this, env)
    both = left[1] + right[1]
    of_right, of_both = (ExpressionBuilder(context, scope, env) for scope in (right[1], both))
    sides = _JoinedRelations(context, node, left[0], right[0], of_right, of_both)
    if using:
        return _join_using(left, right, "left", using, node, lambda equal: _asof_join(sides, [*conjuncts(equal)]))
    terms = _terms(sides, "on")
    plan = _asof_join(sides, terms) if is_asof else _planned(sides, _order_keys(sides), terms)
    return plan, replace(both, prefixes=(*left[1].prefixes, len(left[1].star())))


def _asof_join(sides: _JoinedRelations, terms: list[Expression]) -> LogicalPlan:
    """The LAST JOIN by the time of the match; without the rows that have none, unless it is LEFT. `terms` are those of
    ON or USING. Raises AnalysisError."""
    node = sides.node
    condition = _terms(sides, "match_condition")
    is_apart = node.args.get("match_condition") is not None
    compared = condition if is_apart else terms
    match, term = asof.nearest(node, {item: sides.sided(item, (">=", ">", "<=", "<")) for item in compared})
    _check_order_type(sides, match.right.result_type(sides.right.dtypes), match.right.span or term.span)
    others = [item for item in (*condition, *terms) if item is not term]
    keeps_left = node.side == "LEFT"
    if not (keeps_left or isinstance(match.right, Column)):  # what is computed from NULLs may be a value
        time = Column("", f"asof_{span_of(node).start}")
        items = [NamedExpr(column, column) for column in sides.right.output_columns]
        sides = replace(sides, right=Project((*items, NamedExpr(match.right, time)), sides.right))
        match = replace(match, right=time)
    plan = _planned(sides, [(match.right, match.op in ("<", "<="))], [match, *others])
    return plan if keeps_left else Filter(SparkExpr.of(match.right, " IS NOT NULL", dtype="boolean"), plan)


def _planned(
    sides: _JoinedRelations, order: Sequence[tuple[Expression, bool]], terms: Sequence[Expression]
) -> LastJoin:
    """The join on these terms: the equalities between the sides as keys, everything else as the residual."""
    node = sides.node
    pairs: list[tuple[Expression, Expression, bool]] = []
    rest: list[Expression] = []
    for term in terms:
        equality = sides.sided(term, ("=", "<=>"))
        if equality is not None:
            pairs.append((equality.left, equality.right, equality.op == "<=>"))
        else:
            rest.append(term)
    match = LastMatch(
        tuple(left for left, _, _ in pairs),
        tuple(right for _, right, _ in pairs),
        tuple(safe for _, _, safe in pairs),
        conjunction(rest),
        tuple(key for key, _ in order),
        tuple(descending for _, descending in order),
        title=node.title,
        span=span_of(node.args.get("on") or node.args.get("match_condition") or node),
    )
    block = node.find_ancestor(exp.Select)
    partitioner = hints.partitioner(block) if block is not None and block.args.get("hint") else None
    return LastJoin(sides.left, (sides.right,), (match,), partitioner, span=span_of(node))


def _terms(sides: _JoinedRelations, clause: str) -> list[Expression]:
    """The terms of ON or MATCH_CONDITION; TRUE is none. Raises AnalysisError."""
    condition, place = sides.node.args.get(clause), f"the condition of {sides.node.title}"
    if condition is None:
        return []
    _refuse_parts(condition, place)
    terms = [term for part in _conjuncts(condition) for term in _comparisons(sides.of_both, part)]
    for term in terms:
        _refuse_unrepeatable(term, condition, place)
    return [term for term in terms if not (isinstance(term, Literal) and term.text.upper() == "TRUE")]


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The terms of a conjunction, without their parentheses."""
    plain = condition.unnest()
    if isinstance(plain, exp.And):
        for part in plain.flatten():
            yield from _conjuncts(part)
    else:
        yield plain


def _comparisons(builder: ExpressionBuilder, term: exp.Expr) -> tuple[Expression, ...]:
    """Build the term; ``x <> y`` and the halves of ``x BETWEEN a AND b`` become comparisons, which the operator takes:
    a BETWEEN over the order key is a binary search, where Spark would make all pairs."""
    if isinstance(term, exp.NEQ):
        return (Compare("<>", builder.build(term.left), builder.build(term.right), span=span_of(term)),)
    if isinstance(term, exp.Between) and not term.args.get("symmetric"):
        bounds = ((">=", term.args["low"]), ("<=", term.args["high"]))
        return tuple(
            Compare(op, builder.build(term.this), builder.build(bound), span=span_of(term)) for op, bound in bounds
        )
    return conjuncts(builder.build(term))


def _order_keys(sides: _JoinedRelations) -> list[tuple[Expression, bool]]:
    """ORDER BY: expressions over the right side, and whether DESC follows each. OpenMLDB takes one."""
    order = sides.node.args.get("order")
    items = [] if order is None else order.expressions
    if len(items) > 1 and sides.context.openmldb:
        raise mistake("last-join-order", items[1], "LAST JOIN is ordered by one key", "remove the other keys")
    return [(_order_key(sides, item), bool(item.args.get("desc"))) for item in items]


def _order_key(sides: _JoinedRelations, item: exp.Ordered) -> Expression:
    if sides.context.slice(span_of(item)).upper().split()[-2:] == ["NULLS", "LAST"]:
        raise mistake(
            "last-join-order",
            item,
            "in a LAST JOIN, a NULL order key never wins over another one",
            "remove NULLS LAST; to make NULL win, order by coalesce(key, a large value)",
        )
    _refuse_parts(item.this, "the order key of a LAST JOIN")
    key = _of_right_side(sides, item.this)
    _refuse_unrepeatable(key, item.this, "the order key of a LAST JOIN")
    _check_order_type(sides, sides.of_right.dtype(item.this), item.this)
    return key


def _check_order_type(sides: _JoinedRelations, dtype: str | None, place: exp.Expr | Span | None) -> None:
    """Raises AnalysisError for a type without an order, or one by which OpenMLDB does not order."""
    if sides.context.openmldb:
        is_taken, help = dtype in ORDER_TYPES, "order by a smallint, int, bigint or timestamp column"
    else:
        is_taken = dtype is not None and common_type(dtype, dtype) is not None
        help = "order by a number, a date, a timestamp or a string without a collation"
    if dtype is not None and not is_taken:
        message = f"{sides.node.title[2:].strip()} cannot be ordered by a key of type {dtype}"
        raise mistake("order-type", place, message, f"{help}; cast it with CAST(... AS TIMESTAMP), for example")


def _of_right_side(sides: _JoinedRelations, node: exp.Expr) -> Expression:
    """The order key over the right side's columns: a bare name means the right side's, even if the left has it too."""
    help = "order by a column of the table after LAST JOIN: the key chooses one of its rows"
    try:
        key = sides.of_right.build(node)
    except SqlExtError:
        sides.of_both.build(node)  # raises for a name that neither side has
        raise mistake("last-join-order", node, "the order key of a LAST JOIN belongs to the right side", help) from None
    if not key.references:
        raise mistake("last-join-order", node, "the order key of a LAST JOIN is the same for all rows", help)
    return key


def _refuse_parts(node: exp.Expr, place: str) -> None:
    """Raises AnalysisError for windows, aggregates and subqueries."""
    window = next((inner for inner in own_nodes(node) if isinstance(inner, exp.Window)), None)
    call = next(aggregate_calls(node), None)
    query = node.find(exp.Query)
    for found, name in ((window, "a window function"), (query, "a subquery"), (call, "an aggregate")):
        if found is not None:
            raise mistake(
                "last-join-condition",
                found,
                f"{place} cannot contain {name}",
                "compute it in a subquery of FROM, and use its column",
            )


def _refuse_unrepeatable(expression: Expression, node: exp.Expr, place: str) -> None:
    """Raises AnalysisError for rand() and the like, and for functions that make several rows."""
    random = expression.traits & RANDOM
    if random or is_generator(expression):
        what = "an expression that gives a new value each time" if random else "a function that returns several rows"
        raise mistake(
            "last-join-condition",
            expression.span or span_of(node),
            f"{place} cannot contain {what}",
            "compute it in a subquery of FROM, and use its column",
        )


_CLAUSES = {
    "where": "WHERE",
    "group": "GROUP BY",
    "having": "HAVING",
    "windows": "WINDOW",
    "order": "ORDER BY",
    "limit": "LIMIT",
}


def from_clause(context: Context, select: exp.Select, env: Env) -> Relation:
    """The plan of FROM and the names of its columns. A SELECT without FROM has one empty row."""
    from_ = select.args.get("from_")
    if from_ is None:
        return Values(((),), ()), Scope()
    plan, scope = relations.relation(context, from_.this, env)
    return join_all(context, (plan, scope), select.args.get("joins") or [], env)


def join_all(context: Context, left: Relation, nodes: Sequence[exp.Join], env: Env) -> Relation:
    """`left` joined with each of `nodes` in turn."""
    for node in nodes:
        _refuse_clauses_before(node)
        left = _join(context, left, node, env)
    return left


def _refuse_clauses_before(node: exp.Join) -> None:
    """Raises AnalysisError for joins after ORDER BY and the like, which sqlglot adds to FROM and Spark refuses; in
    ``LAST JOIN b ON a.k = b.k ORDER BY b.ts JOIN c ...`` the ORDER BY was meant for the LAST JOIN."""
    block = node.parent
    for key, name in _CLAUSES.items():
        found = block.args.get(key) if isinstance(block, exp.Query) else None
        clause = found[0] if isinstance(found, list) and found else found
        if isinstance(clause, exp.Expr) and has_place(node) and span_of(clause).start < span_of(node).start:
            help = "the ORDER BY of a LAST JOIN comes before its ON: LAST JOIN b ORDER BY b.ts ON a.k = b.k"
            raise mistake(
                "syntax-error",
                clause,
                f"{name} comes before a join of the same FROM",
                help if key == "order" else "write it after all joins",
            )


def _join(context: Context, left: Relation, node: exp.Join, env: Env) -> Relation:
    if isinstance(node, LastJoinClause):
        return _last_join(context.inside(), left, node, env)
    if node.args.get("pivots"):
        raise LeftToSparkError("this join is left to Spark", span=span_of(node))
    right = relations.lateral(context, node.this, left[1], env) or relations.relation(context, node.this, env)
    kind = _kind(node)
    names = _shared_names(node, left[1], right[1])
    if names is not None:
        return _join_using(left, right, kind, names, node, partial(_plain, left[0], right[0], kind, node))
    condition = _condition(context, node, left[1] + right[1], env)
    plan = _plain(left[0], right[0], kind, node, condition)
    return plan, left[1] if kind in ("semi", "anti") else left[1] + right[1]


def _plain(
    left: LogicalPlan, right: LogicalPlan, kind: JoinKind, node: exp.Join, condition: Expression | None
) -> LogicalPlan:
    if kind in ("inner", "cross"):
        kind = "cross" if condition is None else "inner"
    return Join(left, right, kind, condition, span=span_of(node))


def _kind(node: exp.Join) -> JoinKind:
    side, kind = node.side.upper(), node.kind.upper()
    if node.method.upper() not in ("", "NATURAL"):
        raise LeftToSparkError(f"{node.method} JOIN is left to Spark", span=span_of(node))
    words: dict[str, JoinKind] = {"SEMI": "semi", "ANTI": "anti", "CROSS": "cross", "INNER": "inner"}
    sides: dict[str, JoinKind] = {"LEFT": "left", "RIGHT": "right", "FULL": "full"}
    if kind in words:
        return words[kind]
    if kind not in ("", "OUTER"):
        raise LeftToSparkError(f"{kind} JOIN is left to Spark", span=span_of(node))
    return sides.get(side, "inner")


def _condition(context: Context, node: exp.Join, scope: Scope, env: Env) -> Expression | None:
    condition = node.args.get("on")
    if condition is None or not has_place(condition):  # sqlglot writes ON TRUE where there is no ON
        return None
    context.note(node, scope)
    return ExpressionBuilder(context, scope, env, is_condition=True).build(condition)


def _shared_names(node: exp.Join, left: Scope, right: Scope) -> list[exp.Expr | str] | None:
    if node.args.get("using"):
        return list(node.args["using"])
    if node.method.upper() != "NATURAL":
        return None
    theirs = {right.fold(item.name) for item in right.star()}
    return [item.name for item in left.star() if right.fold(item.name) in theirs]


def _join_using(
    left: Relation,
    right: Relation,
    kind: JoinKind,
    names: Sequence[exp.Expr | str],
    node: exp.Join,
    joined: Callable[[Expression | None], LogicalPlan],
) -> Relation:
    """USING (k): equality on k, and one merged k in the result; ``t.k`` still means each side's own. `joined` makes the
    join on a condition."""
    pairs = []
    for name in names:
        text = name if isinstance(name, str) else name.name
        span = span_of(node if isinstance(name, str) else name)
        sides = [scope.find((text,), span) for _, scope in (left, right)]
        for found, (_, scope) in zip(sides, (left, right), strict=True):
            if found is None:
                raise mistake(
                    "unknown-column", span, f"column '{text}' of USING not found", scope.unknown((text,), span).help
                )
        pairs.append((sides[0], sides[1]))
    matched = [(a.visible, b.visible) for a, b in pairs if a is not None and b is not None]
    plan = joined(conjunction([Compare("=", a.column, b.column) for a, b in matched]))
    if kind in ("semi", "anti"):  # the shared columns come first in * here too
        first = tuple(a for a, _ in matched)
        return plan, Scope((*first, *(item for item in left[1].columns if item not in first)))
    merged = []
    for a, b in matched:
        source = b if kind == "right" else a
        column = Column("", f"using_{a.name}_{a.column.relation}") if kind == "full" else source.column
        merged.append(Visible((), a.name, column, source.dtype if a.dtype == b.dtype else None))
    if kind == "full":
        first_of = [SparkExpr(("coalesce(", a.column, ", ", b.column, ")")) for a, b in matched]
        items = [NamedExpr(value, item.column) for value, item in zip(first_of, merged, strict=True)]
        plan = Project((*items, *(NamedExpr(column, column) for column in plan.output_columns)), plan)
    hidden = {side.column for pair in matched for side in pair}
    both = (*left[1].columns, *right[1].columns)
    seen = (item for item in both if item.qualifier or item.column not in hidden)
    rest = [replace(item, qualified_only=True) if item.column in hidden else item for item in seen]
    rest.sort(key=lambda item: item.column not in hidden)  # t.* begins with the shared columns too
    return plan, replace(left[1] + right[1], columns=(*merged, *rest), prefixes=())
