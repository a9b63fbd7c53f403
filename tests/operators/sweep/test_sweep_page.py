"""The table of docs/sweeps.md is the one of the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_page_has_the_table_of_the_code() -> None:
    spec = importlib.util.spec_from_file_location("sweep_table", DOCS / "sweep_table.py")
    assert spec is not None
    assert spec.loader is not None
    table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(table)
    page = (DOCS / "sweeps.md").read_text(encoding="utf-8")
    assert page == table.with_table(page), "run `python docs/sweep_table.py`"
