"""What a check finds, and the machine that it looks at."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlext_planner.conditions import Condition
from sqlext_planner.errors import SqlExtError

from sqlext.embedded import is_ending, usable_cores


class State(StrEnum):
    """How bad it is. Only `wrong` makes the exit code 1."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Finding:
    """One sentence, and for a warning or what is wrong the remedy; `condition` is where docs/errors.md says more."""

    state: State
    text: str
    remedy: str | None = None
    condition: Condition | None = None

    @classmethod
    def ok(cls, text: str) -> Finding:
        """Nothing to do."""
        return cls(State.OK, text)

    @classmethod
    def warning(cls, text: str, remedy: str) -> Finding:
        """It works, and may be slow, or fail for large inputs."""
        return cls(State.WARNING, text, remedy)

    @classmethod
    def wrong(cls, text: str, remedy: str, condition: Condition | None = None) -> Finding:
        """Statements fail."""
        return cls(State.WRONG, text, remedy, condition)

    @classmethod
    def of(cls, error: SqlExtError) -> Finding:
        """An error of ours as what is wrong."""
        return cls(
            State.WRONG,
            ". ".join([error.message, *(note.rstrip(".") for note in error.notes)]),
            error.help,
            error.condition,
        )


@dataclass(frozen=True)
class Machine:
    """What the checks look at: environment variables, and the Spark settings that were given."""

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def master(self) -> str:
        """Spark's master, as `sqlext run` has it."""
        return self.settings.get("spark.master") or self.environment.get("MASTER") or "local[*]"

    @property
    def is_local(self) -> bool:
        """Whether all of Spark runs in one process of this machine."""
        return self.master.startswith("local") and not self.master.startswith("local-cluster")

    @property
    def tasks(self) -> int:
        """How many tasks run at once on this machine: none of a cluster's."""
        if not self.is_local:
            return 0
        number = re.search(r"\[(\d+)", self.master)
        return int(number[1]) if number is not None else usable_cores() if "*" in self.master else 1


@dataclass(frozen=True)
class Check:
    """A name, and a function that looks at a machine, or at a Spark with its machine. With `starts`, Spark does not
    start, or has no workers, where something is wrong: then what needs it is not checked."""

    name: str
    look: Callable[..., Iterable[Finding]]
    starts: bool = False

    def findings(self, *subject: object) -> list[Finding]:
        """What the function finds. An error that it raises is a finding too: the other checks still run. It is raised
        if a signal has ended Spark."""
        try:
            return list(self.look(*subject))
        except SqlExtError as error:
            return [Finding.of(error)]
        except Exception as error:
            if is_ending():
                raise
            first = (str(error).strip().splitlines() or [""])[0]
            return [Finding.wrong(f"this check failed: {type(error).__name__}: {first}", "report this line as a bug")]
