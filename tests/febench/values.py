"""Values of the plain-Python twin, and FEBench's functions over them (docs/reference/windows.md, section 5)."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any


class Moment(int):
    """A timestamp in microseconds since 1970, UTC. A number added to it counts milliseconds, as in OpenMLDB."""

    def shifted(self, milliseconds: int) -> Moment:
        return Moment(int(self) + 1000 * milliseconds)

    @property
    def clock(self) -> dt.datetime:
        return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=int(self))


def parse_moment(text: str) -> Moment:
    elapsed = dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1)
    return Moment(elapsed // dt.timedelta(microseconds=1))


def null_safe(function: Callable[..., Any]) -> Callable[..., Any]:
    """NULL in, NULL out."""
    return lambda *values: None if any(value is None for value in values) else function(*values)


def _log(value: float) -> float | None:
    return math.log(value) if value > 0 else None


def _timestamp(value: Any) -> Moment:
    return parse_moment(value) if isinstance(value, str) else Moment(value)


def _text(value: Any) -> str:
    """As Spark's cast to string has it: of these values Python's own text, but for times."""
    return str(value.clock) if isinstance(value, Moment) else str(value)


SCALARS: dict[str, Callable[..., Any]] = {
    "bigint": null_safe(int),
    "concat": null_safe(lambda *values: "".join(map(_text, values))),
    "dayofweek": null_safe(lambda moment: moment.clock.isoweekday() % 7 + 1),
    "double": null_safe(float),
    "hour": null_safe(lambda moment: moment.clock.hour),
    "int": null_safe(int),
    "isnull": lambda value: value is None,
    "log": null_safe(_log),
    "timestamp": null_safe(_timestamp),
}


def some(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _total(values: Sequence[Any]) -> Any:
    return sum(some(values)) if some(values) else None


def _mean(values: Sequence[Any]) -> float | None:
    return float(sum(some(values))) / len(some(values)) if some(values) else None


def _top_frequency(values: Sequence[Any], n: int) -> str:
    if not values:
        return ""
    ranked = sorted(Counter(some(values)).items(), key=lambda item: (-item[1], item[0]))
    return ",".join(([str(value) for value, _ in ranked] + ["NULL"] * n)[:n])


def _top_ratio(values: Sequence[Any]) -> float:
    counts = Counter(some(values))
    return max(counts.values()) / sum(counts.values()) if counts else 0.0


#: Functions of the values of the window's rows, newest first; literals follow.
AGGREGATES: dict[str, Callable[..., Any]] = {
    "avg": _mean,
    "max": lambda values: max(some(values), default=None),
    "min": lambda values: min(some(values), default=None),
    "sum": _total,
    "top1_ratio": _top_ratio,
    "topn_frequency": _top_frequency,
}

#: What distinct_count takes a NULL for.
ZEROS: dict[str, Any] = {"string": "", "int": 0, "bigint": 0, "double": 0.0, "timestamp": Moment(0)}
