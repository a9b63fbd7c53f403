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
    """One chart: the run that it shows, by the time in benchmarks.md, and which cases, contestants and column of it."""

    name: str
    title: str
    run: str
    cases: str
    contestants: tuple[str, ...]
    column: str = "seconds"
    unit: str = " s"

    def bars(self) -> list[Bar]:
        """What is drawn, in the order of the table. Raises ValueError if the table has none of it."""
        rows = recorded(self.run, self.column)
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
        "2026-11-24T20:38:17+00:00",
        "2 x 5M",
        ("ours", "spark", "spark-segment-tree", "duckdb"),
    ),
    Figure(
        "features",
        "Feature scripts of FEBench, 1M rows",
        "2026-11-24T20:48:57+00:00",
        "Q",
        ("ours", "spark", "floor"),
    ),
    Figure(
        "intervals",
        "Overlap joins of 1M and 1M periods",
        "2026-11-21T20:00:09+00:00",
        "(pairs|count), 1M",
        ("ours", "duckdb", "polars", "spark-bins"),
    ),
    Figure(
        "triangles",
        "Counting triangles among 600,000 edges",
        "2026-11-22T03:00:51+00:00",
        "triangle: count",
        ("ours", "spark"),
    ),
    Figure(
        "skew",
        "One key with 58 % of the rows: the slowest task",
        "2026-11-24T00:13:27+00:00",
        "50 keys, skew 0.2",
        ("ours", "hash", "key", "fragment", "dynamic"),
        "slowest task",
    ),
)


def recorded(run: str, column: str) -> Iterator[Bar]:
    """The figures of a column in the tables below the line that begins with the run's time."""
    page = BENCHMARKS.read_text(encoding="utf-8")
    part = re.split(r"^\d{4}-\d\d-\d\dT", page.split(f"\n{run};", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    header: list[str] = []
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells[:2] == ["case", "contestant"]:
            header = cells
        elif not cells:
            header = []
        elif column in header and not line.startswith("| ---"):
            yield Bar(cells[0], cells[1], cells[header.index(column)])


def machine(run: str) -> str:
    """The machine of a run, as its line has it."""
    found = re.search(rf"^{re.escape(run)}; ([^;]*)[;.]", BENCHMARKS.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"benchmarks.md has no run of {run}")
    return found[1]


def svg(figure: Figure) -> str:
    """The chart: a group of bars for each case, the longest as long as the chart is wide."""
    bars = figure.bars()
    longest = max(bar.value for bar in bars)
    lines, y, case = [], _TITLE, ""
    for bar in bars:
        if bar.case != case:
            case, y = bar.case, y + _GAP
            lines.append(f'  <text x="12" y="{y - 6}" class="small">{escape(case)}</text>')
        lines += _bar(bar, y, bar.value / longest, figure.unit)
        y += _BAR
    height = y + 14
    date = figure.run.split("T")[0]
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="t">',
        f'  <title id="t">{escape(figure.title)}</title>',
        f"  <style>{_STYLE}  </style>",
        f'  <rect class="ground" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="6"/>',
        f'  <text x="12" y="22" class="title">{escape(figure.title)}</text>',
        f'  <text x="12" y="38" class="small">{escape(date)}, {escape(machine(figure.run))}; shorter is better</text>',
    ]
    return "\n".join([*head, *lines, "</svg>", ""])


def _bar(bar: Bar, y: int, share: float, unit: str) -> Sequence[str]:
    width = max(1, round((_WIDTH - _LEFT - _RIGHT) * share))
    kind = "ours" if bar.contestant == "ours" else "other"
    return (
        f'  <text x="{_LEFT - 6}" y="{y + 12}" text-anchor="end">{escape(bar.contestant)}</text>',
        f'  <rect class="{kind}" x="{_LEFT}" y="{y + 2}" width="{width}" height="{_BAR - 5}"/>',
        f'  <text x="{_LEFT + width + 5}" y="{y + 12}">{escape(bar.text.strip("*"))}{unit}</text>',
    )


def markdown(figure: Figure) -> str:
    """The chart on a page, with all of its figures as its alternative text."""
    parts: dict[str, list[str]] = {}
    for bar in figure.bars():
        parts.setdefault(bar.case, []).append(f"{bar.contestant} {bar.text.strip('*')}{figure.unit}")
    told = ". ".join(f"{case}: {', '.join(values)}" for case, values in parts.items())
    return f"![{figure.title}. {told}.](figures/{figure.name}.svg)"
