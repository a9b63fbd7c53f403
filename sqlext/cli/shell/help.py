"""The words of the dialect, from the tables that the parser, the analyzer and the settings read; and what `\\h` and
`\\df` say of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from pygments.lexers.sql import SqlLexer
from pygments.token import Keyword, Name, Number, String
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text
from sqlext_operators.interval_join.relations import RELATIONS, PeriodRelation
from sqlext_operators.window.functions import FUNCTIONS
from sqlext_planner.config import Config
from sqlext_planner.errors import ConfigurationError, SqlExtError
from sqlext_planner.expressions.types import normalize
from sqlext_planner.periods.functions import PERIOD_FUNCTIONS

from sqlext.cli.shell.results import Draw, listing_drawn
from sqlext.syntax.clauses import CLAUSES, DocumentedClause, clause_words
from sqlext.syntax.dialect import SqlExt
from sqlext.syntax.nodes import PHRASES
from sqlext.syntax.spark_functions import WINDOW_FUNCTIONS
from sqlext.syntax.typos import FIRST_WORDS, LATER_WORDS


@dataclass(frozen=True)
class Entry:
    """What is known about a function: how it is written, what it means in one line, and a note."""

    name: str
    form: str
    meaning: str
    note: str = ""


@cache
def keywords() -> tuple[str, ...]:
    """The words of the language, in upper case; GROUP BY and MET BY are one."""
    types = SqlExt.Parser.TYPE_TOKENS
    spark = [
        word
        for word, token in SqlExt.Tokenizer.KEYWORDS.items()
        if word[0].isalpha() and word.isascii() and (token not in types or _is_type(word))
    ]
    phrases = [" ".join(phrase) for phrase in PHRASES]
    return tuple(sorted({*spark, *phrases, *clause_words(), *FIRST_WORDS, *LATER_WORDS}))


def _is_type(word: str) -> bool:
    """Whether Spark has a type of this name."""
    try:
        normalize(word.lower())
    except SqlExtError:
        return False
    return True


@cache
def functions() -> Mapping[str, Entry]:
    """The functions of the dialect by their names and aliases, in lower case."""
    entries: dict[str, Entry] = {}
    for row in FUNCTIONS.values():
        if not row.internal:
            also = f"also {', '.join(row.names[1:])}" if row.names[1:] else ""
            entry = Entry(row.name, row.signature, row.doc, also)
            entries.update(dict.fromkeys(row.names, entry))
    for made in PERIOD_FUNCTIONS.values():
        ends = "start, end, start2, end2" if made.periods == 2 else "start, end"
        entries[made.name] = Entry(made.name, f"{made.name}({ends})", made.doc)
    for relation in RELATIONS.values():
        entries[relation.name] = Entry(
            relation.name, f"{relation.name}(a, b, c, d)", relation.doc, relation_note(relation)
        )
    return entries


def relation_note(relation: PeriodRelation) -> str:
    """What a relation of [a, b) and [c, d) stands for, and how else it is written."""
    words = ", ".join(f"PERIOD(a, b) {words} PERIOD(c, d)" for words in relation.words)
    return f"holds if {relation.formula.replace(',', ' and')}" + (f"; {words}" if words else "")


def spark_functions() -> tuple[str, ...]:
    """Functions of Spark that are known before Spark runs."""
    return tuple(sorted(WINDOW_FUNCTIONS))


def relations_of(words: str) -> tuple[PeriodRelation, ...]:
    """The relations with this spelling, such as ``MET BY``."""
    found = PHRASES.get(tuple(words.upper().split()))
    return () if found is None else (found,)


def clauses_of(words: str) -> tuple[DocumentedClause, ...]:
    """The clauses whose name has all these words; else those in whose form they stand."""
    wanted = set(words.upper().replace("()", "").split())
    named = tuple(clause for clause in CLAUSES if wanted <= set(clause.name.split()))
    return named or tuple(clause for clause in CLAUSES if f" {' '.join(words.upper().split())} " in f" {clause.form} ")


@cache
def settings() -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """The settings of the extension: the first sentence about each, and its values where they are words."""
    return {found.key: (found.doc.split(". ")[0], found.words) for found in Config.described()}


_DURATION = re.compile(r"(?:ms|[smhdw])\b", re.IGNORECASE)


class SqlExtLexer(SqlLexer):
    """Colours keywords of the dialect, calls of its functions, and durations such as ``10s``."""

    name = "sqlext"
    aliases: ClassVar[list[str]] = ["sqlext"]
    filenames: ClassVar[list[str]] = []
    mimetypes: ClassVar[list[str]] = []

    def get_tokens_unprocessed(self, text: str, *stack: Any) -> Iterator[tuple[int, Any, str]]:
        """Places, kinds and texts, as Pygments has them."""
        before: Any = None
        for at, kind, value in super().get_tokens_unprocessed(text, *stack):
            if kind in Name or kind is Keyword:
                kind = _kind(text, at, value, before)
            elif kind is String.Symbol:  # in Spark it is a text
                kind = String
            before = kind
            yield at, kind, value


def _kind(text: str, at: int, value: str, before: Any) -> Any:
    if before in Number and _DURATION.fullmatch(value):
        return Number
    if text.startswith("(", at + len(value)) and value.lower() in functions():
        return Name.Function
    return Keyword if value.upper() in _words() else Name


@cache
def _words() -> frozenset[str]:
    return frozenset(word for phrase in keywords() for word in phrase.split())


def functions_drawn(part: str) -> Draw:
    """Draws the functions with this in their name, a line each. Raises ConfigurationError if there are none."""
    found = {entry.form: entry.meaning for name, entry in functions().items() if part.lower() in name}
    if not found:
        raise ConfigurationError(
            f"no function has '{part}' in its name", condition="unknown-function", help=r"\df lists them all"
        )
    return listing_drawn(("function", "meaning"), sorted(found.items()))


def topics_drawn() -> Draw:
    r"""Draws what `\h` knows."""

    def draw(out: Console) -> None:
        wide = max(len(clause.name) for clause in CLAUSES)
        for clause in CLAUSES:
            first, _, _ = clause.meaning.partition(". ")
            out.print(Text.assemble((clause.name.ljust(wide), "bold"), "  ", first.rstrip(".")))
        out.print(
            Text("\n\\h WORD explains one of these, a function (\\df), a predicate, or a setting (\\set)", style="dim")
        )

    return draw


def topic_drawn(topic: str, of_spark: str | None = None) -> Draw:
    """Draws what is known about a clause, function, predicate or setting; `of_spark` is what Spark says.

    Raises ConfigurationError if nothing is known, with the nearest name.
    """
    name = topic.strip().rstrip("()").lower()
    clauses, relations = clauses_of(topic), relations_of(topic)
    entry = functions().get(name)
    described = [setting for setting in Config.described() if setting.key.lower() == name]
    if entry is None and not (clauses or relations or described or of_spark):
        raise _unknown(topic, name)

    def draw(out: Console) -> None:
        if entry is not None:
            _print_function(out, entry)
        for relation in relations:
            form = f"PERIOD(a, b) {topic.upper()} PERIOD(c, d)"
            _print_function(out, Entry(relation.name, form, relation.doc, relation_note(relation)))
        for clause in clauses:
            _print_clause(out, clause)
        for setting in described:
            _print_function(
                out, Entry(setting.key, f"{setting.key} = {setting.default}", setting.doc, f"takes {setting.values}")
            )
        if of_spark and entry is None:
            out.print(Text(of_spark))

    return draw


def _print_function(out: Console, entry: Entry) -> None:
    out.print(Text(entry.form, style="bold"))
    out.print(Text(f"    {entry.meaning}"))
    if entry.note:
        out.print(Text(f"    {entry.note}", style="dim"))


def _print_clause(out: Console, clause: DocumentedClause) -> None:
    out.print(Text(clause.form, style="bold"))
    out.print(Text(f"    {clause.meaning}"))
    example = "\n".join(f"    {line}" for line in f"{clause.example};".splitlines())
    if out.is_terminal:
        out.print(Syntax(example, SqlExtLexer(), theme="ansi_dark", background_color="default"))
    else:
        out.print(Text(example))
    out.print(Text(f"    docs/{clause.page}", style="dim"))


def _unknown(topic: str, name: str) -> ConfigurationError:
    names = [*functions(), *(clause.name.lower() for clause in CLAUSES), *(found.key for found in Config.described())]
    near = difflib.get_close_matches(name, names, n=1)
    help = f"did you mean {near[0]}?" if near else r"\h lists what is explained, \df the functions"
    return ConfigurationError(f"nothing is known about '{topic}'", condition="command-line", help=help)
