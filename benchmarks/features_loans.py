"""Generated tables with the schemas of FEBench's Q4: applications for loans, and the history of the applicants."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from sqlext_operators.arrays import Int64s

from benchmarks.features_values import (
    DAY,
    by_time,
    category,
    filled,
    numbered,
    random_times,
    schemas,
    spread_times,
    timestamps,
)

#: Rows of each history for an application, on average: fewer for an application than in FEBench's source (5 to 90).
HISTORIES = {
    "bo_POS_CASH_balance": 4.0,
    "bo_bureau": 3.0,
    "bo_bureau_balance": 5.0,
    "bo_credit_card_balance": 2.0,
    "bo_installment_payment": 5.0,
    "bo_previous_applicatio": 3.0,
}


@dataclass(frozen=True)
class LoanTables:
    """Q4's tables for `rows` applications over 180 days.

    An application's id is there once in `train` and in `action`, so that every LAST JOIN has one answer. Histories are
    uneven: most applications have a few rows, one in 400 more than a hundred (151 at most), a third none. One row in
    twenty is later than the application. (id, time) is unique. 4,000 applications have the same Q4_Col78; ten hours of
    these are 9 on average, and stay below MAXSIZE 100. Each of its 100 profiles (Q4_Col77 to Q4_Col81) has 30 rows in
    `bo_part`, at distinct times.
    """

    rows: int
    seed: int = 1
    columns: dict[str, dict[str, str]] = field(default_factory=lambda: schemas("Q4"), repr=False)

    DAYS = 180
    YEARS = 3
    APPLICATIONS_OF_A_GROUP = 4_000
    PROFILES = 100
    PARTS_OF_A_PROFILE = 30
    MOST_ROWS = 151
    #: 2019-01-01
    START = 1_546_300_800_000

    NAMES = ("train", "action", "bo_part", *HISTORIES)

    def tables(self) -> dict[str, pa.Table]:
        """The tables by their names in the script."""
        random = np.random.default_rng([self.seed, 4])
        groups = self.rows // self.APPLICATIONS_OF_A_GROUP + 1
        group, time = self._applications(random, groups)
        # Some histories are of nobody who applies.
        others = self.START + random.integers(0, self.DAYS * 86_400, self.rows // 32) * 1_000
        ends = np.concatenate([time, others])
        return {
            "train": self._train(random, group, time),
            "action": self._action(random, time),
            "bo_part": self._parts(random, groups),
            **{name: self._history(random, name, mean, ends) for name, mean in HISTORIES.items()},
        }

    def _applications(self, random: np.random.Generator, groups: int) -> tuple[Int64s, Int64s]:
        """The group and the time of each application, in the order of the times."""
        counts = np.bincount(random.integers(0, groups, self.rows), minlength=groups)
        group, elapsed = spread_times(random, counts, self.DAYS)
        order = np.argsort(elapsed, kind="stable")
        return group[order], self.START + elapsed[order]

    def _train(self, random: np.random.Generator, group: Int64s, time: Int64s) -> pa.Table:
        known = {
            "Q4_Col40": numbered("app-", np.arange(self.rows)),
            "Q4_Col41": timestamps(time),
            "Q4_Col43": category(random, 2, self.rows, 0.02),
            **self._profile(group, random.integers(0, self.PROFILES, self.rows)),
        }
        return filled(random, self.columns["train"], self.rows, known)

    def _action(self, random: np.random.Generator, time: Int64s) -> pa.Table:
        acted = np.flatnonzero(random.random(self.rows) < 0.95)
        random.shuffle(acted)
        known = {"Q4_Col40": numbered("app-", acted), "Q4_Col41": timestamps(time[acted])}
        return filled(random, self.columns["action"], len(acted), known)

    def _parts(self, random: np.random.Generator, groups: int) -> pa.Table:
        counts = np.full(groups * self.PROFILES, self.PARTS_OF_A_PROFILE)
        profile, elapsed = random_times(random, counts, self.DAYS)
        known = self._profile(profile // self.PROFILES, profile % self.PROFILES)
        known["Q4_Col0"] = timestamps(self.START + elapsed)
        return by_time(filled(random, self.columns["bo_part"], len(profile), known), elapsed)

    def _profile(self, group: Int64s, profile: Int64s) -> dict[str, pa.Array]:
        """The five columns that a profile's number stands for."""
        return {
            "Q4_Col77": numbered("house ", profile % 5),
            "Q4_Col78": numbered("income ", group),
            "Q4_Col79": numbered("family ", profile // 5 % 5),
            "Q4_Col80": numbered("sex ", profile // 25 % 2),
            "Q4_Col81": pa.array(profile // 50),
        }

    def _history(self, random: np.random.Generator, name: str, mean: float, ends: Int64s) -> pa.Table:
        """Rows of three years before each application, some of them later."""
        wanted = np.floor(mean * 0.6 * random.pareto(1.6, len(ends)))
        owner, elapsed = random_times(random, np.minimum(wanted, self.MOST_ROWS).astype(np.int64), self.YEARS * 365)
        time = ends[owner] + elapsed - int(0.95 * self.YEARS * 365) * DAY
        known = {"Q4_Col0": timestamps(time), "Q4_Col2": numbered("app-", owner)}
        known["Q4_Col1"] = pa.array(owner * 5 + random.integers(0, 5, len(owner)))
        return by_time(filled(random, self.columns[name], len(owner), known), time)
