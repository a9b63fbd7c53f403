"""What may be written next: columns, tables, functions, keywords, settings; commands and their arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from sqlext_planner.relational.physical_plan import quoted

from sqlext.cli.shell.help import functions, keywords, settings, spark_functions
from sqlext.cli.shell.script import last_part
from sqlext.cli.shell.tables import KnownTables, columns_named, named_relations
from sqlext.cli.source import statements_from
from sqlext.syntax.clauses import CLAUSES
from sqlext.syntax.typos import FIRST_WORDS

#: What the argument of a command is.
Argument = Literal["none", "table", "file", "setting", "sql", "help"] | tuple[str, ...]

_TYPED = re.compile(r"(?:(?P<qualifier>`[^`]+`|\w+)\.)?(?P<word>`?\w*)\Z")
_SET = re.compile(r"\s*(?:RESET|SET)\s+(?P<name>[\w.]*)\Z", re.IGNORECASE)
_VALUE = re.compile(r"\s*SET\s+(?P<name>[\w.]+)\s*=\s*(?P<value>\w*)\Z", re.IGNORECASE)
#: Where a table comes next.
_TABLE = re.compile(
    r"(?:\b(?:FROM|JOIN|INTO|TABLE|VIEW|DESCRIBE|EXISTS)|\(\s*UNION(?:\s+BY\s+NAME)?)\s+[`\w.]*\Z"
    r"|\b(?:FROM|UNION)\s+[\w.`]+(?:\s+(?:AS\s+)?\w+)?(?:\s*,\s*[\w.`]+(?:\s+(?:AS\s+)?\w+)?)*\s*,\s*`?\w*\Z",
    re.IGNORECASE,
)
#: Before FROM is written, columns of so many tables are offered: their schemas have to be read.
_MOST_TABLES = 20
_PLAIN = re.compile(r"[A-Za-z_]\w*")


class ShellCompleter(Completer):
    """Completes what is typed; asks only `tables`, which remembers, and `more_functions`: names that Spark has."""

    def __init__(
        self,
        tables: KnownTables,
        commands: Mapping[str, tuple[Argument, str]],
        more_functions: Callable[[], Sequence[str]],
    ) -> None:
        self._tables, self._more_functions = tables, more_functions
        #: What the argument of each command is, and one line about it.
        self._commands = commands
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Nothing for a word of no letters, unless it is asked for with Tab."""
        before = document.text_before_cursor
        last = last_part(before)
        asked = complete_event.completion_requested
        if last is not None and last.is_command and last.text.startswith("\\"):
            after = document.text[len(before) :].partition(";")[0]
            yield from self._of_command(before[last.place.start :], after, complete_event)
            return
        begun = last is not None and not last.is_whole
        start = last.place.start if last is not None and begun else len(before)
        if last is not None and begun and _is_inside(before[start:]):
            return
        after = document.text[len(before) :].partition(";")[0]
        yield from self._of_statement(before[start:], after, asked)

    def _of_command(self, typed: str, after: str, event: CompleteEvent) -> Iterator[Completion]:
        name, blank, argument = typed.partition(" ")
        if not blank:
            for command, (_, meaning) in self._commands.items():
                if command.startswith(name):
                    yield Completion(command, -len(name), display_meta=meaning)
            return
        kind, _ = self._commands.get(name, ("none", ""))
        argument = argument.lstrip()
        match kind:
            case "sql":
                yield from self._of_plan(argument, after, event)
            case "file":
                yield from self._files(argument, event)
            case "table":
                yield from _starting(argument, ((name, "table") for name in self._tables.names()))
            case "setting":
                yield from _settings(argument)
            case "help":
                names = [clause.name for clause in CLAUSES] + list(functions())
                yield from _starting(argument, ((name, "") for name in names))
            case tuple():
                yield from _starting(argument, ((word, "") for word in kind))

    def _of_plan(self, argument: str, after: str, event: CompleteEvent) -> Iterator[Completion]:
        """``analyze``, ``html FILE``, or a statement."""
        first, more, rest = argument.partition(" ")
        words = [word for word in ("analyze", "html") if argument and word.startswith(argument)]
        if first == "html" and more and " " not in rest:
            yield from self._files(rest, event)
        elif words:
            yield from _starting(argument, ((word, "") for word in words))
        else:
            yield from self._of_statement(argument, after, event.completion_requested)

    def _files(self, typed: str, event: CompleteEvent) -> Iterable[Completion]:
        return self._paths.get_completions(Document(typed), event)

    def _of_statement(self, before: str, after: str, asked: bool) -> Iterator[Completion]:
        """The statement's text before and after the cursor."""
        if (setting := _SET.match(before)) is not None:
            yield from _settings(setting["name"])
            return
        if (value := _VALUE.match(before)) is not None:
            _, words = settings().get(value["name"], ("", ()))
            yield from _starting(value["value"], ((word, "") for word in words))
            return
        typed = _TYPED.search(before)
        word = "" if typed is None else typed["word"]
        qualifier = None if typed is None else typed["qualifier"]
        whole = before[: len(before) - len(word)] + word.lstrip("`") + after
        if qualifier is not None:
            yield from _names(word, columns_named(whole, qualifier.strip("`"), self._tables.columns))
        elif _TABLE.search(before):
            yield from _names(word, self._table_names(whole))
        elif word or asked:
            yield from self._of_expression(word, before, whole)

    def _of_expression(self, word: str, before: str, whole: str) -> Iterator[Completion]:
        relations = named_relations(whole)
        is_first = before.strip() == word
        if relations:
            yield from _names(word, columns_named(whole, None, self._tables.columns))
        elif word and not is_first:  # FROM is not written yet
            yield from _names(word, self._all_columns())
        if word:
            yield from _names(word, [(item.alias, item.table or "query") for item in relations])
        yield from _keywords(word, first=is_first)
        if word and not is_first:
            yield from _functions(word.lower(), (*spark_functions(), *self._more_functions()))
        if word:
            yield from _names(word, [(name, "table") for name in self._tables.names()])

    def _all_columns(self) -> list[tuple[str, str]]:
        """Those of the first tables, each name once."""
        tables = self._tables.names()[:_MOST_TABLES]
        columns = [(name, f"{kind}, {table}") for table in tables for name, kind in self._tables.columns(table)]
        return list(dict(reversed(columns)).items())[::-1]

    def _table_names(self, whole: str) -> list[tuple[str, str]]:
        queries = [(item.alias, "query") for item in named_relations(whole) if item.table is None]
        found = dict([(name, "table") for name in self._tables.names()] + queries)
        return list(found.items())


def _is_inside(text: str) -> bool:
    """Whether a statement's text ends in a string or a comment, where a semicolon would not end it."""
    piece = next(statements_from(text + ";"), None)
    return piece is not None and not piece.is_ended and piece.opened != "`" and not text.upper().startswith("BEGIN")


def _names(word: str, found: Iterable[tuple[str, str]]) -> Iterator[Completion]:
    """Names that begin with the word; quoted where they have to be."""
    lower = word.lstrip("`").lower()
    for name, meta in found:
        if name.lower().startswith(lower):
            is_plain = _PLAIN.fullmatch(name) is not None and not word.startswith("`")
            text = name if is_plain else quoted(name)
            yield Completion(text, -len(word), display=name, display_meta=meta)


def _functions(lower: str, more: Sequence[str]) -> Iterator[Completion]:
    ours = functions()
    for name in sorted({*ours, *more}):
        if name.startswith(lower):
            entry = ours.get(name)
            meta = f"{entry.form}: {entry.meaning}" if entry is not None else "function of Spark"
            yield Completion(f"{name}(", -len(lower), display=f"{name}()", display_meta=meta)


def _keywords(word: str, *, first: bool) -> Iterator[Completion]:
    """In the case of the letters typed so far. At the start of a statement the usual first words come first."""
    lower = word.islower()
    upper = word.upper()
    begin = [*FIRST_WORDS, "EXPLAIN", "EXPLAIN ANALYZE", "DESCRIBE", "SHOW", "SET"] if first else []
    if not word and not first:
        return
    for keyword in dict.fromkeys([*begin, *(keywords() if word else ())]):
        if keyword.startswith(upper):
            yield Completion(keyword.lower() if lower else keyword, -len(word))


def _settings(typed: str) -> Iterator[Completion]:
    return _starting(typed, ((name, doc) for name, (doc, _) in settings().items()))


def _starting(typed: str, found: Iterable[tuple[str, str]]) -> Iterator[Completion]:
    for name, meta in found:
        if name.lower().startswith(typed.lower()):
            yield Completion(name, -len(typed), display_meta=meta)
