"""Calls of the table's window functions: arguments, literals, types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sqlext_operators.window.functions import FUNCTIONS, FunctionTypeError, Parameter, WindowFunction, lookup
from sqlext_planner.errors import SqlExtError, UnsupportedError
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.expressions.typed import cast
from sqlext_planner.expressions.types import from_arrow, to_arrow
from sqlext_planner.window.nodes import WindowCall
from sqlglot import exp

from sqlext.analyzer.amounts import whole_number
from sqlext.analyzer.call_forms import (
    FORMS,
    Modified,
    called,
    conditions,
    distinct_form,
    modified,
    several,
    takes_ignore_null,
)
from sqlext.analyzer.context import Context, suggestions
from sqlext.analyzer.expressions import ExpressionBuilder
from sqlext.syntax.spans import mistake, span_of, unsupported
from sqlext.syntax.spark_functions import WINDOW_FUNCTIONS
from sqlext.syntax.sql_settings import is_string, string_value

_wrong_arguments = partial(mistake, "function-arguments")

Scalar = int | float | str | bool | None

#: What functions have as names in other systems, by what they are called here.
_OTHER_NAMES = {
    "bool_or": "any_match bool_any logical_or",
    "bool_and": "all_match logical_and",
    "approx_count_distinct": "approx_distinct",
    "max_by": "arg_max argmax",
    "min_by": "arg_min argmin",
    "collect_list": "array_concat_agg group_array list",
    "distinct_count": "count_distinct uniq",
    "count_if": "countif",
    "listagg": "group_concat",
    "percentile": "quantile",
    "stddev": "stdev",
    "sum_where": "sumif",
}
_ELSEWHERE = {name: own for own, names in _OTHER_NAMES.items() for name in names.split()}
#: Types of numbers, each wider than those before it.
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")

_INSTEAD = {
    "any": "write some(x) or bool_or(x)",
    "lead": "use lag over a window that looks ahead, or first_value over ROWS BETWEEN 1 FOLLOWING AND 1 FOLLOWING",
    "row_number": "use count(*) over ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
}


def window_call(
    builder: ExpressionBuilder, node: exp.Expr, column: Column, *, whole: bool, in_argument: bool = False
) -> WindowCall:
    """One call. `whole`: it is a select item by itself, where lag counts rows of the partition. In OpenMLDB mode lag
    counts rows of the frame inside a larger expression (docs/reference/windows.md, section 5); otherwise it means the
    same there. `in_argument`: the call is in the argument of an aggregate, whose window it then reads.

    Raises AnalysisError for a wrong number, kind or type of arguments, UnsupportedError for a modifier that the
    function does not take.
    """
    made = modified(node)
    function = _function(made, builder.context)
    function, arguments = several(function, list(made.arguments))
    values = _paired(function, made.call, arguments)
    star = bool(values) and isinstance(values[0][1], exp.Star)
    built = _arguments(builder, function, values)
    complete = _ignoring_nulls(function, made, built.constants, _complete(function, built.constants, node))
    openmldb = builder.context.openmldb
    if openmldb and built.types and built.types[0] is not None:
        _refuse_beyond_openmldb(function, built.types[0], node)
    given = [argument for parameter, argument in values if not parameter.is_constant]
    dtype = _result_type(function, built.types, given, node, star=star, openmldb=openmldb)
    in_frame = function.positional and not whole and (in_argument or openmldb)
    if in_frame:
        _refuse_beyond_frame(function, made, built.args, node)
    _check_filter(builder, made)
    condition = conditions(function, made, built.args[0] if built.args else None, builder.build)
    args = built.args if condition is None else [*built.args, condition]
    name = "frame_at" if in_frame else function.name
    filtered = condition is not None
    return WindowCall(name, tuple(args), complete, column, dtype, openmldb, filtered, span=span_of(node))


@dataclass(frozen=True)
class _Arguments:
    """The arguments of a call that are columns, with their types, and its literals."""

    args: list[Expression] = field(default_factory=list)
    types: list[str | None] = field(default_factory=list)
    constants: list[Scalar] = field(default_factory=list)


def _arguments(
    builder: ExpressionBuilder, function: WindowFunction, values: Sequence[tuple[Parameter, exp.Expr]]
) -> _Arguments:
    built = _Arguments()
    for parameter, argument in values:
        if parameter.is_constant:
            built.constants.append(_constant(builder.context, function, parameter, argument))
        elif not isinstance(argument, exp.Star):
            value, dtype = builder.build(argument), builder.dtype(argument)
            if parameter.name == "default" and dtype != built.types[0]:
                value, dtype = _as_value(value, dtype, built.types[0], function, argument)
            built.args.append(value)
            built.types.append(dtype)
    return built


def _refuse_beyond_frame(function: WindowFunction, made: Modified, args: Sequence[Expression], node: exp.Expr) -> None:
    if function.name != "lag" or made.nulls is not None or len(args) > 1:
        raise unsupported(
            "call-modifier",
            node,
            f"{function.name}() counts the rows of the frame here, and takes no default and no IGNORE NULLS there",
            "make it a select item of its own",
        )


def _function(made: Modified, context: Context) -> WindowFunction:
    """The function that computes a call. Raises AnalysisError if there is none, UnsupportedError for a DISTINCT that it
    does not take."""
    function = lookup(made.call.name)
    if function is None or (context.openmldb and function.name in _INSTEAD):
        raise unknown_function(made.call)
    return function if made.distinct is None else distinct_form(function, made)


def _ignoring_nulls(
    function: WindowFunction, made: Modified, given: Sequence[Scalar], complete: tuple[Scalar, ...]
) -> tuple[Scalar, ...]:
    """The constants with IGNORE NULLS as the function's own parameter. Raises AnalysisError if both are there."""
    if made.nulls is None or not takes_ignore_null(function):
        return complete
    place = [parameter.name for parameter in function.constant_parameters].index("ignore_null")
    if len(given) > place:
        raise _wrong_arguments(
            made.nulls,
            f"{function.name}() has {function.constant_parameters[place].name} twice",
            "leave out the argument, or the words behind the call",
        )
    return (*complete[:place], isinstance(made.nulls, exp.IgnoreNulls), *complete[place + 1 :])


def _check_filter(builder: ExpressionBuilder, made: Modified) -> None:
    dtype = None if made.filter is None else builder.dtype(made.filter)
    if made.filter is not None and dtype not in (None, "boolean", "void"):
        raise _wrong_arguments(
            made.filter,
            f"the condition of FILTER must be boolean, not {dtype}",
            "write a comparison, for example x > 0",
        )


def _as_value(
    default: Expression, dtype: str | None, value_type: str | None, function: WindowFunction, node: exp.Expr
) -> tuple[Expression, str | None]:
    """A default in the type of the value: NULL, and a number of a narrower type. Raises AnalysisError for another."""
    if dtype is None or value_type is None:
        return default, dtype
    is_literal = isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()
    order = [
        _NUMBERS.index(name.partition("(")[0]) for name in (dtype, value_type) if name.partition("(")[0] in _NUMBERS
    ]
    if dtype != "void" and (len(order) < 2 or (order[0] > order[1] and not is_literal)):
        raise _wrong_arguments(
            node,
            f"the default of {function.name}() is {dtype}, and its value is {value_type}",
            f"cast it: CAST(... AS {value_type.upper()})",
        )
    return replace(cast(default, value_type), span=span_of(node)), value_type


def takes_plainly(name: str, dtype: str) -> bool:
    """Whether the function takes values of the type, and both it and Spark see the same values as equal. That excludes
    strings with a collation, padded strings and types that Arrow does not have."""
    try:
        arrow = to_arrow(dtype)
        FUNCTIONS[name].result_type([arrow])
    except (UnsupportedError, FunctionTypeError):
        return False
    return from_arrow(arrow) == dtype


def unknown_function(node: exp.Expr) -> SqlExtError:
    """The error for one of our OVERs after something that is not in the table."""
    node = called(node)
    name = node.name if isinstance(node, exp.Anonymous) else type(node).__name__.lower()
    span = span_of(node)
    public = [name for function in FUNCTIONS.values() if not function.internal for name in function.names]
    if name.lower() in ("percentile_cont", "percentile_disc"):
        raise _wrong_arguments(span, f"{name}() needs an order WITHIN GROUP", f"write {FORMS[name.lower()]} OVER w")
    if name.lower() in _INSTEAD:
        return mistake(
            "unknown-function", span, f"{name}() is not available over a sqlext window", _INSTEAD[name.lower()]
        )
    nearest = suggestions(_ELSEWHERE.get(name.lower(), name), public)
    if nearest and name.lower() not in WINDOW_FUNCTIONS:
        return mistake(
            "unknown-function",
            span,
            f"window function '{name}' not found",
            f"did you mean {' or '.join(map(repr, nearest))}?",
        )
    listing = f"available: {', '.join(dict.fromkeys(public))}"
    return mistake("unknown-function", span, f"{name}() is not available over a sqlext window", listing)


def _paired(
    function: WindowFunction, node: exp.Anonymous, arguments: list[exp.Expr]
) -> list[tuple[Parameter, exp.Expr]]:
    """Parameters with their arguments, in order."""
    if arguments and isinstance(arguments[0], exp.Star) and not function.accepts_star:
        raise _wrong_arguments(node, f"{function.name}(*) is not allowed", f"write {function.signature}")
    parameters = list(function.parameters)
    least = sum(not parameter.optional for parameter in parameters)
    variadic = bool(parameters) and parameters[-1].variadic
    if len(arguments) < least or (len(arguments) > len(parameters) and not variadic):
        raise _wrong_arguments(
            node,
            f"{function.name}() does not take {len(arguments)} argument{'' if len(arguments) == 1 else 's'}",
            f"write {function.signature}",
        )
    if variadic:
        parameters += parameters[-1:] * (len(arguments) - len(parameters))
    return list(zip(parameters, arguments, strict=False))


def _constant(context: Context, function: WindowFunction, parameter: Parameter, node: exp.Expr) -> Scalar:
    """A literal argument. Raises AnalysisError for anything else."""
    match node:
        case exp.Boolean():
            return bool(node.this)
        case exp.Null() if parameter.nullable:
            return None
        case exp.Literal() | exp.Concat() if parameter.kind == "string" and is_string(context.slice(span_of(node))):
            return string_value(context.slice(span_of(node)), context.settings)
        case exp.Cast(this=exp.HexString() as text) if parameter.kind == "string":  # no literal can hold it
            return bytes.fromhex(context.slice(span_of(text))[2:-1]).decode()
        case exp.Paren():
            return _constant(context, function, parameter, node.this)
    number = _number(node)
    if number is not None and (isinstance(number, int) or parameter.kind == "number"):
        return number
    raise _wrong_arguments(
        node,
        f"{parameter.name} of {function.name}() must be a literal {parameter.kind}, "
        f"not {context.slice(span_of(node))!r}",
        f"write {function.signature}",
    )


def _number(node: exp.Expr) -> int | float | None:
    """The value of a number literal: ``3``, ``-3``, ``0.5``, ``5L``, ``bigint(5)``.

    Raises AnalysisError for a whole number beyond bigint.
    """
    match node:
        case exp.Literal() if not node.is_string:
            if not node.name.isdigit():
                return float(node.name)
            return whole_number(node.name, span_of(node), "the number")
        case exp.Neg():
            inner = _number(node.this)
            return None if inner is None else -inner
        case exp.Cast(this=exp.Literal() as inner) if not inner.is_string:
            return _number(inner)
    return None


def _complete(function: WindowFunction, constants: list[Scalar], node: exp.Expr) -> tuple[Scalar, ...]:
    try:
        return tuple(function.complete_constants(constants))
    except FunctionTypeError as error:
        raise _wrong_arguments(node, error.message, error.help) from None


def _refuse_beyond_openmldb(function: WindowFunction, dtype: str, node: exp.Expr) -> None:
    try:
        refused = to_arrow(dtype) in function.openmldb_refuses
    except UnsupportedError:  # a type that Arrow does not have; nor does OpenMLDB
        return
    if refused:
        raise _wrong_arguments(
            called(node).expressions[0],
            f"{function.name}() does not take {dtype} in OpenMLDB",
            "cast the argument, for example to int, or read the statement without compat='openmldb'",
        )


def _result_type(
    function: WindowFunction,
    types: list[str | None],
    arguments: list[exp.Expr],
    node: exp.Expr,
    *,
    star: bool,
    openmldb: bool,
) -> str | None:
    """The call's type if all argument types are known. Raises AnalysisError for a type that the function refuses."""
    known = [item for item in types if item is not None]
    if len(known) != len(types):
        return None
    try:
        return from_arrow(function.result_type([to_arrow(item) for item in known], openmldb=openmldb))
    except FunctionTypeError as error:
        plain = [item for item in arguments if not (star and isinstance(item, exp.Star))]
        index = getattr(error, "argument", None)
        place = plain[index] if index is not None and index < len(plain) else node
        raise _wrong_arguments(place, error.message, error.help) from None
    except UnsupportedError:
        return None
