"""Writes the Python functions of the tables, `sqlext/builders/window_functions.py` and `period_functions.py`:
`python docs/functions.py`. A test checks that they agree."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path

from sqlext_operators.interval_join.relations import RELATIONS, PeriodRelation
from sqlext_operators.window.functions import FUNCTIONS, Parameter, WindowFunction
from sqlext_planner.periods.functions import PERIOD_FUNCTIONS, PeriodFunctionRow

BUILDERS = Path(__file__).resolve().parent.parent / "sqlext" / "builders"

_TYPES = {"integer": "int", "boolean": "bool", "number": "float", "string": "str"}


def window_module() -> str:
    """The module with a function for each window function."""
    lines = ['"""The window functions. Written by `python docs/functions.py`."""', ""]
    lines += ["from __future__ import annotations", "", "from collections.abc import Sequence", ""]
    lines += ["from sqlext.builders.expressions import Expr, Value, call, expression"]
    lines += ["from sqlext.builders.text import literal_text"]
    functions = [function for function in FUNCTIONS.values() if not function.internal]
    names, others = [], []
    for function in functions:
        lines += ["", "", *_function(function)]
        names += function.names
        others += [f"{alias} = {function.name}" for alias in function.names[1:]]
    return _module([*lines, "", "", *others], names)


def period_module() -> str:
    """The module with a function for each period relation, also under the words of its infix form, and for each
    function that makes a period or a length."""
    lines = ['"""The period predicates and functions. Written by `python docs/functions.py`."""', ""]
    lines += ["from __future__ import annotations", ""]
    lines += ["from sqlext.builders.expressions import (", "    Amount,", "    Expr,", "    PeriodLike,", "    Value,"]
    lines += ["    period_call,", "    period_of,", "    period_or_point,", ")"]
    names, others = [], []
    for row in RELATIONS.values():
        lines += ["", "", *_relation(row)]
        names.append(row.name)
        for words in row.words:
            name = words.lower().replace(" ", "_")
            if name not in RELATIONS:
                others.append(f"{name} = {row.name}")
                names.append(name)
    for function in PERIOD_FUNCTIONS.values():
        lines += ["", "", *_period_function(function)]
        names.append(function.name)
    return _module([*lines, "", "", *others], names)


#: The modules by their names.
MODULES = {"window_functions.py": window_module, "period_functions.py": period_module}


def _module(lines: list[str], names: list[str]) -> str:
    listed = [f'    "{name}",' for name in sorted(names)]
    place = next(i for i, line in enumerate(lines) if line == "" and lines[i + 1 : i + 2] == [""])
    return "\n".join([*lines[:place], "", "__all__ = [", *listed, "]", *lines[place:], ""])


def _function(function: WindowFunction) -> Iterator[str]:
    """A function. Its constants are values of Python, its other arguments expressions; ``*`` alone is a default."""
    parameters, arguments = [], [f'"{function.name}"']
    for parameter in function.parameters:
        is_star = function.accepts_star and len(function.parameters) == 1
        is_array = function.several is not None and parameter is function.parameters[1]
        parameters.append(f'{parameter.name}: Value = "*"' if is_star else _parameter(parameter, is_array=is_array))
        arguments.append(_argument(parameter))
    yield from _head(function.name, *parameters)
    yield from _doc(function.doc, function.signature)
    yield f"    return call({', '.join(arguments)})"


def _parameter(parameter: Parameter, *, is_array: bool) -> str:
    """One parameter; `is_array`: it may be a sequence of constants."""
    kind = _TYPES.get(parameter.kind, "Value") + (" | Sequence[float]" if is_array else "")
    is_left_out = parameter.optional and not parameter.is_constant
    kind += " | None" if parameter.nullable or is_left_out else ""
    default = json.dumps(parameter.default) if isinstance(parameter.default, str) else repr(parameter.default)
    return f"{parameter.name}: {kind}" + (f" = {default}" if parameter.optional else "")


def _argument(parameter: Parameter) -> str:
    """What a call gets for a parameter; an expression may be left out."""
    if parameter.is_constant:
        return f"literal_text({parameter.name})"
    value = f"expression({parameter.name})"
    return f"*([] if {parameter.name} is None else [{value}])" if parameter.optional else value


def _head(name: str, *parameters: str) -> Iterator[str]:
    """The line with `def`, as `ruff format` breaks it."""
    line = f"def {name}({', '.join(parameters)}) -> Expr:"
    if len(line) <= 120:
        yield line
        return
    yield f"def {name}("
    yield f"    {', '.join(parameters)}"
    yield ") -> Expr:"


def _relation(row: PeriodRelation) -> Iterator[str]:
    right = "PeriodLike | Value" if row.point else "PeriodLike"
    bounds = [f"{name}: Amount | None = None" for name in row.parameters]
    yield from _head(row.name, "left: PeriodLike", f"right: {right}", *["*"] * bool(bounds), *bounds)
    signs = "r is the left period [a, b), s the right one [c, d)"
    yield from _doc(row.doc, f"SQL: {', '.join(row.words)}. {signs}: {row.formula}")
    given = "".join(f", {name}={name}" for name in row.parameters)
    take = "period_or_point" if row.point else "period_of"
    yield f'    return period_call("{row.name}", period_of(left), {take}(right){given})'


def _period_function(row: PeriodFunctionRow) -> Iterator[str]:
    periods = ["period"] if row.periods == 1 else ["left", "right"]
    yield from _head(row.name, *(f"{name}: PeriodLike" for name in periods))
    yield from _doc(row.doc, "")
    yield f'    return period_call("{row.name}", {", ".join(f"period_of({name})" for name in periods)})'


def _doc(text: str, more: str) -> Iterator[str]:
    lines = textwrap.wrap(text, 110)
    if len(lines) == 1 and not more:
        yield f'    """{lines[0]}"""'
        return
    yield f'    """{lines[0]}'
    yield from (f"    {line}" for line in lines[1:])
    yield ""
    yield from (f"    {line}" for line in textwrap.wrap(more, 114))
    yield '    """'


if __name__ == "__main__":
    for name, module in MODULES.items():
        (BUILDERS / name).write_text(module(), encoding="utf-8")
