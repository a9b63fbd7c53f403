"""Generated tables with the schemas of FEBench's Q2: the power of seven wind farms, and a forecast for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlext_operators.arrays import Int64s

from benchmarks.features_values import HOUR, filled, schemas, timestamps


@dataclass(frozen=True)
class WindTables:
    """Q2's tables for `rows` quarters of an hour (a million are 28 years).

    A time is there once in each table, so that every LAST JOIN has one answer. A forecast is missing for one time in
    thirty. A forecast's speeds and directions are text, as in FEBench. A twentieth of the powers is 0, and some are
    NULL.
    """

    rows: int
    seed: int = 1

    FARMS = 7
    #: 1996-01-01
    START = 820_454_400_000
    NAMES = ("train", *(f"windforecasts_wf{farm}" for farm in range(1, 8)))

    def tables(self) -> dict[str, pa.Table]:
        """The tables by their names in the script."""
        random = np.random.default_rng([self.seed, 2])
        times = self.START + np.arange(self.rows) * (HOUR // 4)
        tables = {"train": self._train(random, times)}
        for farm in range(1, self.FARMS + 1):
            tables[f"windforecasts_wf{farm}"] = self._forecast(random, times, farm)
        return tables

    def _train(self, random: np.random.Generator, times: Int64s) -> pa.Table:
        columns = {"date": timestamps(times)}
        for farm in range(1, self.FARMS + 1):
            power = np.round(random.beta(0.8, 2.0, self.rows), 3)
            power[random.random(self.rows) < 0.05] = 0
            columns[f"wp{farm}"] = pa.array(power, mask=random.random(self.rows) < 0.01)
        return pa.table(columns)

    def _forecast(self, random: np.random.Generator, times: Int64s, farm: int) -> pa.Table:
        forecast = times[random.random(self.rows) < 29 / 30]
        count = len(forecast)
        known = {
            "date": timestamps(forecast),
            "hors": pa.array(random.integers(1, 49, count).astype(np.int32)),
            "u": self._text(random, count, -9.0, 9.0),
            "v": self._text(random, count, -9.0, 9.0),
            "ws": self._text(random, count, 0.0, 13.0),
            "wd": self._text(random, count, 0.0, 360.0),
        }
        return filled(random, schemas("Q2")[f"windforecasts_wf{farm}"], count, known)

    def _text(self, random: np.random.Generator, count: int, low: float, high: float) -> pa.Array:
        """One of 1,801 evenly spaced numbers as text, or NULL."""
        texts = pa.array([f"{value:.2f}" for value in np.linspace(low, high, 1_801)])
        return texts.take(pa.array(random.integers(0, 1_801, count), mask=random.random(count) < 0.02))
