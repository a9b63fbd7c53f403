"""`sqlext examples`: the tables and notebooks to try things on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from sqlext.cli.terminal import writing
from sqlext.examples import copy_notebooks, write_flights


def run_examples(folder: Path, months: Sequence[int], notebooks: Path | None) -> None:
    """Write the tables, copy the notebooks if asked to, and say what is where."""
    with writing(folder):
        sizes = write_flights(folder, months)
    typer.echo(f"{folder} contains " + ", ".join(f"{name} ({size:,} rows)" for name, size in sizes.items()))
    if notebooks is not None:
        with writing(notebooks):
            copied = copy_notebooks(notebooks)
        typer.echo(f"{notebooks} contains " + ", ".join(path.name for path in copied))
