"""Parts of OpenMLDB's dialect that Spark reads differently, as edits of the text (compat="openmldb" only).

`==`, `!x`, double-quoted strings, `5L` and most casts as functions mean the same in Spark and need no edit. The
differences: a decimal literal is a double, a timestamp is a number of milliseconds wherever it meets an integer, and
some scalar functions have other names (`sqlext.analyzer.compat`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlext_planner.errors import Span
from sqlext_planner.expressions.arithmetic import FLOATS, INTEGERS
from sqlext_planner.expressions.nodes import Expression, Literal, SparkExpr
from sqlext_planner.expressions.typed import Cast, FunctionCall, Operation, Paren, call
from sqlglot import exp

from sqlext.analyzer import call_forms
from sqlext.analyzer.compat_functions import (
    CALENDAR,
    MISSING,
    NUMERIC_CASTS,
    RENAMED,
    SPLITS,
    TEMPLATES,
    TYPE_NAMES,
    datetime_pattern,
    split_template,
)
from sqlext.analyzer.context import Context
from sqlext.analyzer.edits import Edit, filled
from sqlext.analyzer.forms import OPAQUE, Form
from sqlext.syntax.spans import has_place, span_of, unsupported
from sqlext.syntax.sql_settings import string_literal, string_value

if TYPE_CHECKING:
    from sqlext.analyzer.expressions import ExpressionBuilder


_NUMBERS = (*INTEGERS, *FLOATS)


def literal(context: Context, node: exp.Expr) -> str:
    """A literal's text; a decimal literal is a double in OpenMLDB."""
    span = span_of(node)
    text = context.slice(span)
    return f"{text}D" if context.openmldb and _is_bare_decimal(node, text) else text


def edits(builder: ExpressionBuilder, node: exp.Expr) -> list[Edit]:
    """What has to change in the text of `node` itself, not counting its children.

    Raises UnsupportedError for an OpenMLDB function without a counterpart in Spark.
    """
    if not builder.context.openmldb:
        return []
    match node:
        case exp.Literal():
            span = span_of(node)
            text = builder.context.slice(span)
            return [Edit(span, (f"{text}D",))] if _is_bare_decimal(node, text) else []
        case exp.Add() | exp.Sub():
            return _milliseconds(builder, node)
        case exp.Cast():
            return _cast(builder, node)
        case exp.Anonymous() if "start" in node.meta:
            return _call(builder, node)
    return []


#: Names of `Operation` for numbers of milliseconds that are added to times, by the kind of node and whether the time
#: stands on the left.
_SHIFTS = {(exp.Add, True): "+ ms", (exp.Add, False): "ms +", (exp.Sub, True): "- ms"}


def form(builder: ExpressionBuilder, node: exp.Expr, changes: list[Edit], form: Form) -> Form:
    """What is known of a node whose text `changes` have changed; `form` is what would be known of it without them."""
    if isinstance(node, (exp.Add, exp.Sub)):
        is_time = builder.dtype(node.left) == "timestamp"
        return Form(Operation, {"name": _SHIFTS[(type(node), is_time)]}, 2)
    if form.kind is Cast and all(isinstance(part, FunctionCall) for edit in changes for part in edit.parts):
        return form
    if form.kind is not FunctionCall or not isinstance(node, exp.Anonymous):
        return OPAQUE
    name = node.name.lower()
    for edit in changes:
        place = Span(node.meta["start"], node.meta["end"] + 1)
        if edit.span == place and isinstance(edit.parts[0], str):
            name = edit.parts[0]
        elif not isinstance(edit.parts[0], (FunctionCall, Literal)):
            return Form(FunctionCall, {**form.fields, "name": ""})
    return Form(Paren, {}, 1) if not name else Form(FunctionCall, {**form.fields, "name": name})


def _milliseconds(builder: ExpressionBuilder, node: exp.Binary) -> list[Edit]:
    """``ts + 5`` and ``ts - 5``: the integer counts milliseconds."""
    left, right = builder.dtype(node.left), builder.dtype(node.right)
    if left == "timestamp" and right in INTEGERS:
        return _wrap(node.right, "(INTERVAL '0.001' SECOND * (", "))")
    if isinstance(node, exp.Add) and left in INTEGERS and right == "timestamp":
        return _wrap(node.left, "(INTERVAL '0.001' SECOND * (", "))")
    return []


def _cast(builder: ExpressionBuilder, node: exp.Cast) -> list[Edit]:
    """CAST between timestamps and numbers counts milliseconds; types have OpenMLDB's names."""
    if not has_place(node.to):  # a literal with a suffix
        return []
    place = span_of(node.to)
    written = builder.context.slice(place).lower()
    changes = [Edit(place, (TYPE_NAMES[written],))] if written in TYPE_NAMES else []
    source, target = builder.dtype(node.this), TYPE_NAMES.get(written, written)
    if source == "timestamp" and target in _NUMBERS:
        changes.append(_called(builder, "unix_millis", node.this))
    if source in INTEGERS and target == "timestamp":
        changes.append(_called(builder, "timestamp_millis", node.this))
    return changes


def _call(builder: ExpressionBuilder, node: exp.Anonymous) -> list[Edit]:
    """A scalar function of OpenMLDB's library under Spark's name, or as an expression."""
    name, arguments = node.name.lower(), list(node.expressions)
    _refuse_missing(name, node)
    template = call_forms.template(node) or TEMPLATES.get((name, len(arguments)))
    if template is not None and not (name == "add" and "timestamp" in map(builder.dtype, arguments)):
        return [Edit(span_of(node), _filled(builder, template, arguments))]
    if name in SPLITS and len(arguments) == SPLITS[name][0] + 1 and all(map(_is_text, arguments[1:])):
        template = split_template(
            name, [_value(builder, argument) for argument in arguments[1:]], builder.context.settings
        )
        return [Edit(span_of(node), _filled(builder, template, arguments[:1]))]
    place = Span(node.meta["start"], node.meta["end"] + 1)
    changes = [Edit(place, (RENAMED[name],))] if name in RENAMED else []
    if name == "date_format" and len(arguments) == 2:
        return _date_format(builder, arguments[1])
    if name == "add" and len(arguments) == 2:  # a timestamp and a number, in either order
        template = "({0} + INTERVAL '0.001' SECOND * ({1}))"
        ordered = arguments if builder.dtype(arguments[0]) == "timestamp" else arguments[::-1]
        return [Edit(span_of(node), _filled(builder, template, ordered))]
    if len(arguments) != 1:
        return changes
    dtype = builder.dtype(arguments[0])
    if name == "timestamp" and dtype in INTEGERS:
        return [Edit(place, ("timestamp_millis",))]
    if name in NUMERIC_CASTS and dtype == "timestamp":
        return [*changes, _called(builder, "unix_millis", arguments[0])]
    if name in CALENDAR and dtype == "bigint":
        return [*changes, _called(builder, "timestamp_millis", arguments[0])]
    return changes


def _date_format(builder: ExpressionBuilder, pattern: exp.Expr) -> list[Edit]:
    """Translates the C format of a literal to Spark's letters; a text without % is in Spark's already."""
    if not (_is_text(pattern) and "%" in pattern.name):
        return []
    spark = datetime_pattern(_value(builder, pattern), span_of(pattern))
    text = string_literal(spark, builder.context.settings)
    return [Edit(span_of(pattern), (Literal(text, dtype="string", string=spark, span=span_of(pattern)),))]


def _refuse_missing(name: str, node: exp.Anonymous) -> None:
    is_pointer = (
        name == "get_json_object"
        and len(node.expressions) == 2
        and _is_text(node.expressions[1])
        and node.expressions[1].name.startswith("/")
    )
    if name in MISSING or is_pointer:
        span = span_of(node.expressions[1]) if is_pointer else span_of(node)
        help = "write the path as Spark does, '$.a.b' for '/a/b'" if is_pointer else MISSING[name]
        what = "JSON pointer" if is_pointer else f"{node.name}()"
        raise unsupported("no-equivalent", span, f"OpenMLDB's {what} has no equivalent in Spark", help)


def _filled(builder: ExpressionBuilder, template: str, arguments: list[exp.Expr]) -> tuple[str | Expression, ...]:
    """`template` with the arguments' expressions in place of ``{0}``, ``{1}``."""
    values = [builder.build(argument) for argument in arguments]
    return filled(template, lambda place: values[int(place)])


def _called(builder: ExpressionBuilder, name: str, argument: exp.Expr) -> Edit:
    """A call in the place of its argument."""
    inner = builder.build(argument)
    inner = replace(inner, bare=True) if isinstance(inner, SparkExpr) else inner
    return Edit(span_of(argument), (replace(call(name, inner, span=span_of(argument)), bare=True),))


def _wrap(node: exp.Expr, before: str, after: str) -> list[Edit]:
    span = span_of(node)
    return [Edit(Span(span.start, span.start), (before,)), Edit(Span(span.end, span.end), (after,))]


def _value(builder: ExpressionBuilder, text: exp.Expr) -> str:
    return string_value(builder.context.slice(span_of(text)), builder.context.settings)


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


def _is_bare_decimal(node: exp.Expr, text: str) -> bool:
    """``0.5`` without a suffix (the suffix belongs to the same token)."""
    return isinstance(node, exp.Literal) and not node.is_string and "." in text and not text[-1].isalpha()
