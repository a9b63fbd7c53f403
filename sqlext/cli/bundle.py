"""`sqlext bundle`: what executors need, as one file."""

from __future__ import annotations

from pathlib import Path

import typer
from sqlext_planner.bundle import environment_name, write_environment, write_zip, zip_name

from sqlext.cli.terminal import progress, writing


def run_bundle(output: Path | None, kind: str, python: Path | None) -> None:
    """Write the bundle and print its path. `output` may be a folder; None is the current one.

    Raises OSError, and ConfigurationError if a package that executors need is missing here.
    """
    if kind == "zip" and python is not None:
        raise typer.BadParameter("--python is for --kind venv: a zip of modules has no Python of its own")
    place = Path() if output is None else output
    target = place / (zip_name() if kind == "zip" else environment_name()) if place.is_dir() else place
    with writing(target), progress("Packing"):
        if kind == "zip":
            write_zip(target)
        else:
            write_environment(target, python)
    typer.echo(target)
