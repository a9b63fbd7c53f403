"""The query files from the generator's own texts and the changes that the folders' READMEs note.

`python -m tests.tpc.texts` writes the files; `test_texts.py` checks that they are exactly these. So a change of a
query is a row of the README's table first: the text of the package in the second column, ours in the third, both as
code with two backticks around, and each text occurs exactly once in the query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sqlext.tpc import BENCHMARKS, Benchmark
from sqlext.tpc.benchmark import connect

ROOT = Path(__file__).resolve().parent.parent.parent

_ROW = re.compile(r"^\| (\d+) \| `` (.+?) `` \| `` (.+?) `` \| .+ \|$", re.MULTILINE)
_TITLES = re.compile(r"^\| (\d+) \| ([^|`]+) \|$", re.MULTILINE)


class Change(NamedTuple):
    """One row of a README's table."""

    query: int
    theirs: str
    ours: str


def changes(benchmark: Benchmark) -> Iterator[Change]:
    """The changes that the folder's README notes."""
    readme = (ROOT / f"{benchmark.name}_queries" / "README.md").read_text(encoding="utf-8")
    for row in _ROW.finditer(readme):
        yield Change(int(row[1]), row[2], row[3])


def titles(benchmark: Benchmark) -> dict[int, str]:
    """The names of the queries, where the specification gives them names."""
    readme = (ROOT / f"{benchmark.name}_queries" / "README.md").read_text(encoding="utf-8")
    return {int(row[1]): row[2] for row in _TITLES.finditer(readme)}


def package_texts(benchmark: Benchmark) -> dict[int, str]:
    """The texts of the generator package, by number."""
    with connect(benchmark) as connection:
        return dict(connection.execute(f"SELECT query_nr, query FROM {benchmark.name}_queries()").fetchall())


def file_texts(benchmark: Benchmark) -> dict[int, str]:
    """What each file has to hold. Raises ValueError for a change whose text does not occur exactly once."""
    noted = list(changes(benchmark))
    names = titles(benchmark)
    texts = {}
    for number, text in package_texts(benchmark).items():
        own = [change for change in noted if change.query == number]
        for change in own:
            if text.count(change.theirs) != 1:
                raise ValueError(f"query {number}: {change.theirs!r} occurs {text.count(change.theirs)} times")
            text = text.replace(change.theirs, change.ours)
        lines = [line.rstrip() for line in text.strip().splitlines()]
        texts[number] = "\n".join([_header(benchmark, number, names.get(number), len(own)), *lines]) + "\n"
    return texts


def _header(benchmark: Benchmark, number: int, title: str | None, count: int) -> str:
    name = f"{benchmark.title} query {number}" + (f", {title}" if title else "")
    changed = "unchanged" if not count else "one change" if count == 1 else f"{count} changes"
    return f"-- {name}; {changed} (README.md)"


if __name__ == "__main__":
    for benchmark in BENCHMARKS.values():
        for number, text in file_texts(benchmark).items():
            path = ROOT / f"{benchmark.name}_queries" / f"q{number:02}.sql"
            path.write_text(text, encoding="utf-8")
