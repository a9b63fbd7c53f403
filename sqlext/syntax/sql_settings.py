"""Spark settings that change how a statement's text is read: which are set, and what follows from them.

One record, `SqlSettings`, is read for each statement. The parser, parameters, analyzer and all code that writes text
for Spark use it; nothing else asks Spark for such a setting. Only this file writes (`string_literal`) and reads
(`string_value`) string literals.

If a setting that we do not follow could change the meaning of an extension statement, the statement is refused. A
statement without extension syntax then goes to Spark, whatever a rule could do with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.errors import ConfigurationError, Span

if TYPE_CHECKING:
    from sqlglot import exp

ANSI = "spark.sql.ansi.enabled"


@dataclass(frozen=True)
class SqlSettings:
    """How Spark reads a text; the defaults are Spark's own.

    ansi                   ANSI mode, without which some of the settings below have no effect
    case_sensitive         names that differ in case are different names
    escaped_strings        a backslash in a string literal is an ordinary character
    quotes_end_strings     'it''s' is two literals beside each other, its; so Spark 3.5 reads it always
    double_quoted_names    "x" is a name, not a string
    group_by_ordinal, order_by_ordinal  an integer in GROUP BY, ORDER BY is a position in the select list
    group_by_aliases       GROUP BY may name an alias of the select list
    lateral_aliases        an item of the select list may name an alias of one before it
    exponent_is_decimal    1E3 is a decimal
    substitutes            ${name} in a text is replaced by a setting's value
    changed                settings that we do not follow and that are not the default, with their values
    """

    ansi: bool = True
    case_sensitive: bool = False
    escaped_strings: bool = False
    quotes_end_strings: bool = False
    double_quoted_names: bool = False
    group_by_ordinal: bool = True
    order_by_ordinal: bool = True
    group_by_aliases: bool = True
    lateral_aliases: bool = True
    exponent_is_decimal: bool = False
    substitutes: bool = True
    changed: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def names() -> tuple[str, ...]:
        """The settings that `of` reads."""
        return (*_FOLLOWED.values(), *_BY_KEY)

    @classmethod
    def of(cls, conf: Mapping[str, str], *, ansi: bool = True) -> SqlSettings:
        """From the settings that a session has set; `ansi` is used if `conf` does not set it."""
        given = {name: conf[key].lower() == "true" for name, key in _FOLLOWED.items() if key in conf}
        given["ansi"] = ansi = given.get("ansi", ansi)
        for name in _ANSI_ONLY:
            given[name] = ansi and given.get(name, False)
        changed = tuple(
            (refused.key, conf[refused.key])
            for refused in _REFUSED
            if conf.get(refused.key, refused.default).lower() != refused.default.lower()
            and (ansi or not refused.ansi_only)
        )
        return cls(**given, changed=changed)

    def fold(self, name: str) -> str:
        """A name in the form in which it is compared with others."""
        return name if self.case_sensitive else name.lower()

    def refusal(self, query: exp.Expr) -> ConfigurationError | None:
        """The error for an extension statement if a setting that we do not follow changes its meaning."""
        for key, value in self.changed:
            refused = _BY_KEY[key]
            if refused.matters(query):
                return ConfigurationError(
                    f"{key} = {value} changes what this statement means, which is not supported",
                    condition="setting-changes-meaning",
                    help=f"SET {key} = {refused.default}" + (f", or {refused.instead}" if refused.instead else ""),
                )
        return None


#: Spark's defaults.
DEFAULT = SqlSettings()

#: Settings that `SqlSettings` follows, by its fields.
_FOLLOWED = {
    "ansi": ANSI,
    "case_sensitive": "spark.sql.caseSensitive",
    "escaped_strings": "spark.sql.parser.escapedStringLiterals",
    "quotes_end_strings": "spark.sql.legacy.consecutiveStringLiterals.enabled",
    "double_quoted_names": "spark.sql.ansi.doubleQuotedIdentifiers",
    "group_by_ordinal": "spark.sql.groupByOrdinal",
    "order_by_ordinal": "spark.sql.orderByOrdinal",
    "group_by_aliases": "spark.sql.groupByAliases",
    "lateral_aliases": "spark.sql.lateralColumnAlias.enableImplicitResolution",
    "exponent_is_decimal": "spark.sql.legacy.exponentLiteralAsDecimal.enabled",
    "substitutes": "spark.sql.variable.substitute",
}
_ANSI_ONLY = ("double_quoted_names",)


@dataclass(frozen=True)
class _Refused:
    """A setting that we do not follow: it matters to the statements for which `matters` holds."""

    key: str
    default: str
    matters: Callable[[exp.Expr], bool] = lambda query: True
    instead: str = ""
    ansi_only: bool = False


def _holds(kind: str) -> Callable[[exp.Expr], bool]:
    """Whether a query holds a node of sqlglot's class of that name (which is loaded with the first statement)."""

    def holds(query: exp.Expr) -> bool:
        from sqlglot import exp

        return next(query.find_all(getattr(exp, kind)), None) is not None

    return holds


def _commas_beside_joins(query: exp.Expr) -> bool:
    from sqlglot import exp

    for select in query.find_all(exp.Select):
        joins = select.args.get("joins") or []
        plain = [join for join in joins if not (join.method or join.side or join.kind or join.args.get("on"))]
        if plain and (len(plain) < len(joins) or any(join.this.args.get("joins") for join in joins)):
            return True
    return False


def _nested_with(query: exp.Expr) -> bool:
    from sqlglot import exp

    return len(list(query.find_all(exp.With))) > 1


def _having_alone(query: exp.Expr) -> bool:
    from sqlglot import exp

    selects = query.find_all(exp.Select)
    return any(select.args.get("having") and not select.args.get("group") for select in selects)


_LEGACY = "spark.sql.legacy."
_REFUSED = (
    _Refused("spark.sql.ansi.enforceReservedKeywords", "false", ansi_only=True),
    _Refused("spark.sql.ansi.relationPrecedence", "false", _commas_beside_joins, "write CROSS JOIN", ansi_only=True),
    _Refused("spark.sql.parser.quotedRegexColumnNames", "false"),  # the text that we write has names in backticks
    _Refused("spark.sql.timestampType", "TIMESTAMP_LTZ"),
    _Refused(_LEGACY + "allowNegativeScaleOfDecimal", "false"),
    _Refused(_LEGACY + "ctePrecedencePolicy", "CORRECTED", _nested_with, "write one WITH"),
    _Refused(_LEGACY + "inSubqueryNullability", "false", _holds("In")),
    _Refused(_LEGACY + "interval.enabled", "false"),
    _Refused(_LEGACY + "nullInEmptyListBehavior", "false", _holds("In")),
    _Refused(_LEGACY + "parser.havingWithoutGroupByAsWhere", "false", _having_alone, "write WHERE"),
    _Refused(_LEGACY + "scalarSubqueryCountBugBehavior", "false", _holds("Subquery")),
    _Refused(_LEGACY + "setopsPrecedence.enabled", "false", _holds("Intersect")),
)
_BY_KEY = {refused.key: refused for refused in _REFUSED}


def string_literal(value: str, settings: SqlSettings = DEFAULT) -> str:
    """Spark SQL text of a string."""
    if not settings.escaped_strings:
        text = value.replace("\\", "\\\\").replace("'", "\\'")
        # Spark replaces ${name} in every text that it parses, also inside a literal.
        return "'" + (text.replace("${", "\\u0024{") if settings.substitutes else text) + "'"
    if not (settings.substitutes and "${" in value):
        if re.fullmatch(r"([^'\\]|\\[^'])*", value, re.DOTALL):
            return f"'{value}'"
        if not settings.double_quoted_names and re.fullmatch(r'([^"\\]|\\[^"])*', value, re.DOTALL):
            return f'"{value}"'
    return f"CAST(X'{value.encode().hex()}' AS STRING)"  # no literal can hold it without an escape


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def string_value(text: str, settings: SqlSettings = DEFAULT) -> str:
    """The value that Spark reads from one string literal, quotes included; the inverse of `string_literal`."""
    if settings.escaped_strings:
        return text[1:-1]
    if text[:1] in "rR":
        return text[2:-1]
    quote = text[:1]
    inside = text[1:-1].replace(quote * 2, "" if settings.quotes_end_strings else "\\" + quote)
    return _ESCAPE.sub(_unescaped, inside)


def is_string(text: str) -> bool:
    """Whether a text is a single string literal, such as 'it''s'."""
    return re.fullmatch(_STRING, text, re.DOTALL | re.VERBOSE) is not None


_STRING = r"""[rR]'[^']*' | [rR]"[^"]*" | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" """


def _unescaped(match: re.Match[str]) -> str:
    short, long, octal, single = match.groups()
    if short or long:
        return chr(int(short or long, 16))
    return chr(int(octal, 8)) if octal else _ESCAPED.get(single, single)


_QUOTED = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)""", re.DOTALL)


def normal_text(text: str, settings: SqlSettings = DEFAULT) -> str:
    """A text with blanks, and case where it does not matter, made uniform outside quotes: equal for equal meanings."""
    parts = _QUOTED.split(text)
    outside = [settings.fold(re.sub(r"\s*([^\w\s])\s*", r"\1", " ".join(part.split()))) for part in parts[::2]]
    return "".join(
        part + (parts[2 * place + 1] if 2 * place + 1 < len(parts) else "") for place, part in enumerate(outside)
    )


_REFERENCE = re.compile(r"\$\{(?:(?:\w+?):)?(?:\S+?)\}")


def references(sql: str, settings: SqlSettings) -> list[Span]:
    """The places of each ``${name}`` in a text, which Spark replaces before it parses the text."""
    return [Span(*match.span()) for match in _REFERENCE.finditer(sql)] if settings.substitutes else []
