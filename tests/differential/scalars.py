"""Random scalar texts: literals, conditions on the columns of one relation or of two."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from .data import KEYS, STRINGS
from .texts import Col, Text, is_settled, join, same

#: Types that `<` compares alike in Spark and DuckDB.
ORDERED = (
    *("int", "bigint", "smallint", "double", "decimal(10,2)", "decimal(12,2)", "string"),
    *("date", "timestamp", "timestamp_ntz", "boolean"),
)
INTEGERS = ("int", "bigint", "smallint")


class Scalars:
    """Conditions at random; literals may become markers with their values in `args`."""

    def __init__(self, rng: random.Random, *, quotes: bool = False) -> None:
        self.rng = rng
        #: whether texts with quotes and backslashes are compared with, as arguments
        self.quotes = quotes
        self.args: dict[str, Any] = {}

    def number(self, value: int) -> Text:
        """A small integer, sometimes as a marker."""
        if value >= 0 and self.rng.random() < 0.08:
            name = f"p{len(self.args)}"
            self.args[name] = value
            return Text(f":{name}", str(value))
        return same(str(value))

    def string(self, value: str) -> Text:
        special = "'" in value or "\\" in value
        if special and not self.quotes:
            value, special = "x", False
        if special or self.rng.random() < 0.08:
            name = f"p{len(self.args)}"
            self.args[name] = value
            doubled = value.replace("'", "''")
            return Text(f":{name}", f"'{doubled}'")
        return same(f"'{value}'")

    def literal(self, col: Col) -> Text:
        """A value that the column might hold."""
        rng = self.rng
        if col.dtype in INTEGERS:
            small = {"key": (0, 3), "time": (-3, 20), "end": (-4, 14), "uniq": (0, 255)}.get(col.role, (-4, 8))
            return self.number(rng.randint(*small))
        if col.dtype == "string":
            return self.string(rng.choice(KEYS if col.role == "key" else STRINGS))
        if col.dtype == "double":
            return same(f"CAST({rng.randint(-9, 20) / 4} AS DOUBLE)")
        if col.dtype.startswith("decimal"):
            return same(f"{rng.randint(-10, 300) / 100:.2f}")
        if col.dtype == "boolean":
            return same(rng.choice(["TRUE", "FALSE"]))
        if col.dtype == "date":
            early = col.role == "key"
            return same(f"DATE '1969-12-{rng.randint(29, 31)}'" if early else f"DATE '2024-03-{rng.randint(1, 9):02}'")
        clock = f"2024-03-{rng.choice(['30 22:00:00', '30 23:20:00', '31 00:40:00'])}"
        if col.dtype == "timestamp":
            return Text(f"TIMESTAMP '{clock} UTC'", f"TIMESTAMPTZ '{clock}+00'")
        return Text(f"TIMESTAMP_NTZ '{clock}'", f"TIMESTAMP '{clock}'")

    def condition(self, cols: Sequence[tuple[str, Col]], depth: int = 1) -> Text:
        """A condition on columns given as (alias, column)."""
        rng = self.rng
        if depth and rng.random() < 0.3:
            parts = [self.condition(cols, depth - 1) for _ in range(2)]
            whole = join(parts, rng.choice([" AND ", " OR "])).both("({})")
            return whole.both("NOT {}") if rng.random() < 0.15 else whole
        usable = [(a, c) for a, c in cols if c.dtype in ORDERED and is_settled(c)]
        if not usable:
            return same("TRUE")
        alias, col = rng.choice(usable)
        name, kind = col.at(alias) if alias else col.name, rng.random()
        if kind < 0.12:
            return same(f"{name} IS {rng.choice(['', 'NOT ', 'NOT '])}NULL")
        if kind < 0.2 and col.dtype == "string":
            return same(f"{name} LIKE '{rng.choice(['%a%', 'x%', '_', '%', 'Y%'])}'")
        if kind < 0.3 and col.dtype in (*INTEGERS, "string"):
            values = join([self.literal(col) for _ in range(rng.randint(1, 3))], ", ")
            return values.both(f"{name} {rng.choice(['', 'NOT ', 'NOT '])}IN ({{}})")
        if kind < 0.38 and col.dtype in INTEGERS:
            low = rng.randint(-5, 5)
            return same(f"{name} BETWEEN {low} AND {low + rng.randint(0, 9)}")
        if kind < 0.45 and col.dtype in INTEGERS:
            return same(f"coalesce({name}, 0) + 1 > {rng.randint(-3, 6)}")
        others = [(a, c) for a, c in usable if c.dtype == col.dtype and (a, c) != (alias, col)]
        if kind < 0.6 and others:
            other, second = rng.choice(others)
            return self.compare(same(name), same(second.at(other) if other else second.name))
        return self.compare(same(name), self.literal(col))

    def compare(self, left: Text, right: Text) -> Text:
        op = self.rng.choice(["=", "<>", "<>", "<", "<=", ">", ">=", "<", "<=", ">", ">=", "<=>"])
        duck = {"<=>": "IS NOT DISTINCT FROM"}.get(op, op)
        return Text(f"{left.ours} {op} {right.ours}", f"{left.duck} {duck} {right.duck}")

    def residual(self, left: Sequence[tuple[str, Col]], right: Sequence[tuple[str, Col]]) -> Text:
        """A condition on both sides that is no key."""
        rng = self.rng
        pairs = [
            (a, c, b, e)
            for a, c in left
            for b, e in right
            if c.dtype == e.dtype and c.dtype in ORDERED and is_settled(c) and is_settled(e)
        ]
        if not pairs:
            return self.condition([*left, *right], 0)
        a, c, b, e = rng.choice(pairs)
        first, second = c.at(a), e.at(b)
        kind = rng.random()
        if kind < 0.5:
            return same(f"{first} {rng.choice(['<', '<=', '>', '>=', '<>'])} {second}")
        if kind < 0.65 and c.dtype in INTEGERS:
            return same(f"coalesce({first}, 0) + coalesce({second}, 0) > {rng.randint(-3, 3)}")
        if kind < 0.75:
            return join([same(f"{first} = {second}"), self.condition([*left, *right], 0)], " OR ").both("({})")
        if kind < 0.85:
            return self.condition(left if rng.random() < 0.5 else right, 0)
        return self.of_both(c, first, second)

    def of_both(self, col: Col, first: str, second: str) -> Text:
        """A condition on two columns of one type that is more than their comparison."""
        rng = self.rng
        found = [
            same(f"({first} IS NULL) <> ({second} IS NULL)"),
            same(f"NOT ({first} = {second})"),
            same(f"{first} IN ({second}, {self.literal(col).duck})") if col.dtype in (*INTEGERS, "string") else None,
            same(f"CASE WHEN {first} < {second} THEN {first} IS NOT NULL ELSE {second} IS NULL END"),
            Text(f"NOT ({first} <=> {second})", f"NOT ({first} IS NOT DISTINCT FROM {second})"),
            same(f"coalesce({first} < {second}, {rng.choice(['TRUE', 'FALSE'])})"),
            same(f"greatest({first}, {second}) {rng.choice(['=', '<>'])} {second}"),
        ]
        if col.dtype in INTEGERS:
            wide = [f"CAST({name} AS BIGINT)" for name in (first, second)]
            found += [
                same(f"{wide[0]} {rng.choice('+-*')} {wide[1]} {rng.choice(['<', '>=', '<>'])} {rng.randint(-4, 9)}"),
                same(f"abs({wide[0]} - {wide[1]}) <= {rng.randint(0, 5)}"),
                same(f"{first} BETWEEN {second} - 2 AND {second} + {rng.randint(0, 3)}"),
            ]
        if col.dtype == "string":
            found += [
                same(f"{first} LIKE '%' || replace({second}, chr(92), '') || '%'"),  # concat() skips NULLs in DuckDB
                same(f"length({first}) {rng.choice(['=', '<', '>='])} length({second})"),
                same(f"upper({first}) {rng.choice(['=', '<>'])} upper({second})"),
                same(f"{first} || {second} {rng.choice(['<', '>'])} 'b'"),
            ]
        return rng.choice([text for text in found if text is not None]).both("({})")

    def keys(self, left: Sequence[tuple[str, Col]], right: Sequence[tuple[str, Col]], most: int = 2) -> list[Text]:
        """Up to `most` equalities between columns of few values, some of them over expressions."""
        rng = self.rng
        pairs = [
            (a, c, b, e)
            for a, c in left
            for b, e in right
            if {c.role, e.role} == {"key"} and (c.dtype == e.dtype or {c.dtype, e.dtype} <= set(INTEGERS))
        ]
        found = []
        for a, c, b, e in rng.sample(pairs, min(len(pairs), rng.randint(0, most))):
            first, second = same(c.at(a)), same(e.at(b))
            kind = rng.random()
            if kind < 0.1 and c.dtype in INTEGERS:
                first, second = first.both("{} + 1"), second.both("{} + 1")
            elif kind < 0.2 and c.dtype == "string":
                first, second = first.both("upper({})"), second.both("upper({})")
            elif kind < 0.25 and c.dtype == "string":
                first = first.both("coalesce({}, 'a')")
            if rng.random() < 0.5:
                first, second = second, first
            null_safe = rng.random() < 0.15
            found.append(
                Text(
                    f"{first.ours} {'<=>' if null_safe else '='} {second.ours}",
                    f"{first.duck} {'IS NOT DISTINCT FROM' if null_safe else '='} {second.duck}",
                )
            )
        return found
