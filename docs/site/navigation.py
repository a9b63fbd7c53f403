"""The site's navigation: every page once, by what a reader wants. The pages themselves know nothing of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from posixpath import dirname, join, normpath

from docutils import nodes
from sphinx.application import Sphinx

INDEX = "docs/index"

#: What the navigation calls a page whose own title says too little there.
NAMES = {
    "README": "Quick start",
    "docs/reference/README": "The exact rules",
    "docs/reference/windows": "Rules of windows",
    "docs/reference/last-join": "Rules of LAST JOIN",
    "docs/reference/periods": "Rules of periods",
    "docs/reference/sweeps": "Rules of sweeps",
    "docs/reference/umjoin": "Rules of multi-way joins",
    "docs/python": "Python",
    "docs/notebooks": "Notebooks",
    "docs/storage": "Storage",
    "docs/connectors": "Connectors",
    "docs/cluster": "Cluster",
    "docs/platforms": "Platforms",
    "docs/conformance": "Conformance with OpenMLDB",
    "benchmarks/README": "Suites of benchmarks",
    "tpch_queries/README": "TPC-H queries",
    "tpcds_queries/README": "TPC-DS queries",
}

#: Captions, each with its pages in order: names without suffix, or patterns. A pattern takes what no name took.
NAVIGATION: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Start", ("README", "docs/tutorials/*", "examples/*")),
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
            "docs/serving",
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
            "docs/connectors",
            "docs/cluster",
            "docs/platforms",
            "docs/versions",
            "docs/connect",
        ),
    ),
    (
        "Reference",
        (
            "docs/sql-reference",
            "docs/window-functions",
            "docs/predicates",
            "docs/serving-functions",
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
            "benchmarks/README",
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
            rows = "\n".join(f"{NAMES[name]} </{name}>" if name in NAMES else f"/{name}" for name in found)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{rows}\n```\n"


def name_pages(app: Sphinx, tree: nodes.document, page: str) -> None:
    """A link that is called by its file, as GitHub's readers know it, is called by its page's title."""
    for link in tree.findall(nodes.reference):
        target = normpath(join(dirname(page), link.get("refuri", "").partition("#")[0].removesuffix(".html")))
        text = link.astext()
        if text.endswith(".md") and link.get("internal") and target in app.env.titles:
            title = NAMES.get(target) or app.env.titles[target].astext()
            link.children = [nodes.inline(title, title)]
