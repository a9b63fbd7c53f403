"""Writes the table of docs/sweeps.md from the code: `python docs/sweep_table.py`. A test checks that they agree."""

from __future__ import annotations

import re
from pathlib import Path

from sqlext_operators.sweep.transforms import documented

PAGE = Path(__file__).resolve().parent / "sweeps.md"


def transforms_table() -> str:
    """One row for each sweep of a relation."""
    rows = ["| relation | sweep | active side | its events | residual |", "|---|---|---|---|---|"]
    for name, sweep, active, events, residual in documented():
        rows.append(f"| `{name}` | {sweep} | {active} | {events} | {residual} |")
    return "\n".join(rows)


def with_table(page: str) -> str:
    """The page with the table as the code has it now."""
    pattern = r"(<!-- transforms: begin [^>]*-->\n).*?(<!-- transforms: end -->)"
    page, found = re.subn(pattern, lambda match: f"{match[1]}{transforms_table()}\n{match[2]}", page, flags=re.DOTALL)
    if found != 1:
        raise ValueError(f"{PAGE.name} has {found} places for the table")
    return page


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
