"""Numbers, and names that begin with digits: our tokens and types are Spark's.

The random texts are the same in every run. Spark's lexer reads all of them in one call.
"""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from sqlext_planner.config import Config
from sqlglot.tokenizer_core import TokenType

from sqlext.catalog.dictionary import DictCatalog
from sqlext.run.pipeline import stage
from sqlext.syntax.dialect import SqlExt
from sqlext.syntax.sql_settings import DEFAULT, SqlSettings

CATALOG = DictCatalog({"t": {"a": "int", "1a": "int", "0x1f": "string", "1_0": "date"}, "u": {"i": "int"}})

_DIGITS = ("0", "1", "007", "12", "98765", "1e", "1E3")
_SIGNS = (".", "+", "-", "e+", "E-", "*", "(", ")", " ", "X'1F' ", "x '0' ", "'e' ")
_LETTERS = ("e", "E", "L", "s", "Y", "f", "D", "BD", "b", "x", "_", "a", "t", "é", "lf", "_1")
_PIECES = (*_DIGITS, *_SIGNS, *_LETTERS)
_TYPES = {
    "BIGINT_LITERAL": TokenType.BIGINT,
    "SMALLINT_LITERAL": TokenType.SMALLINT,
    "TINYINT_LITERAL": TokenType.TINYINT,
    "FLOAT_LITERAL": TokenType.FLOAT,
    "DOUBLE_LITERAL": TokenType.DOUBLE,
    "BIGDECIMAL_LITERAL": TokenType.DECIMAL,
    **dict.fromkeys(("INTEGER_VALUE", "DECIMAL_VALUE", "EXPONENT_VALUE"), TokenType.NUMBER),
}
Found = tuple[int, int, str]


def _ours(text: str) -> list[Found]:
    """(start, end, kind) of each token: number, the type of a suffix, or anything else."""
    found: dict[int, Found] = {}
    for token in SqlExt().tokenize(text):
        if token.token_type == TokenType.DCOLON and token.start in found:
            continue
        kind = token.token_type.name if token.token_type in _TYPES.values() else "other"
        found[token.start] = (token.start, token.end + 1, kind)
    return list(found.values())


def _spark_tokens(spark: Any, texts: list[str]) -> list[list[Found]]:
    """The same by Spark's lexer, which reads each text on a line of its own."""
    jvm = spark._jvm
    parser = jvm.org.apache.spark.sql.catalyst.parser
    whole = "\n".join(texts)
    lexer = parser.SqlBaseLexer(parser.UpperCaseCharStream(jvm.org.antlr.v4.runtime.CharStreams.fromString(whole)))
    printed = lexer.getAllTokens().toString()
    names: dict[str, str] = {}
    found: list[list[Found]] = [[] for _ in texts]
    token = re.compile(r"\[@-?\d+,(\d+):(\d+)='.*?',<(\d+)>(,channel=\d+)?,(\d+):(\d+)\]")
    for start, end, number, hidden, line, column in token.findall(printed):
        if number not in names:
            names[number] = lexer.getVocabulary().getSymbolicName(int(number))
        if hidden:
            continue
        tokens, at = found[int(line) - 1], int(column)
        last = at + int(end) - int(start) + 1
        is_hex = names[number] == "STRING_LITERAL" and tokens and tokens[-1][2] == "BINARY_HEX"
        if is_hex:
            at = tokens.pop()[0]
        kind = _TYPES[names[number]].name if names[number] in _TYPES else names[number]
        tokens.append((at, last, "other" if is_hex else kind))
    kinds = {kind.name for kind in _TYPES.values()}
    return [[(a, b, kind if kind in kinds else "other") for a, b, kind in tokens] for tokens in found]


@pytest.mark.spark_since("4.0", "names of any letters without quotes")
def test_tokens_are_those_of_sparks_lexer(spark: Any) -> None:
    rng = random.Random(39)
    texts = ["".join(rng.choices(_PIECES, k=rng.randint(1, 7))) for _ in range(6000)]
    texts = sorted({text for text in texts if "--" not in text and not re.search(r"\.\s*[xX]\s*'", text)})
    assert len(texts) > 4000
    pairs = zip(texts, _spark_tokens(spark, texts), strict=True)
    differing = [f"{text}: {ours}, Spark: {theirs}" for text, theirs in pairs if (ours := _ours(text)) != theirs]
    assert not differing, "\n".join(differing[:20])


def _literal(rng: random.Random) -> str:
    """A number that Spark takes."""
    digits = "".join(rng.choices("0123456789", k=rng.choice((1, 2, 5, 10, 19))))
    exponent = rng.choice(("", "", "e3", "E-2", "e+1"))
    sign = rng.choice(("", "", "-", "- "))
    match rng.choice(("whole", "small", "point", "point", "exponent")):
        case "whole":
            return sign + digits + (rng.choice(("", "L")) if len(digits) < 19 else "")
        case "small":
            return sign + rng.choice(("0", "7", "127")) + rng.choice("LsYSly")
        case "exponent":
            return sign + digits[:9] + (exponent or "e0") + rng.choice(("", "f", "D", "bd"))
    cut = rng.randint(0, len(digits))
    point = f"{digits[:cut]}.{digits[cut:]}"
    return sign + point + exponent + rng.choice(("", "F", "d", "BD"))


def _types(items: list[str], settings: SqlSettings = DEFAULT) -> list[str | None]:
    listed = ", ".join(f"{item} AS c{number}" for number, item in enumerate(items))
    sql = f"SELECT {listed} FROM t LAST JOIN u ON t.a = u.i"
    found = stage(sql, CATALOG, Config(), settings=settings).analyzed
    assert found is not None
    return [field.dtype for field in found.output]


def test_types_are_those_of_spark(spark: Any) -> None:
    rng = random.Random(79)
    literals = sorted({_literal(rng) for _ in range(150)})
    listed = ", ".join(f"{item} AS c{number}" for number, item in enumerate(literals))
    theirs = [field.dataType.simpleString() for field in spark.sql(f"SELECT {listed}").schema]
    assert {
        item: pair for item, *pair in zip(literals, _types(literals), theirs, strict=True) if pair[0] != pair[1]
    } == {}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("1e3+1e3", "1e3 + 1e3"),
        ("1e3-1", "1e3 - 1"),
        ("1e-3-1", "1e-3 - 1"),
        ("1E+3+1", "1E+3 + 1"),
        (".5e3", ".5e3"),
        ("-.5", "- .5"),
        ("1.e3-a", "1.e3 - a"),
        ("1..2", "1. .2"),
        ("1e3x", "1e3x"),
        ("1e+3x", "1e+3 x"),
        ("1.5e3x", "1 . 5e3x"),
        ("t.1a+1", "t . 1a + 1"),
        ("0x1F+0b1+1_000", "0x1F + 0b1 + 1_000"),
        ("1L+2S-3Y*4d/5F", "1 :: L + 2 :: S - 3 :: Y * 4 :: d / 5 :: F"),
        (".5BD-1e3bd", ".5 :: BD - 1e3 :: bd"),
        ("1LL", "1LL"),
        ("1e3L", "1e3L"),
        ("x '1F'", "1F"),
    ],
)
def test_tokens(text: str, tokens: str) -> None:
    assert " ".join(token.text for token in SqlExt().tokenize(text)) == tokens


def test_types_without_spark() -> None:
    items = {
        "1e3-1e3": "double",
        "1e3+1": "double",
        ".5e3": "double",
        "-.5": "decimal(1,1)",
        "1.": "decimal(1,0)",
        "1e3bd": "decimal(4,0)",
        "1a": "int",
        "t.1a": "int",
        "0x1F": "string",
        "1_0": "date",
        "x '1F'": "binary",
        "X'1F'": "binary",
        "1Y": "tinyint",
        "1S": "smallint",
        "1L": "bigint",
        "1F": "float",
        "1D": "double",
    }
    assert dict(zip(items, _types(list(items)), strict=True)) == items


def test_exponents_may_be_decimals() -> None:
    settings = SqlSettings(exponent_is_decimal=True)
    found = _types(["1e3", ".5e3", "-1e-3", "1e3D", "1.e3"], settings)
    assert found == ["decimal(4,0)", "decimal(3,0)", "decimal(3,3)", "double", "decimal(4,0)"]
