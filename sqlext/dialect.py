"""The sqlglot dialect `sqlext`: Spark's SQL plus OpenMLDB's window definitions (openmldb.md section 1).

``sqlglot.parse_one(text, read="sqlext")`` works for anyone who has this package installed. None of the new words
(UNION in a window, ROWS_RANGE, OPEN, MAXSIZE, ...) is a keyword: each is recognised only where the grammar of a
window allows it, so columns may go on being called `maxsize` or `open`.

Every node remembers where its text stands: `span_of(node)` gives a half-open range of character offsets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

import sqlglot.parser
from sqlext_planner.errors import ConfigurationError, Span
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

if not (sqlglot.parser.__file__ or "").endswith(".py"):
    raise ConfigurationError(
        "sqlglot is installed in its compiled form (sqlglotc), which no dialect can extend",
        help="run: pip uninstall -y sqlglotc && pip install --force-reinstall --no-deps --no-binary sqlglot sqlglot",
    )

_DURATION = re.compile(r"(\d+)(ms|s|m|h|d)", re.IGNORECASE)
_SUFFIX_TYPES = {TokenType.SMALLINT: "s", TokenType.DOUBLE: "d"}  # Spark reads 10s as a SMALLINT, 3d as a DOUBLE
_FRAME_WORDS = {"ROWS", "RANGE", "ROWS_RANGE", "GROUPS"}
_ATTRIBUTES = {
    ("EXCLUDE", "CURRENT_ROW"): "exclude_current_row",
    ("EXCLUDE", "CURRENT_TIME"): "exclude_current_time",
    ("INSTANCE_NOT_IN_WINDOW",): "instance_not_in_window",
}


class Duration(exp.Expression):
    """A frame bound such as ``10s``: `this` is the digits, `unit` one of ms s m h d."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "unit": True}


class FrameSpec(exp.WindowSpec):
    """A frame that says something Spark's frames cannot: ROWS_RANGE, OPEN, MAXSIZE, EXCLUDE CURRENT_ROW, ..."""

    arg_types: ClassVar[dict[str, bool]] = {
        **exp.WindowSpec.arg_types,
        "start_open": False,
        "end_open": False,
        "maxsize": False,
        "exclude_current_row": False,
        "exclude_current_time": False,
        "instance_not_in_window": False,
    }


class UnionWindow(exp.Window):
    """A window definition with UNION sources; `union` lists tables and aliased subqueries."""

    arg_types: ClassVar[dict[str, bool]] = {**exp.Window.arg_types, "union": True}


class PlacedParseError(SqlglotParseError):
    """sqlglot's error with `span`, the offending token, `help`, and whether the text ended too early."""

    def __init__(
        self, message: str, errors: list[dict[str, Any]], span: Span, help: str | None, *, at_end: bool
    ) -> None:
        super().__init__(message, errors)
        self.span = span
        self.help = help
        self.at_end = at_end


def span_of(node: exp.Expr) -> Span:
    """Where the text of `node` stands; the span of its children for a node that the parser only derived.

    Raises ValueError for a node that was not parsed from text.
    """
    meta = node._meta or {}
    if "span" in meta:
        return Span(*meta["span"])
    if "start" in meta and "end" in meta:
        return Span(meta["start"], meta["end"] + 1)
    found: Span | None = None
    for child in node.iter_expressions():
        try:
            found = span_of(child) | found
        except ValueError:
            continue
    if found is None:
        raise ValueError(f"{type(node).__name__} has no place in the text")
    return found


def _located(method: Callable[..., Any], *, operand: bool = False) -> Any:
    """The parser method, with the range of consumed tokens noted on the node that it returns.

    With `operand` the first argument is an already parsed left operand, whose text belongs to the node.
    """

    def parse(self: SqlExtParser, *args: Any, **kwargs: Any) -> Any:
        index = self._index
        node = method(self, *args, **kwargs)
        left = (args[0] if args else kwargs.get("this")) if operand else None
        return self._mark(node, index, left)

    return parse


class SqlExtParser(SparkParser):
    """Spark's parser, with window definitions of its own and a place in the text for every node."""

    #: Spark refuses a comma before FROM; OpenMLDB takes it.
    TRAILING_COMMA: ClassVar[bool] = False

    def reset(self) -> None:
        super().reset()
        self._frames: list[dict[str, Any]] = []

    def raise_error(self, message: str, token: Any = None, *, help: str | None = None) -> None:
        """As sqlglot's, with the error's place and help. Raises PlacedParseError."""
        at = token or self._curr or self._prev or None
        try:
            super().raise_error(message, at) if at else super().raise_error(message)
        except SqlglotParseError as error:
            span = Span(at.start, at.end + 1) if at else Span(len(self.sql), len(self.sql))
            at_end = not token and not self._curr
            raise PlacedParseError(str(error), error.errors, span, help, at_end=at_end) from None

    def _mark(self, node: Any, index: int, left: Any = None) -> Any:
        if not isinstance(node, exp.Expr) or node is left or self._index <= max(index, 0):
            return node
        start = self._tokens[max(index, 0)].start
        if isinstance(left, exp.Expr):
            try:
                start = span_of(left).start
            except ValueError:
                return node
        meta = node.meta
        end = self._prev.end + 1
        if "span" not in meta:
            meta["span"] = (start, end)
        elif isinstance(node, exp.Query):  # WITH before it, ORDER BY after it
            known = meta["span"]
            meta["span"] = (min(start, known[0]), max(end, known[1]))
        return node

    _parse_assignment = _located(SparkParser._parse_assignment)
    _parse_atom = _located(SparkParser._parse_atom)
    _parse_bitwise = _located(SparkParser._parse_bitwise)
    _parse_bracket = _located(SparkParser._parse_bracket, operand=True)
    _parse_column = _located(SparkParser._parse_column)
    _parse_column_ops = _located(SparkParser._parse_column_ops, operand=True)
    _parse_cte = _located(SparkParser._parse_cte)
    _parse_disjunction = _located(SparkParser._parse_disjunction)
    _parse_expression = _located(SparkParser._parse_expression)
    _parse_field = _located(SparkParser._parse_field)
    _parse_function_call = _located(SparkParser._parse_function_call)
    _parse_group = _located(SparkParser._parse_group)
    _parse_grouping_set = _located(SparkParser._parse_grouping_set)
    _parse_cube_or_rollup = _located(SparkParser._parse_cube_or_rollup)
    _parse_having = _located(SparkParser._parse_having)
    _parse_interval = _located(SparkParser._parse_interval)
    _parse_join = _located(SparkParser._parse_join)
    _parse_lambda = _located(SparkParser._parse_lambda)
    _parse_lateral = _located(SparkParser._parse_lateral)
    _parse_limit = _located(SparkParser._parse_limit, operand=True)
    _parse_order = _located(SparkParser._parse_order, operand=True)
    _parse_ordered = _located(SparkParser._parse_ordered)
    _parse_primary = _located(SparkParser._parse_primary)
    _parse_qualify = _located(SparkParser._parse_qualify)
    _parse_range = _located(SparkParser._parse_range, operand=True)
    _parse_select_query = _located(SparkParser._parse_select_query)
    _parse_set_operations = _located(SparkParser._parse_set_operations, operand=True)
    _parse_table = _located(SparkParser._parse_table)
    _parse_table_alias = _located(SparkParser._parse_table_alias)
    _parse_type = _located(SparkParser._parse_type)
    _parse_types = _located(SparkParser._parse_types)
    _parse_unary = _located(SparkParser._parse_unary)
    _parse_value = _located(SparkParser._parse_value)
    _parse_where = _located(SparkParser._parse_where)
    _parse_with = _located(SparkParser._parse_with)

    def _parse_projections(self) -> Any:
        items = super()._parse_projections()
        if self._prev.token_type == TokenType.COMMA and not self.TRAILING_COMMA:
            self.raise_error("a comma stands before FROM", self._prev, help="remove the comma")
        return items

    def _parse_id_var(self, any_token: bool = True, tokens: Any = None) -> Any:
        if tokens is self.WINDOW_ALIAS_TOKENS and self._curr.text.upper() == "ROWS_RANGE":
            return None  # (ROWS_RANGE BETWEEN ...) has a frame, not a base window
        index = self._index
        return self._mark(super()._parse_id_var(any_token, tokens), index)

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
            if extras.get("spec") is not None:
                node.set("spec", extras["spec"])
            if extras.get("union"):
                node = UnionWindow(**node.args, union=extras["union"])
            node.meta["parens"] = self._prev.token_type == TokenType.R_PAREN
        return self._mark(node, index, this)

    def _parse_named_window(self) -> Any:
        index = self._index
        return self._mark(self._parse_window(self._parse_id_var(), alias=True), index)

    def _parse_partition_and_order(self) -> Any:
        """The inside of a window's parentheses after its optional base name, up to the closing one."""
        extras = self._frames[-1]
        if self._match(TokenType.UNION):
            extras["union"] = self._parse_csv(self._parse_union_source)
        partition, order = super()._parse_partition_and_order()
        if self._curr.text.upper() in _FRAME_WORDS and self._curr.token_type != TokenType.IDENTIFIER:
            extras["spec"] = self._parse_frame()
        else:
            extras["spec"] = self._parse_attributes(None, {})
        if self._curr.token_type != TokenType.R_PAREN:
            self._refuse_window_token()
        return partition, order

    def _parse_union_source(self) -> Any:
        """``[db.]table`` or ``(query) [[AS] alias]``."""
        index = self._index
        if not self._match(TokenType.L_PAREN, advance=False):
            return self._mark(self._parse_table_parts(), index)
        source = self._parse_select(table=True, parse_subquery_alias=False)
        named = self._match(TokenType.ALIAS)
        if source is not None and (named or self._curr.text.upper() not in _FRAME_WORDS):
            name = self._parse_id_var(any_token=bool(named), tokens=self.TABLE_ALIAS_TOKENS)
            if name is not None:
                source.set("alias", exp.TableAlias(this=name))
        return self._mark(source, index)

    def _warn_unsupported(self) -> None:
        """Statements that sqlglot keeps as a Command go to Spark as they are: nothing to warn of."""

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
                self.raise_error("UNBOUNDED has no end that could be OPEN", self._prev, help="remove OPEN")
            args[f"{side}_open"] = True
        if args[side] is None or not self._match_texts(self.WINDOW_SIDES):
            self.raise_error(
                "a frame bound ends with PRECEDING or FOLLOWING",
                help="write CURRENT ROW, UNBOUNDED PRECEDING, 10 PRECEDING or 10s PRECEDING (units: ms s m h d)",
            )
        args[f"{side}_side"] = self._prev.text.upper()
        places[side] = (first.start, self._prev.end + 1)

    def _parse_duration(self) -> Any:
        """``10s`` in whatever tokens Spark's tokenizer makes of it; else an ordinary expression."""
        token = self._curr
        if not token:
            return None
        unit_token = self._tokens[self._index + 2] if self._index + 2 < self._tokens_size else None
        if token.token_type == TokenType.NUMBER and unit_token is not None and unit_token.start == token.start:
            unit = _SUFFIX_TYPES.get(unit_token.token_type)
            if unit and token.text.isdigit():
                self._advance(3)
                return self._duration(token, token.text, unit)
        match = _DURATION.fullmatch(token.text) if token.token_type == TokenType.VAR else None
        if match:
            self._advance()
            return self._duration(token, match[1], match[2].lower())
        return self._parse_bitwise()

    def _duration(self, token: Token, digits: str, unit: str) -> Duration:
        node = Duration(this=exp.Literal.number(digits), unit=exp.var(unit))
        node.meta["span"] = (token.start, token.end + 1)
        return node

    def _parse_attributes(self, args: dict[str, Any] | None, places: dict[str, tuple[int, int]]) -> Any:
        """MAXSIZE and what follows a frame. Gives a plain WindowSpec where Spark could have written it."""
        found = dict(args or {})
        first = self._curr
        if args is not None and self._match_text_seq("MAXSIZE"):
            found["maxsize"] = self._parse_unary()
            if found["maxsize"] is None:
                self.raise_error("MAXSIZE needs a number of rows", help="write MAXSIZE 100")
            places["maxsize"] = (first.start, self._prev.end + 1)
        while name := self._match_attribute(places):
            found[name] = True
        if self._match_text_seq("EXCLUDE"):
            found["exclude"] = self._parse_var_from_options(self.WINDOW_EXCLUDE_OPTIONS)
        if args is None and not found:
            return None
        extended = {*found} - {*exp.WindowSpec.arg_types} or found.get("kind") == "ROWS_RANGE"
        extended = extended or isinstance(found.get("start"), Duration) or isinstance(found.get("end"), Duration)
        spec = FrameSpec(**found) if extended else exp.WindowSpec(**found)
        spec.meta["places"] = places
        return self.expression(spec)

    def _match_attribute(self, places: dict[str, tuple[int, int]]) -> str | None:
        first = self._curr
        for words, name in _ATTRIBUTES.items():
            if self._match_text_seq(*words):
                places[name] = (first.start, self._prev.end + 1)
                return name
        return None

    def _refuse_window_token(self) -> None:
        word = self._curr.text.upper()
        hints = {
            "MAXSIZE": "MAXSIZE stands directly after the frame, before EXCLUDE and INSTANCE_NOT_IN_WINDOW",
            "UNION": "UNION stands first in the window: (UNION t PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN ...)",
            "COMMA": "the attributes of a window are separated by blanks",
            ",": "the attributes of a window are separated by blanks",
        }
        self.raise_error(
            f"unexpected {self._curr.text!r} in a window definition" if self._curr else "the window is not closed",
            help=hints.get(word),
        )


def _frame_sql(generator: SparkGenerator, spec: FrameSpec) -> str:
    def bound(side: str) -> str:
        words = [
            generator.sql(spec, side),
            "OPEN" if spec.args.get(f"{side}_open") else "",
            spec.args.get(f"{side}_side"),
        ]
        return " ".join(str(word) for word in words if word)

    words = []
    if spec.args.get("kind"):
        end = f" AND {bound('end')}" if spec.args.get("end") else ""
        words.append(f"{spec.args['kind']} {'BETWEEN ' if end else ''}{bound('start')}{end}")
    if spec.args.get("maxsize") is not None:
        words.append(f"MAXSIZE {generator.sql(spec, 'maxsize')}")
    words += [" ".join(phrase) for phrase, name in _ATTRIBUTES.items() if spec.args.get(name)]
    if spec.args.get("exclude"):
        words.append(f"EXCLUDE {generator.sql(spec, 'exclude')}")
    return " ".join(words)


def _union_window_sql(generator: SparkGenerator, window: UnionWindow) -> str:
    base = ("alias",) if window.args.get("alias") else ()
    words = [generator.sql(window, key) for key in base]
    words.append("UNION " + generator.expressions(window, key="union", flat=True))
    words.append(generator.partition_by_sql(window))
    if window.args.get("order"):
        words.append(generator.order_sql(window.args["order"], flat=True))
    words.append(generator.sql(window, "spec"))
    keyword = "AS" if window.arg_key == "windows" else "OVER"
    return f"{generator.sql(window, 'this')} {keyword} ({' '.join(word for word in words if word)})"


class SqlExtGenerator(SparkGenerator):
    """Writes the extended windows back as text."""

    SUPPORTS_WINDOW_EXCLUDE = True

    TRANSFORMS: ClassVar[dict[Any, Any]] = {
        **SparkGenerator.TRANSFORMS,
        Duration: lambda self, e: f"{e.name}{e.args['unit'].name}",
        FrameSpec: _frame_sql,
        UnionWindow: _union_window_sql,
    }


class SqlExt(Spark):
    """Spark's dialect plus OpenMLDB's window definitions."""

    Parser = SqlExtParser
    Generator = SqlExtGenerator
