"""`sqlext errors`: what docs/errors.md says about an error, in the terminal."""

from __future__ import annotations

import difflib
import re
import sys

from rich.markdown import Markdown
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.pages import page

from sqlext.cli.console import console

_ENTRY = re.compile(r"^### ([\w-]+)\n\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_FOR_TESTS = re.compile(r"^<!-- fails: .*? -->\n", re.MULTILINE)


def entries() -> dict[str, str]:
    """The entries of the page by their conditions, in its order, as Markdown without the heading."""
    text = page("errors.md").read_text(encoding="utf-8")
    return {name: _FOR_TESTS.sub("", body).strip() for name, body in _ENTRY.findall(text)}


def run_errors(name: str | None) -> None:
    """Print the entry of a condition; without a name, all conditions with the first sentence of each.

    Raises ConfigurationError for a name that is none.
    """
    known = entries()
    if name is None:
        _print_list(known)
        return
    condition = name.strip().rpartition("#")[2].lower()  # also as a message shows it: docs/errors.md#NAME
    if condition not in known:
        near = difflib.get_close_matches(condition, known, 1, 0.4)
        raise ConfigurationError(
            f"there is no error condition '{name}'",
            condition="command-line",
            help=(f"did you mean '{near[0]}'? " if near else "") + "`sqlext errors` lists all",
        )
    text = f"### {condition}\n\n{known[condition]}\n"
    if sys.stdout.isatty():
        console().print(Markdown(text))
    else:
        sys.stdout.write(text)


def _print_list(known: dict[str, str]) -> None:
    width = max(map(len, known))
    for name, body in known.items():
        sys.stdout.write(f"{name:<{width}}  {' '.join(body.split(chr(10) * 2, 1)[0].split())}\n")
