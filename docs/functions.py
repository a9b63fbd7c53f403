"""Writes the stubs of the functions that are made of tables, `sqlext/builders/window_functions.pyi` and
`period_functions.pyi`, for type checkers and editors: `python docs/functions.py`. A test checks that they agree."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Iterator
from inspect import Parameter
from pathlib import Path

from sqlext.builders import period_functions, window_functions

BUILDERS = Path(__file__).resolve().parent.parent / "sqlext" / "builders"

_IMPORTS = {
    "window_functions.pyi": [
        "from collections.abc import Sequence",
        "",
        "from sqlext.builders.expressions import Expr, Value",
    ],
    "period_functions.pyi": ["from sqlext.builders.expressions import Amount, Expr, PeriodLike, Value"],
}
_MODULES = {"window_functions.pyi": window_functions, "period_functions.pyi": period_functions}


def stub(name: str) -> str:
    """The stub of a module, by the stub's name: each function with its first sentence, then its other names."""
    module = _MODULES[name]
    functions = {listed: getattr(module, listed) for listed in module.__all__}
    aliases = {listed: function.__name__ for listed, function in functions.items() if function.__name__ != listed}
    listed = textwrap.wrap(", ".join(f'"{listed}"' for listed in functions), 105)
    lines = ['"""Written by `python docs/functions.py`."""', "", *_IMPORTS[name], ""]
    lines += [f"__all__ {'+=' if number else '='} [{line.rstrip(',')}]" for number, line in enumerate(listed)]
    for listed_as, function in functions.items():
        if listed_as not in aliases:
            lines += ["", *_head(listed_as, inspect.signature(function)), f'    """{_sentence(function)}"""']
    return "\n".join([*lines, "", *(f"{alias} = {function}" for alias, function in aliases.items()), ""])


#: The stubs by their names.
STUBS = tuple(_MODULES)


def _head(name: str, signature: inspect.Signature) -> Iterator[str]:
    """The line with `def`, as `ruff format` breaks it."""
    items = list(signature.parameters.values())
    parameters = [_parameter(item) for item in items if item.kind is not Parameter.KEYWORD_ONLY]
    named = [_parameter(item) for item in items if item.kind is Parameter.KEYWORD_ONLY]
    parameters += ["*", *named] if named else []
    line = f"def {name}({', '.join(parameters)}) -> {signature.return_annotation}:"
    if len(line) <= 120:
        yield line
        return
    yield f"def {name}("
    yield f"    {', '.join(parameters)}"
    yield f") -> {signature.return_annotation}:"


def _parameter(parameter: Parameter) -> str:
    if parameter.default is Parameter.empty:
        return f"{parameter.name}: {parameter.annotation}"
    default = json.dumps(parameter.default) if isinstance(parameter.default, str) else repr(parameter.default)
    return f"{parameter.name}: {parameter.annotation} = {default}"


def _sentence(function: object) -> str:
    """The first sentence of its docstring; `help` shows the rest."""
    text = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    return "\n    ".join(textwrap.wrap(text.split(". ")[0].removesuffix(".") + ".", 107))


if __name__ == "__main__":
    for name in STUBS:
        (BUILDERS / name).write_text(stub(name), encoding="utf-8")
