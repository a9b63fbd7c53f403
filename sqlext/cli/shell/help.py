r"""What `\h` and `\df` say: from the tables of clauses, functions, relations and settings."""

from __future__ import annotations

import difflib

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text
from sqlext_planner.config import Config
from sqlext_planner.errors import ConfigurationError

from sqlext.cli.shell.results import Draw, listing_drawn
from sqlext.cli.shell.words import Entry, SqlExtLexer, clauses_of, functions, relation_note, relations_of
from sqlext.syntax.clauses import CLAUSES, DocumentedClause


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
    described = [found for found in Config.described() if found.key.lower() == name]
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
        for found in described:
            _print_function(out, Entry(found.key, f"{found.key} = {found.default}", found.doc, f"takes {found.values}"))
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
