"""Results on the terminal: rows as a table or one below the other, in a pager where the screen is too small."""

from __future__ import annotations

import io
import os
import pydoc
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sqlext_planner.spark.results import python_values

from sqlext.cli.terminal import PIPE_WIDTH, cell, print_count, print_grid, print_lines, visible

if TYPE_CHECKING:
    import pyarrow as pa

ColorSystem = Literal["auto", "standard", "256", "truecolor", "windows"]
#: Prints something.
Draw = Callable[[Console], None]
#: Lines of the screen that the prompt and the time take.
_OTHER_LINES = 4


@dataclass(frozen=True)
class Page:
    """Text for the terminal, with its colours, and the size it needs."""

    text: str
    width: int
    height: int


def page_of(out: Console, draw: Draw, width: int = PIPE_WIDTH) -> Page:
    """What `draw` prints, for the terminal of `out`, as wide as it gets."""
    sink = io.StringIO()
    colours = out.is_terminal and not out.no_color and out.color_system is not None
    page = Console(
        file=sink,
        width=width,
        highlight=False,
        force_terminal=colours,
        color_system=cast("ColorSystem", out.color_system) if colours else None,
        legacy_windows=False,
    )
    draw(page)
    text = sink.getvalue()
    plain = Text.from_ansi(text).plain.split("\n") if colours else text.split("\n")
    lines = "\n".join(line.rstrip() for line in text.split("\n"))
    return Page(lines, max(cell_len(line.rstrip()) for line in plain), len(plain))


def show(out: Console, draw: Draw, *, folds: bool, paged: bool, environment: Mapping[str, str]) -> bool:
    """Print what `draw` prints: text that `folds` at the width of the screen, else lines as wide as they get. With
    `paged`, in the pager of the environment if the screen is too small. Says whether it was in the pager, which leaves
    nothing on the screen."""
    page = page_of(out, draw, out.width if folds and out.is_terminal else PIPE_WIDTH)
    fits = page.width <= out.width and page.height + _OTHER_LINES <= out.height
    if paged and out.is_terminal and not fits:
        out.file.flush()
        _in_pager(page.text, environment)
        return True
    if fits or not out.is_terminal:
        out.file.write(page.text)
        out.file.flush()
    else:
        draw(out)
    return False


def rows_drawn(rows: pa.Table, *, limit: int, vertical: bool) -> tuple[Draw, Draw]:
    """Draws the first `limit` rows, and how many there are; and the latter alone."""
    more = rows.num_rows > limit
    shown = rows.slice(0, limit)

    def draw(out: Console) -> None:
        (_print_vertical if vertical else print_grid)(out, shown)
        draw_count(out)

    def draw_count(out: Console) -> None:
        print_count(out, shown.num_rows, f"the first {limit:,} rows; \\limit N shows more" if more else "")

    return draw, draw_count


def listing_drawn(titles: Sequence[str], lines: Iterable[Sequence[str]], *, right: str = "") -> Draw:
    """Draws a table of texts; the columns whose titles are in `right` are numbers."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in titles:
        grid.add_column(title, justify="right" if title in right.split() else "left", overflow="fold")
    for line in lines:
        grid.add_row(*(Text(visible(text)) for text in line))
    return lambda out: out.print(grid)


def lines_drawn(text: str) -> Draw:
    """Draws a text as it is."""
    return lambda out: print_lines(out, text.splitlines())


def _print_vertical(out: Console, rows: pa.Table) -> None:
    names = [visible(name) for name in rows.column_names]
    wide = max(map(cell_len, names), default=0)
    columns = [python_values(column) for column in rows.columns]
    for number, row in enumerate(zip(*columns, strict=True), 1):
        out.print(Text(f"-- row {number} --", style="dim"))
        for name, value in zip(names, row, strict=True):
            line = Text(name + " " * (wide - cell_len(name)), style="bold")
            out.print(Text.assemble(line, "  ", cell(value)))


def _in_pager(text: str, environment: Mapping[str, str]) -> None:
    """Show text in $PAGER, in `less -S`, or in Python's own pager. Ctrl-C is the pager's."""
    command = environment.get("PAGER") or ("less" if shutil.which("less") else "")
    if not command:
        pydoc.pager(Text.from_ansi(text).plain)
        return
    # -S: long lines are cut, and the arrow keys move over them; -R: colours are colours
    given = {**os.environ, "LESS": "-SR", **environment}
    handler = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        process = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE, env=given)
        with suppress(OSError):  # the pager was left before it had read all
            process.communicate(text.encode("utf-8", "backslashreplace"))
        process.wait()
    finally:
        signal.signal(signal.SIGINT, handler)
