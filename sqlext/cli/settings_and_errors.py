"""`sqlext config`: the settings, with their defaults and meaning, and their completion in a shell. `sqlext errors`:
what docs/errors.md says about an error, in the terminal."""

from __future__ import annotations

import difflib
import json
import re
import sys
import textwrap

from rich.text import Text
from sqlext_planner.config import PREFIX, Config
from sqlext_planner.errors import ConfigurationError, page

from sqlext.cli.terminal import console, exact_output

#: The width of the table where the terminal's is unknown.
_PIPE_WIDTH = 100
_PLACES = (
    "on the command line    --conf NAME=VALUE of sqlext run and sqlext plan",
    "in Python              Session(config={'NAME': 'VALUE'}), for all statements of that Session",
    "in a Spark session     SET NAME = VALUE, or spark.conf.set('NAME', 'VALUE'), for the statements after it",
)


def run_config(name: str | None, format: str) -> None:
    """Print the settings whose name contains `name`. Raises ConfigurationError if there are none."""
    part = (name or "").lower()
    settings = [one for one in Config.described() if part in one.key.lower()]
    if not settings:
        raise ConfigurationError(
            f"no setting has '{name}' in its name",
            condition="unknown-setting",
            help="`sqlext config` lists all settings",
        )
    if format == "json":
        rows = [
            {"name": setting.key, "default": setting.default, "values": setting.values, "meaning": setting.doc}
            for setting in settings
        ]
        with exact_output() as stream:
            stream.write(json.dumps(rows, indent=2) + "\n")
        return
    out = console()
    width = min(out.width, _PIPE_WIDTH) if out.is_terminal else _PIPE_WIDTH
    for setting in settings:
        line = Text(setting.key, style="bold")
        line.append(f" = {setting.default}", style="not bold")
        line.append(f"  ({setting.values})", style="dim not bold")
        out.print(line)
        out.print(Text(textwrap.indent(textwrap.fill(setting.doc, width - 4), "    ")))
    out.print("\nEach can be set", style="bold")
    for place in _PLACES:
        out.print(Text(f"  {place}"))


def completed_names(incomplete: str) -> list[tuple[str, str]]:
    """Names that begin with what was typed, without `sqlext.` if that was not; with the first sentence of the doc."""
    start = "" if incomplete and PREFIX.startswith(incomplete[: len(PREFIX)]) else PREFIX
    named = [(found.key.removeprefix(start), found.doc.split(". ")[0]) for found in Config.described()]
    return [(name, doc) for name, doc in named if name.startswith(incomplete)]


def completed_settings(incomplete: str) -> list[str]:
    """`NAME=` for the settings that begin with what was typed, `NAME=VALUE` once the name is whole."""
    name, sign, value = incomplete.partition("=")
    if not sign:
        return [f"{found.key}=" for found in Config.described() if found.key.lower().startswith(name.lower())]
    values = [word for found in Config.described() if found.key.lower() == name.lower() for word in found.words]
    return [f"{name}={word}" for word in values if word.startswith(value)]


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
        width = max(map(len, known))
        for each, body in known.items():
            sys.stdout.write(f"{each:<{width}}  {' '.join(body.split(chr(10) * 2, 1)[0].split())}\n")
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
        from rich.markdown import Markdown  # it loads a parser

        console().print(Markdown(text))
    else:
        sys.stdout.write(text)
