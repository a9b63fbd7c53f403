"""What a replay is told on the command line, read and checked."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from sqlext_operators.early.estimators import ESTIMATORS
from sqlext_operators.early.windows import EstimatedAggregate

from sqlext_planner.errors import ConfigurationError

__all__ = [
    "SEEDS",
    "STEP",
    "UNITS",
    "Columns",
    "EstimatedAggregate",
    "ReplayOptions",
    "chosen_estimators",
    "duration",
    "durations",
    "uniform_delay",
]

#: Microseconds of each unit, of durations and of times that are numbers
UNITS = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
#: Rows that share a time stamp when times come from a rate, as in PECJ's loader
STEP = 50
#: The seeds of PECJ's loader, for the delays of the left and of the right rows
SEEDS = (4097, 1025)

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|m|h|d)", re.IGNORECASE)
_LONGEST = 10 * 365 * UNITS["d"]


@dataclass(frozen=True)
class Columns:
    """Names of columns, the same in both files; only the left file needs the value, and only for SUM and AVG."""

    key: str
    value: str | None = None
    time: str | None = None
    arrival: str | None = None


@dataclass(frozen=True)
class ReplayOptions:
    """A replay; durations in microseconds.

    Times are those of the columns, in `unit` (microseconds) where they are numbers, or `rate` rows a second in the
    order of the file. `delay`: the longest of the random delays that are drawn, instead of a column of arrivals.
    `slices`: so many windows, at equal distances in both files, instead of all.
    """

    left: Path
    right: Path
    columns: Columns
    window: int
    emit_after: tuple[int, ...]
    aggregate: EstimatedAggregate = EstimatedAggregate.COUNT
    estimators: tuple[str, ...] = tuple(ESTIMATORS)
    confidence: float = 0.95
    warm_up: int = 0
    rate: int | None = None
    delay: int | None = None
    seed: int = 0
    slices: int | None = None
    lateness: int | None = None
    closed: bool = False
    unit: int = 1

    def __post_init__(self) -> None:
        """Raises ConfigurationError for options that do not go together."""
        if self.aggregate is not EstimatedAggregate.COUNT and self.columns.value is None:
            raise ConfigurationError(
                f"--aggregate {self.aggregate} needs a value",
                condition="command-line",
                help="name a column of the left file with --value",
            )
        _one("--time", self.columns.time, "--rate", self.rate, "the times of the rows")
        _one("--arrival", self.columns.arrival, "--delay", self.delay, "when the rows arrive")
        if self.rate is not None and self.columns.arrival is not None:
            raise ConfigurationError(
                "--rate gives the rows new times, and --arrival is about their old ones",
                condition="command-line",
                help="draw the arrivals with --delay, or name the times with --time",
            )
        if self.rate is not None and not 0 < self.rate <= STEP * UNITS["s"]:
            raise ConfigurationError(
                f"--rate {self.rate}: give rows per second, from 1 to {STEP * UNITS['s']:,}", condition="command-line"
            )
        if self.slices is not None and (self.rate is None or self.slices < 1):
            raise ConfigurationError(
                "--slices cuts windows by places in the files",
                condition="command-line",
                help="give a number above 0, together with --rate",
            )
        if not 0 < self.confidence < 1:
            raise ConfigurationError(
                f"--confidence {self.confidence:g} is not between 0 and 1",
                condition="command-line",
                help="0.95 is the usual one",
            )


def _one(first: str, value: object, second: str, other: object, what: str) -> None:
    if value is None and other is None:
        raise ConfigurationError(
            f"nothing says {what}", condition="command-line", help=f"give {first} COLUMN or {second}"
        )
    if value is not None and other is not None:
        raise ConfigurationError(
            f"both {first} and {second} say {what}", condition="command-line", help="give one of them"
        )


def duration(option: str, text: str) -> int:
    """Microseconds of ``10ms``, ``1.5s``. Raises ConfigurationError, with the option's name, for anything else."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ConfigurationError(
            f"{option} {text}: not a duration",
            condition="command-line",
            help=f"write a number and a unit ({', '.join(UNITS)}), such as 10ms",
        )
    micros = Decimal(match[1]) * UNITS[match[2].lower()]
    if micros != int(micros):
        raise ConfigurationError(f"{option} {text}: the shortest time is 1us", condition="command-line")
    if not 0 < micros <= _LONGEST:
        raise ConfigurationError(
            f"{option} {text}: give a duration above 0 and up to ten years", condition="command-line"
        )
    return int(micros)


def durations(option: str, texts: Sequence[str]) -> tuple[int, ...]:
    """Several of them, also separated by commas; ascending, each once."""
    parts = [part for text in texts for part in text.split(",")]
    return tuple(sorted({duration(option, part) for part in parts}))


def uniform_delay(text: str) -> int:
    """The longest delay of ``uniform:5ms``, in microseconds. Raises ConfigurationError."""
    kind, sign, longest = text.partition(":")
    if kind.strip().lower() != "uniform" or not sign:
        raise ConfigurationError(
            f"--delay {text}: not a distribution of delays",
            condition="command-line",
            help="write uniform:5ms: from 1us to 5ms, all equally likely",
        )
    micros = duration("--delay", longest)
    if micros >= 1 << 32:
        raise ConfigurationError(
            f"--delay {text}: the longest delay that can be drawn is 71 minutes", condition="command-line"
        )
    return micros


def chosen_estimators(text: str) -> tuple[str, ...]:
    """``all``, or names separated by commas. Raises ConfigurationError for an unknown one."""
    if text.strip().lower() == "all":
        return tuple(ESTIMATORS)
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in ESTIMATORS:
            near = difflib.get_close_matches(name, [*ESTIMATORS, "all"], n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(ESTIMATORS)}, and all"
            raise ConfigurationError(f"--estimators: there is no '{name}'", condition="command-line", help=hint)
    if not names:
        raise ConfigurationError(
            "--estimators names none", condition="command-line", help=f"there are {', '.join(ESTIMATORS)}, and all"
        )
    return tuple(dict.fromkeys(names))
