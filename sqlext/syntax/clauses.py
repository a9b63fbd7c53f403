"""The clauses that the dialect adds to Spark's SQL, for people: form, meaning, an example."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlext.syntax.hint_nodes import PARTITIONER, SWEEP, UMJOIN
from sqlext.syntax.nodes import EMIT_FORM, PERIOD_TABLE_FORM, PERIOD_TABLES

_WORD = re.compile(r"\b[A-Z][A-Z_]+\b")
_HOUR = "PARTITION BY user_id ORDER BY ts\n             ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW"


@dataclass(frozen=True)
class DocumentedClause:
    """A clause: the words it is found by, how it is written (words of the language in upper case), what it means, a
    statement with it, and the page of the documentation that explains it."""

    name: str
    form: str
    meaning: str
    example: str
    page: str


def _window(words: str, frame: str = "") -> str:
    return f"SELECT ts, sum(price) OVER w AS s FROM views\nWINDOW w AS ({words}{_HOUR}{frame})"


def _join(condition: str, hint: str = "") -> str:
    return f"SELECT {hint}a.item FROM visits a JOIN visits b ON {condition}"


def _period_table(word: str) -> DocumentedClause:
    meanings = {
        "NORMALIZE": "Merges the overlapping and touching periods of each key; with EXCEPT it takes those of another "
        "table out of them.",
        "GAPS": "The periods between the first and the last of each key that none covers.",
        "CONCURRENT": "How many periods of each key hold at a time: one row for each stretch with the same number.",
    }
    form = word + PERIOD_TABLE_FORM
    if word == "NORMALIZE":
        form = f"{form[:-1]} [EXCEPT u PARTITION BY k PERIOD (start, end)])"
    example = f"SELECT * FROM {word}(visits PARTITION BY item PERIOD (ts, te))"
    return DocumentedClause(word, form, meanings[word], example, "period-algebra.md")


#: In the order in which people meet them.
CLAUSES = (
    DocumentedClause(
        "WINDOW UNION",
        "WINDOW w AS (UNION source, ... [BY NAME] PARTITION BY key, ... ORDER BY time frame)",
        "A window over the rows of FROM together with those of other tables. The result has only rows of FROM; the "
        "others are in the windows. Sources have FROM's columns; BY NAME fills the missing ones with NULL.",
        _window("UNION orders "),
        "windows.md",
    ),
    DocumentedClause(
        "ROWS_RANGE",
        "ROWS_RANGE BETWEEN amount [OPEN] PRECEDING AND CURRENT ROW [MAXSIZE n]",
        "A frame by time: amounts are 10s, 1h, 2d (ms s m h d w), or numbers in units of the order column. OPEN leaves "
        "out the end point itself.",
        _window(""),
        "windows.md",
    ),
    DocumentedClause(
        "MAXSIZE",
        "ROWS_RANGE BETWEEN ... MAXSIZE n",
        "Of a frame by time, only the newest n rows.",
        _window("", " MAXSIZE 100"),
        "windows.md",
    ),
    DocumentedClause(
        "EXCLUDE CURRENT_ROW",
        "frame EXCLUDE CURRENT_ROW",
        "The window has not the row itself.",
        _window("", " EXCLUDE CURRENT_ROW"),
        "windows.md",
    ),
    DocumentedClause(
        "EXCLUDE CURRENT_TIME",
        "frame EXCLUDE CURRENT_TIME",
        "The window has no other rows of the same time.",
        _window("", " EXCLUDE CURRENT_TIME"),
        "windows.md",
    ),
    DocumentedClause(
        "INSTANCE_NOT_IN_WINDOW",
        "frame INSTANCE_NOT_IN_WINDOW",
        "The window has only rows of the union sources, and the row itself.",
        _window("UNION orders ", " INSTANCE_NOT_IN_WINDOW"),
        "windows.md",
    ),
    DocumentedClause(
        "LAST JOIN",
        "left LAST JOIN right [AS name] [ORDER BY key, ...] ON condition",
        "Gives each left row the last right row, by the keys, for which the condition holds; NULLs where none does.",
        "SELECT v.ts, o.price FROM views v\nLAST JOIN orders o ORDER BY o.ts ON v.user_id = o.user_id AND o.ts <= v.ts",
        "last-join.md",
    ),
    DocumentedClause(
        "ASOF JOIN",
        "left ASOF [LEFT] JOIN right [AS name] [MATCH_CONDITION (a.ts >= b.ts)] [ON condition | USING (column, ...)]",
        "Gives each left row the right row with the nearest time for which the condition holds; without LEFT, left "
        "rows without one are dropped.",
        "SELECT v.ts, o.price FROM views v\nASOF JOIN orders o MATCH_CONDITION (v.ts >= o.ts) ON v.user_id = o.user_id",
        "last-join.md",
    ),
    DocumentedClause(
        "PERIOD",
        "PERIOD [CLOSED] (start, end [OPEN]) relation PERIOD (start, end) [WITHIN amount]",
        "Compares two periods, in any condition. A period has its start and not its end; with CLOSED it has both. An "
        "OPEN end that is NULL means for ever.",
        _join("PERIOD(a.ts, a.te) OVERLAPS PERIOD(b.ts, b.te)"),
        "predicates.md",
    ),
    DocumentedClause(
        "WITHIN",
        "relation ... WITHIN amount | WITHIN (START amount, END amount)",
        "Bounds the distance between the starts or ends that a relation compares.",
        _join("PERIOD(a.ts, a.te) BEFORE PERIOD(b.ts, b.te) WITHIN 30 MINUTES"),
        "predicates.md",
    ),
    *map(_period_table, PERIOD_TABLES),
    DocumentedClause(
        "EMIT AFTER",
        EMIT_FORM,
        "On streams: gives each window early, a delay after its end, and once more when it is final. COMPENSATE "
        "estimates what is still to come.",
        f"SELECT count(*) AS n FROM views GROUP BY item {EMIT_FORM.replace('[', '').replace(']', '')}",
        "early-answers.md",
    ),
    DocumentedClause(
        " ".join(SWEEP),
        f"SELECT /*+ {' */ | /*+ '.join(SWEEP)} */ ...",
        "Whether the joins of this SELECT are to be interval joins, as far as their conditions allow.",
        _join("a.ts < b.te AND b.ts < a.te", "/*+ SWEEP */ "),
        "interval-joins.md",
    ),
    DocumentedClause(
        " ".join(UMJOIN),
        f"SELECT /*+ {' */ | /*+ '.join(UMJOIN)} */ ...",
        "Whether the joins of this SELECT are to be one multi-way join.",
        _join("a.item = b.item JOIN visits c ON b.item = c.item", "/*+ UMJOIN */ "),
        "umjoin.md",
    ),
    DocumentedClause(
        PARTITIONER,
        f"SELECT /*+ {PARTITIONER}(name) */ ...",
        "How the exchanges of this SELECT spread their rows over tasks.",
        _window("UNION orders ").replace("SELECT", f"SELECT /*+ {PARTITIONER}(hybrid) */"),
        "skew.md",
    ),
    DocumentedClause(
        "EXPLAIN ANALYZE",
        "EXPLAIN ANALYZE query",
        "Runs the query, and shows its plan with the rows that each operator took, moved and gave, and where the time "
        "went. The rows themselves are thrown away.",
        f"EXPLAIN ANALYZE {_window('UNION orders ')}",
        "windows.md",
    ),
    DocumentedClause(
        "EXPLAIN DEPLOYMENT",
        "EXPLAIN DEPLOYMENT query",
        "What a deployment of the query keeps of each table, and what an answer reads and computes. Runs nothing.",
        f"EXPLAIN DEPLOYMENT {_window('UNION orders ')}",
        "serving.md",
    ),
)


def clause_words() -> frozenset[str]:
    """The words of the language in the forms of all clauses."""
    return frozenset(word for clause in CLAUSES for word in _WORD.findall(f"{clause.name} {clause.form}"))
