"""Random ASOF JOINs: tables with ties and NULLs, a text for us and one for DuckDB, and brute force in plain Python.

A group is one statement over many small data sets, which the column `c` tells apart: each of them is a case.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.operators.columns.reference import compare

Row = dict[str, Any]
DAY = dt.date(2024, 2, 27)
NOON = dt.datetime(2024, 2, 29, 23, 59, 58, tzinfo=dt.UTC)
#: Spark's type of the times -> DuckDB's, values that meet, what a tolerance adds, as text and in Python.
TIMES: dict[str, tuple[str, Sequence[Any], str, Any]] = {
    "int": ("INTEGER", range(-4, 5), "2", 2),
    "bigint": ("BIGINT", [-(2**40), *range(-3, 4), 2**40], "2", 2),
    "double": ("DOUBLE", [-1.5, -0.0, 0.0, 0.5, 1.0, 2.0, float("nan"), float("inf")], "1.5", 1.5),
    "decimal(10,2)": ("DECIMAL(10,2)", [Decimal(n) / 4 for n in range(-6, 7)], "1.5", Decimal("1.5")),
    "decimal(30,2)": ("DECIMAL(30,2)", [Decimal(n) * 10**20 for n in range(-2, 3)], "1.5", Decimal("1.5")),
    "date": ("DATE", [DAY + dt.timedelta(n) for n in range(6)], "INTERVAL 2 DAYS", dt.timedelta(2)),
    "timestamp": (
        *("TIMESTAMPTZ", [NOON + dt.timedelta(seconds=n) for n in range(6)]),
        *("INTERVAL 2 SECONDS", dt.timedelta(seconds=2)),
    ),
    "string": ("VARCHAR", ["", "a", "aé", "b", "\U0001f600"], "", None),
}
OPERATORS = (">=", ">", "<=", "<")
#: Further conditions: their text, and what holds of the two rows.
CONDITIONS: dict[str, Callable[[Row, Row], bool]] = {
    "": lambda a, b: True,
    "b.v > 0": lambda a, b: b["v"] is not None and b["v"] > 0,
    "a.v > -2": lambda a, b: a["v"] is not None and a["v"] > -2,
    "a.v <> b.v": lambda a, b: compare(a["v"], "<>", b["v"]),
    "a.v <= b.v": lambda a, b: compare(a["v"], "<=", b["v"]),
    "(a.v + b.v) % 2 = 0": lambda a, b: None not in (a["v"], b["v"]) and (a["v"] + b["v"]) % 2 == 0,
}


@dataclass(frozen=True)
class Group:
    """A statement: `tolerance` is the operator and where the amount is added, `words` where the times are compared."""

    kind: str
    operator: str
    keys: tuple[str, ...]
    null_safe: bool
    keeps_left: bool
    tolerance: tuple[str, str] | None
    condition: str
    words: str
    left: tuple[Row, ...]
    right: tuple[Row, ...]
    sql: str

    @property
    def is_duckdbs(self) -> bool:
        """Whether DuckDB takes it, by one inequality, and is right: beside IS NOT DISTINCT FROM it (1.5.5) lets NULL
        times and conditions that are NULL match, and misses rows with NULL keys."""
        return self.tolerance is None and self.condition != "a.v <= b.v" and not self.null_safe

    def duckdb_sql(self) -> str:
        """The same in DuckDB's words."""
        terms = [f"a.{key} = b.{key}" for key in self.keys] + [f"a.t {self.operator} b.t"]
        terms += [self.condition] if self.condition else []
        side = "LEFT " if self.keeps_left else ""
        # Without the values DuckDB 1.5.5 ends in an internal error for some conditions on them.
        return f"SELECT a.id, b.id, a.v, b.v FROM a ASOF {side}JOIN b ON {' AND '.join(terms)}"

    def brute_force(self) -> list[tuple[int, int | None]]:
        """(left id, right id) of every row of the result."""
        found: list[tuple[int, int | None]] = []
        for row in self.left:
            best: Row | None = None
            for other in self.right:
                nearer = "<=" if self.operator[0] == "<" else ">="
                if self._matches(row, other) and (best is None or compare(other["t"], nearer, best["t"])):
                    best = other
            if best is not None:
                found.append((row["id"], best["id"]))
            elif self.keeps_left:
                found.append((row["id"], None))
        return found

    def _matches(self, a: Row, b: Row) -> bool:
        equal = "<=>" if self.null_safe else "="
        return (
            all(compare(a[key], equal, b[key]) for key in self.keys)
            and compare(a["t"], self.operator, b["t"])
            and (self.tolerance is None or self._is_near(a["t"], b["t"]))
            and CONDITIONS[self.condition](a, b)
        )

    def _is_near(self, a: Any, b: Any) -> bool:
        assert self.tolerance is not None
        operator, side = self.tolerance
        amount = TIMES[self.kind][3]
        return compare(a + amount if side == "a" else a, operator, b + amount if side == "b" else b)


def random_group(rng: random.Random, data_sets: int) -> Group:
    """A statement over so many data sets; over one if it has no key to tell them apart."""
    kind = rng.choice(list(TIMES))
    keys = rng.choice([("c",), ("c", "k"), ("c", "k"), ("c", "k", "s"), ()])
    words = rng.choice(["match", "match", "on", "using"]) if keys else rng.choice(["match", "on"])
    operator = ">=" if words == "using" and rng.random() < 0.5 else rng.choice(OPERATORS)
    tolerance = None
    if words != "using" and TIMES[kind][3] is not None and rng.random() < 0.4:
        tolerance = (rng.choice(OPERATORS), rng.choice("ab"))
    conditions = [text for text in CONDITIONS if words == "match" or text != "a.v <= b.v"]
    condition = rng.choice(conditions) if words != "using" and rng.random() < 0.5 else ""
    null_safe, keeps_left = words != "using" and rng.random() < 0.3, rng.random() < 0.5
    left, right = (_rows(rng, kind, data_sets if keys else 1, most) for most in (8, 12))
    sql = _text(rng, kind, operator, keys, null_safe, keeps_left, tolerance, condition, words)
    return Group(kind, operator, keys, null_safe, keeps_left, tolerance, condition, words, left, right, sql)


def _rows(rng: random.Random, kind: str, data_sets: int, most: int) -> tuple[Row, ...]:
    def maybe(values: Sequence[Any]) -> Any:
        return None if rng.random() < 0.15 else rng.choice(values)

    times = TIMES[kind][1]
    found = [
        {"c": c, "k": maybe([1, 2]), "s": maybe(["", "x"]), "t": maybe(times), "v": maybe(range(-3, 4))}
        for c in range(data_sets)
        for _ in range(rng.randint(0, most))
    ]
    rng.shuffle(found)
    return tuple({"id": number, **row} for number, row in enumerate(found))


def _text(
    rng: random.Random,
    kind: str,
    operator: str,
    keys: Sequence[str],
    null_safe: bool,
    keeps_left: bool,
    tolerance: tuple[str, str] | None,
    condition: str,
    words: str,
) -> str:
    equal = " <=> " if null_safe else " = "
    equalities = [equal.join(rng.sample([f"a.{key}", f"b.{key}"], 2)) for key in keys]
    compared = [_compared(rng, "a.t", operator, "b.t")]
    if tolerance is not None:
        amount = TIMES[kind][2]
        left, right = (f"{side}.t + {amount}" if tolerance[1] == side else f"{side}.t" for side in "ab")
        compared.append(_compared(rng, left, tolerance[0], right))
        rng.shuffle(compared)
    terms = [*equalities, *([condition] if condition else [])]
    rng.shuffle(terms)
    side = rng.choice(["LEFT", "LEFT OUTER"] if keeps_left else ["", "", "INNER"])
    join = " ".join(word for word in rng.sample(["ASOF", side], 2) if word)
    if words == "on":
        return _select(join, f"ON {_all(rng.sample([*compared, *terms], len(compared) + len(terms)))}")
    match = f"MATCH_CONDITION ({_all(compared)})"
    if words == "using":
        return _select(join, f"{match} USING ({', '.join(keys)})")
    return _select(join, match + (f" ON {_all(terms)}" if terms else ""))


def _compared(rng: random.Random, left: str, operator: str, right: str) -> str:
    turned = operator.translate(str.maketrans("<>", "><"))
    return rng.choice([f"{left} {operator} {right}", f"{right} {turned} {left}"])


def _all(terms: Sequence[str]) -> str:
    return " AND ".join(terms)


def _select(join: str, condition: str) -> str:
    return f"SELECT a.id, b.id AS other FROM asof_a a {join} JOIN asof_b b {condition}"
