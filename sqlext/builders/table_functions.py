"""Functions of Python made of the product's tables: of window functions, of period relations, of period functions.

`window_functions.py` and `period_functions.py` hold them, each under all its names. Type checkers and editors read the
stubs beside these, which `python docs/functions.py` writes from the same signatures.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any

from sqlext_operators.interval_join.relations import RELATIONS, PeriodRelation
from sqlext_operators.window.functions import FUNCTIONS, WindowFunction
from sqlext_operators.window.functions import Parameter as TableParameter
from sqlext_planner.periods.functions import PERIOD_FUNCTIONS, PeriodFunctionRow

from sqlext.builders.expressions import Expr, call, expression, period_call, period_of, period_or_point
from sqlext.builders.text import literal_text

BuilderFunction = Callable[..., Expr]

#: The types of constants; any other argument is a `Value`.
_TYPES = {"integer": "int", "boolean": "bool", "number": "float", "string": "str"}


def window_functions(module: str) -> dict[str, BuilderFunction]:
    """A function for each window function, by all its names, as functions of a module."""
    functions: dict[str, BuilderFunction] = {}
    for row in FUNCTIONS.values():
        if not row.internal:
            functions |= dict.fromkeys(row.names, _window_function(row, module))
    return functions


def period_functions(module: str) -> dict[str, BuilderFunction]:
    """A function for each period relation, also under the words of its infix form, and for each function that makes a
    period or a length, as functions of a module."""
    functions: dict[str, BuilderFunction] = {}
    for row in RELATIONS.values():
        infix = [words.lower().replace(" ", "_") for words in row.words]
        names = [row.name, *(name for name in infix if name not in RELATIONS)]
        functions |= dict.fromkeys(names, _relation(row, module))
    return functions | {row.name: _period_function(row, module) for row in PERIOD_FUNCTIONS.values()}


def _window_function(row: WindowFunction, module: str) -> BuilderFunction:
    """Its constants are values of Python, its other arguments expressions; ``*`` alone is a default."""
    parameters = []
    for item in row.parameters:
        if row.accepts_star and len(row.parameters) == 1:
            parameters.append(_parameter(item.name, "Value", "*"))
        else:
            is_array = row.several is not None and item is row.parameters[1]
            parameters.append(_parameter(item.name, _type(item, is_array), item.default if item.optional else ...))

    def written(arguments: Mapping[str, Any]) -> Expr:
        texts: list[str | Expr] = []
        for item in row.parameters:
            value = arguments[item.name]
            if item.is_constant:
                texts.append(literal_text(value))
            elif value is not None or not item.optional:
                texts.append(expression(value))
        return call(row.name, *texts)

    return _function(row.name, module, _doc(row.doc, row.signature), parameters, written)


def _relation(row: PeriodRelation, module: str) -> BuilderFunction:
    parameters = [
        _parameter("left", "PeriodLike"),
        _parameter("right", "PeriodLike | Value" if row.point else "PeriodLike"),
        *(_parameter(name, "Amount | None", None, kind=Parameter.KEYWORD_ONLY) for name in row.parameters),
    ]
    operand = period_or_point if row.point else period_of

    def written(arguments: Mapping[str, Any]) -> Expr:
        bounds = {name: arguments[name] for name in row.parameters}
        return period_call(row.name, period_of(arguments["left"]), operand(arguments["right"]), **bounds)

    signs = "r is the left period [a, b), s the right one [c, d)"
    doc = _doc(row.doc, f"SQL: {', '.join(row.words)}. {signs}: {row.formula}")
    return _function(row.name, module, doc, parameters, written)


def _period_function(row: PeriodFunctionRow, module: str) -> BuilderFunction:
    names = ["period"] if row.periods == 1 else ["left", "right"]

    def written(arguments: Mapping[str, Any]) -> Expr:
        return period_call(row.name, *map(period_of, arguments.values()))

    return _function(row.name, module, _doc(row.doc), [_parameter(name, "PeriodLike") for name in names], written)


def _function(
    name: str, module: str, doc: str, parameters: Sequence[Parameter], written: Callable[[Mapping[str, Any]], Expr]
) -> BuilderFunction:
    """A function with this name and signature; `written` makes the expression of its arguments by name. It raises
    TypeError as any function of Python does."""
    signature = inspect.Signature(parameters, return_annotation="Expr")

    def function(*args: Any, **kwargs: Any) -> Expr:
        try:
            arguments = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        arguments.apply_defaults()
        return written(arguments.arguments)

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = module, doc
    function.__annotations__ = {item.name: item.annotation for item in parameters} | {"return": "Expr"}
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _parameter(
    name: str, annotation: str, default: Any = ..., kind: Any = Parameter.POSITIONAL_OR_KEYWORD
) -> Parameter:
    """A parameter; one without a default has ``...``."""
    return Parameter(name, kind, annotation=annotation, default=Parameter.empty if default is ... else default)


def _type(parameter: TableParameter, is_array: bool) -> str:
    """The type of an argument; `is_array`: it may be a sequence of constants."""
    is_left_out = parameter.optional and not parameter.is_constant
    kind = _TYPES.get(parameter.kind, "Value") + (" | Sequence[float]" if is_array else "")
    return kind + (" | None" if parameter.nullable or is_left_out else "")


def _doc(text: str, more: str = "") -> str:
    paragraphs = [textwrap.wrap(text, 110), *([textwrap.wrap(more, 114)] if more else [])]
    return "\n\n".join("\n".join(lines) for lines in paragraphs)
