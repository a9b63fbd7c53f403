"""Writes the tables of docs/windows.md from the code: `python docs/tables.py`. A test checks that they agree."""

from __future__ import annotations

import re
from pathlib import Path

from sqlext_planner.config import Config
from sqlext_planner.window_functions import FUNCTIONS

PAGE = Path(__file__).resolve().parent / "windows.md"


def function_table() -> str:
    """One row for each function that SQL can call."""
    rows = ["| function | meaning |", "|---|---|"]
    for function in FUNCTIONS.values():
        if not function.internal:
            names = "".join(f", `{alias}`" for alias in function.aliases)
            rows.append(f"| `{function.signature}`{names} | {function.doc.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def settings_table() -> str:
    """One row for each setting."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    return "\n".join([*rows, *(f"| `{key}` | `{default}` | {doc} |" for key, default, doc in Config.documentation())])


def with_tables(page: str) -> str:
    """The page with the tables as the code has them now."""
    for name, table in (("functions", function_table()), ("settings", settings_table())):
        pattern = rf"(<!-- {name}: begin [^>]*-->\n).*?(<!-- {name}: end -->)"
        page, found = re.subn(
            pattern, lambda match, table=table: f"{match[1]}{table}\n{match[2]}", page, flags=re.DOTALL
        )
        if found != 1:
            raise ValueError(f"{PAGE.name} has {found} places for the table of {name}")
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
