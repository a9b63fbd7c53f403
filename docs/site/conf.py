"""Sphinx builds the site from the pages as they are: `make docs`. Decision 77 says why it is Sphinx.

The source is the whole checkout, so that a relative link between Markdown files is the same link on GitHub and here.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parent))

from lexer import SqlExtLexer
from navigation import INDEX, add_contents, name_pages

project = "SQL for time on Spark"
html_title = project
author = "the authors of SQL for time on Spark"
root_doc = INDEX
extensions = ["myst_parser"]
include_patterns = [
    "docs/**.md",
    "*.md",
    "tpch_queries/README.md",
    "tpcds_queries/README.md",
    "benchmarks/README.md",
    "examples/*.md",
]
exclude_patterns = ["build", "dist", ".*", "sqlext", "planner", "operators", "tests", "docs/site"]

# Anchors of headings are GitHub's, and a link to one that does not exist is a warning; `make docs` makes it an error.
myst_heading_anchors = 4
myst_enable_extensions = ["smartquotes"]
nitpicky = True

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
# An excerpt of a page is fetched, and a browser fetches nothing from file://; the index alone is a script.
html_show_search_summary = False
html_theme_options = {"top_of_page_buttons": [], "navigation_with_keys": True}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

_START = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{project}</title>
<meta http-equiv="refresh" content="0; url={index}.html"></head>
<body><a href="{index}.html">{project}</a></body></html>
"""


#: What assistive software misses in the theme's pages (axe-core).
_REMEDIES = {
    'role="heading"': 'role="heading" aria-level="2"',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="This page">',
    '<th class="head"><p></p></th>': '<td class="head"></td>',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}


def _finish(app: Sphinx, failure: Exception | None) -> None:
    """The pages that were written get their remedies, and the folder itself opens at the first page."""
    if failure is not None:
        return
    for path in Path(app.outdir).rglob("*.html"):
        before = page = path.read_text(encoding="utf-8")
        for wrong, right in _REMEDIES.items():
            page = page if right in page else page.replace(wrong, right)
        if page != before:
            path.write_text(page, encoding="utf-8")
    start = _START.format(project=project, index=INDEX)
    (Path(app.outdir) / "index.html").write_text(start, encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.add_lexer("sql", SqlExtLexer)
    app.connect("source-read", add_contents)
    app.connect("doctree-resolved", name_pages)
    app.connect("build-finished", _finish)
