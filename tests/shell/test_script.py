"""Where statements and commands end, in what is typed and in scripts."""

from __future__ import annotations

import pytest

from sqlext.cli.shell.script import is_complete, parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';', \"a;b\", `;` -- c;\n, 1 /* ; */;", ["SELECT ';', \"a;b\", `;` -- c;\n, 1 /* ; */"]),
        ("-- first\n\\d views\nSELECT 1;\n\\x on", [r"\d views", "SELECT 1", r"\x on"]),
        ("SELECT 1; \\d\n;;SELECT 2;", ["SELECT 1", r"\d", "SELECT 2"]),
        ("\\plan SELECT 1\nFROM t; SELECT 2;", ["\\plan SELECT 1\nFROM t;", "SELECT 2"]),
        ("\\plan SELECT 1\n\nSELECT 2;", [r"\plan SELECT 1", "SELECT 2"]),
        ("\\plan\nSELECT 2;", [r"\plan", "SELECT 2"]),
        ("quit", [r"\q"]),
        ("SELECT 1;\nexit ;\nSELECT 2", ["SELECT 1", r"\q", "SELECT 2"]),
        ("SELECT exit FROM help;", ["SELECT exit FROM help"]),
        ("help;", [r"\?"]),
        (" \n -- nothing\n", []),
    ],
)
def test_parts(text: str, expected: list[str]) -> None:
    found = list(parts(text))
    assert [part.text for part in found] == expected
    for part in found:
        if not part.is_command:
            assert text[part.place.start : part.place.end] == part.text


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; SELECT", False),
        ("SELECT ';", False),
        ("SELECT 1 /* ;", False),
        ("SELECT 1 -- ;", False),
        ("SELECT 'it''s';", True),
        (r"\d", True),
        ("exit", True),
        ("", True),
        ("BEGIN SELECT 1;", False),
        ("BEGIN SELECT 1; END;", True),
        ("BEGIN IF x THEN BEGIN SELECT CASE WHEN a THEN 1 END; END; END IF; END;", True),
        ("BEGIN IF x THEN SELECT 'END'; END IF;", False),
    ],
)
def test_enter_runs_what_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete
