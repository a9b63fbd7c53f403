"""Ordinary statements that go to Spark without being planned, since no plan of ours could be better.

A long text costs some 10 microseconds a character to plan. A generated list of 100,000 values would pay seconds for a
plan that is Spark's anyway; a statement for which our plan is worth having is short. It is recognised by its words,
without tokenizing it. And what our operators could do for an ordinary statement are joins: a query that reads one
relation has none. Nor has it windows, unless the relation is a stream.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlext_planner.catalog import Catalog
from sqlext_planner.errors import SqlExtError
from sqlglot import exp

from sqlext.analyzer.context import dotted
from sqlext.syntax.calls import EXTENSION_FUNCTIONS, names_period_function
from sqlext.syntax.hint_nodes import SWEEP, UMJOIN
from sqlext.syntax.nodes import PHRASES

if TYPE_CHECKING:
    from sqlext.syntax.parser import Statement

#: Characters beyond which an ordinary statement goes to Spark without being planned: half a second of planning.
LARGE = 60_000

#: Words that may each be our syntax. PRECEDING and FOLLOWING may follow a duration.
_WORDS = frozenset(
    "CURRENT_ROW CURRENT_TIME DEPLOY FOLLOWING INSTANCE_NOT_IN_WINDOW MAXSIZE PERIOD PRECEDING ROWS_RANGE".split()  # noqa: SIM905
    + [name.upper() for name in (*EXTENSION_FUNCTIONS, *SWEEP, *UMJOIN)]
)
#: Words that are our syntax only together.
_TOGETHER = [*map(frozenset, (("LAST", "JOIN"), ("ASOF", "JOIN"), ("EMIT", "AFTER"), *PHRASES))]
_FUNCTION_PREFIXES = ("ALLEN_", "ISEQL_", "PERIOD_")
_WORD = re.compile(r"[A-Z_]\w*")
_STRING = re.compile(r"'[^']*'|\"[^\"]*\"")
_UNION = re.compile(r"\(\s*(?:UNION\b|--|/\*)")


def may_be_ours(text: str) -> bool:
    """False for a text that holds none of our syntax and none of our hints, whatever its grammar."""
    upper = text.upper()
    if not any(sign in text for sign in ("\\", "--", "/*")):  # it is certain where each string ends
        upper = _STRING.sub("''", upper)
    words = frozenset(_WORD.findall(upper))
    if words & _WORDS or any(together <= words for together in _TOGETHER) or _UNION.search(upper):
        return True
    return any(word.startswith(_FUNCTION_PREFIXES) or names_period_function(word) for word in words)


def joins_nothing(statement: Statement) -> bool:
    """Whether the query of an ordinary statement reads one relation at most, and asks for nothing by a hint."""
    assert statement.query is not None
    return all(node is statement.query for node in statement.query.find_all(exp.Join, exp.Lateral, exp.Query, exp.Hint))


def has_window_of_stream(statement: Statement, catalog: Catalog) -> bool:
    """Whether the query of a statement that joins nothing has an OVER and reads a stream."""
    assert statement.query is not None
    if statement.query.find(exp.Window) is None:
        return False
    with suppress(SqlExtError):  # Spark reports what is wrong with a table
        return any(_is_stream(table, catalog) for table in statement.query.find_all(exp.Table))
    return False


def _is_stream(table: exp.Table, catalog: Catalog) -> bool:
    if not isinstance(table.this, exp.Identifier):
        return False
    parts = [part.name for part in table.parts]
    if parts[0].upper() == "STREAM" and table.alias:  # FROM STREAM t
        return True
    info = catalog.table(dotted(parts))
    return info is not None and info.is_streaming
