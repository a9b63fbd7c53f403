"""docs/versions.md has a row for each feature that tests name, and says of each version whether it works."""

from __future__ import annotations

import re

from sqlext_planner.spark.versions import LINES

from tests.spark_versions.environments import ROOT
from tests.spark_versions.page import PAGE, table


def test_every_feature_has_its_row() -> None:
    marks = re.compile(r'@pytest\.mark\.every_spark\("([^"]+)"\)')
    marked = {name for path in (ROOT / "tests").rglob("test_*.py") for name in marks.findall(path.read_text())}
    header, _, *rows = re.findall(r"^\|.*\|$", PAGE.read_text().split("<!--")[1], re.MULTILINE)
    cells = {name: said for name, *said in ([cell.strip() for cell in row.split("|")[1:-1]] for row in rows)}
    assert cells.keys() == marked
    assert [line.tested for line in LINES.values()] == re.findall(r"Spark ([\d.]+)", header)
    assert {cell.split()[0] for said in cells.values() for cell in said} <= {"works", "no"}
    assert all(cells[name][-1] == "works" for name in cells)
    batch = [said for name, said in cells.items() if "streams" not in name and "Connect" not in name]
    assert {cell for said in batch for cell in said} == {"works"}


def test_the_first_sentence_of_the_readme_names_the_versions() -> None:
    """Spark 3.5, then all minors of 4."""
    _, begin, *_, end = LINES
    names = [".".join(map(str, version)) for version in (next(iter(LINES)), begin, end)]
    assert set(LINES) == {(3, 5), *((4, minor) for minor in range(end[1] + 1))}
    assert re.findall(r"\d\.\d", (ROOT / "README.md").read_text().split("(docs/versions.md)")[0]) == names


def test_a_version_that_refuses_says_why_and_one_that_did_not_run_is_unknown() -> None:
    def outcome(kind: str, reason: str = "") -> dict[str, object]:
        return {"features": ["windows"], "outcome": kind, "reason": reason}

    refused = outcome("skipped", "refused: windows need Spark 4.1, and this is Spark 3.5.9")
    found = table(
        {
            "4.10.0": {"a": outcome("passed"), "b": outcome("passed")},
            "4.1.4": {"a": outcome("passed"), "b": outcome("failed")},
            "4.0.5": {},
            "3.5.9": {"a": refused, "b": refused},
        }
    )
    assert found.splitlines() == [
        "| | Spark 3.5.9 | Spark 4.0.5 | Spark 4.1.4 | Spark 4.10.0 |",
        "|---|---|---|---|---|",
        "| windows | no (1) | unknown | fails | works |",
        "",
        "1. windows need Spark 4.1",
    ]
