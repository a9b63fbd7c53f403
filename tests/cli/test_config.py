"""`sqlext config`, and completion in a shell."""

from __future__ import annotations

import json

import pytest
from sqlext_planner.config import Config

from sqlext.cli import _run
from sqlext.cli.settings_and_errors import completed_names, completed_settings
from tests.command_line import Sqlext


def test_every_setting_with_its_default_and_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["config", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    documented = [(one.key, one.default, one.doc) for one in Config.described()]
    assert [(row["name"], row["default"], row["meaning"]) for row in rows] == documented
    assert all(Config.from_mapping({row["name"]: row["default"]}) == Config() for row in rows)
    assert _run(["config"]) == 0
    page = capsys.readouterr().out
    assert [row["name"] for row in rows if f"{row['name']} = {row['default']}" not in page] == []
    assert "--conf NAME=VALUE" in page


def test_settings_by_a_part_of_the_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["config", "BLOCKbytes"]) == 0
    assert capsys.readouterr().out.startswith("sqlext.exchange.blockBytes = 4194304  (bytes such as")
    assert _run(["config", "nosuch"]) == 2
    assert "no setting has 'nosuch' in its name" in capsys.readouterr().err


def test_completion_of_settings() -> None:
    assert completed_settings("sqlext.umjoin.s") == ["sqlext.umjoin.strategy="]
    assert completed_settings("sqlext.umjoin.strategy=c") == ["sqlext.umjoin.strategy=cascade"]
    assert [name for name, _ in completed_names("umj")] == ["umjoin.strategy"]
    assert [name for name, _ in completed_names("sqlext.umj")] == ["sqlext.umjoin.strategy"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sqlext run --format js", ["json", "jsonl"]),
        ("sqlext plan --stage ph", ["physical"]),
        ("sqlext bench in", ["interval"]),
    ],
)
def test_completion_in_bash(sqlext: Sqlext, line: str, words: list[str]) -> None:
    env = {"_SQLEXT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    assert sqlext(env=env).stdout.split() == words
