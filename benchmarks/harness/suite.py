"""What a suite is made of: cases, contestants, answers and checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.harness.results import Report


Number = int | float
#: Contestants with longer runs are warm after one run.
BRIEF_SECONDS = 5.0


@dataclass(frozen=True)
class Case:
    """One point of the measurement: a data set and a query size. `x` is its position on the chart's axis.

    Cases with the same `panel` share one diagram of the chart; None leaves a case out of it. A `tick` replaces the
    number on the axis. `contestants` are those that take part; None means all. `limit_seconds` is for cases that not
    all contestants can finish: a run is interrupted then, unless the limit of the whole run is lower. `warm_ups` and
    `least_runs` are for cases where little time or a small difference matters. They apply to contestants whose first
    run takes less than BRIEF_SECONDS: a JVM keeps compiling for dozens of runs (measured: 1.5 s at first, 0.4 s after
    40 runs).
    """

    name: str
    x: float
    parameters: Mapping[str, Number | str] = field(default_factory=dict)
    panel: str | None = ""
    tick: str | None = None
    contestants: tuple[str, ...] | None = None
    limit_seconds: float | None = None
    warm_ups: int = 1
    least_runs: int = 1

    def has(self, contestant: str) -> bool:
        """Whether a contestant takes part in it."""
        return self.contestants is None or contestant in self.contestants


@dataclass(frozen=True)
class Answer:
    """What a contestant computed: the number of result rows and checksums over all of them.

    Integers are compared exactly, floats with a relative tolerance (the order of additions differs by engine).
    """

    rows: int
    checksums: Mapping[str, Number]

    def difference(self, other: Answer, tolerance: float) -> str | None:
        """The first difference between two answers, in words; None if they agree."""
        if self.rows != other.rows:
            return f"{self.rows:,} rows instead of {other.rows:,}"
        if self.checksums.keys() != other.checksums.keys():
            return f"checksums {sorted(self.checksums)} instead of {sorted(other.checksums)}"
        for name, value in self.checksums.items():
            expected = other.checksums[name]
            exact = isinstance(value, int) and isinstance(expected, int)
            same = value == expected if exact else math.isclose(value, expected, rel_tol=tolerance, abs_tol=tolerance)
            if not same:
                return f"{name} is {value!r} instead of {expected!r}"
        return None


class Contestant:
    """One way of computing the answer. `run` is timed; `prepare` and `answer` are not."""

    #: On the command line, in tables and in JSON.
    name: str

    def prepare(self, case: Case) -> None:
        """Bring settings and tables into the state that `run` needs; called before every run."""

    def run(self, case: Case) -> float | None:
        """Compute the whole result and consume every row of it.

        None means that the time of the call counts; a contestant in its own process returns the seconds that it
        measured there, so that the communication costs nothing.
        """
        raise NotImplementedError

    def answer(self, case: Case) -> Answer | None:
        """The answer of the last run; None if it computes something else, which only its time is compared for."""
        raise NotImplementedError

    def details(self) -> Mapping[str, float]:
        """What it measured besides seconds in the last run, also in one that was interrupted, by the headings of the
        columns."""
        return {}

    def series(self) -> Mapping[str, Sequence[float]]:
        """A figure of each step of the last run, by the names of the figures. They are only in the JSON file."""
        return {}

    def plan(self) -> str:
        """The plan of the last run as text: two runs with one text did the same work. It is only in the JSON file, and
        empty if there is none to tell."""
        return ""

    def interrupt(self) -> None:
        """Make a run in another thread end with an error soon; otherwise it goes on to its end."""

    def close(self) -> None:
        """Give back what it alone holds."""


@dataclass(frozen=True)
class Check:
    """A statement about a finished report, e.g. a target of the project, and whether it holds."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Suite:
    """A named set of cases that every contestant answers.

    Ratios compare with the contestant `ours`. In each case the first other one that has an answer is the reference
    (ours, if there is no other). `left_out` lists what cannot be measured here and why. The chart shows seconds, or
    with `speedup` how many times faster ours is. `close` is called after the contestants' own. Memory is sampled every
    `watch_seconds`, which takes some milliseconds of a core.
    """

    name: str
    title: str
    parameters: Mapping[str, object]
    cases: tuple[Case, ...]
    contestants: tuple[Contestant, ...]
    ours: str
    x_label: str
    checks: tuple[Callable[[Report], Iterable[Check]], ...] = ()
    tolerance: float = 1e-9
    facts: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    speedup: bool = False
    close: Callable[[], None] = lambda: None
    watch_seconds: float = 0.1


@dataclass
class EitherContestant(Contestant):
    """One name in the tables: `special` answers the cases named in `cases`, `usual` all others."""

    name: str
    cases: Collection[str]
    special: Contestant
    usual: Contestant
    _prepared: Contestant | None = None

    def prepare(self, case: Case) -> None:
        self._prepared = self._of(case)
        self._prepared.prepare(case)

    def run(self, case: Case) -> float | None:
        return self._of(case).run(case)

    def answer(self, case: Case) -> Answer | None:
        return self._of(case).answer(case)

    def details(self) -> Mapping[str, float]:
        return {} if self._prepared is None else self._prepared.details()

    def series(self) -> Mapping[str, Sequence[float]]:
        return {} if self._prepared is None else self._prepared.series()

    def plan(self) -> str:
        return "" if self._prepared is None else self._prepared.plan()

    def interrupt(self) -> None:
        """Interrupt both; the one that is not running has nothing to end."""
        self.special.interrupt()
        self.usual.interrupt()

    def close(self) -> None:
        self.special.close()
        self.usual.close()

    def _of(self, case: Case) -> Contestant:
        return self.special if case.name in self.cases else self.usual


def short(number: int) -> str:
    """5_000_000 -> 5M, 2_500 -> 2.5k."""
    for size, suffix in ((1_000_000, "M"), (1_000, "k")):
        if number >= size and number % (size // 10) == 0:
            return f"{number / size:g}{suffix}"
    return str(number)
