"""Random periods of every type, and the texts of a relation: as a function, infix, and as inequalities."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlext_operators.interval_join.relations import RELATIONS, PeriodRelation


@dataclass(frozen=True)
class EndType:
    """A type of period ends. `value` maps a small integer to it, monotonically; `amount` writes a distance between
    two such values, `duck` the same for DuckDB."""

    name: str
    arrow: pa.DataType
    value: Callable[[int], Any]
    amount: Callable[[int], str]
    duck: Callable[[int], str]

    def __str__(self) -> str:
        return self.name


MIDNIGHT = dt.datetime(2024, 2, 28, 22)

TYPES = (
    EndType("int", pa.int32(), lambda v: v, str, str),
    EndType("long", pa.int64(), lambda v: v * 3_000_000_000, lambda v: str(v * 3_000_000_000), lambda v: f"{v}*3e9"),
    EndType("date", pa.date32(), lambda v: dt.date(2024, 2, 28) + dt.timedelta(v), lambda v: f"INTERVAL {v} DAYS", str),
    EndType(
        "stamp",
        pa.timestamp("us", tz="UTC"),
        lambda v: MIDNIGHT.replace(tzinfo=dt.UTC) + dt.timedelta(microseconds=v),
        lambda v: f"INTERVAL {v} MICROSECONDS",
        lambda v: f"INTERVAL {v} MICROSECONDS",
    ),
    EndType(
        "ntz",
        pa.timestamp("us"),
        lambda v: MIDNIGHT + dt.timedelta(minutes=v * 40),
        lambda v: f"INTERVAL {v * 40} MINUTES",
        lambda v: f"INTERVAL {v * 40} MINUTES",
    ),
    EndType("double", pa.float64(), lambda v: v / 4, lambda v: f"{v / 4}D", lambda v: str(v / 4)),
    EndType(
        "money",
        pa.decimal128(12, 2),
        lambda v: Decimal(v * 25) / 100,
        lambda v: str(Decimal(v * 25) / 100),
        lambda v: str(Decimal(v * 25) / 100),
    ),
)

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("k", pa.int64()),
        ("k2", pa.string()),
        ("v", pa.int32()),
        *((f"{kind.name}_{end}", kind.arrow) for kind in TYPES for end in ("ts", "te")),
        ("valid", pa.struct([("ts", pa.int32()), ("te", pa.int32())])),
    ]
)


def random_periods(rng: random.Random, count: int, *, valid: bool = False) -> pa.Table:
    """`count` rows: ends in a small range around zero, so that ties abound; unless `valid`, a fifth of the periods
    is empty or reversed and a tenth of the ends is NULL. Every type has the same periods."""
    rows = []
    for i in range(count):
        start = rng.randint(-8, 14)
        length = rng.choice([1, 1, 2, 3, 4, 6, 9] if valid else [-3, 0, 1, 1, 2, 3, 4, 6, 9])
        ends = [end if valid or rng.random() >= 0.1 else None for end in (start, start + length)]
        row: dict[str, Any] = {
            "id": i,
            "k": rng.choice([0, 0, 1, 2, None]),
            "k2": rng.choice(["", "a", "b", None]),
            "v": rng.choice([None, *range(-4, 5)]),
            "valid": {"ts": ends[0], "te": ends[1]} if rng.random() < 0.9 else None,
        }
        for kind in TYPES:
            for name, end in zip(("ts", "te"), ends, strict=True):
                row[f"{kind.name}_{name}"] = None if end is None else kind.value(end)
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@dataclass(frozen=True)
class Predicate:
    """A relation between the periods of two tables, with bounds in units of the small integers."""

    relation: PeriodRelation
    kind: EndType
    delta: int | None = None
    epsilon: int | None = None
    left: str = "r"
    right: str = "s"

    def ends(self) -> dict[str, str]:
        """The columns a, b, c, d."""
        sides = ((self.left, "ab"), (self.right, "cd"))
        return {name: f"{t}.{self.kind.name}_{e}" for t, ab in sides for name, e in zip(ab, ("ts", "te"), strict=True)}

    def function(self) -> str:
        """``allen_before(a, b, c, d)``, with named bounds."""
        bounds = [f", {n} => {self.kind.amount(v)}" for n, v in self._bounds()]
        return f"{self.relation.name}({', '.join(self.ends().values())}{''.join(bounds)})"

    def infix(self) -> str:
        """``PERIOD(a, b) ALLEN BEFORE PERIOD(c, d)``, with WITHIN for bounds."""
        a, b, c, d = self.ends().values()
        words = {"delta": "START", "epsilon": "END"}
        bounds = [f"{words[n]} {self.kind.amount(v)}" for n, v in self._bounds()]
        within = f" WITHIN {bounds[0]}" if len(bounds) == 1 else f" WITHIN ({', '.join(bounds)})" if bounds else ""
        return f"PERIOD({a}, {b}) {self.relation.words[-1]} PERIOD({c}, {d}){within}"

    def inequalities(self, *, duck: bool = True, valid: bool = True) -> str:
        """The relation's formula; with `valid` only periods count whose start is before their end."""
        amount = self.kind.duck if duck else self.kind.amount
        terms = []
        for term in self.relation.formula.split(", "):
            distance = re.fullmatch(r"(\w) - (\w) <= (delta|epsilon)", term)
            if distance is None:
                terms.append(term)
            elif (bound := dict(self._bounds()).get(distance[3])) is not None:
                terms.append(f"{distance[1]} <= {distance[2]} + ({amount(bound)})")
        text = " AND ".join((*terms, "a < b", "c < d") if valid else terms)
        return re.sub(r"\b[abcd]\b", lambda match: self.ends()[match[0]], text)

    def _bounds(self) -> list[tuple[str, int]]:
        given = (("delta", self.delta), ("epsilon", self.epsilon))
        return [(name, value) for name, value in given if value is not None]


def predicates(rng: random.Random) -> list[Predicate]:
    """Every relation once, with a type and, where it takes them, bounds at random."""
    found = []
    for number, relation in enumerate(RELATIONS.values()):
        bounds = {name: rng.choice([None, 0, 1, 2, 5]) for name in relation.parameters}
        found.append(Predicate(relation, TYPES[(number + rng.randint(0, 1)) % len(TYPES)], **bounds))
    return found
