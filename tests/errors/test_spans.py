"""Every refusal: message, help, and the exact place, marked in the SQL text as ``/*a*/ ... /*a*/``."""

from __future__ import annotations

import re

import pytest
from sqlext_planner.errors import SqlExtError

from sqlext.analyzer import analyze
from sqlext.catalog import DictCatalog
from sqlext.parser import parse

COLUMNS = {"id": "int", "k": "string", "v": "int", "d": "double", "f": "float", "b": "boolean", "ts": "timestamp"}
CATALOG = DictCatalog(
    {
        "a": COLUMNS,
        "u": COLUMNS,
        "fewer": {"id": "int", "k": "string"},
        "renamed": {**{n: t for n, t in COLUMNS.items() if n != "ts"}, "time": "timestamp"},
        "retyped": {**COLUMNS, "ts": "bigint"},
        "m": {"k": "map<string,int>", "day": "date", "ts": "timestamp", "v": "int"},
    }
)
OK = "ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW"

#: (SQL with the place marked, a part of the message, a part of the help)
REFUSALS = [
    # names
    (f"SELECT sum(v) OVER /*a*/w2/*a*/ FROM a WINDOW w1 AS (PARTITION BY k ORDER BY ts {OK})", "window 'w2' not found", "windows here: w1"),
    ("SELECT distinct_count(v) OVER /*a*/w/*a*/ FROM a", "window 'w' not found", "add WINDOW w AS"),
    (f"SELECT sum(v) OVER w FROM /*a*/actons/*a*/ WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "table 'actons' not found", "tables here"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (UNION /*a*/uu/*a*/ PARTITION BY k ORDER BY ts {OK})", "table 'uu' not found", "did you mean 'u'"),
    (f"SELECT sum(/*a*/vv/*a*/) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "column 'vv' not found", "did you mean 'v'"),
    (f"SELECT /*a*/x.v/*a*/, sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "table 'x' not found in FROM", "tables here: a"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY /*a*/a.kk/*a*/ ORDER BY ts {OK})", "column 'kk' not found in 'a'", "did you mean 'a.k'"),
    (f"SELECT v, /*a*/summ(v)/*a*/ OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "window function 'summ' not found", "did you mean 'sum'"),
    (f"SELECT /*a*/lead(v, 1)/*a*/ OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "lead() is not available", "looks ahead"),
    (f"SELECT /*a*/stddev(v)/*a*/ OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "stddev() is not available", "available: count"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK}), /*a*/w/*a*/ AS (PARTITION BY k ORDER BY ts {OK})", "window 'w' is defined twice", "another name"),
    (f"SELECT v FROM a WINDOW /*a*/w AS (PARTITION BY k ORDER BY ts {OK})/*a*/", "window 'w' is not used", "remove it"),
    (f"SELECT sum(/*a*/v/*a*/) OVER w FROM a JOIN u ON a.id = u.id WINDOW w AS (PARTITION BY a.k ORDER BY a.ts {OK})", "column 'v' is ambiguous", "write one of a.v, u.v"),
    # union sources
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (UNION /*a*/fewer/*a*/ PARTITION BY k ORDER BY ts {OK})", "has 2 columns, FROM has 7", "UNION (SELECT"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (UNION /*a*/renamed/*a*/ PARTITION BY k ORDER BY ts {OK})", "column 7 of UNION source 'renamed' is called 'time', in FROM 'ts'", "time AS ts"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (UNION u, /*a*/retyped/*a*/ PARTITION BY k ORDER BY ts {OK})", "column 'ts' of UNION source 'retyped' has type bigint, in FROM timestamp", "CAST(ts AS timestamp)"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (UNION /*a*/(SELECT id, k, v, d, f, b, 1 AS ts FROM u)/*a*/ PARTITION BY k ORDER BY ts {OK})", "has type int, in FROM timestamp", "CAST(ts AS timestamp)"),
    # keys and order
    (f"SELECT sum(v) OVER w FROM a WINDOW /*a*/w AS (ORDER BY ts {OK})/*a*/", "no PARTITION BY", "add PARTITION BY"),
    (f"SELECT sum(v) OVER w FROM m WINDOW w AS (PARTITION BY /*a*/k/*a*/ ORDER BY ts {OK})", "type map<string,int>", "use a key"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY /*a*/k/*a*/ {OK})", "ordered by a column of type string", "timestamp column"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY /*a*/d/*a*/ {OK})", "ordered by a column of type double", "timestamp column"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY /*a*/b/*a*/ {OK})", "ordered by a column of type boolean", "timestamp column"),
    (f"SELECT sum(v) OVER w FROM m WINDOW w AS (PARTITION BY v ORDER BY /*a*/day/*a*/ {OK})", "ordered by a column of type date", "cast it"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts, /*a*/v/*a*/ {OK})", "ordered by one column", "remove the other"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY /*a*/v + 1/*a*/ {OK})", "not by an expression", "subquery of FROM"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY /*a*/ts DESC/*a*/ {OK})", "DESC in a window", "FOLLOWING"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY /*a*/ts NULLS LAST/*a*/ {OK})", "NULL order keys sort first", "remove NULLS LAST"),
    # frames
    ("SELECT sum(v) OVER w FROM a WINDOW /*a*/w AS (UNION u PARTITION BY k ORDER BY ts)/*a*/", "the window has no frame", "ROWS_RANGE BETWEEN"),
    ("SELECT /*a*/distinct_count(v) OVER (PARTITION BY k)/*a*/ FROM a", "the window has no frame", "ROWS_RANGE BETWEEN"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (UNION u PARTITION BY k ORDER BY ts /*a*/RANGE BETWEEN 1 PRECEDING AND CURRENT ROW/*a*/)", "RANGE frames are Spark's own", "write ROWS_RANGE"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts /*a*/RANGE BETWEEN 10s PRECEDING AND CURRENT ROW/*a*/)", "RANGE frames are Spark's own", "write ROWS_RANGE"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts /*a*/ROWS_RANGE 3 PRECEDING/*a*/)", "one bound only", "write BETWEEN"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (UNION u PARTITION BY k ORDER BY ts ROWS BETWEEN /*a*/3s PRECEDING/*a*/ AND CURRENT ROW)", "no time unit", "write ROWS_RANGE"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN /*a*/v PRECEDING/*a*/ AND CURRENT ROW)", "must be a literal, not 'v'", "units: ms s m h d"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN /*a*/-3 PRECEDING/*a*/ AND CURRENT ROW)", "cannot be negative", "PRECEDING or FOLLOWING"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN /*a*/1s PRECEDING AND 2s PRECEDING/*a*/)", "lower bound 1s PRECEDING lies above", "older bound first"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY v ROWS_RANGE BETWEEN /*a*/2 OPEN PRECEDING AND 1 OPEN PRECEDING/*a*/)", "lies above", "older bound first"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN /*a*/UNBOUNDED FOLLOWING/*a*/ AND CURRENT ROW)", "cannot start at UNBOUNDED FOLLOWING", "write for example"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1s PRECEDING AND /*a*/UNBOUNDED PRECEDING/*a*/)", "cannot end at UNBOUNDED PRECEDING", "write for example"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK} /*a*/MAXSIZE 0/*a*/)", "positive integer", "MAXSIZE 1"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK} /*a*/MAXSIZE -1/*a*/)", "positive integer", "MAXSIZE 1"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW /*a*/MAXSIZE 2/*a*/)", "MAXSIZE does not go with ROWS", "remove it"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK} EXCLUDE CURRENT_ROW /*a*/MAXSIZE/*a*/ 2)", "unexpected 'MAXSIZE'", "directly after the frame"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK}/*a*/,/*a*/ EXCLUDE CURRENT_ROW)", "unexpected ','", "separated by blanks"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ROWS BETWEEN 3 PRECEDING AND CURRENT ROW /*a*/EXCLUDE CURRENT_TIME/*a*/)", "needs an ORDER BY", "add ORDER BY"),
    (f"SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k /*a*/{OK}/*a*/)", "without ORDER BY", "add ORDER BY"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN UNBOUNDED /*a*/OPEN/*a*/ PRECEDING AND CURRENT ROW)", "UNBOUNDED has no end", "remove OPEN"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (UNION u PARTITION BY k ORDER BY ts /*a*/ROWS BETWEEN 3 PRECEDING AND CURRENT ROW EXCLUDE TIES/*a*/)", "EXCLUDE TIES is Spark's own", "EXCLUDE CURRENT_ROW"),
    # calls
    (f"SELECT sum(v) OVER w1 + /*a*/sum(d) OVER w2/*a*/ FROM a WINDOW w1 AS (PARTITION BY k ORDER BY ts {OK}), w2 AS (PARTITION BY k ORDER BY ts {OK})", "one expression may use one window", "select item of its own"),
    (f"SELECT /*a*/sum()/*a*/ OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "sum() does not take 0 arguments", "write sum(x)"),
    (f"SELECT /*a*/sum(v, d)/*a*/ OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "sum() does not take 2 arguments", "write sum(x)"),
    (f"SELECT sum(/*a*/k/*a*/) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "sum", ""),
    (f"SELECT count_where(v, /*a*/d/*a*/) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "must be boolean", "comparison"),
    (f"SELECT lag(v, /*a*/id/*a*/) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "must be a literal, not 'id'", "lag(x"),
    (f"SELECT /*a*/lag(v, -1)/*a*/ OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "at least 0", "lag(x"),
    (f"SELECT /*a*/sum(*)/*a*/ OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "sum(*) is not a call", "write sum(x)"),
    (f"SELECT count(/*a*/DISTINCT v/*a*/) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "DISTINCT does not go", "distinct_count"),
    (f"SELECT /*a*/sum(v) FILTER (WHERE v > 1)/*a*/ OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "FILTER does not go", "count_where"),
    (f"SELECT sum(v) OVER /*a*/PARTITION BY/*a*/ k ORDER BY ts {OK} FROM a", "OVER stands before", "OVER (PARTITION BY"),
    (f"SELECT sum(v) /*a*/OVER (w {OK})/*a*/ FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "cannot add to window 'w'", "write OVER w"),
    # surroundings
    (f"SELECT k, /*a*/sum(v) OVER w/*a*/ FROM a GROUP BY k WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "does not go with GROUP BY", "subquery of FROM"),
    (f"SELECT sum(v), /*a*/sum(v) OVER w/*a*/ FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "does not go with GROUP BY", "subquery of FROM"),
    (f"SELECT v FROM a WHERE /*a*/sum(v) OVER (PARTITION BY k ORDER BY ts {OK})/*a*/ > 1", "WHERE cannot hold a window", "subquery of FROM"),
    (f"SELECT v FROM a WHERE v > (SELECT max(s) FROM (SELECT /*a*/sum(v) OVER (PARTITION BY k ORDER BY ts {OK})/*a*/ AS s FROM u))", "subquery of an expression", "in WITH"),
    (f"SELECT sum(v) OVER w FROM a /*a*/LATERAL VIEW explode(array(1)) e AS x/*a*/ WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "LATERAL VIEW is left to Spark", "subquery in FROM"),
    # text that does not parse
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ROWS_RANGE betwen /*a*/1/*a*/ PRECEDING AND CURRENT ROW)", "PRECEDING or FOLLOWING", "CURRENT ROW"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING /*a*/,/*a*/ CURRENT ROW)", "BETWEEN ... AND", ""),
    (f"SELECT v/*a*/,/*a*/ FROM a WINDOW w AS (PARTITION BY k ORDER BY ts {OK})", "a comma stands before FROM", "remove the comma"),
]  # fmt: skip

OPENMLDB_REFUSALS = [
    ("SELECT sum(v) OVER w FROM a WINDOW /*a*/w AS (PARTITION BY k ORDER BY ts)/*a*/", "no frame", "ROWS_RANGE BETWEEN"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY v /*a*/RANGE BETWEEN 1 PRECEDING AND CURRENT ROW/*a*/)", "RANGE", "ROWS_RANGE"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY /*a*/d/*a*/ ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", "type double", "use a key"),
    ("SELECT sum(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), /*a*/x AS w/*a*/", "window 'x' has no frame", "OVER w"),
    ("SELECT /*a*/row_number()/*a*/ OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", "row_number() is not available", "count(*)"),
]  # fmt: skip


def refusal(sql: str, compat: str | None = None) -> SqlExtError:
    with pytest.raises(SqlExtError) as caught:
        analyze(parse(sql, compat=compat), CATALOG)
    return caught.value


def check(sql: str, message: str, help: str, compat: str | None = None) -> None:
    marks = [match.span() for match in re.finditer(r"/\*a\*/", sql)]
    error = refusal(sql, compat)
    assert message in error.message
    assert help in (error.help or "")
    assert error.span is not None
    assert sql[error.span.start : error.span.end].replace("/*a*/", "").strip() == sql[marks[0][1] : marks[1][0]].strip()
    assert marks[0][0] <= error.span.start and error.span.end <= marks[1][1]
    assert "^" in str(error.with_sql(sql))


@pytest.mark.parametrize(("sql", "message", "help"), REFUSALS)
def test_refusal(sql: str, message: str, help: str) -> None:
    check(sql, message, help)


@pytest.mark.parametrize(("sql", "message", "help"), OPENMLDB_REFUSALS)
def test_openmldb_refusal(sql: str, message: str, help: str) -> None:
    check(sql, message, help, "openmldb")


def test_two_windows_names_the_first() -> None:
    sql = next(sql for sql, message, _ in REFUSALS if message.startswith("one expression"))
    assert refusal(sql).notes == ("the first window of the expression is that of sum(v) OVER w1",)


def test_several_statements_are_refused_with_extension_syntax() -> None:
    error = refusal(f"SELECT 1; SELECT sum(v) OVER (PARTITION BY k ORDER BY ts {OK}) FROM a")
    assert "2 statements" in error.message
