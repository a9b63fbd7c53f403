"""Terminal output that commands share: result tables, SQL, progress."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sqlext_planner.spark.results import python_values

from sqlext.cli.terminal import visible

if TYPE_CHECKING:
    import pyarrow as pa

#: Wide enough for any result: a program that reads the output must get whole lines.
PIPE_WIDTH = 1 << 14


def console() -> Console:
    """Standard output; never folds lines when it is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)


@contextmanager
def progress(what: str) -> Iterator[None]:
    """A spinner on the terminal during a long step; nothing if stderr is not a terminal."""
    with Console(stderr=True).status(what):
        yield


def print_rows(out: Console, table: pa.Table, *, more: bool = False) -> None:
    """The rows as a table, and how many there are; `more`: the result has more rows than these."""
    print_grid(out, table)
    print_count(out, table.num_rows, f"first {table.num_rows} rows" if more else "")


def print_grid(out: Console, table: pa.Table) -> None:
    """The rows as a table."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, column in zip(table.column_names, table.columns, strict=True):
        grid.add_column(Text(visible(name)), justify="right" if _is_number(column.type) else "left", overflow="fold")
    columns = [python_values(column) for column in table.columns]
    for row in zip(*columns, strict=True):
        grid.add_row(*map(cell, row))
    out.print(grid)


def print_count(out: Console, count: int, instead: str = "") -> None:
    """How many rows there are, or what is to be said instead."""
    out.print(instead or f"{count:,} row{'' if count == 1 else 's'}", style="dim")


def print_sql(out: Console, sql: str) -> None:
    """SQL, in colours on a terminal."""
    if out.is_terminal:
        from rich.syntax import Syntax

        out.print(Syntax(sql.strip(), "sql", background_color="default"))
    else:
        out.print(Text(sql.strip()))


def print_lines(out: Console, lines: Sequence[str]) -> None:
    """Text as it is: no markup, no highlighting."""
    for line in lines:
        out.print(Text(visible(line)))


def cell(value: Any) -> Text:
    """A value as it is shown; NULL is dim."""
    if value is None:
        return Text("NULL", style="dim")
    is_plain = isinstance(value, float) and value == value and abs(value) < 1e6
    return Text(f"{value:.6g}" if is_plain else visible(str(value)))


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
