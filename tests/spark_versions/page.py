"""docs/versions.md: which feature works on which version of Spark, from what ran."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.spark_versions.environments import ROOT

PAGE = ROOT / "docs" / "versions.md"
_MARKERS = ("<!-- made by `python -m tests.spark_versions --page` -->", "<!-- end -->")
#: The outcomes of one version: test, then its features, outcome, reason.
Outcomes = Mapping[str, Mapping[str, object]]


def write_page(folder: Path) -> None:
    """Put the table made of the outcomes in `folder` (VERSION.json) between the page's markers."""
    found = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    before, _, rest = PAGE.read_text().partition(_MARKERS[0])
    _, _, after = rest.partition(_MARKERS[1])
    PAGE.write_text(f"{before}{_MARKERS[0]}\n{table(found)}\n{_MARKERS[1]}{after}")


def table(found: Mapping[str, Outcomes]) -> str:
    """A row for each feature, a column for each version; below it why something is refused or left out."""
    versions = sorted(found, key=lambda version: [int(part) for part in version.split(".")])
    features = sorted({str(name) for outcomes in found.values() for item in outcomes.values() for name in names(item)})
    notes: list[str] = []
    lines = [
        "| | " + " | ".join(f"Spark {version}" for version in versions) + " |",
        "|---|" + "---|" * len(versions),
        *(
            f"| {feature} | " + " | ".join(_cell(found[version], feature, notes) for version in versions) + " |"
            for feature in features
        ),
    ]
    return "\n".join([*lines, "", *(f"{number}. {note}" for number, note in enumerate(notes, start=1))]).rstrip()


def names(item: Mapping[str, object]) -> Sequence[str]:
    """The features that a test is about."""
    found = item["features"]
    assert isinstance(found, list)
    return found


def _cell(outcomes: Outcomes, feature: str, notes: list[str]) -> str:
    mine = [item for item in outcomes.values() if feature in names(item)]
    by_outcome = {kind: [item for item in mine if item["outcome"] == kind] for kind in ("passed", "skipped", "failed")}
    if not mine or by_outcome["failed"]:
        return "unknown" if not mine else "fails"
    marks = []
    for reason in dict.fromkeys(_reason(item) for item in by_outcome["skipped"]):
        if reason not in notes:
            notes.append(reason)
        marks.append(f"({notes.index(reason) + 1})")
    return " ".join(["works" if by_outcome["passed"] else "no", *marks])


def _reason(item: Mapping[str, object]) -> str:
    """The sentence of a skip, without the number of the very version: the table's column says it."""
    text = str(item["reason"]).removeprefix("refused: ")
    return re.sub(r", and this is Spark \S+", "", text)
