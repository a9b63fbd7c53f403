"""Scalar functions of OpenMLDB's library that have another name in Spark (as documented for OpenMLDB 0.9).

Only exact equivalents are here. docs/from-openmldb.md lists what differs.
"""

from __future__ import annotations

import re

from sqlext_planner.errors import Span

from sqlext.syntax.spans import unsupported
from sqlext.syntax.sql_settings import SqlSettings, string_literal

#: Names of types that Spark does not know.
TYPE_NAMES = {"bool": "boolean", "int16": "smallint", "int32": "int", "int64": "bigint", "varchar": "string"}

#: The same function under another name; identity(x) is x.
RENAMED = {
    **{name: spark for name, spark in TYPE_NAMES.items() if name != "varchar"},
    "identity": "",
    "if_null": "ifnull",
    "is_null": "isnull",
    "ilike_match": "ilike",
    "like_match": "like",
    "week": "weekofyear",
}

#: Casts to a number, written as functions: for a timestamp they give milliseconds, where Spark gives seconds.
NUMERIC_CASTS = frozenset(("tinyint", "smallint", "int", "bigint", "int16", "int32", "int64", "float", "double"))

#: Calendar functions, which read a bigint as milliseconds since 1970.
CALENDAR = frozenset(
    ("year", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "week", "weekofyear", "hour", "minute", "second")
)

#: (name, number of arguments) -> a Spark expression of the arguments.
TEMPLATES = {
    ("add", 2): "({0} + {1})",
    ("atan", 2): "atan2({0}, {1})",
    ("inc", 1): "(1 + ({0}))",
    ("fz_join", 2): "concat_ws({1}, {0})",
    ("join", 2): "concat_ws({1}, {0})",
    ("maximum", 2): "(CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE greatest({0}, {1}) END)",
    ("minimum", 2): "(CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE least({0}, {1}) END)",
    ("pmod", 2): "pmod({0}, nullif({1}, 0))",
    ("strcmp", 2): "(CASE WHEN {0} < {1} THEN -1 WHEN {0} > {1} THEN 1 WHEN {0} = {1} THEN 0 END)",
    ("truncate", 1): "(double({0}) - double({0}) % 1)",
}

#: The split functions of one row: the number of delimiters, and which piece of ``key:value`` they take.
SPLITS: dict[str, tuple[int, int | None]] = {
    "split": (1, None),
    "split_array": (1, None),
    "split_by_key": (2, 0),
    "split_by_value": (2, 1),
    "fz_split": (1, None),
    "fz_split_by_key": (2, 0),
    "fz_split_by_value": (2, 1),
}

#: Functions without a counterpart in Spark, and what to do instead.
MISSING = {
    "earth_distance": "write the formula with radians, sin, cos, asin and sqrt",
    "farm_fingerprint": "use xxhash64(x); it gives other numbers",
    "hash64": "use xxhash64(x); it gives other numbers",
    "list_except_by_key": "use array_except over arrays of split(x, ',')",
    "list_except_by_value": "use array_except over arrays of split(x, ',')",
    "make_tuple": "use struct(a, b)",
}


def split_template(name: str, delimiters: list[str], settings: SqlSettings) -> str:
    """A function of SPLITS as an expression of its first argument. Spark's split takes regular expressions, these take
    text. NULL and an empty delimiter give an empty array; parts without the second delimiter are left out, as in
    window_split.
    """
    if "" in delimiters:
        return "CAST(array() AS array<string>)"
    first, *rest = (string_literal(re.sub(r"(\W)", r"\\\1", text, flags=re.ASCII), settings) for text in delimiters)
    parts = f"ifnull(split({{0}}, {first}), array())"
    piece = SPLITS[name][1]
    if piece is None:
        return parts
    return f"transform(filter({parts}, p -> size(split(p, {rest[0]})) > 1), p -> split(p, {rest[0]})[{piece}])"


#: The letters of Spark's patterns for those of C.
_LETTERS = dict(
    pair.split("=")
    for pair in """
        Y=yyyy y=yy m=MM d=dd H=HH I=hh M=mm S=ss p=a j=DDD F=yyyy-MM-dd T=HH:mm:ss R=HH:mm B=MMMM b=MMM A=EEEE
        a=EEE %=%
    """.split()  # noqa: SIM905 - a table
)


def datetime_pattern(text: str, span: Span) -> str:
    """Translates C's strftime format to the letters of Spark's datetime patterns: ``%Y-%m`` gives ``yyyy-MM``.

    Raises UnsupportedError for a conversion that Spark's patterns cannot express.
    """
    pattern, quoted, at = "", "", 0

    def flushed() -> str:
        return pattern + (f"'{quoted}'" if quoted else "")

    while at < len(text):
        if text[at] == "%":
            letters = _LETTERS.get(text[at + 1 : at + 2])
            if letters is None:
                raise unsupported(
                    "no-equivalent",
                    span,
                    f"'{text[at : at + 2]}' of date_format() has no equivalent in Spark",
                    f"use {' '.join('%' + letter for letter in _LETTERS)}, or a Spark pattern",
                )
            pattern, quoted = flushed() + letters, ""
            at += 2
            continue
        if text[at].isalpha() or text[at] in "'[]{}#":
            quoted += "''" if text[at] == "'" else text[at]
        else:
            pattern, quoted = flushed() + text[at], ""
        at += 1
    return flushed()
