"""Calls of the functions of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

from sqlext_planner.expressions.scalars import coercion
from sqlext_planner.expressions.scalars.settings import ScalarSettings
from sqlext_planner.expressions.scalars.table import ANSI, FUNCTIONS, ZONE, ScalarFunction
from sqlext_planner.expressions.scalars.values import Typed, called


def function_call(name: str, arguments: Sequence[Typed], settings: ScalarSettings) -> Typed | None:
    """The call of a function; None if no row of the table fits, or if the session is not known well enough."""
    for row in FUNCTIONS.get(name, ()):
        converted = _converted(row, arguments, settings)
        if converted is None or not (settings.by_rows or row.columnar):
            continue
        result = _called(row, converted, settings)
        if result is not None:
            return result
    return None


def _called(row: ScalarFunction, arguments: Sequence[Typed], settings: ScalarSettings) -> Typed | None:
    if row.rule is not None:
        return row.rule(arguments, settings)
    zone = "UTC" if arguments[0].dtype == "timestamp_ntz" else settings.zone
    if zone is None and row.zoned:
        return None
    options = tuple(zone if item == ZONE else settings.ansi if item == ANSI else item for item in row.options)
    return called(row.kernel, arguments, row.result, options, fails=not row.total)


def _converted(row: ScalarFunction, arguments: Sequence[Typed], settings: ScalarSettings) -> list[Typed] | None:
    parameters = row.parameters.split()
    needed = sum(item[-1] not in "?*" for item in parameters)
    if len(arguments) < needed or (len(arguments) > len(parameters) and parameters[-1][-1] != "*"):
        return None
    converted: list[Typed] = []
    for value, parameter in zip(arguments, _repeated(parameters), strict=False):
        found = _argument(value, parameter.rstrip("?*"), settings)
        if found is None:
            return None
        converted.append(found)
    return converted


def _argument(value: Typed, parameter: str, settings: ScalarSettings) -> Typed | None:
    if parameter == "text":
        return value if isinstance(value.constant, str) and value.dtype == "string" else None
    return coercion.argument(value, parameter, settings)


def _repeated(parameters: Sequence[str]) -> Iterator[str]:
    yield from parameters
    if parameters[-1][-1] == "*":
        yield from repeat(parameters[-1])
