"""Every example of the README and the docs is run as it stands.

`sql` blocks run in order on the demo's tables (statements parted by semicolons), `python` blocks in order in one
namespace that has `spark`, `console` blocks as commands (test_docs_console.py). A comment
`<!-- fails: AnalysisError -->` before a block names the errors that it may raise.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession
from sqlext_planner import errors

from sqlext import Session
from sqlext.cli.demo import write_tables
from sqlext.cli.source import split_statements
from sqlext.syntax import hint_nodes

pytestmark = pytest.mark.tidied("file")

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
#: Languages of blocks that are not run: grammars, drawings, fragments of our own code.
SHOWN_ONLY = {"text", "toml"}
#: Pages whose python blocks run streams, for a minute together.
STREAMS = {"early-answers.md", "streams.md"}
#: Pages that tests elsewhere follow, each as a whole: tests/test_tutorials.py, tests/connectors/test_page.py.
FOLLOWED = {"tutorials", "connectors.md"}

_BLOCK = re.compile(r"(?:<!-- fails: ([\w, ]+) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    page: Path
    line: int
    language: str
    text: str
    fails: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def examples() -> Iterator[Example]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            line = text.count("\n", 0, match.start(2)) + 1
            fails = tuple(name.strip() for name in (match[1] or "").split(",") if name.strip())
            yield Example(page, line, match[2], match[3], fails)


EXAMPLES = list(examples())


def of(language: str) -> list[Example]:
    return [
        one for one in EXAMPLES if one.language == language and not FOLLOWED & {one.page.name, one.page.parent.name}
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with the demo's tables in `shop/`."""
    path = tmp_path_factory.mktemp("docs")
    write_tables(path / "shop", 3000, seed=1)
    return path


@pytest.fixture(scope="module")
def shop(spark: SparkSession, folder: Path) -> Iterator[Session]:
    """A Session with the demo's tables."""
    session = Session(spark)
    for name in ("views", "orders"):
        session.register(name, folder / "shop" / f"{name}.parquet")
    before = {row.tableName for row in spark.sql("SHOW TABLES").collect()}
    yield session
    for name in {row.tableName for row in spark.sql("SHOW TABLES").collect()} - before | {"views", "orders"}:
        spark.catalog.dropTempView(name)


@pytest.fixture(scope="module")
def namespaces(spark: SparkSession) -> dict[Path, dict[str, Any]]:
    """What the python blocks of each page share: a session of Spark of its own, which keeps settings and views."""
    return {page: {"spark": spark.newSession()} for page in PAGES}


def test_every_block_names_its_language() -> None:
    known = {"sql", "python", "console"} | SHOWN_ONLY
    assert [str(example) for example in EXAMPLES if example.language not in known] == []


@pytest.mark.spark
@pytest.mark.parametrize("example", of("sql"), ids=str)
def test_sql(example: Example, shop: Session) -> None:
    statements = [example.text[place.start : place.end] for place in split_statements(example.text)]
    if example.fails:
        allowed = tuple(getattr(errors, name) for name in example.fails)
        with pytest.raises(allowed) as caught:
            shop.sql(statements[-1])
        assert caught.value.span is not None
        return
    for statement in statements:
        shop.sql(statement).collect()


@pytest.mark.spark
@pytest.mark.parametrize(
    "example",
    [pytest.param(one, marks=pytest.mark.slow if one.page.name in STREAMS else ()) for one in of("python")],
    ids=str,
)
def test_python(example: Example, namespaces: dict[Path, dict[str, Any]]) -> None:
    code = compile("\n" * example.line + example.text, str(example.page), "exec")
    exec(code, namespaces[example.page])


def test_tables_of_the_reference_are_those_of_the_code() -> None:
    tables = load(ROOT / "docs" / "tables.py")
    for name in tables.PAGES:
        page = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert page == tables.with_tables(name, page), "run `python docs/tables.py`"


def test_charts_are_those_of_the_recorded_figures() -> None:
    figures = load(ROOT / "docs" / "figures.py")
    drawn = {path.stem: path.read_text(encoding="utf-8") for path in figures.FOLDER.glob("*.svg")}
    assert drawn == {figure.name: figures.svg(figure) for figure in figures.FIGURES}, "run `python docs/tables.py`"


def test_every_hint_is_in_the_reference() -> None:
    names = {hint.partition("(")[0] for hint in hint_nodes.HINT_DOCS}
    assert names == {*hint_nodes.SWEEP, *hint_nodes.UMJOIN, hint_nodes.PARTITIONER}


@pytest.mark.spark
def test_examples_of_window_functions_give_what_the_reference_says(shop: Session) -> None:
    reference = load(ROOT / "docs" / "window_reference.py")
    assert reference.run_examples(shop) == reference.results(), "run `python docs/window_reference.py`"


def test_links_between_pages_lead_somewhere() -> None:
    missing = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                missing.append(f"{page.name}: {target}")
    assert missing == []


def load(path: Path) -> ModuleType:
    """A module of the docs' tools; they import each other as scripts do."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(path.parent)
        spec.loader.exec_module(module)
    return module
