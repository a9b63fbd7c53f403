"""Misspelt keywords are named; what Spark may know and we do not is left alone."""

from __future__ import annotations

import pytest

from sqlext.syntax.typos import misspelt


@pytest.mark.parametrize(
    ("sql", "help"),
    [
        ("[SELEC] 1", "did you mean SELECT?"),
        ("SELECT 'FORM', a [FORM] t", "did you mean FROM?"),
        ("SELECT count(*) FROM t\n[GRUOP] BY x", "did you mean GROUP?"),
        ("SELECT a FROM t /* WERE */ [WERE] x = 1", "did you mean WHERE?"),
        ("[CRATE] TABLE t (a INT)", "did you mean CREATE?"),
        ("SELECT a, sum(b) [ovr] (PARTITION BY c) FROM t", "did you mean OVER?"),
    ],
)
def test_a_misspelt_keyword_has_its_place(sql: str, help: str) -> None:
    error = misspelt(sql.replace("[", "").replace("]", ""))
    assert error is not None
    assert error.span is not None
    assert (error.span.start, error.span.end) == (sql.index("["), sql.index("]") - 1)
    assert error.help == help


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT form FROM t",
        "SHOW TABLES",
        "OPTIMIZE orders",  # Delta's
        "SELECT a FROM (SELECT b FROM t",
        "SELECT a,, b FROM form",
        "BEGIN SELECT 1; END",
        "",
    ],
)
def test_other_texts_are_left_alone(sql: str) -> None:
    assert misspelt(sql) is None
