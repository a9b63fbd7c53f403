"""Parses a statement's text to its syntax tree; tells its kind and whether it needs the extension at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Literal

from sqlext_planner.errors import ParseError, Span, UnsupportedError
from sqlglot import exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from sqlext.syntax.calls import (
    EXTENSION_FUNCTIONS,
    is_extension_call,
    is_period_call,
    mark_group_calls,
    mark_period_calls,
    names_period_function,
)
from sqlext.syntax.dialect import SqlExtParser, dialect
from sqlext.syntax.hint_nodes import HintCall, refuse_malformed, without_inner_ends
from sqlext.syntax.nodes import (
    LONGEST_PHRASE,
    PERIOD_TABLES,
    PHRASES,
    EmitClause,
    FrameSpec,
    LastJoinClause,
    PeriodComparison,
    PeriodOperand,
    PeriodTable,
    UnionWindow,
)
from sqlext.syntax.scripts import pipe_error, query_tokens, refuse_executed, script_error, script_start
from sqlext.syntax.spans import PlacedParseError, span_of
from sqlext.syntax.sql_settings import DEFAULT, SqlSettings
from sqlext.syntax.tokens import words_as_names

_NAME_PARTS = re.compile(r"`(?:[^`]|``)*`|[^.`]+")

Kind = Literal["query", "wrapped", "spark"]


@dataclass(frozen=True)
class Statement:
    """One statement. `text` is `sql` with comments blanked out, so that offsets agree and slices can be joined.

    kind       "query", "wrapped" (CREATE ... AS, INSERT, CACHE around a query) or "spark" (nothing for us in it)
    ast        the whole statement; None for text that only Spark can parse
    query      the query itself, the one inside for a wrapped statement
    query_span its place
    uses_extension  the text is not Spark SQL, or means something else there: it must never be passed through
    stopped    where we could not go on reading the text of a "spark" statement
    """

    sql: str
    kind: Kind
    text: str = field(repr=False, default="")
    ast: exp.Expr | None = field(repr=False, default=None)
    query: exp.Query | None = field(repr=False, default=None)
    query_span: Span | None = None
    uses_extension: bool = False
    compat: str | None = None
    stopped: Span | None = None


class _VerbatimParser(SqlExtParser):
    """Keeps every function call as the user wrote it: same name, same arguments.

    sqlglot's function builders drop, reorder and wrap arguments; the analyzer must see each of them.
    """

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SqlExtParser.FUNCTION_PARSERS[name]
        for name in ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "SUBSTR", "TRIM")
    }

    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}  # current_date may be a column: Spark looks for one first

    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # array(a, b)[1] is a call and an index, not ARRAY[1]

    def _parse_types(self, check_func: bool = False, *args: Any, **kwargs: Any) -> Any:
        if check_func and self._next.token_type == TokenType.L_PAREN:
            return None  # array(a, b)[0] and int(x) are function calls, not types
        return super()._parse_types(check_func, *args, **kwargs)


class _OpenMldbParser(_VerbatimParser):
    """The same, but as lenient as OpenMLDB."""

    TRAILING_COMMA = True


def parse(
    text: str,
    *,
    compat: str | None = None,
    is_user_function: Callable[[str], bool] = lambda name: False,
    settings: SqlSettings = DEFAULT,
) -> Statement:
    """Parse one statement, as Spark reads texts under `settings`.

    With ``compat="openmldb"`` every window is OpenMLDB's. A name for which `is_user_function` holds is a user's
    function, if Spark has none of that name. Text that we cannot parse is a statement of kind "spark" unless it holds
    extension syntax. Raises ParseError, also if one of our hints is malformed; UnsupportedError for one of our windows
    in MERGE and the like.
    """
    try:
        tokens, read = _tokens(text, settings)
    except SqlglotError:
        return Statement(text, "spark", text)
    tokens = words_as_names(query_tokens(tokens, text, compat))
    blanked = _blank_comments(read, tokens)
    pipe = next((token for token in tokens if token.token_type == TokenType.PIPE_GT), None)
    if pipe is not None:  # sqlglot rewrites such a text beyond recognition
        if _mentions_extension(tokens, compat):
            raise pipe_error(pipe, text)
        return Statement(text, "spark", blanked)
    refuse_executed(
        text,
        settings,
        lambda inner: parse(inner, compat=compat, is_user_function=is_user_function, settings=settings).uses_extension,
    )
    begin = script_start(tokens)
    if begin is not None and _mentions_extension(tokens, compat):
        raise script_error(begin, text)
    parser = (_OpenMldbParser if compat == "openmldb" else _VerbatimParser)(dialect=dialect(settings))
    try:
        trees = [
            tree for tree in parser.parse(tokens, read) if tree is not None and not isinstance(tree, exp.Semicolon)
        ]
    except Exception as error:  # sqlglot answers some texts that it does not know with plain Python errors
        if (isinstance(error, PlacedParseError) and error.ours) or _mentions_extension(tokens, compat):
            raise _parse_error(error, text, _place(parser)) from None
        return Statement(text, "spark", blanked, stopped=_place(parser))
    if len(trees) != 1:
        if _mentions_extension(tokens, compat):
            raise ParseError(
                f"the text contains {len(trees)} statements",
                condition="several-statements",
                help="run them one by one",
                sql=text,
            )
        return Statement(text, "spark", blanked)
    calls = list(trees[0].find_all(exp.Anonymous, HintCall))
    if hints := [call for call in calls if isinstance(call, HintCall)]:
        refuse_malformed(text, hints)
    named = [call for call in calls if isinstance(call, exp.Anonymous) and not _is_column(call)]
    mark_group_calls(named, compat, is_user_function)
    mark_period_calls(named, is_user_function)
    return _statement(text, blanked, trees[0], compat)


def _tokens(text: str, settings: SqlSettings) -> tuple[list[Token], str]:
    """The tokens, and the text they were read from: as long as `text`, but sqlglot finds the end of its hints."""
    while True:
        tokens = dialect(settings).tokenize(text)
        plain = without_inner_ends(text, tokens) if "/*+" in text else text
        if plain == text:
            return tokens, text
        text = plain


def _place(parser: SqlExtParser) -> Span | None:
    """The token that a parser has reached."""
    if not parser._tokens:
        return None
    token = parser._tokens[min(parser._index, len(parser._tokens) - 1)]
    return Span(token.start, token.end + 1)


def _is_column(call: exp.Anonymous) -> bool:
    """Whether a call is ``IDENTIFIER('t.a')``, in whose place the column ``t.a`` is put; at the call's place."""
    if call.name.upper() != "IDENTIFIER" or call.parent is None or len(call.expressions) != 1:
        return False
    (name,) = call.expressions
    if not isinstance(name, exp.Literal) or not name.is_string or isinstance(call.parent, (exp.Table, exp.Dot)):
        return False
    if call.find_ancestor(exp.Hint) is not None:
        return False
    parts = [part[1:-1].replace("``", "`") if part[0] == "`" else part for part in _NAME_PARTS.findall(name.name)]
    if not 1 <= len(parts) <= 4:
        return False
    span = span_of(call)
    column = exp.column(*(exp.to_identifier(part, quoted=True) for part in reversed(parts)))
    for node in (column, *column.parts):
        node.meta["span"] = (span.start, span.end)
    call.replace(column)
    return True


def _statement(sql: str, text: str, tree: exp.Expr, compat: str | None) -> Statement:
    query: Any = tree
    if isinstance(tree, (exp.Create, exp.Insert, exp.Cache)):
        query = tree.expression
    if not isinstance(query, exp.Query) or (query is not tree and tree.args.get("with_")):
        _refuse_extension(sql, tree, compat)
        return Statement(sql, "spark", text, tree, compat=compat)
    return Statement(
        sql,
        "query" if query is tree else "wrapped",
        text,
        tree,
        query,
        span_of(query),
        uses_extension=compat is not None or next(extension_nodes(query), None) is not None,
        compat=compat,
    )


def _refuse_extension(sql: str, tree: exp.Expr, compat: str | None) -> None:
    """Raises UnsupportedError for our syntax in a statement that Spark has to run as a whole."""
    node = next(extension_nodes(tree, compat), None)
    if node is not None:
        raise UnsupportedError(
            f"{extension_name(node)} cannot be used in this part of {type(tree).__name__.upper()}",
            condition="unsupported-clause",
            span=span_of(node),
            help="put the query that contains it into a view with CREATE TEMPORARY VIEW v AS ..., and use v here"
            + ("; or put WITH after INSERT INTO" if tree.args.get("with_") else ""),
            sql=sql,
        )


ExtensionNode = (
    exp.Window | LastJoinClause | exp.Anonymous | PeriodComparison | PeriodOperand | PeriodTable | EmitClause
)


def extension_nodes(tree: exp.Expr, compat: str | None = None) -> Iterator[ExtensionNode]:
    """LAST and ASOF JOINs, window definitions and calls that Spark could not run (in OpenMLDB mode all of them), calls
    of functions that only the window table has, period predicates, operations over periods, and EMIT AFTER."""
    kinds = (exp.Window, LastJoinClause, exp.Anonymous, PeriodComparison, PeriodOperand, PeriodTable, EmitClause)
    found: Iterator[Any] = tree.find_all(*kinds)
    for node in found:
        if isinstance(node, exp.Window):
            is_extension = compat == "openmldb" or is_extension_window(node)
        elif isinstance(node, exp.Anonymous):
            is_extension = is_extension_call(node) or is_period_call(node)
        else:
            is_extension = True
        if is_extension:
            yield node


def extension_name(node: ExtensionNode) -> str:
    """What an error message calls a node of `extension_nodes`."""
    if isinstance(node, exp.Anonymous):
        return f"{node.name}()"
    if isinstance(node, (PeriodComparison, PeriodOperand)):
        return "a period predicate"
    if isinstance(node, PeriodTable):
        return f"{node.args['word']}()"
    if isinstance(node, EmitClause):
        return "EMIT AFTER"
    return node.title if isinstance(node, LastJoinClause) else "a sqlext window"


def is_extension_window(window: exp.Window) -> bool:
    """Whether the definition or call itself uses something that Spark has no syntax for."""
    if isinstance(window, UnionWindow) or isinstance(window.args.get("spec"), FrameSpec):
        return True
    return window.arg_key != "windows" and any(
        call.name.lower() in EXTENSION_FUNCTIONS for call in window.this.find_all(exp.Anonymous)
    )


def _blank_comments(text: str, tokens: list[Token]) -> str:
    """The text with everything between tokens turned into blanks; whitespace stays as it is."""
    parts: list[str] = []
    at = 0
    for token in tokens:
        if token.start > at:
            gap = text[at : token.start]
            parts.append(gap if not gap or gap.isspace() else " " * len(gap))
        if token.end + 1 > at:
            parts.append(text[max(at, token.start) : token.end + 1])
            at = token.end + 1
    parts.append(" " * (len(text) - at))
    return "".join(parts)


#: What follows a word that is ours unless it is an alias.
_AFTER = {"LAST": ("JOIN",), "ASOF": ("JOIN", "LEFT", "INNER", "RIGHT", "FULL")}
#: Words that are ours if they stand beside each other.
_TOGETHER = (
    *(("EMIT", "AFTER"), ("(", "UNION"), ("EXCLUDE", "CURRENT_ROW"), ("EXCLUDE", "CURRENT_TIME")),
    ("OPEN", "PRECEDING"),
)


def _mentions_extension(tokens: list[Token], compat: str | None) -> bool:
    """Whether a text that does not parse was meant for us, judged by its words."""
    words = [token.text.upper() if token.token_type != TokenType.STRING else "" for token in tokens] + ["", ""]
    for at, (word, after) in enumerate(pairwise(words)):
        if (after in _AFTER.get(word, ()) and words[at - 1] != "AS") or (word, after) in _TOGETHER:
            return True
        if word == "INSTANCE_NOT_IN_WINDOW" or (compat == "openmldb" and word in ("OVER", "WINDOW")):
            return True
        if word == "ROWS_RANGE" and (after == "BETWEEN" or {"PRECEDING", "FOLLOWING"} & set(words[at:])):
            return True
        if word == "MAXSIZE" and (after.isdigit() or after == "-"):
            return True
        if word in PERIOD_TABLES and after == "(" and "PERIOD" in words[at:]:
            return True
        if word.lower() in EXTENSION_FUNCTIONS and after == "(" and "OVER" in words[at:]:
            return True
        if names_period_function(word) and after == "(":
            return True
        if (word == "(" or (word == "PERIOD" and after in ("(", "CLOSED"))) and _relation_ends(words, at):
            return True
    return False


def _relation_ends(words: list[str], at: int) -> bool:
    """Whether a relation of periods comes before the word here: ``... BEFORE PERIOD(``, ``(a, b) NOT BEFORE (``."""
    for size in range(1, min(LONGEST_PHRASE, at) + 1):
        if tuple(words[at - size : at]) in PHRASES:
            before = [word for word in words[max(0, at - size - 2) : at - size] if word != "NOT"]
            return words[at] == "PERIOD" or before[-1:] == [")"]
    return False


def _parse_error(error: Exception, sql: str, at: Span | None) -> ParseError:
    if isinstance(error, RecursionError):
        return ParseError(
            "the statement is nested too deeply",
            condition="nested-too-deeply",
            span=at,
            help="split it with WITH",
            sql=sql,
        )
    if not isinstance(error, SqlglotParseError):
        near = "the end of the text" if at is None else repr(sql[at.start : at.end])
        return ParseError(f"the text cannot be read near {near}", condition="syntax-error", span=at, sql=sql)
    description = str(error.errors[0].get("description") or "the text is not SQL") if error.errors else str(error)
    placed = error if isinstance(error, PlacedParseError) else None
    span = placed.span if placed is not None else at
    at_end = placed is None or placed.at_end
    near = "the end of the text" if at_end or span is None else repr(sql[span.start : span.end])
    if description.startswith("Invalid expression"):
        message = f"unexpected {near}"
    elif match := re.match(r"Expecting (\S+)$", description):
        message = f"expected '{match[1]}', found {near}"
    elif description.startswith("Expected table name"):
        message = f"expected a table, found {near}"
    elif description.startswith("Required keyword"):
        message = f"the expression before {near} is not complete"
    else:
        message = description
    return ParseError(
        message, condition="syntax-error", span=span, help=placed.help if placed is not None else None, sql=sql
    )
