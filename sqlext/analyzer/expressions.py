"""Scalar expressions: the user's own text with resolved columns in place of names.

Conjunctions, comparisons, columns and literals have their own classes; everything else is a SparkExpr whose parts are
slices of the statement. It is typed (`sqlext_planner.expressions.typed`) where its form is known; every call in it is.
Text is never generated from the syntax tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlext_planner.errors import Span
from sqlext_planner.expressions.arithmetic import INTEGERS
from sqlext_planner.expressions.nodes import Column, Compare, Expression, Literal, SparkExpr, conjunction, is_movable
from sqlext_planner.expressions.typed import Arithmetic, FunctionCall
from sqlext_planner.relational.physical_plan import quoted
from sqlglot import exp

from sqlext.analyzer import compat as openmldb
from sqlext.analyzer import forms, periods
from sqlext.analyzer.context import Context, Env, LeftToSparkError, Scope, Visible, session_variable
from sqlext.analyzer.edits import Draft, Edit, apply_edits
from sqlext.analyzer.forms import OPAQUE, Form, call_form, chain_form, form_of, is_call, is_operand, parts_of, signs_of
from sqlext.analyzer.items import WRAPPERS, unwrapped
from sqlext.analyzer.types import field_type, infer, is_suffixed
from sqlext.syntax.calls import is_period_function, is_period_predicate
from sqlext.syntax.spans import has_place, span_of
from sqlext.syntax.spark_functions import DATE_UNITS, LITERAL_FUNCTIONS, NONDETERMINISTIC, UNIT_FUNCTIONS
from sqlext.syntax.sql_settings import is_string, string_literal, string_value

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.NullSafeEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}

#: Nodes that need no parentheses once they are expressions.
_STRUCTURAL: tuple[type[exp.Expr], ...] = (exp.And, exp.Between, exp.Column, exp.Paren, *_COMPARISONS)

Replace = Callable[[exp.Expr], Expression | None]

#: Nodes that may be a subquery with a plan: `subquery_plans.subquery` decides.
SUBQUERIES = (exp.Not, exp.Exists, exp.In, exp.Subquery)


@dataclass(frozen=True)
class ExpressionBuilder:
    """Builds expressions over `scope`.

    `replace` may return an expression for a whole subtree (a window call's column, a grouping key). `aliases` are the
    select items that later items may name (lateral column aliases). Names that mean nothing in it are looked up in the
    scopes of the queries around this one (`context.outer`). `is_filter`: for the condition of WHERE or HAVING;
    `is_condition`: also for that of ON, where logic gets a form (forms.py).
    """

    context: Context
    scope: Scope
    env: Env
    replace: Replace = lambda node: None
    aliases: Mapping[str, Expression] = field(default_factory=dict)
    is_filter: bool = False
    is_condition: bool = False

    def build(self, node: exp.Expr) -> Expression:
        """The expression for `node`. Raises AnalysisError for a name that means nothing."""
        replaced = self.replace(node)
        if replaced is not None:
            return replaced
        related = periods.predicate(self, node) if is_period_predicate(node) else None
        if related is not None:
            return related
        inner = unwrapped(node)
        planned: Expression | None = self.context.parts.planned(inner, self) if isinstance(inner, SUBQUERIES) else None
        if planned is None and self.is_condition:
            planned = forms.condition(self, inner)
        if planned is not None:
            return planned
        span = span_of(node)
        match node:
            case exp.Paren(this=inside) if (
                isinstance(inside, _STRUCTURAL)
                or is_period_predicate(inside)
                or (self.is_condition and forms.is_logic(inner))
            ):
                return self.build(node.this)
            case exp.And():
                return conjunction([self.build(term) for term in forms.flattened(node, exp.And)]) or self._opaque(
                    node, span
                )
            case exp.EQ() | exp.NEQ() | exp.NullSafeEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return Compare(_COMPARISONS[type(node)], self.build(node.left), self.build(node.right), span=span)
            case exp.Between() if not node.args.get("symmetric"):
                return self._between(node, span)
            case exp.Column() if not node.is_star:
                expression, rest = self.resolve(node)
                if rest:
                    return self._opaque(node, span)
                return replace(expression, span=span) if isinstance(expression, Column) else expression
            case exp.Literal() | exp.Null() | exp.Boolean():
                return self._literal(node, span)
        return self._opaque(node, span)

    def _literal(self, node: exp.Expr, span: Span) -> Literal:
        """A literal, with a suffix or without."""
        dtype = self.dtype(node)
        number = str(node.this.name if isinstance(node, exp.Cast) else node.name)
        digits = len(number.lstrip("0")) or 1 if dtype in INTEGERS else None
        text = openmldb.literal(self.context, node)
        if self._is_quoted(node):
            return Literal(text, dtype="string", string=string_value(text, self.context.settings), span=span)
        return Literal(text, dtype=dtype, digits=digits, span=span)

    def _is_whole_literal(self, node: exp.Expr) -> bool:
        """Whether a node of several nodes is one literal."""
        return is_suffixed(node, self._text) or self._is_quoted(node)

    def _is_quoted(self, node: exp.Expr) -> bool:
        """Whether a node is one string literal: sqlglot reads ``'it''s'`` as two beside each other."""
        plain = isinstance(node, exp.Literal) and node.is_string
        return (plain or isinstance(node, exp.Concat)) and has_place(node) and is_string(self._text(node))

    def _between(self, node: exp.Between, span: Span) -> Expression:
        """``x BETWEEN a AND b`` as two comparisons, which rules understand; as text if x must be read only once."""
        value, low, high = (self.build(item) for item in (node.this, node.args["low"], node.args["high"]))
        halves = conjunction([Compare(">=", value, low, span=span), Compare("<=", value, high, span=span)])
        return halves if halves is not None and is_movable(value) else self._opaque(node, span)

    def resolve(self, node: exp.Column) -> tuple[Expression, int]:
        """What a column reference means, and how many trailing parts of it are struct fields."""
        parts = tuple(part.name for part in node.parts)
        span = span_of(node)
        match = self.scope.find(parts, span)
        if match is not None:
            return match.visible.column, len(parts) - match.parts
        if is_literal_function(parts):
            return SparkExpr((parts[0],), dtype=LITERAL_FUNCTIONS[parts[0].lower()][0], span=span), 0
        alias = self.aliases.get(self.context.fold(parts[0]))
        if alias is not None:
            return inlined(alias, node), len(parts) - 1
        for scope in self.context.outer:
            match = scope.find(parts, span)
            if match is not None:
                return match.visible.column, len(parts) - match.parts
        variable = session_variable(self.context, parts, span)
        if variable is not None:
            return variable, 0
        raise self.scope.unknown(parts, span)

    def dtype(self, node: exp.Expr) -> str | None:
        """The type of `node`, if certain."""
        if is_period_function(node):
            return self.build(node).result_type({})
        return infer(
            node,
            self._column_type,
            self._text,
            compat=self.context.openmldb,
            exponents=self.context.settings.exponent_is_decimal,
        )

    def opaque(self, node: exp.Expr, span: Span | None = None, more: Sequence[Edit] = ()) -> SparkExpr:
        """The text at `span` (all of `node`) as an opaque expression; `more` edits come from the caller."""
        draft = Draft(list(more))
        self.collect(node, draft)
        return self.assemble(span or span_of(node), draft, self.dtype(node))

    def assemble(
        self, span: Span, draft: Draft, dtype: str | None = None, form: Form = OPAQUE, *, bare: bool = False
    ) -> SparkExpr:
        """The statement's text at `span` with the draft's edits made."""
        parts = apply_edits(self.context, span, draft.edits)
        if form.operands is not None and sum(not isinstance(part, str) for part in parts) != form.operands:
            form = OPAQUE
        return form.kind(
            parts,
            deterministic=draft.deterministic,
            has_window=draft.has_window,
            has_subquery=draft.has_subquery,
            names_collation=draft.names_collation,
            dtype=dtype,
            span=span,
            bare=bare,
            **form.fields,
        )

    def _opaque(self, node: exp.Expr, span: Span) -> SparkExpr:
        """Like `opaque`, for a node on which `replace` was already called; typed where the node's form is known."""
        if self._is_whole_literal(node):
            return SparkExpr((self._literal(node, span),), dtype=self.dtype(node), span=span)
        draft = Draft()
        form = self._operands(node, draft)
        return self.assemble(span, draft, self.dtype(node), form)

    def _operands(self, node: exp.Expr, draft: Draft) -> Form:
        """Record in `draft` the parts of a node that must not be replaced as a whole, each value as an expression.

        A whole is visited before its parts: `replace` names columns in that order. Long sums are walked without
        recursion.
        """
        signs = signs_of(node)
        if signs is not None and not openmldb.edits(self, node):
            return self._chain(node, signs, draft)
        before = len(draft.edits)
        stack = list(reversed(self._visit(node, draft)))
        form = call_form(node) if is_call(node) else form_of(node, self._text)
        if self.context.openmldb and len(draft.edits) > before:  # the text says something else
            form = openmldb.form(self, node, draft.edits[before:], form)
        while stack:
            child = stack.pop()
            parts = parts_of(child)
            if parts != [child]:
                stack += reversed(parts)
            elif isinstance(child, exp.Anonymous) and isinstance(node, WRAPPERS):  # what FILTER and the like belong to
                replaced = self.replace(child)
                if replaced is None:
                    stack += reversed(self._visit(child, draft))
                else:
                    draft.edits.append(Edit(span_of(child), (replaced,)))
                    form = OPAQUE
            elif isinstance(child, WRAPPERS) and isinstance(node, WRAPPERS):
                stack += reversed(self._visit(child, draft))
            elif form.kind is SparkExpr or form.operands == 0 or not is_operand(child):
                self.collect(child, draft)
            else:
                form = self._operand(child, draft, form, self._whole(child))
        return form

    def _chain(self, node: exp.Expr, signs: Mapping[type[exp.Expr], str], draft: Draft) -> Form:
        """Record in `draft` the operands of ``a + b - c``."""
        operators: list[str] = []
        rights: list[exp.Expr] = []
        form, left = Form(Arithmetic), node
        replaced: Expression | None = None
        while replaced is None and type(left) in signs and not (operators and openmldb.edits(self, left)):
            operators.append(signs[type(left)])
            rights.append(left.expression)
            left = left.this
            replaced = self._whole(left)
        form = self._operand(left, draft, form, replaced)
        for right in reversed(rights):
            form = self._operand(right, draft, form, self._whole(right))
        return form if form.kind is SparkExpr else chain_form(tuple(reversed(operators)))

    def _operand(self, node: exp.Expr, draft: Draft, form: Form, replaced: Expression | None) -> Form:
        """Record in `draft` the expression of a value in a typed node; returns the node's form, or that of opaque text
        if the value has no place of its own."""
        if replaced is None and not has_place(node):
            self.collect_inner(node, draft)
            return form if form.kind is FunctionCall else OPAQUE
        span = span_of(node)
        if replaced is not None:
            draft.edits.append(Edit(span, (replaced,)))
        elif is_period_predicate(node):
            draft.edits.append(Edit(span, (self.build(node),)))
        elif isinstance(node, (exp.Literal, exp.Null, exp.Boolean)) or self._is_whole_literal(node):
            draft.edits.append(Edit(span, (self._literal(node, span),)))
        elif isinstance(node, exp.Column) and not self.resolve(node)[1]:
            self._collect_column(node, draft)
        else:
            return self._nested(node, span, draft, form)
        return form

    def _nested(self, node: exp.Expr, span: Span, draft: Draft, form: Form) -> Form:
        """`_operand` for a value that is computed."""
        inner = Draft()
        inner_form = self._operands(node, inner)
        if any(edit.span.start < span.start or edit.span.end > span.end for edit in inner.edits):
            draft.edits += inner.edits
            draft.note(inner)
            return form if form.kind is FunctionCall else OPAQUE
        draft.insert(span, self.assemble(span, inner, None, inner_form, bare=True))
        return form

    def _text(self, node: exp.Expr) -> str:
        """The user's own text of a node."""
        return self.context.slice(span_of(node))

    def _column_type(self, node: exp.Column) -> str | None:
        if node.is_star:
            return None
        parts = tuple(part.name for part in node.parts)
        for scope in (self.scope, *self.context.outer):
            match = scope.find(parts, span_of(node))
            if match is None and scope is self.scope and is_literal_function(parts):
                return LITERAL_FUNCTIONS[parts[0].lower()][0]
            if match is not None:
                return field_type(match.visible.dtype, parts[match.parts :], scope.fold)
        alias = self.aliases.get(self.context.fold(parts[0]))
        if alias is not None:
            return field_type(alias.result_type({}), parts[1:], self.context.fold)
        variable = session_variable(self.context, parts, span_of(node))
        return None if variable is None else variable.dtype

    def _whole(self, node: exp.Expr) -> Expression | None:
        """The expression that takes the place of a whole node, if there is one."""
        return self.replace(node) or (self.context.parts.planned(node, self) if isinstance(node, SUBQUERIES) else None)

    def collect(self, node: exp.Expr, draft: Draft) -> None:
        """Record in `draft` what has to change in the text of `node`. Long OR chains are walked without recursion."""
        stack = [node]
        while stack:
            top = stack.pop()
            replaced = self._whole(top)
            if replaced is not None:
                draft.edits.append(Edit(span_of(top), (replaced,)))
            elif is_call(top) and has_place(top) and not is_period_predicate(top):
                self._nested(top, span_of(top), draft, OPAQUE)
            else:
                stack.extend(reversed(self._visit(top, draft)))

    def collect_inner(self, node: exp.Expr, draft: Draft) -> None:
        """Like `collect`, for a node that must not be replaced as a whole."""
        for child in self._visit(node, draft):
            self.collect(child, draft)

    def _visit(self, node: exp.Expr, draft: Draft) -> Sequence[exp.Expr]:
        """Record what has to change at `node` itself; returns the children that are still to be visited."""
        if isinstance(node, exp.Query):
            draft.has_subquery = True
            draft.edits.extend(self.context.parts.edits(node, self))
            return ()
        if isinstance(node, exp.Column) and not node.is_star:
            self._collect_column(node, draft)
            return ()
        if isinstance(node, (exp.Star, exp.Column)):
            self._collect_star(node, draft)
            return ()
        if is_period_predicate(node):
            draft.edits.append(Edit(span_of(node), (self.build(node),)))
            return ()
        if isinstance(node, exp.Window):
            draft.has_window = True
        elif isinstance(node, exp.Collate) or (isinstance(node, exp.DataType) and node.args.get("collate")):
            draft.names_collation = True
        draft.edits.extend(openmldb.edits(self, node))
        children = list(node.iter_expressions())
        self._keep_names(node, draft)
        if isinstance(node, exp.Anonymous):
            name = node.name.lower()
            draft.deterministic = draft.deterministic and name not in NONDETERMINISTIC
            draft.names_collation = draft.names_collation or name.startswith("collat")
            if name in UNIT_FUNCTIONS and _is_unit(node.expressions[:1]):
                children.remove(node.expressions[0])
        return children

    def _collect_column(self, node: exp.Column, draft: Draft) -> None:
        expression, rest = self.resolve(node)
        parts = node.parts
        last = span_of(parts[len(parts) - rest - 1])
        draft.edits.append(Edit(Span(span_of(node).start, last.end), (expression,)))
        if isinstance(expression, SparkExpr):  # a lateral alias, inlined as a whole
            draft.has_subquery = draft.has_subquery or expression.has_subquery

    def _collect_star(self, node: exp.Expr, draft: Draft) -> None:
        call = node.parent
        name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
        if isinstance(node, exp.Star) and name == "count":
            return
        qualifier = tuple(part.name for part in node.parts[:-1]) if isinstance(node, exp.Column) else ()
        columns = self.scope.star(qualifier)
        if not columns:
            raise self.scope.unknown((*qualifier, "*"), span_of(node))
        draft.edits.append(Edit(span_of(node), self._listed(columns, name)))

    def _keep_names(self, node: exp.Expr, draft: Draft) -> None:
        """The arguments of struct, of ``(a, b)`` and of arrays_zip get the names that Spark would give them in the
        statement: the type shows column names, and our names differ from the user's."""
        called = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        is_row = isinstance(node, exp.Tuple) and not isinstance(node.parent, (exp.In, exp.Values, exp.Binary))
        if called not in ("struct", "arrays_zip") and not is_row:
            return
        place = 0
        for argument in node.expressions:
            inner = unwrapped(argument)
            if isinstance(inner, (exp.Star, exp.Column)) and inner.is_star:
                qualifier = tuple(part.name for part in inner.parts[:-1]) if isinstance(inner, exp.Column) else ()
                place += len(self.scope.star(qualifier))
                continue
            place += 1
            if isinstance(inner, exp.Column):
                name = inner.name
            elif isinstance(inner, (exp.Alias, exp.Dot)) or self.replace(inner) is None:
                continue
            else:  # a window call or an aggregate, which is a column here
                name = str(place - 1) if called == "arrays_zip" else f"col{place}"
            span = span_of(argument)
            before, after = self._named("" if called == "arrays_zip" else "struct", name)
            draft.edits.append(Edit(Span(span.start, span.start), (before,)))
            draft.edits.append(Edit(Span(span.end, span.end), (after,)))

    def _named(self, called: str, name: str) -> tuple[str, str]:
        """The text before and after an argument that names it `name`: an alias, which arrays_zip does not take, or a
        field of that name."""
        if called == "struct":
            return "", f" AS {quoted(name)}"
        return f"named_struct({string_literal(name, self.context.settings)}, ", f").{quoted(name)}"

    def _listed(self, columns: Sequence[Visible], called: str) -> tuple[str | Expression, ...]:
        """The columns of a star between commas, with their names if the called function shows them."""
        parts: list[str | Expression] = []
        for item in columns:
            shown = called in ("struct", "arrays_zip")
            before, after = self._named(called, item.name) if shown else ("", "")
            parts += [", " if parts else "", before, item.column, after]
        return tuple(part for part in parts if part != "")


def inlined(expression: Expression, node: exp.Expr) -> Expression:
    """The expression of an alias of the select list, where `node` names it.

    Raises LeftToSparkError for a non-deterministic expression: Spark computes it once.
    """
    if isinstance(expression, SparkExpr) and not expression.deterministic:
        raise LeftToSparkError("naming a non-deterministic item is left to Spark", span=span_of(node))
    return expression


def is_literal_function(parts: tuple[str, ...]) -> bool:
    """Whether a name that is not a column is a function without parentheses."""
    return len(parts) == 1 and parts[0].lower() in LITERAL_FUNCTIONS


def _is_unit(arguments: Sequence[exp.Expr]) -> bool:
    unit = arguments[0] if arguments else None
    return isinstance(unit, exp.Column) and len(unit.parts) == 1 and unit.name.lower() in DATE_UNITS
