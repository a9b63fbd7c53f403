"""Charts of the figures in docs/benchmarks.md, as SVG that needs nothing else: `python docs/tables.py` writes them.

A chart has its own ground, light or dark as the reader's system is, so that it can be read on any page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent / "benchmarks.md"
FOLDER = Path(__file__).resolve().parent / "figures"

_WIDTH, _LEFT, _RIGHT = 460, 130, 70
_BAR, _TITLE, _GAP = 18, 46, 24
_STYLE = """
  .ground { fill: #ffffff; stroke: #c9ccd1 } text { fill: #1c1e21; font: 12px system-ui, sans-serif }
  .title { font-weight: 600; font-size: 13px } .small { fill: #565b63; font-size: 10px }
  .ours { fill: #0b6e8f } .other { fill: #9aa3ad }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #17191d; stroke: #43474e } text { fill: #e8eaed } .small { fill: #aab0b8 }
    .ours { fill: #4db8d8 } .other { fill: #6c757f }
  }
"""


@dataclass(frozen=True)
class Figure:
    """One chart: the table of benchmarks.md that it shows, by its first heading, and its cases and contestants."""

    name: str
    title: str
    table: str
    cases: str
    contestants: tuple[str, ...]

    def bars(self) -> list[Bar]:
        """What is drawn, in the order of the table. Raises ValueError if the table has none of it."""
        rows = recorded(self.table)
        found = [bar for bar in rows if re.match(self.cases, bar.case) and bar.contestant in self.contestants]
        if not found:
            raise ValueError(f"benchmarks.md has no figures for the chart {self.name}")
        return found


@dataclass(frozen=True)
class Bar:
    """One figure: `text` as the table has it, such as ``>20.03`` or ``25.66*``."""

    case: str
    contestant: str
    text: str

    @property
    def value(self) -> float:
        return float(self.text.strip(">*"))


FIGURES = (
    Figure(
        "windows",
        "Windows: sum and count over two tables of 5M rows",
        "windows",
        "2 x 5M",
        ("ours", "spark", "spark-segment-tree", "duckdb"),
    ),
    Figure(
        "features",
        "Feature scripts of FEBench, 1M rows",
        "feature scripts",
        "Q[012]",
        ("ours", "spark", "floor"),
    ),
    Figure(
        "intervals",
        "Overlap joins of 1M and 1M periods",
        "interval joins",
        "(pairs|count), 1M",
        ("ours", "duckdb", "polars", "spark-bins"),
    ),
    Figure(
        "triangles",
        "Counting triangles among 600,000 edges",
        "multi-way joins",
        "triangle: count",
        ("ours", "spark"),
    ),
    Figure(
        "skew",
        "One key with 58 % of the rows",
        "skewed keys",
        "slowest task: 50 keys, skew 0.2",
        ("ours", "hash", "key", "fragment", "dynamic"),
    ),
)


def recorded(table: str) -> Iterator[Bar]:
    """The figures of a table: a row for each case, a column for each contestant. Raises as `_around`."""
    header, *rows = (_cells(line) for line in _around(table)[1].splitlines() if not line.startswith("|---"))
    for case, *cells in rows:
        for contestant, cell in zip(header[1:], cells, strict=True):
            if cell[:1].isdigit() or cell.startswith(">"):
                yield Bar(case, contestant, cell.split()[0])


def run(table: str) -> tuple[str, str]:
    """The day and the machine of a table: those of the last line above it that begins with a day.

    Raises ValueError if there is none, and as `_around`.
    """
    found = re.findall(r"^(\d{4}-\d\d-\d\d), ([^:]+):", _around(table)[0], re.MULTILINE)
    if not found:
        raise ValueError(f"benchmarks.md has no day above the table {table}")
    return found[-1]


def _around(table: str) -> tuple[str, str]:
    """The page above a table, and the table. Raises ValueError if there is no table with this first heading."""
    above, head, rest = BENCHMARKS.read_text(encoding="utf-8").partition(f"\n| {table} |")
    if not head:
        raise ValueError(f"benchmarks.md has no table {table}")
    return above, f"| {table} |{rest}".split("\n\n", 1)[0]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def svg(figure: Figure) -> str:
    """The chart: a group of bars for each case, the longest as long as the chart is wide."""
    bars = figure.bars()
    longest = max(bar.value for bar in bars)
    lines, y, case = [], _TITLE, ""
    for bar in bars:
        if bar.case != case:
            case, y = bar.case, y + _GAP
            lines.append(f'  <text x="12" y="{y - 6}" class="small">{escape(case)}</text>')
        lines += _bar(bar, y, bar.value / longest)
        y += _BAR
    height = y + 14
    day, machine = run(figure.table)
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="t">',
        f'  <title id="t">{escape(figure.title)}</title>',
        f"  <style>{_STYLE}  </style>",
        f'  <rect class="ground" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="6"/>',
        f'  <text x="12" y="22" class="title">{escape(figure.title)}</text>',
        f'  <text x="12" y="38" class="small">{escape(day)}, {escape(machine)}; shorter is better</text>',
    ]
    return "\n".join([*head, *lines, "</svg>", ""])


def _bar(bar: Bar, y: int, share: float) -> Sequence[str]:
    width = max(1, round((_WIDTH - _LEFT - _RIGHT) * share))
    kind = "ours" if bar.contestant == "ours" else "other"
    return (
        f'  <text x="{_LEFT - 6}" y="{y + 12}" text-anchor="end">{escape(bar.contestant)}</text>',
        f'  <rect class="{kind}" x="{_LEFT}" y="{y + 2}" width="{width}" height="{_BAR - 5}"/>',
        f'  <text x="{_LEFT + width + 5}" y="{y + 12}">{escape(bar.text.strip("*"))} s</text>',
    )


def markdown(figure: Figure) -> str:
    """The chart on a page, with all of its figures as its alternative text."""
    parts: dict[str, list[str]] = {}
    for bar in figure.bars():
        parts.setdefault(bar.case, []).append(f"{bar.contestant} {bar.text.strip('*')} s")
    told = ". ".join(f"{case}: {', '.join(values)}" for case, values in parts.items())
    return f"![{figure.title}. {told}.](figures/{figure.name}.svg)"
