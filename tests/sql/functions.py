"""Window functions in plain Python, from docs/reference/windows.md, section 5. Rows come newest first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from .oracle import Row

Value = Callable[[Row], Any]


@dataclass(frozen=True)
class Aggregate:
    """SQL text of a call, and its value over (rows of the frame, history)."""

    sql: str
    value: Callable[[list[Row], list[Row]], Any]


def over_frame(sql: str, function: Callable[[list[Any]], Any], argument: Value) -> Aggregate:
    return Aggregate(sql, lambda frame, _: function([argument(row) for row in frame]))


def some(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def total(values: list[Any]) -> Any:
    return sum(some(values)) if some(values) else None


def mean(values: list[Any]) -> Any:
    """A double; of decimals with scale 2 a decimal with scale 6, rounded half up."""
    present = some(values)
    if not present:
        return None
    if isinstance(present[0], Decimal):
        return (sum(present) / len(present)).quantize(Decimal("1e-6"), ROUND_HALF_UP)
    return float(sum(present)) / len(present)


def least(values: list[Any]) -> Any:
    return min(some(values), default=None)


def greatest(values: list[Any]) -> Any:
    return max(some(values), default=None)


def column(name: str) -> Value:
    return lambda row: row[name]


def where(argument: Value, condition: Value) -> Value:
    """The argument where the condition is true, else NULL; an aggregate then skips it."""
    return lambda row: argument(row) if condition(row) is True else None


def compare(left: Value, test: Callable[[Any], bool]) -> Value:
    def condition(row: Row) -> bool | None:
        value = left(row)
        return None if value is None else test(value)

    return condition


def lag(name: str, places: int) -> Callable[[list[Row], list[Row]], Any]:
    """As a whole select item: `places` rows back in the sequence, whatever the frame."""
    return lambda _, history: history[places][name] if places < len(history) else None


def first(name: str) -> Callable[[list[Row], list[Row]], Any]:
    return lambda frame, _: frame[-1][name] if frame else None


def last(name: str) -> Callable[[list[Row], list[Row]], Any]:
    return lambda frame, _: frame[0][name] if frame else None


def first_present(name: str) -> Callable[[list[Row], list[Row]], Any]:
    return lambda frame, _: next((row[name] for row in reversed(frame) if row[name] is not None), None)


def last_present(name: str) -> Callable[[list[Row], list[Row]], Any]:
    return lambda frame, _: next((row[name] for row in frame if row[name] is not None), None)


def distinct(zero: Any) -> Callable[[list[Any]], int]:
    """A NULL counts as the type's zero value (section 5)."""
    return lambda values: len({zero if value is None else value for value in values})


def _all() -> list[Aggregate]:
    found = [Aggregate("count(*)", lambda frame, _: len(frame))]
    names = ["v", "b", "h", "d", "f", "m", "s", "y", "dt", "tz", "id"]
    found += [over_frame(f"count({n})", lambda values: len(some(values)), column(n)) for n in names]
    found += [over_frame(f"sum({n})", total, column(n)) for n in ("v", "b", "h", "d", "f", "m")]
    found += [over_frame(f"avg({n})", mean, column(n)) for n in ("v", "b", "h", "d", "f", "m")]
    for n in ("v", "b", "h", "d", "f", "m", "s", "dt", "tz"):
        found += [over_frame(f"min({n})", least, column(n)), over_frame(f"max({n})", greatest, column(n))]
    for n, zero in (("v", 0), ("b", 0), ("d", 0.0), ("s", ""), ("y", False)):
        found.append(over_frame(f"distinct_count({n})", distinct(zero), column(n)))
    for n in names:
        found += [Aggregate(f"first_value({n})", first(n)), Aggregate(f"last_value({n})", last(n))]
        found += [Aggregate(f"first_value({n}, true)", first_present(n))]
        found += [Aggregate(f"last_value({n}, true)", last_present(n))]
        found += [Aggregate(f"lag({n}, {places})", lag(n, places)) for places in (0, 1, 3)]
        found.append(Aggregate(f"at({n}, 2)", lag(n, 2)))
    positive, even = compare(column("v"), lambda v: v > 0), compare(column("id"), lambda v: v % 2 == 0)
    for n in ("v", "d", "m", "h"):
        filtered = where(column(n), positive)
        found += [over_frame(f"sum_where({n}, v > 0)", total, filtered)]
        found += [over_frame(f"avg_where({n}, v > 0)", mean, filtered)]
        found += [over_frame(f"min_where({n}, v > 0)", least, filtered)]
        found += [over_frame(f"max_where({n}, v > 0)", greatest, filtered)]
    found += [over_frame("count_where(s, y)", lambda values: len(some(values)), where(column("s"), column("y")))]
    found += [over_frame("count_where(*, id % 2 = 0)", lambda values: len(some(values)), where(lambda _: 1, even))]
    return found


#: Expressions inside and around aggregates, each over one window `w`.
def expressions() -> list[Aggregate]:
    def plus_one(row: Row) -> Any:
        return None if row["v"] is None else row["v"] + 1

    def product(row: Row) -> Any:
        return None if row["v"] is None or row["d"] is None else row["v"] * row["d"]

    def either(row: Row) -> Any:
        return row["v"] if row["v"] is not None else row["h"]

    def spread(frame: list[Row], _: list[Row]) -> Any:
        low, high = least([row["v"] for row in frame]), greatest([row["v"] for row in frame])
        return None if low is None else high - low

    def ratio(frame: list[Row], _: list[Row]) -> Any:
        present = some([row["d"] for row in frame])
        return sum(present) / len(frame) if present else None

    def is_large(frame: list[Row], _: list[Row]) -> Any:
        return "many" if len(frame) > 3 else "few"

    return [
        over_frame("sum(v + 1) OVER w", total, plus_one),
        over_frame("sum(v * d) OVER w", total, product),
        over_frame("max(coalesce(v, h)) OVER w", greatest, either),
        over_frame("min(upper(s)) OVER w", least, lambda row: None if row["s"] is None else row["s"].upper()),
        Aggregate("max(v) OVER w - min(v) OVER w", spread),
        Aggregate("sum(d) OVER w / count(*) OVER w", ratio),
        Aggregate("CASE WHEN count(*) OVER w > 3 THEN 'many' ELSE 'few' END", is_large),
        Aggregate("abs(count(*) OVER w - 2)", lambda frame, _: abs(len(frame) - 2)),
        Aggregate(
            "coalesce(sum(v) OVER w, -1)",
            lambda frame, _: -1 if total([r["v"] for r in frame]) is None else total([r["v"] for r in frame]),
        ),
    ]


AGGREGATES = _all()
