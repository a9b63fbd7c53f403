"""docs/architecture.md is true: its paths are there, its tree is that of the folders, its walks are short."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
LAYERS = ("sqlext", "planner/sqlext_planner", "operators/sqlext_operators")


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_a_newcomer_finds_one_place_for_each_change() -> None:
    rows = re.findall(
        r"^\| (?!to change|---)(.+?) \| `([^`]+)` \|$", section("To change this, open that"), re.MULTILINE
    )
    assert len(rows) >= 25
    assert [path for _, path in rows if not (ROOT / path).exists()] == []
    assert len({what for what, _ in rows}) == len(rows)


def test_a_task_is_found_within_three_files() -> None:
    rows = re.findall(r"^\| (?!the task|---)(.+?) \| (`.+) \|$", section("Where is ...?"), re.MULTILINE)
    assert len(rows) >= 10
    for what, places in rows:
        files = re.findall(r"`([^`]+)`(?: \(([^)]+)\))?", places)
        assert 1 <= len(files) <= 3, what
        for path, names in files:
            text = (ROOT / path).read_text(encoding="utf-8")
            assert [name for name in re.findall(r"`(\w+)`", names) if not re.search(rf"\b{name}\b", text)] == [], path


def test_the_tree_is_that_of_the_folders() -> None:
    told = set(re.findall(r"^((?:sqlext|planner|operators)/\S+) ", section("Folders"), re.MULTILINE))
    found = {
        f"{layer}/{path.name}"
        for layer in LAYERS
        for path in (ROOT / layer).iterdir()
        if path.is_dir() and (path / "__init__.py").exists()
    }
    assert told == found


def test_walks_have_twelve_stops_at_most_and_none_twice() -> None:
    walks = [walk for walk in section("Five statements, stop by stop").split("\n\n") if "→" in walk]
    assert len(walks) == 5
    for walk in walks:
        stops = re.findall(r"`([^`]+)`", walk.split(":", 1)[1])
        paths = [stop for stop in stops if stop.endswith(".py")]
        assert len(stops) <= 12
        assert len(set(stops)) == len(stops)
        assert [path for path in paths if not (ROOT / path).exists()] == []
        # the layers follow each other, and no walk goes back
        order = [next(i for i, layer in enumerate(LAYERS) if path.startswith(layer + "/")) for path in paths]
        assert order == sorted(order)


#: Folders of parallel parts: the kernel or the table rows of a module are called as it is.
PARALLEL = {"evaluators", "functions", "kernels"}


def test_a_name_stands_once_in_a_feature() -> None:
    names: Counter[tuple[str, str, str]] = Counter()
    for layer in LAYERS:
        for path in (ROOT / layer).rglob("*.py"):
            feature, *inside = path.relative_to(ROOT / layer).parts
            if inside and path.name != "__init__.py" and not PARALLEL & set(inside):
                names[(layer, feature, path.name)] += 1
    assert [name for name, count in names.items() if count > 1] == []


#: Words that say that there is a thing, and not what it is: no names of what lives longer than five lines.
NO_NAMES = re.compile(r"\b_*(?:found|told|said|kept|own|wanted)_*\b", re.IGNORECASE)
#: (file, name) of those that stay, with the reason. None does.
STAYING_NAMES: dict[tuple[str, str], str] = {}


def nameless(text: str) -> Iterator[str]:
    """Functions and classes with such a name, and parameters and variables of a function over more than five lines."""
    functions: list[ast.FunctionDef] = []
    uses: list[tuple[str, int]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            functions.append(node)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and NO_NAMES.fullmatch(node.name):
            yield node.name
        elif isinstance(node, (ast.Name, ast.arg)):
            name = node.id if isinstance(node, ast.Name) else node.arg
            if NO_NAMES.fullmatch(name):
                uses.append((name, node.lineno))
    for function in functions:
        lines: defaultdict[str, list[int]] = defaultdict(list)
        for name, line in uses:
            if function.lineno <= line <= (function.end_lineno or line):
                lines[name].append(line)
        yield from (name for name, places in lines.items() if max(places) - min(places) > 5)


def test_the_words_that_are_no_names_are_noticed() -> None:
    body = "\n".join(f"    pass  # {line}" for line in range(5))
    assert list(nameless("class _Kept: ...\ndef told(): ...")) == ["_Kept", "told"]
    assert list(nameless(f"def f(own):\n{body}\n    return own")) == ["own"]
    assert list(nameless("def f(x):\n    found = x + 1\n    return found")) == []


def test_a_name_says_what_it_holds() -> None:
    texts = {path: path.read_text(encoding="utf-8") for layer in LAYERS for path in (ROOT / layer).rglob("*.py")}
    names = {
        (str(path.relative_to(ROOT)), name)
        for path, text in texts.items()
        if NO_NAMES.search(text) is not None
        for name in nameless(text)
    }
    assert names == set(STAYING_NAMES)
