"""The outcome of a suite as plain data, in memory and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from benchmarks.harness.suite import Case, Check

#: ok: median of the repeated runs; capped: the warm-up run was over the cap and is the only measurement;
#: stopped: that run was interrupted, and would have taken longer than what was measured;
#: wrong: the answer differs, so no time counts; failed: the contestant raised an error.
Status = Literal["ok", "capped", "stopped", "wrong", "failed"]


#: The series of the seconds of each task, the same tasks in every run.
TASK_SECONDS = "task seconds"
#: The detail of a stream: all of its rows over the seconds of the whole run. Of a run that was stopped it is an upper
#: bound: nobody knows how much longer it would have taken.
RATE = "rows/s"


@dataclass(frozen=True)
class Run:
    """One run: wall seconds, and the memory of the process tree while it ran, in bytes.

    `peak_python` is the highest sum over all Python processes, `peak_process` the largest single one,
    `peak_jvm` the highest sum over Java processes. `details` are what the contestant measured besides, `series` what it
    measured of each step of the run, `plan` the text of what it ran, or empty.
    """

    seconds: float
    peak_python: int
    peak_process: int
    peak_jvm: int
    details: Mapping[str, float] = field(default_factory=dict)
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    plan: str = ""


@dataclass
class Measurement:
    """All runs of one contestant in one case."""

    contestant: str
    status: Status = "ok"
    message: str | None = None
    warmup: Run | None = None
    runs: list[Run] = field(default_factory=list)
    rows: int | None = None
    checksums: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        """The median of the timed runs, or the single capped or stopped one; None if no time counts."""
        if self.status in ("capped", "stopped") and self.warmup is not None:
            return max(run.seconds for run in (self.warmup, *self.runs))
        if self.status != "ok" or not self.runs:
            return None
        return statistics.median(run.seconds for run in self.runs)

    @property
    def best(self) -> float | None:
        """The shortest of the timed runs; else as `seconds`. If two contestants do the same work, their shortest times
        differ less than times to which other work on the machine adds."""
        return min(run.seconds for run in self.runs) if self.status == "ok" and self.runs else self.seconds

    @property
    def details(self) -> dict[str, float]:
        """The medians of the details over the runs that count for `seconds`; and of the medians of each task, the
        slowest, and that over the average."""
        runs = self.runs or ([self.warmup] if self.warmup is not None else [])
        names = dict.fromkeys(name for run in runs for name in run.details)
        found = {name: statistics.median(run.details[name] for run in runs if name in run.details) for name in names}
        seconds = (run.series.get(TASK_SECONDS, ()) for run in runs)
        tasks = [statistics.median(each) for each in zip(*seconds, strict=False)]
        if tasks:
            found = {"slowest task": max(tasks), "max/avg": max(tasks) * len(tasks) / sum(tasks)} | found
        return found

    def peak(self, which: Literal["peak_python", "peak_process", "peak_jvm"]) -> int:
        """The highest value of a memory figure over all runs, including the warm-up."""
        runs = self.runs + ([self.warmup] if self.warmup is not None else [])
        return max((getattr(run, which) for run in runs), default=0)


@dataclass
class CaseResult:
    """Every contestant's measurement of one case, in the suite's order."""

    case: Case
    measurements: list[Measurement]

    def seconds(self, contestant: str) -> float | None:
        """Median seconds of a contestant; None if it did not take part or gave no valid time."""
        found = self.measurement(contestant)
        return None if found is None else found.seconds

    def detail(self, contestant: str, name: str) -> float | None:
        """What a contestant measured besides; None if it did not take part or did not measure that."""
        found = self.measurement(contestant)
        return None if found is None else found.details.get(name)

    def measurement(self, contestant: str) -> Measurement | None:
        """The measurement of a contestant; None if it did not take part."""
        return next((m for m in self.measurements if m.contestant == contestant), None)


@dataclass
class Report:
    """A finished suite."""

    suite: str
    title: str
    ours: str
    x_label: str
    started: str
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    parameters: Mapping[str, Any]
    facts: Mapping[str, str]
    cases: list[CaseResult]
    checks: list[Check] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    speedup: bool = False

    def drawn(self, result: CaseResult, contestant: str) -> float | None:
        """The figure of a contestant in the chart; None if it has none."""
        return self.ratio(result, contestant) if self.speedup else result.seconds(contestant)

    def ratio(self, result: CaseResult, contestant: str) -> float | None:
        """Seconds of `contestant` divided by ours: above 1 means that ours is faster."""
        ours, theirs = result.seconds(self.ours), result.seconds(contestant)
        return theirs / ours if ours and theirs is not None else None

    @property
    def answers_agree(self) -> bool:
        """True if no contestant gave a wrong answer or failed."""
        return all(m.status in ("ok", "capped", "stopped") for result in self.cases for m in result.measurements)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values; `from_json` reads it back."""
        return {
            **{item.name: getattr(self, item.name) for item in fields(self) if item.name not in ("cases", "checks")},
            "cases": [self._case_json(result) for result in self.cases],
            "checks": [asdict(check) for check in self.checks],
            "answers_agree": self.answers_agree,
        }

    def _case_json(self, result: CaseResult) -> dict[str, Any]:
        more = (
            {"median_seconds": m.seconds, "details": m.details, "ratio_to_ours": self.ratio(result, m.contestant)}
            for m in result.measurements
        )
        case = {name: getattr(result.case, name) for name in ("name", "x", "parameters", "panel", "tick")}
        return case | {"results": [asdict(m) | found for m, found in zip(result.measurements, more, strict=True)]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """Read what `to_json` wrote. Raises KeyError or TypeError for anything else."""
        plain = {item.name: data[item.name] for item in fields(cls) if item.name in data}
        cases = []
        for entry in data["cases"]:
            case = Case(entry["name"], entry["x"], entry["parameters"], entry.get("panel", ""), entry.get("tick"))
            cases.append(CaseResult(case, [_measurement(item) for item in entry["results"]]))
        return cls(**{**plain, "cases": cases, "checks": [Check(**check) for check in data["checks"]]})


def _measurement(item: Mapping[str, Any]) -> Measurement:
    known = {field.name: item[field.name] for field in fields(Measurement)}
    warmup = None if item["warmup"] is None else Run(**item["warmup"])
    return Measurement(**{**known, "warmup": warmup, "runs": [Run(**run) for run in item["runs"]]})
