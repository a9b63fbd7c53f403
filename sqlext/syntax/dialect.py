"""The sqlglot dialect `sqlext`: Spark's SQL plus OpenMLDB's window definitions and LAST JOIN, period predicates, and
EMIT AFTER.

The grammars: docs/reference/windows.md, section 1; docs/reference/last-join.md, section 1;
`sqlext.syntax.period_parser`.

``sqlglot.parse_one(text, read="sqlext")`` works for anyone who has this package installed. None of the new words
(UNION in a window, ROWS_RANGE, OPEN, MAXSIZE, LAST, OVERLAPS, BEFORE, ...) is a keyword: each is recognised only where
the grammar of a window, of FROM or of a comparison allows it, so columns may still be called `last` or `before`.

Every node remembers its place in the text (`sqlext.syntax.spans.span_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any, ClassVar

import sqlglot.parser
from sqlext_planner.errors import ConfigurationError
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from sqlext.syntax.base_parser import EmitParser, VariantPathParser
from sqlext.syntax.hint_nodes import read_hints
from sqlext.syntax.nodes import (
    ATTRIBUTES,
    AsofJoinClause,
    Duration,
    FrameSpec,
    LastJoinClause,
    SqlExtGenerator,
    UnionWindow,
)
from sqlext.syntax.period_parser import PeriodTableParser
from sqlext.syntax.spans import located, mark, mark_until
from sqlext.syntax.sql_settings import SqlSettings
from sqlext.syntax.tokens import SparkTokenizer

if not (sqlglot.parser.__file__ or "").endswith(".py"):
    raise ConfigurationError(
        "sqlglot is installed in its compiled form (sqlglotc), which no dialect can extend",
        condition="missing-package",
        help="run: pip uninstall -y sqlglotc && pip install --force-reinstall --no-deps --no-binary sqlglot sqlglot",
    )

_JOIN_WORDS = {*SparkParser.JOIN_METHODS, *SparkParser.JOIN_SIDES, *SparkParser.JOIN_KINDS}
_FRAME_WORDS = {"ROWS", "RANGE", "ROWS_RANGE", "GROUPS"}


#: Methods of the parser whose nodes get their places; those behind an operand that was read before also its text.
_LOCATED = """
    assignment atom bitwise column cte disjunction expression field function_call group grouping_set cube_or_rollup
    having interval lambda lateral ordered primary qualify select_query type types unary value where with
""".split()  # noqa: SIM905 - a table of words
_LOCATED_BEHIND_OPERANDS = "bracket column_ops limit order range set_operations".split()  # noqa: SIM905
#: Shows `_parse_joins` who calls it: sqlglot passes `alias_tokens` (mostly None) only for nested joins.
_NOT_NESTED = object()
#: LEFT OUTER ASOF JOIN, and one more, so that a wrong word is told.
_MOST_JOIN_WORDS = 5
#: How far behind WATERMARK the word DELAY is looked for.
_WATERMARK_TOKENS = 64


class SqlExtParser(VariantPathParser, PeriodTableParser, EmitParser):
    """Spark's parser with window definitions, LAST JOIN, period predicates and operations over periods, EMIT AFTER, and
    a place for every node."""

    #: Spark refuses a comma before FROM; OpenMLDB takes it.
    TRAILING_COMMA: ClassVar[bool] = False

    def reset(self) -> None:
        super().reset()
        self._frames: list[dict[str, Any]] = []

    def _parse_hint(self) -> exp.Hint | None:
        return read_hints(self.sql, self._prev.start) if self._match(TokenType.HINT) else None

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> Any:
        def item() -> Any:
            before, found = self._index, parse_method()
            empty = found is None and self._index == before
            if empty and self._curr is not None and self._curr.token_type == sep:  # sqlglot would pass over it
                self.raise_error("there is nothing before this comma", self._curr, help="remove the comma")
            return found

        return super()._parse_csv(item, sep)

    def _parse_projections(self) -> Any:
        items = super()._parse_projections()
        if self._prev.token_type == TokenType.COMMA and not self.TRAILING_COMMA:
            self.raise_error("there is a comma before FROM", self._prev, help="remove the comma")
        return items

    def _parse_case(self) -> Any:
        index = self._index - 1  # CASE is read already; marked here, because OVER may follow END
        return mark(self, super()._parse_case(), index)

    def _parse_join(self, *args: Any, **kwargs: Any) -> Any:
        index = self._index
        if self._curr.token_type in _JOIN_WORDS and self._next.text.upper() == "LAST":
            help = "remove it: LAST JOIN keeps every left row, with NULLs where nothing matches"
            self.raise_error(f"{self._curr.text.upper()} cannot be combined with LAST JOIN", self._curr, help=help)
        words = self._asof_words()
        if words:
            join = self._parse_asof_join(words)
        else:
            join = self._parse_last_join() if self._at_last_join() else super()._parse_join(*args, **kwargs)
        return mark(self, join, index)

    def _parse_table(self, schema: bool = False, joins: bool = False, *args: Any, **kwargs: Any) -> Any:
        index = self._index
        table = self._parse_period_table() or super()._parse_table(schema, False, *args, **kwargs)
        if isinstance(table, (exp.Table, exp.Subquery)) and self._at_watermark():
            self._parse_watermark(table)
        if joins and table is not None:
            for join in self._parse_joins():
                table.append("joins", join)
        return mark(self, table, index)

    def _parse_joins(self, alias_tokens: Any = _NOT_NESTED) -> Iterator[Any]:
        """The joins that follow a relation; none where sqlglot, after reading ``a JOIN b``, looks for ``JOIN c ON p``
        (there it passes `alias_tokens`). Spark does not nest joins that way, and each JOIN without ON would read
        everything after it twice."""
        return iter(self._parse_join, None) if alias_tokens is _NOT_NESTED else iter(())

    def _at_last_join(self) -> bool:
        """Whether LAST JOIN comes next: LAST unquoted, directly before JOIN. Spark would read an alias `last`."""
        is_last = self._curr.text.upper() == "LAST" and self._curr.token_type != TokenType.IDENTIFIER
        return is_last and self._next.token_type == TokenType.JOIN

    def _parse_last_join(self) -> Any:
        """``LAST JOIN right [[AS] a] [ORDER BY key] ON condition``; the analyzer refuses USING and a missing ON."""
        self._advance(2)
        args: dict[str, Any] = {"this": self._parse_table(), "kind": "LAST", "order": self._parse_order()}
        return self.expression(LastJoinClause(**args, **self._parse_join_condition()))

    def _parse_join_condition(self) -> dict[str, Any]:
        args: dict[str, Any] = {}
        if self._match(TokenType.ON):
            args["on"] = self._parse_disjunction()
            if args["on"] is None:
                self.raise_error("a condition must follow ON", help="write for example ON a.k = b.k")
        elif self._match(TokenType.USING):
            args["using"] = self._parse_using_identifiers()
        return args

    def _asof_words(self) -> list[Token]:
        """The words before JOIN, if ASOF is one of them: ``ASOF LEFT``, as in DuckDB, or ``LEFT ASOF``, as in Spark."""
        rest = self._tokens[self._index : self._index + _MOST_JOIN_WORDS]
        words = list(takewhile(lambda token: token.token_type in _JOIN_WORDS, rest))
        is_join = rest[len(words) : len(words) + 1] and rest[len(words)].token_type == TokenType.JOIN
        return words if is_join and any(token.token_type == TokenType.ASOF for token in words) else []

    def _parse_asof_join(self, words: list[Token]) -> Any:
        """``ASOF [LEFT] JOIN right [[AS] a] [MATCH_CONDITION (condition)] [ON condition | USING (names)]``.

        The analyzer says whether they compare two times.
        """
        side = [token.text.upper() for token in words]
        side.remove("ASOF")
        if side not in ([], ["INNER"], ["LEFT"], ["LEFT", "OUTER"]):
            help = "ASOF JOIN drops left rows without a match, ASOF LEFT JOIN keeps them; right rows are never kept"
            wrong = next((token for token in words if token.text.upper() not in ("ASOF", "INNER", "LEFT")), words[-1])
            alias = "for an alias write FROM t AS asof"
            self.raise_error(f"{wrong.text.upper()} cannot be combined with ASOF JOIN", wrong, help=f"{help}; {alias}")
        self._advance(len(words) + 1)
        args = {"this": self._parse_table(), "kind": "ASOF", "side": "LEFT" if "LEFT" in side else None}
        if self._match_text_seq("MATCH_CONDITION"):
            args["match_condition"] = self._parse_wrapped(self._parse_disjunction)
            if args["match_condition"] is None:
                self.raise_error("MATCH_CONDITION needs a comparison", self._prev, help="write (a.ts >= b.ts)")
        args |= self._parse_join_condition()
        if self._at_match_condition():
            help = "write one, before ON or USING, and join comparisons with AND: MATCH_CONDITION (p AND q) ON ..."
            self.raise_error("a MATCH_CONDITION cannot stand here", self._curr, help=help)
        return self.expression(AsofJoinClause(**args))

    def _at_match_condition(self) -> bool:
        """Whether ``MATCH_CONDITION (`` comes next; elsewhere the word is a name like any other."""
        is_word = self._curr.text.upper() == "MATCH_CONDITION" and self._curr.token_type != TokenType.IDENTIFIER
        return is_word and self._next.token_type == TokenType.L_PAREN

    def _at_watermark(self) -> bool:
        """Whether Spark's ``WATERMARK time DELAY OF interval`` comes next. The word alone is a name like any other."""
        if self._curr.text.upper() != "WATERMARK" or self._curr.token_type == TokenType.IDENTIFIER:
            return False
        return self._next.token_type not in (TokenType.JOIN, TokenType.COMMA, TokenType.ON) and any(
            token.text.upper() == "DELAY" for token in self._tokens[self._index + 2 : self._index + _WATERMARK_TOKENS]
        )

    def _parse_watermark(self, table: exp.Expr) -> None:
        """Pass over the clause, which is Spark's, and take the alias behind it."""
        self._advance()
        self._parse_disjunction()
        if self._match(TokenType.ALIAS):
            self._parse_id_var()
        if not (self._match_text_seq("DELAY", "OF") and self._parse_interval() is not None):
            self.raise_error("WATERMARK is not complete", help="write WATERMARK ts DELAY OF INTERVAL 10 SECONDS")
        table.set("watermark", True)
        alias = self._parse_table_alias()
        if alias is not None:
            table.set("alias", alias)

    def _parse_table_alias(self, alias_tokens: Any = None) -> Any:
        if self._at_last_join() or self._at_watermark() or self._at_emit() or self._at_match_condition():
            return None
        index = self._index
        return mark(self, super()._parse_table_alias(alias_tokens), index)

    def _parse_id_var(self, any_token: bool = True, tokens: Any = None) -> Any:
        if tokens is self.WINDOW_ALIAS_TOKENS and self._curr.text.upper() == "ROWS_RANGE":
            return None  # (ROWS_RANGE BETWEEN ...) has a frame, not a base window
        index = self._index
        return mark(self, super()._parse_id_var(any_token, tokens), index)

    def _parse_window(self, this: Any, alias: bool = False) -> Any:
        index = self._index
        if isinstance(this, exp.Func) and "start" in this.meta:  # so far only the name's place is known
            this.meta.setdefault("span", (this.meta["start"], self._prev.end + 1))
        self._frames.append({})
        try:
            node = super()._parse_window(this, alias=alias)
        finally:
            extras = self._frames.pop()
        if isinstance(node, exp.Window) and node is not this:
            if not alias and node.this is not this:  # FILTER (...) or IGNORE NULLS came between
                mark_until(self, node.this, index, this, TokenType.OVER)
            if extras.get("spec") is not None:
                node.set("spec", extras["spec"])
            if extras.get("union"):
                node = UnionWindow(**node.args, union=extras["union"], by_name=extras["by_name"])
            if not alias and node.args.get("alias") is None and self._prev.token_type == TokenType.OVER:
                self.raise_error(
                    "OVER must be followed by a window's name or a definition in parentheses",
                    help="write OVER w, or OVER (PARTITION BY ...)",
                )
        return mark(self, node, index, this)

    def _parse_named_window(self) -> Any:
        index = self._index
        return mark(self, self._parse_window(self._parse_id_var(), alias=True), index)

    def _parse_partition_and_order(self) -> Any:
        """What is inside a window's parentheses, after the optional base name and up to the closing one."""
        extras = self._frames[-1]
        if self._match(TokenType.UNION):
            before = self._match_text_seq("BY", "NAME")
            extras["union"] = self._parse_csv(self._parse_union_source)
            extras["by_name"] = bool(self._match_text_seq("BY", "NAME") or before)
            if extras["by_name"] and self._curr.token_type == TokenType.COMMA:
                self.raise_error("BY NAME stands behind the last source", self._prev, help="it is for all sources")
        partition, order = super()._parse_partition_and_order()
        if self._curr.text.upper() in _FRAME_WORDS and self._curr.token_type != TokenType.IDENTIFIER:
            extras["spec"] = self._parse_frame()
        else:
            extras["spec"] = self._parse_attributes(None, {})
        if self._curr.token_type != TokenType.R_PAREN:
            self._refuse_window_token()
        return partition, order

    def _parse_union_source(self) -> Any:
        """``[db.]table [VERSION AS OF number]`` or ``(query) [[AS] alias]``."""
        index = self._index
        if not self._match(TokenType.L_PAREN, advance=False):
            table: Any = self._parse_table_parts()
            version = self._parse_version()
            if version is not None:
                table.set("version", version)
            return mark(self, table, index)
        source = self._parse_select(table=True, parse_subquery_alias=False)
        named = self._match(TokenType.ALIAS)
        ends = self._curr.text.upper() in _FRAME_WORDS or (self._curr.text.upper(), self._next.text.upper()) == (
            "BY",
            "NAME",
        )
        if source is not None and (named or not ends):
            name = self._parse_id_var(any_token=bool(named), tokens=self.TABLE_ALIAS_TOKENS)
            if name is not None:
                source.set("alias", exp.TableAlias(this=name))
        return mark(self, source, index)

    def _warn_unsupported(self) -> None:
        """Statements that sqlglot keeps as a Command go to Spark as they are: no warning is needed."""

    def _parse_frame(self) -> Any:
        first = self._index
        kind = self._curr.text.upper()
        self._advance()
        between = bool(self._match(TokenType.BETWEEN))
        places: dict[str, tuple[int, int]] = {}
        args: dict[str, Any] = {"kind": kind}
        self._parse_bound("start", args, places)
        if between:
            if not self._match(TokenType.AND):
                self.raise_error("a frame is written BETWEEN ... AND ...")
            self._parse_bound("end", args, places)
        spec = self._parse_attributes(args, places)
        spec.meta["places"] = places
        spec.meta["span"] = (self._tokens[first].start, self._prev.end + 1)
        return spec

    def _parse_bound(self, side: str, args: dict[str, Any], places: dict[str, tuple[int, int]]) -> None:
        first = self._curr
        if self._match_text_seq("CURRENT", "ROW"):
            args[side] = "CURRENT ROW"
            places[side] = (first.start, self._prev.end + 1)
            return
        args[side] = "UNBOUNDED" if self._match_text_seq("UNBOUNDED") else self._parse_duration()
        if self._match_text_seq("OPEN"):
            if args[side] == "UNBOUNDED":
                self.raise_error("UNBOUNDED cannot be OPEN", self._prev, help="remove OPEN")
            args[f"{side}_open"] = True
        if args[side] is None or not self._match_texts(self.WINDOW_SIDES):
            self.raise_error(
                "a frame bound must end with PRECEDING or FOLLOWING",
                help="write CURRENT ROW, UNBOUNDED PRECEDING, 10 PRECEDING or 10s PRECEDING (units: ms s m h d w)",
            )
        args[f"{side}_side"] = self._prev.text.upper()
        places[side] = (first.start, self._prev.end + 1)

    def _parse_attributes(self, args: dict[str, Any] | None, places: dict[str, tuple[int, int]]) -> Any:
        """MAXSIZE and what follows a frame. Returns a plain WindowSpec if Spark has syntax for all of it."""
        attributes = dict(args or {})
        first = self._curr
        if args is not None and self._match_text_seq("MAXSIZE"):
            attributes["maxsize"] = self._parse_unary()
            if attributes["maxsize"] is None:
                self.raise_error("MAXSIZE needs a number of rows", help="write MAXSIZE 100")
            places["maxsize"] = (first.start, self._prev.end + 1)
        while name := self._match_attribute(places):
            attributes[name] = True
        if self._match_text_seq("EXCLUDE"):
            attributes["exclude"] = self._parse_var_from_options(self.WINDOW_EXCLUDE_OPTIONS)
        if args is None and not attributes:
            return None
        is_extended = {*attributes} - {*exp.WindowSpec.arg_types} or attributes.get("kind") == "ROWS_RANGE"
        has_duration = any(isinstance(attributes.get(side), Duration) for side in ("start", "end"))
        spec = FrameSpec(**attributes) if is_extended or has_duration else exp.WindowSpec(**attributes)
        spec.meta["places"] = places
        return self.expression(spec)

    def _match_attribute(self, places: dict[str, tuple[int, int]]) -> str | None:
        first = self._curr
        for words, name in ATTRIBUTES.items():
            if self._match_text_seq(*words):
                places[name] = (first.start, self._prev.end + 1)
                return name
        return None

    def _refuse_window_token(self) -> None:
        word = self._curr.text.upper()
        hints = {
            "MAXSIZE": "MAXSIZE comes directly after the frame, before EXCLUDE and INSTANCE_NOT_IN_WINDOW",
            "UNION": "UNION comes first in the window: (UNION t PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN ...)",
            "COMMA": "separate the attributes of a window by blanks",
            ",": "separate the attributes of a window by blanks",
        }
        self.raise_error(
            f"unexpected {self._curr.text!r} in a window definition" if self._curr else "the window is not closed",
            help=hints.get(word),
        )


for _name in (*_LOCATED, *_LOCATED_BEHIND_OPERANDS):
    _method = getattr(SqlExtParser, f"_parse_{_name}")
    setattr(SqlExtParser, f"_parse_{_name}", located(_method, operand=_name in _LOCATED_BEHIND_OPERANDS))


class SqlExt(Spark):
    """Spark's dialect plus OpenMLDB's window definitions, LAST JOIN, and period predicates."""

    Tokenizer = SparkTokenizer
    Parser = SqlExtParser
    Generator = SqlExtGenerator


class SqlExtQuotedNames(SqlExt):
    """The same dialect, but "x" is a name (spark.sql.ansi.doubleQuotedIdentifiers)."""

    class Tokenizer(SparkTokenizer):
        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`", '"']
        RAW_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("r'", "'"), ("R'", "'")]


_UNQUOTED, _QUOTED = SqlExt(), SqlExtQuotedNames()


def dialect(settings: SqlSettings) -> SqlExt:
    """The dialect that reads a text as Spark does under these settings."""
    return _QUOTED if settings.double_quoted_names else _UNQUOTED
