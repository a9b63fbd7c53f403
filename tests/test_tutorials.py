"""Every tutorial is followed from its top to its bottom, as a reader would: each in a folder of its own.

Besides what test_docs.py and test_docs_console.py say of blocks: `<!-- file: NAME -->` before a block saves it under
this name, and `<!-- prints -->` before a `text` block says that the python block above prints this (`...` stands for
anything).
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from tests.command_line import on_shared_spark
from tests.reader import reader_in
from tests.test_docs import ROOT
from tests.test_docs_console import check_console, pattern_of

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
#: The one that `make test` follows.
QUICK = "temporal-analyst"
_BLOCK = re.compile(r"(?:<!-- (prints|file: ([\w.]+)) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.spark
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=() if page.stem == QUICK else pytest.mark.slow) for page in TUTORIALS],
    ids=lambda page: page.stem,
)
def test_a_tutorial_from_top_to_bottom(page: Path, spark: SparkSession, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    kept = mock.patch.dict(os.environ)  # scikit-learn leaves variables
    with kept, reader_in(tmp_path, spark), on_shared_spark(spark) as sqlext, processes_ended(names):
        for match in _BLOCK.finditer(text):
            mark, file, language, block = match.groups()
            line = text.count("\n", 0, match.start(3)) + 1
            if file:
                Path(file).write_text(block, encoding="utf-8")
            elif mark == "prints":
                shown = re.fullmatch(pattern_of(block), "\n".join(map(str.rstrip, printed.splitlines())), re.DOTALL)
                assert shown, f"{page.name}:{line}: the block above printed\n{printed}\nthe page shows\n{block}"
            elif language == "python":
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(compile("\n" * line + block, str(page), "exec"), names)
                printed = out.getvalue().rstrip()
            else:
                assert language == "console", f"{page.name}:{line}: a reader cannot run this"
                check_console(block, sqlext)


@contextlib.contextmanager
def processes_ended(names: dict[str, Any]) -> Iterator[None]:
    """Processes that blocks have begun end with the page, also where a block fails."""
    try:
        yield
    finally:
        for value in names.values():
            if isinstance(value, subprocess.Popen):
                value.kill()
                value.communicate()


def test_a_tutorial_says_for_whom_and_how_long() -> None:
    assert len(TUTORIALS) == 4
    for page in TUTORIALS:
        text = page.read_text(encoding="utf-8")
        assert re.match(r"# Ten minutes for [\w ]+\n\n\*\*For\*\* .*\n", text), page.name
        minutes = re.findall(r"^\| \[(\d\. .+?)\]\(#.*?\) \| (\d+)", text, re.MULTILINE)
        assert [title for title, _ in minutes] == re.findall(r"^## (\d\. .+)$", text, re.MULTILINE)
        assert sum(int(number) for _, number in minutes) == 10
        assert text.count("## Read next") == 1
