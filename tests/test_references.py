"""Every page and section that code, tests and docs cite is there."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
FOLDERS = ("sqlext", "planner", "operators", "tests", "docs", "tpch_queries", "tpcds_queries")
SUFFIXES = (".py", ".md", ".test", ".txt")

#: docs/reference/windows.md, section 3; docs/reference/periods.md, sections 1 to 3; docs/decisions.md, decision 16.
_SECTION = re.compile(r"(docs/[\w/-]+\.md),\s+(?:section|decision)s?\s+(\d+)(?:\s+(?:to|and)\s+(\d+))?")
_PAGE = re.compile(r"(?<![\w./-])[\w./-]*\w\.md\b")
#: Python files: `execution.py`, `operators/.../window/processor.py`; not `planner/.../FEATURE/nodes.py`.
_MODULE = re.compile(r"(?<![\w./-])(?:[\w.-]+/)*[a-z_]\w*\.py\b")
_PLACEHOLDER = re.compile(r"/[A-Z]+/|/[A-Z]+\.py$")
#: What the manual and a user's folder call files.
_OF_USERS = {"job.py", "sitecustomize.py"}


def texts() -> Iterator[tuple[Path, str]]:
    """The files that may cite, with what stands in them."""
    yield from ((path, path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob("*.md")))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES and "__pycache__" not in path.parts:
                yield path, path.read_text(encoding="utf-8")


TEXTS = list(texts())


def sections(page: Path) -> list[int]:
    """The numbers of a page's sections: `## 3. Which rows are in a window`."""
    return [int(number) for number in re.findall(r"^## (\d+)\. \S", page.read_text(encoding="utf-8"), re.MULTILINE)]


def missing_sections(text: str) -> list[str]:
    """The citations in a text that lead nowhere."""
    missing = []
    for page, first, last in _SECTION.findall(text):
        path = ROOT / page
        wanted = {int(first), int(last or first)}
        if not path.exists() or not wanted <= set(sections(path)):
            missing.append(f"{page}, {first}" + (f" to {last}" if last else ""))
    return missing


def prose(text: str) -> Iterator[str]:
    """The docstrings and comments of a Python file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node, clean=False) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def missing_pages(folder: Path, text: str) -> list[str]:
    """The pages that a Python file names in its prose and that are neither in the repository nor beside the file."""
    names = {name for part in prose(text) for name in _PAGE.findall(part)}
    return sorted(name for name in names if not (ROOT / name).exists() and not (folder / name).exists())


def missing_modules(text: str, paths: Sequence[str]) -> list[str]:
    """The Python files that a text names and that no path of the repository ends with; `...` stands for folders."""
    names = {name for name in _MODULE.findall(text) if not _PLACEHOLDER.search(name) and name not in _OF_USERS}
    ends = {name: re.escape(name).replace(re.escape("..."), ".+") for name in names}
    return sorted(name for name, end in ends.items() if not any(re.search(f"(^|/){end}$", path) for path in paths))


def test_sections_are_numbered_from_1() -> None:
    for page in sorted(REFERENCE.glob("*.md")):
        if page.name != "README.md":
            found = sections(page)
            assert found == list(range(1, len(found) + 1)) != [], page.name


def test_cited_sections_are_there() -> None:
    missing = {str(path.relative_to(ROOT)): found for path, text in TEXTS if (found := missing_sections(text))}
    assert missing == {}


def test_cited_pages_are_there() -> None:
    found = {}
    for path, text in TEXTS:
        if path.suffix == ".py" and ".md" in text and (names := missing_pages(path.parent, text)):
            found[str(path.relative_to(ROOT))] = names
    assert found == {}


def test_named_modules_are_there() -> None:
    """In docstrings and comments, and on the pages about the code; a module that moves takes its name along."""
    paths = [str(path.relative_to(ROOT)) for path, _ in TEXTS if path.suffix == ".py"]
    paths += [str(path.relative_to(ROOT)) for path in (ROOT / "benchmarks").rglob("*.py")]
    pages = ("CONTRIBUTING.md", "docs/architecture.md", "docs/decisions.md", "docs/invariants.md", "docs/sweeps.md")
    found = {}
    for path, text in TEXTS:
        name = str(path.relative_to(ROOT))
        is_code = path.suffix == ".py" and ".py" in text
        about_code = "\n".join(prose(text)) if is_code else text if name in pages else ""
        if missing := missing_modules(about_code, paths):
            found[name] = missing
    assert found == {}


def test_every_page_of_the_reference_is_cited_by_code() -> None:
    code = "\n".join(text for path, text in TEXTS if path.suffix == ".py")
    for page in sorted(REFERENCE.glob("*.md")):
        assert page.name == "README.md" or f"docs/reference/{page.name}" in code, page.name


def test_a_wrong_citation_is_found() -> None:
    page = "docs/reference/" + "windows.md"
    assert missing_sections(f"({page}, section 3) and ({page},\n    sections 1 to 99)") == [f"{page}, 1 to 99"]
    assert missing_sections("docs/reference/" + "nowhere.md, section 1") == ["docs/reference/nowhere.md, 1"]
    source = f'"""See {page} and nowhere.md."""\n# DESIGN.md says so\nx = "not_prose.md"\n'
    assert missing_pages(ROOT, source) == ["DESIGN.md", "nowhere.md"]
    paths = ["planner/window/nodes.py", "sqlext/session.py"]
    cited = "nodes.py, planner/.../nodes.py, session.py, planner/session.py, gone.py, planner/FEATURE/rules.py"
    assert missing_modules(cited, paths) == ["gone.py", "planner/session.py"]
