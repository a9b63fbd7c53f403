"""`sqlext config`: the settings, with their defaults and meaning; and their completion in a shell."""

from __future__ import annotations

import json
import textwrap

from rich.text import Text
from sqlext_planner.config import PREFIX, Config
from sqlext_planner.errors import ConfigurationError

from sqlext.cli.console import console
from sqlext.cli.terminal import exact_output

#: The width of the table where the terminal's is unknown.
_PIPE_WIDTH = 100
_PLACES = (
    "on the command line    --conf NAME=VALUE of sqlext run and sqlext plan",
    "in Python              Session(config={'NAME': 'VALUE'}), for all statements of that Session",
    "in a Spark session     SET NAME = VALUE, or spark.conf.set('NAME', 'VALUE'), for the statements after it",
)


def run_config(name: str | None, format: str) -> None:
    """Print the settings whose name contains `name`. Raises ConfigurationError if there are none."""
    wanted = (name or "").lower()
    settings = [setting for setting in Config.described() if wanted in setting.key.lower()]
    if not settings:
        raise ConfigurationError(
            f"no setting has '{name}' in its name",
            condition="unknown-setting",
            help="`sqlext config` lists all settings",
        )
    if format == "json":
        rows = [
            {"name": found.key, "default": found.default, "values": found.values, "meaning": found.doc}
            for found in settings
        ]
        with exact_output() as stream:
            stream.write(json.dumps(rows, indent=2) + "\n")
        return
    out = console()
    width = min(out.width, _PIPE_WIDTH) if out.is_terminal else _PIPE_WIDTH
    for found in settings:
        line = Text(found.key, style="bold")
        line.append(f" = {found.default}", style="not bold")
        line.append(f"  ({found.values})", style="dim not bold")
        out.print(line)
        out.print(Text(textwrap.indent(textwrap.fill(found.doc, width - 4), "    ")))
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
