"""Mutants of statements: by their number and a seed, always the same."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from .corpus import Source

_TOKEN = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"[^\"]*\"|`[^`]*`|/\*.*?\*/|--[^\n]*|\s+|\w+|<=>|[<>!=]=|::|->|=>|.", re.DOTALL
)

#: What is put in between others: words of ours and of Spark's, literals at the limits, signs, hints, odd characters.
_WORDS = """
    SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT UNION ALL EXCEPT INTERSECT JOIN LEFT RIGHT FULL SEMI ANTI CROSS ON
    USING WITH AS DISTINCT VALUES CASE WHEN THEN ELSE END AND OR NOT IN EXISTS BETWEEN LIKE IS NULL TRUE OVER PARTITION
    WINDOW ROWS RANGE PRECEDING FOLLOWING UNBOUNDED CURRENT ROW FILTER QUALIFY LATERAL VIEW EXPLAIN ANALYZE LAST
    ASOF MATCH_CONDITION
    ROWS_RANGE MAXSIZE OPEN EXCLUDE CURRENT_ROW CURRENT_TIME INSTANCE_NOT_IN_WINDOW PERIOD CLOSED OVERLAPS BEFORE AFTER
    CONTAINS DURING MEETS STARTS FINISHES EQUALS WITHIN START STRICTLY ALLEN PRECEDES SUCCEEDS distinct_count
    count_where topn_frequency sum count lag first_value allen_overlaps iseql_before period_contains k v ts a u t r s
    ( ) , . ; * + - / % = < > <=> :: -> => : ? @ # $ ! | & ^ ~ [ ] { } ' " ` \\
    0 1 -1 1.5 1e400 .5 10s 1h 3d 0ms 9223372036854775808 99999999999999999999999999 -2147483649 1L 1BD X'0' ''
"""
_PHRASES = (
    *("'x'", "'\\''", "`a b`", "``", "'1 day'", "INTERVAL '1' DAY", "DATE '2020-01-01'", "TIMESTAMP 'x'", "NULL"),
    *("/*+ UMJOIN(x y, z) */", "/*+ UMJOIN */", "/*+ SWEEP(", "/*+ NO_SWEEP */", "/*+ NO_UMJOIN(a) */", "/*+ index */"),
    *("/*+ BROADCAST(a) /* b */ */", "/*+ REPARTITION(3, k) */", "/*+ , */", "/*+ */", "/* c */", "-- c\n", "/*", "*/"),
    *("\u00a0", "\u2003", "é", "字", "😀", "\u202e", "\x00", "\ufeff", "\t", "\n", "\r\n"),
    *("ASOF JOIN u MATCH_CONDITION (a.ts >= u.ts) ON a.k = u.k", "ASOF LEFT JOIN u ON a.k = u.k AND a.ts > u.ts"),
    *("LAST JOIN u ORDER BY u.ts ON a.k = u.k", "OVER w", "WINDOW w AS (PARTITION BY k ORDER BY ts)"),
    *("(SELECT 1)", "(SELECT k FROM u)", "EXISTS (SELECT 1 FROM u)", "(UNION u PARTITION BY k ORDER BY ts"),
    *("ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW", "ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING", "MAXSIZE 10"),
    *("PERIOD(a, b)", "(a, b) OVERLAPS (x, y)", "PERIOD CLOSED (ts, te)", "AND r.ts < s.te", "GROUP BY ALL"),
)
_PIECES = (*_WORDS.split(), *_PHRASES)


def mutant(sources: Sequence[Source], seed: int, number: int) -> Source:
    """Mutant `number` of a seed."""
    chance = random.Random(f"{seed}:{number}")
    source = chance.choice(sources)
    tokens = _TOKEN.findall(source.sql)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        other = chance.choice(sources)
        tokens = chance.choice(_MUTATIONS)(tokens, _TOKEN.findall(other.sql), chance)
    compat = source.compat if chance.random() < 0.9 else chance.choice(("openmldb", None))
    return Source("".join(tokens), source.catalog, compat)


Mutation = Callable[[list[str], list[str], random.Random], list[str]]


def _range(tokens: list[str], chance: random.Random, most: int = 12) -> tuple[int, int]:
    start = chance.randrange(len(tokens) + 1)
    return start, min(len(tokens), start + chance.randint(1, most))


def _delete(tokens: list[str], other: list[str], chance: random.Random) -> list[str]:
    start, end = _range(tokens, chance, chance.choice((1, 1, 2, 12)))
    return tokens[:start] + tokens[end:]


def _duplicate(tokens: list[str], other: list[str], chance: random.Random) -> list[str]:
    start, end = _range(tokens, chance)
    return [*tokens[:end], " ", *tokens[start:]]


def _swap(tokens: list[str], other: list[str], chance: random.Random) -> list[str]:
    if len(tokens) < 2:
        return tokens
    new = list(tokens)
    one, two = chance.randrange(len(new)), chance.randrange(len(new))
    new[one], new[two] = new[two], new[one]
    return new


def _insert(tokens: list[str], other: list[str], chance: random.Random) -> list[str]:
    at = chance.randrange(len(tokens) + 1)
    return [*tokens[:at], " ", chance.choice(_PIECES), " ", *tokens[at:]]


def _replace(tokens: list[str], other: list[str], chance: random.Random) -> list[str]:
    words = [at for at, token in enumerate(tokens) if not token.isspace()]
    if not words:
        return tokens
    at = chance.choice(words)
    return [*tokens[:at], chance.choice(_PIECES), *tokens[at + 1 :]]


def _splice(tokens: list[str], other: list[str], chance: random.Random) -> list[str]:
    (start, end), (first, last) = _range(tokens, chance), _range(other, chance, 30)
    return [*tokens[:start], " ", *other[first:last], " ", *tokens[end:]]


def _hint(tokens: list[str], other: list[str], chance: random.Random) -> list[str]:
    names = (
        "UMJOIN",
        "NO_UMJOIN",
        "SWEEP",
        "NO_SWEEP",
        "BROADCAST",
        "REPARTITION",
        "index",
        "set",
        "map",
        "`x y`",
        "1",
    )
    inside = "".join(
        chance.choice((*names, *names, "(", ")", ",", " ", "a", "u", "'x'", "/* c */", "-- d\n", ".", "*/", "/*", "é"))
        for _ in range(chance.randint(0, 8))
    )
    selects = [at for at, token in enumerate(tokens) if token.upper() == "SELECT"]
    at = chance.choice(selects) + 1 if selects else 0
    return [*tokens[:at], f" /*+ {inside} */ ", *tokens[at:]]


def _nest(tokens: list[str], other: list[str], chance: random.Random) -> list[str]:
    words = [at for at, token in enumerate(tokens) if token.strip()]
    if not words:
        return tokens
    at, depth = chance.choice(words), chance.choice((1, 2, 5, 20, 200))
    before, after = chance.choice(
        (("(", ")"), ("abs(", ")"), ("NOT ", ""), ("- ", ""), ("(SELECT * FROM ", ")"), ("CASE WHEN ", " THEN 1 END"))
    )
    return [*tokens[:at], before * depth, tokens[at], after * depth, *tokens[at + 1 :]]


def _repeat(tokens: list[str], other: list[str], chance: random.Random) -> list[str]:
    """A short part many times, with something between."""
    start, end = _range(tokens, chance, 6)
    between = chance.choice((" ", ", ", " UNION ALL ", " AND ", " JOIN ", "("))
    return [*tokens[:end], *([between, *tokens[start:end]] * chance.choice((2, 10, 50))), *tokens[end:]]


def _cut(tokens: list[str], other: list[str], chance: random.Random) -> list[str]:
    return tokens[: chance.randrange(len(tokens) + 1)]


def _wrap(tokens: list[str], other: list[str], chance: random.Random) -> list[str]:
    before, after = chance.choice(
        (
            ("EXPLAIN ", ""),
            ("EXPLAIN ANALYZE ", ""),
            ("CREATE TABLE z AS ", ""),
            ("INSERT INTO u ", ""),
            ("CREATE TEMP VIEW z AS ", ""),
            ("SELECT * FROM (", ") q"),
            ("WITH q AS (", ") SELECT * FROM q JOIN q AS p ON q.k = p.k"),
            ("SELECT (", ") AS c FROM a"),
            ("SELECT k FROM a WHERE k IN (", ")"),
            ("(", ") UNION ALL SELECT 1"),
        )
    )
    return [before, *tokens, after]


_MUTATIONS: tuple[Mutation, ...] = (
    *(_delete, _delete, _duplicate, _swap, _swap, _insert, _insert, _insert, _replace, _replace, _replace),
    *(_splice, _splice, _hint, _nest, _repeat, _cut, _wrap),
)
