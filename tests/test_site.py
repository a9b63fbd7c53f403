"""The site of `make docs`: it builds without a warning (links, anchors, navigation), and needs no network."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: What a browser loads by itself: the attribute of an element with an address.
LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "link": "href"}


class Assets(HTMLParser):
    """The addresses that a page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(LOADED.get(tag, ""))
        if address is not None:
            self.found.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. A page without a place in the navigation, or a broken link, is a warning and so an error."""
    path = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--builder", "html"]
    places = ["--conf-dir", "docs/site", "--doctree-dir", str(path / "doctrees"), ".", str(path / "html")]
    done = subprocess.run([*command, *places], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return path / "html"


@pytest.mark.slow
def test_pages_load_nothing_from_the_network(site: Path) -> None:
    loaded = {
        (page.relative_to(site).as_posix(), address)
        for page in site.rglob("*.html")
        for address in Assets(page.read_text(encoding="utf-8")).found
    }
    assert ("docs/index.html", "../searchindex.js") not in loaded  # only the page of the search loads it
    assert len(loaded) > 100
    assert [item for item in loaded if re.match(r"\w+:|//", item[1])] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert "url(data:" in styles.replace('"', "").replace("'", "")
    assert re.findall(r"(?:url\(|@import)\s*['\"]?(?:\w+:)?//.{40}", styles) == []


@pytest.mark.slow
def test_every_page_is_on_the_site(site: Path) -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    names = [page.relative_to(ROOT).with_suffix(".html") for page in pages]
    assert [name for name in names if not (site / name).exists()] == []
    assert "docs/index.html" in (site / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_search_needs_no_server(site: Path) -> None:
    # an index in a script is loaded from file:// too; a fetched one is not
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")
    assert "rows_rang:" in index.replace('"', "")  # a word as the search stems it
    assert "searchindex.js" in Assets((site / "search.html").read_text(encoding="utf-8")).found
