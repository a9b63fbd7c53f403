"""One contestant that answers cases of two kinds in two ways."""

from __future__ import annotations

from dataclasses import dataclass

from sqlext.bench.suite import Answer, Case, Contestant


@dataclass
class EitherContestant:
    """One name in the tables: `special` answers the cases named in `cases`, `usual` all others."""

    name: str
    cases: frozenset[str]
    special: Contestant
    usual: Contestant

    def prepare(self, case: Case) -> None:
        """As the one whose case it is."""
        self._of(case).prepare(case)

    def run(self, case: Case) -> float | None:
        """As the one whose case it is."""
        return self._of(case).run(case)

    def answer(self, case: Case) -> Answer:
        """As the one whose case it is."""
        return self._of(case).answer(case)

    def interrupt(self) -> None:
        """Both; the one that does not run has nothing to end."""
        self.special.interrupt()
        self.usual.interrupt()

    def close(self) -> None:
        """Close both."""
        self.special.close()
        self.usual.close()

    def _of(self, case: Case) -> Contestant:
        return self.special if case.name in self.cases else self.usual
