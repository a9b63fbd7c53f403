"""Every refusal: message, help, and the exact place, marked in the SQL text as ``/*a*/ ... /*a*/`` (refusals.txt)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlext_planner.errors import SqlExtError

from sqlext.analyzer.queries import analyze
from sqlext.catalog import DictCatalog
from sqlext.syntax.parser import parse

COLUMNS = {"id": "int", "k": "string", "v": "int", "d": "double", "f": "float", "b": "boolean", "ts": "timestamp"}
PERIODS = {
    **dict.fromkeys(("k", "a", "b"), "int"),
    **dict.fromkeys(("ts", "te"), "timestamp"),
    **dict.fromkeys(("n", "m"), "timestamp_ntz"),
    **dict.fromkeys(("d", "e"), "date"),
    **dict.fromkeys(("x", "y"), "double"),
    "big": "bigint",
    "flag": "boolean",
    "long": "decimal(38,10)",
    "mixed": "struct<a:date,b:timestamp>",
    "t": "string",
    "three": "struct<a:int,b:int,c:int>",
    "valid": "struct<start:timestamp,end:timestamp>",
}
CATALOG = DictCatalog(
    {
        "a": COLUMNS,
        "u": COLUMNS,
        "fewer": {"id": "int", "k": "string"},
        "renamed": {**{n: t for n, t in COLUMNS.items() if n != "ts"}, "time": "timestamp"},
        "retyped": {**COLUMNS, "ts": "bigint"},
        "r": PERIODS,
        "s": PERIODS,
        "m": {"k": "map<string,int>", "day": "date", "ts": "timestamp", "v": "int"},
    }
)
FRAME = "ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW"
MARK = "/*a*/"


@dataclass
class Refusal:
    """One case of refusals.txt."""

    line: int
    sql: str = ""
    message: str = ""
    help: str = ""
    compat: str | None = None


def read_refusals() -> Iterator[Refusal]:
    """The cases of refusals.txt: blocks between blank lines."""
    case: Refusal | None = None
    text = Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8")
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if not line and case is not None:
            yield case
            case = None
        if not line or line.startswith("#"):
            continue
        case = case or Refusal(number)
        word, _, rest = line.partition(" ")
        match word:
            case "compat":
                case.compat = rest
            case "!":
                case.message = rest
            case "?":
                case.help = rest
            case _:
                case.sql += ("\n" if case.sql else "") + line.replace("FRAME", FRAME)


def refusal(sql: str, compat: str | None = None) -> SqlExtError:
    """The error that a statement is refused with."""
    with pytest.raises(SqlExtError) as caught:
        analyze(parse(sql, compat=compat), CATALOG)
    return caught.value


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.line}: {case.message}") for case in read_refusals()])
def test_refusal(case: Refusal) -> None:
    first, second = (match.span() for match in re.finditer(re.escape(MARK), case.sql))
    error = refusal(case.sql, case.compat)
    assert case.message in error.message
    assert case.help in (error.help or "")
    assert error.span is not None
    # A span may take in the marks themselves where a token follows directly.
    assert first[0] <= error.span.start <= first[1]
    assert second[0] <= error.span.end <= second[1]
    shown = str(error.with_sql(case.sql))
    assert "^" in shown
    assert "Traceback" not in shown


def test_two_windows_names_the_first() -> None:
    error = refusal(
        f"SELECT sum(v) OVER w1 + sum(d) OVER w2 FROM a WINDOW w1 AS (PARTITION BY k ORDER BY ts {FRAME}), "
        f"w2 AS (PARTITION BY k ORDER BY ts {FRAME})"
    )
    assert error.notes == ("the expression already uses the window of sum(v) OVER w1",)


@pytest.mark.parametrize(
    "sql", ["SELECT 1 FROM a {0} JOIN u ON {0}.k = u.k", "SELECT {0}.v FROM a {0} JOIN u ON a.v > u.v"]
)
@pytest.mark.parametrize("word", ["last", "asof"])
def test_an_alias_before_join_that_is_ours_is_told(word: str, sql: str) -> None:
    error = refusal(sql.format(word))
    name = word.upper()
    assert error.notes == (f"{name} directly before JOIN is {name} JOIN; for an alias write FROM t AS {word} JOIN u",)


def test_several_statements_are_refused_with_extension_syntax() -> None:
    error = refusal(f"SELECT 1; SELECT sum(v) OVER (PARTITION BY k ORDER BY ts {FRAME}) FROM a")
    assert "2 statements" in error.message


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts FRAME MAXSIZE NUMBER)",
        "SELECT sum(v) OVER w FROM a WINDOW w AS (UNION u PARTITION BY k ORDER BY ts ROWS BETWEEN NUMBER PRECEDING AND "
        "CURRENT ROW)",
        "SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN NUMBERd PRECEDING AND "
        "CURRENT ROW)",
        "SELECT lag(v, NUMBER) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts FRAME)",
        "SELECT top(v, NUMBER) FROM a GROUP BY k",
        "SELECT distinct_count(v) FROM a GROUP BY k LIMIT NUMBER",
        "SELECT distinct_count(v) FROM a GROUP BY k ORDER BY NUMBER",
        "SELECT r.k FROM r JOIN s ON PERIOD(r.a, r.b) LEFT OVERLAP PERIOD(s.a, s.b) WITHIN (START NUMBER)",
    ],
)
def test_a_number_of_5000_digits_is_refused_where_it_stands(sql: str) -> None:
    """Python reads no number of more than 4,300 digits."""
    text = sql.replace("FRAME", FRAME).replace("NUMBER", "9" * 5000)
    with pytest.raises(SqlExtError, match=r"too large|out of range|longer than any distance|more digits") as caught:
        analyze(parse(text), CATALOG)
    assert caught.value.span is not None
    assert "9" * 5000 in text[caught.value.span.start : caught.value.span.end]
    assert len(caught.value.message) < 200
