"""What the shell knows of the dialect: every clause of its help is one, every word comes from the tables."""

from __future__ import annotations

import pytest
from pygments.token import Keyword, Name, Number, String
from sqlext_operators.interval_join.relations import RELATIONS
from sqlext_operators.window.functions import FUNCTIONS

from sqlext.cli.shell.help import SqlExtLexer, clauses_of, functions, keywords
from sqlext.syntax.clauses import CLAUSES, DocumentedClause
from sqlext.syntax.hint_nodes import HintCall
from sqlext.syntax.parser import parse


@pytest.mark.parametrize("clause", CLAUSES, ids=lambda clause: clause.name)
def test_the_example_of_a_clause_has_it(clause: DocumentedClause) -> None:
    statement = parse(clause.example.removeprefix("EXPLAIN ANALYZE ").removeprefix("EXPLAIN DEPLOYMENT "))
    hints = [] if statement.ast is None else list(statement.ast.find_all(HintCall))
    assert statement.uses_extension or any(hint.is_ours for hint in hints)
    assert any(word in clause.example for word in clause.name.split())
    assert clauses_of(clause.name)[0] is clause


def test_words_are_those_of_the_tables() -> None:
    assert {"SELECT", "GROUP BY", "MAXSIZE", "ROWS_RANGE", "MET BY", "CONFIDENCE", "PRECEDING"} <= set(keywords())
    assert {words for relation in RELATIONS.values() for words in relation.words} <= set(keywords())
    assert {name for name, row in FUNCTIONS.items() if not row.internal} | set(RELATIONS) <= set(functions())
    assert "UINT128" not in keywords()  # sqlglot's, for other databases


def test_colours() -> None:
    text = 'SELECT item, distinct_count(item) OVER (UNION o ROWS_RANGE BETWEEN 10s OPEN PRECEDING AND "x") MAXSIZE'
    kinds = {value: kind for _, kind, value in SqlExtLexer().get_tokens_unprocessed(text)}
    assert kinds["item"] is Name
    assert kinds["distinct_count"] is Name.Function
    assert {kinds[word] for word in ("SELECT", "UNION", "ROWS_RANGE", "OPEN", "MAXSIZE")} == {Keyword}
    assert kinds["10"] in Number
    assert kinds["s"] is Number
    assert kinds['"x"'] is String
