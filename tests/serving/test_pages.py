"""What the pages show of `curl`: each command is sent to a server of what the page has deployed before, without Spark.

`...` in a page stands for anything.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from sqlext.cli.demo import write_tables
from sqlext.serving.deployment import Deployment
from tests.command_line import in_this_process
from tests.serving.servers import Client, served
from tests.test_docs import EXAMPLES, ROOT
from tests.test_docs_console import commands, pattern_of

PAGES = [ROOT / "README.md", ROOT / "docs" / "serving.md", ROOT / "docs" / "from-openmldb.md"]


def curls(page: Path) -> Iterator[tuple[list[str], str]]:
    """The words of each `curl` of a page, with what is shown below it."""
    for example in EXAMPLES:
        if example.page == page and example.language == "text":
            for command, shown in commands(example.text):
                if command.startswith("curl "):
                    yield shlex.split(command), shown


def sent(client: Client, words: list[str]) -> str:
    """The answer to a `curl`."""
    options = dict(pairwise(words))
    (address,) = [word for word in words if word.startswith("localhost:8080/")]
    method = options.get("-X", "POST" if "-d" in words else "GET")
    return client.send(method, address.removeprefix("localhost:8080"), options["-d"].encode()).body.decode()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_server_answers_as_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")
    write_tables(tmp_path / "shop", 30, seed=1)
    consoles = [one.text for one in EXAMPLES if one.page == page and one.language == "console"]
    deploys = [words for text in consoles for words, _ in commands(text) if words.startswith("sqlext deploy")]
    (words,) = map(shlex.split, deploys)
    if "--verify" in words:  # needs Spark, and test_docs_console.py does it
        del words[words.index("--verify") : words.index("--verify") + 2]
    done = in_this_process(*words[1:])
    assert done.returncode == 0, done.stderr
    shown = list(curls(page))
    assert len(shown) >= 2
    with served(Deployment.open(tmp_path / words[words.index("-o") + 1])) as client:
        for command, answer in shown:
            body = sent(client, command)
            assert re.fullmatch(pattern_of(answer), body, re.DOTALL), f"{shlex.join(command)}\nanswered\n{body}"
