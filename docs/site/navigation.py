"""The site's navigation: every page once, by what a reader wants. The pages themselves know nothing of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from sphinx.application import Sphinx

INDEX = "docs/index"

#: Captions, each with its pages in order: names without suffix, or patterns. A pattern takes what no name took.
NAVIGATION: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Start", ("README", "docs/tutorials/*")),
    (
        "Learn",
        (
            "docs/windows",
            "docs/last-join",
            "docs/interval-joins",
            "docs/period-algebra",
            "docs/umjoin",
            "docs/streams",
            "docs/early-answers",
        ),
    ),
    (
        "How to",
        (
            "docs/how-to/*",
            "docs/from-openmldb",
            "docs/python",
            "docs/notebooks",
            "docs/shell",
            "docs/command-line",
            "docs/plan-pages",
            "docs/explain-analyze",
            "docs/performance",
            "docs/skew",
            "docs/storage",
            "docs/cluster",
            "docs/connect",
        ),
    ),
    (
        "Reference",
        (
            "docs/sql-reference",
            "docs/window-functions",
            "docs/predicates",
            "docs/settings",
            "docs/glossary",
            "docs/reference/README",
            "docs/reference/*",
        ),
    ),
    (
        "Explanation",
        (
            "docs/architecture",
            "docs/decisions",
            "docs/invariants",
            "docs/sweeps",
            "docs/benchmarks",
            "docs/conformance",
            "docs/tpcds",
            "tpch_queries/README",
            "tpcds_queries/README",
        ),
    ),
    ("Help", ("docs/troubleshooting", "docs/errors", "CONTRIBUTING", "CHANGELOG")),
)


def contents(pages: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """(caption, pages in order) for those of `pages` that the navigation names."""
    names = {entry for _, entries in NAVIGATION for entry in entries}
    free = sorted(set(pages) - names)
    for caption, entries in NAVIGATION:
        found: list[str] = []
        for entry in entries:
            found += [entry] if entry in pages else [page for page in free if fnmatchcase(page, entry)]
        yield caption, found


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Append the navigation to the first page while it is read, as hidden tables of contents."""
    if page == INDEX:
        for caption, found in contents(app.env.found_docs):
            rows = "\n".join(f"/{name}" for name in found)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{rows}\n```\n"
