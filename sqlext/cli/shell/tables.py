"""The tables of a shell: files, known at once, and whatever Spark has once it runs; no rows are looked at. And those
that a statement names, found while it is still being written: no parser would take it yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from sqlext_planner.catalog import TableInfo
from sqlext_planner.errors import SqlExtError
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sqlext.syntax.dialect import SqlExt
from sqlext.syntax.parser import parse

if TYPE_CHECKING:
    from sqlext_planner.catalog import Catalog

#: What a table's name comes after. A comma after a table brings the next one, but not after the last two.
_BEFORE = ("FROM", "JOIN", "UNION", "INTO", "TABLE")
_LISTS = ("FROM", "UNION")
#: Words that no table or alias is before the words beside them.
_NO_ALIAS = {"LAST": "JOIN", "MATCH_CONDITION": "(", "EMIT": "AFTER", "BY": "NAME", "PERIOD": "("}
_NAMES = SqlExt.Parser.ID_VAR_TOKENS
_ALIASES = SqlExt.Parser.TABLE_ALIAS_TOKENS

Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Named:
    """A relation of a statement: what its columns are called by, and the table, or the names of a query's items."""

    alias: str
    table: str | None
    items: tuple[str, ...] = ()


def named_relations(statement: str) -> tuple[Named, ...]:
    """The tables, subqueries and WITH queries that the text names, those of subqueries too; () for text that cannot be
    cut into words."""
    try:
        tokens = SqlExt().tokenize(statement)
    except SqlglotError:
        return ()
    reader = _RelationReader(statement, tokens)
    return (*reader.with_queries(), *reader.relations())


def columns_named(
    statement: str, qualifier: str | None, columns: Callable[[str], Columns]
) -> tuple[tuple[str, str], ...]:
    """The columns that may be written after `qualifier.`, or without one, with what is known about each.

    `columns` gives those of a table, () for an unknown one.
    """
    described: dict[str, str] = {}
    relations = named_relations(statement)
    queries = {item.alias.lower(): item for item in relations if item.table is None}
    for item in relations:
        if qualifier is not None and item.alias.lower() != qualifier.lower():
            continue
        query = queries.get((item.table or item.alias).lower())
        if query is not None:
            described.update({name: query.alias for name in query.items if name != "*"})
        # A query with * may give the columns of all tables of the statement.
        below = relations if query is not None and "*" in query.items else [item] if query is None else []
        tables = [one.table for one in below if query is None or one.table is not None]
        for table in tables:
            described.update({name: f"{kind}, {table}" for name, kind in columns(table or "")})
    return tuple(described.items())


class _RelationReader:
    """Reads relations from the tokens of a statement."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text, self._tokens = text, tokens
        self._words = [token.text.upper() for token in tokens] + ["", ""]

    def with_queries(self) -> list[Named]:
        """``name AS (SELECT ...)``: what WITH brings."""
        found = []
        for at in range(len(self._tokens) - 3):
            is_query = self._words[at + 1 : at + 3] == ["AS", "("] and self._words[at + 3] in ("SELECT", "WITH", "FROM")
            if is_query and self._tokens[at].token_type in _NAMES:
                found.append(Named(self._tokens[at].text, None, self._items(at + 2)))
        return found

    def relations(self) -> list[Named]:
        """What follows FROM, JOIN and the like."""
        named: list[Named] = []
        for at, word in enumerate(self._words[:-2]):
            if word not in _BEFORE or self._tokens[at].token_type in (TokenType.STRING, TokenType.IDENTIFIER):
                continue
            place: int | None = at + 1
            while place is not None:
                place = self._relation(place, named)
                if place is None or word not in _LISTS or self._words[place] != ",":
                    break
                place += 1
        return named

    def _relation(self, at: int, named: list[Named]) -> int | None:
        """Adds the relation at a place, and returns the place behind it; None if there is none."""
        table: str | None = None
        items: tuple[str, ...] = ()
        if self._words[at] == "(":
            items = self._items(at)
            at = self._closing(at) + 1
        elif at < len(self._tokens) and self._tokens[at].token_type in _NAMES:
            parts = [self._tokens[at].text]
            at += 1
            while self._words[at] == "." and at + 1 < len(self._tokens):
                parts.append(self._tokens[at + 1].text)
                at += 2
            if self._words[at] == "(":  # a function, or an operation over periods
                return None
            table = ".".join(parts)
        else:
            return None
        alias, at = self._alias(at)
        if alias is None and table is None:
            return at
        named.append(Named(alias or (table or "").rpartition(".")[2], table, items))
        return at

    def _alias(self, at: int) -> tuple[str | None, int]:
        is_told = self._words[at] == "AS"
        at += is_told
        if at >= len(self._tokens) or self._tokens[at].token_type not in (_NAMES if is_told else _ALIASES):
            return None, at
        if not is_told and _NO_ALIAS.get(self._words[at]) == self._words[at + 1]:
            return None, at
        return self._tokens[at].text, at + 1

    def _items(self, opening: int) -> tuple[str, ...]:
        """The names of the items of the query in parentheses."""
        closing = self._closing(opening)
        if closing >= len(self._tokens) or closing == opening + 1:
            return ()
        inside = self._text[self._tokens[opening].end + 1 : self._tokens[closing].start]
        try:
            query = parse(inside).query
        except SqlExtError:
            return ()
        return () if query is None else tuple(query.named_selects)

    def _closing(self, at: int) -> int:
        depth = 0
        for place in range(at, len(self._tokens)):
            depth += {"(": 1, ")": -1}.get(self._words[place], 0)
            if depth == 0:
                return place
        return len(self._tokens)


_T = TypeVar("_T")


class KnownTables:
    """Names and columns, each looked up once until `forget`.

    files  the tables of a folder, which need no Spark; None without
    spark  Spark's catalog; None as long as Spark does not run
    offered  files that become tables of Spark once a statement names them
    """

    def __init__(
        self, files: Catalog | None, spark: Callable[[], Catalog | None], offered: Callable[[], tuple[str, ...]] = tuple
    ) -> None:
        self._files, self._spark, self._offered = files, spark, offered
        self._known: dict[str, TableInfo | None] = {}
        self._names: list[tuple[str, ...]] = []

    def forget(self) -> None:
        """Look everything up again: a statement may have changed it. Another thread that is looking something up keeps
        what it finds in what is forgotten here; nobody waits for it."""
        self._known, self._names = {}, []

    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        names = self._names
        if names:
            return names[0]
        in_files = () if self._files is None else self._files.tables()
        catalog = self._spark()
        if catalog is None:
            return tuple(sorted(in_files))
        no_names: tuple[str, ...] = ()
        # Spark writes names in its own case: those of files stay as they are written.
        written = {name.lower(): name for name in in_files}
        in_spark = {written.get(name.lower(), name) for name in _asked(catalog.tables, no_names)}
        names.append(tuple(sorted(in_spark.union(self._offered()))))
        return names[0]

    def info(self, name: str) -> TableInfo | None:
        """What is known about a table; None if there is none, or while only Spark could tell and does not run."""
        known, key = self._known, name.lower()
        if key not in known:
            found, is_final = self._find(name)
            if not is_final:
                return found
            known[key] = found
        return known[key]

    def columns(self, name: str) -> Columns:
        """The columns with their types; () for an unknown table."""
        found = self.info(name)
        return () if found is None else found.columns

    def _find(self, name: str) -> tuple[TableInfo | None, bool]:
        """The table, and whether the answer stays the same when Spark runs."""
        catalog = self._spark()
        in_files = self._table_of_files(name)
        if catalog is None:
            return in_files, False
        in_spark = _asked(lambda: catalog.table(name), None)
        if in_spark is None and name.lower() in {offered.lower() for offered in self._offered()}:
            return in_files, False
        same = in_files is not None and in_spark is not None and _names(in_files.columns) == _names(in_spark.columns)
        return (in_files if same else in_spark), True

    def _table_of_files(self, name: str) -> TableInfo | None:
        try:
            return None if self._files is None else self._files.table(name)
        except SqlExtError:  # JSON, or a file that cannot be read: only Spark can tell, or says what is wrong
            return None


def _names(columns: Iterable[tuple[str, str]]) -> list[str]:
    return [name.lower() for name, _ in columns]


def _asked(question: Callable[[], _T], otherwise: _T) -> _T:
    """Spark's answer, or `otherwise` where it has none: completion says nothing about a table that cannot be read."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return question()
    except (SqlExtError, PySparkException, Py4JError, OSError):
        return otherwise
