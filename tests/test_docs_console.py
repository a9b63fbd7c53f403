"""Every `console` block of the README and the docs is run as commands, and prints what the page shows.

`...` in a page stands for anything. The commands are run in this process, on the shared Spark. Among the slow tests
each of them starts a process and a Spark of its own; in `make test` those of two blocks do.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlext.cli.demo import write_tables
from tests.command_line import Sqlext, in_a_process, on_shared_spark
from tests.reader import reader_in
from tests.test_docs import ROOT, Example, of

BLOCKS = of("console")
#: Commands that `make test` starts in a process, too: one without Spark, and one with it.
FEW = ("sqlext config blockBytes", "SELECT count(*) AS n FROM orders; SELECT count(*) AS n FROM views")


def of_few(example: Example) -> bool:
    return any(words in example.text for words in FEW)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with the demo's tables in `shop/`."""
    path = tmp_path_factory.mktemp("docs")
    write_tables(path / "shop", 3000, seed=1)
    return path


@pytest.mark.spark
@pytest.mark.parametrize("example", BLOCKS, ids=str)
def test_console(example: Example, spark: SparkSession, folder: Path) -> None:
    with reader_in(folder, spark), on_shared_spark(spark) as sqlext:
        check_console(example.text, sqlext)


@pytest.mark.spark
@pytest.mark.parametrize(
    "example",
    [pytest.param(one, marks=() if of_few(one) else pytest.mark.slow) for one in BLOCKS],
    ids=str,
)
def test_console_in_a_process_of_its_own(example: Example, folder: Path) -> None:
    check_console(example.text, partial(in_a_process, cwd=folder))


def check_console(block: str, sqlext: Sqlext) -> None:
    """Run the commands of a block, and compare what they print with what the block shows."""
    for command, shown in commands(block):
        words = shlex.split(command)
        if words[0] == "make":
            subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, check=True, capture_output=True, timeout=60)
            continue
        assert words[0] == "sqlext", f"the docs may show `make` and `sqlext`, not `{words[0]}`"
        done = sqlext(*words[1:])
        output = (done.stdout + done.stderr).rstrip()
        said = f"{command}\nprinted\n{output}\nthe page shows\n{shown}"
        assert re.fullmatch(pattern_of(shown), output, re.DOTALL), said


def pattern_of(shown: str) -> str:
    """What a page shows, as a pattern: `...` stands for anything."""
    return re.escape(shown.rstrip()).replace(r"\.\.\.", ".*")


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each `$ ` line with the output shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def test_two_blocks_are_run_in_a_process_in_make_test() -> None:
    assert sum(map(of_few, BLOCKS)) == len(FEW)
