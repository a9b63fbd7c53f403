"""Generated tables with the schemas of FEBench's Q0 and Q1: taxi trips, and cases of an illness by day."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlext_operators.arrays import Float64s, Int64s

from benchmarks.features_values import DAY, HOUR, distinct_times, numbered, timestamps


@dataclass(frozen=True)
class TaxiTables:
    """Q0: `train`, taxi trips of two vendors, sorted by pickup time.

    A two-hour window holds 110 trips of a vendor on average and 180 in the rush hour (MAXSIZE is 200), so a million
    trips take about a year. Pickup times have milliseconds and are unique for each vendor.
    """

    rows: int
    seed: int = 1

    #: Trips of one vendor in two hours.
    DENSITY = 110
    #: 2016-01-01
    START = 1_451_606_400_000

    def tables(self) -> dict[str, pa.Table]:
        """The table by its name in the script."""
        random = np.random.default_rng([self.seed, 0])
        sizes = (self.rows - self.rows // 2, self.rows // 2)
        pickup = np.concatenate([self._pickups(random, size) for size in sizes])
        vendor = np.repeat(np.array([1, 2], np.int32), sizes)
        order = np.lexsort((vendor, pickup))
        pickup, vendor = pickup[order], vendor[order]
        duration = random.gamma(2.0, 420.0, self.rows).astype(np.int32) + 30
        columns = {
            "id": numbered("id", np.arange(self.rows)),
            "vendor_id": pa.array(vendor),
            "pickup_datetime": timestamps(pickup),
            "dropoff_datetime": timestamps(pickup + duration.astype(np.int64) * 1_000),
            "passenger_count": pa.array(random.integers(1, 7, self.rows).astype(np.int32)),
            "pickup_longitude": self._degrees(random, -73.97),
            "pickup_latitude": self._degrees(random, 40.75),
            "dropoff_longitude": self._degrees(random, -73.97),
            "dropoff_latitude": self._degrees(random, 40.75),
            "store_and_fwd_flag": pa.array(["N", "Y", None]).take(
                pa.array(random.choice(3, self.rows, p=[0.965, 0.03, 0.005]))
            ),
            "trip_duration": pa.array(duration),
        }
        return {"train": pa.table(columns)}

    def _pickups(self, random: np.random.Generator, count: int) -> Int64s:
        """`count` distinct times in ms, ascending, with a wave of 24 hours (1 +- 0.6 of the mean)."""
        hours = np.arange(0, max(2.0, count / self.DENSITY * 2) + 1, 0.25)
        elapsed = hours - 0.6 * 24 / (2 * np.pi) * (np.cos(2 * np.pi * hours / 24) - 1)
        quantile = (np.arange(count) + random.random(count)) / self.DENSITY * 2
        return distinct_times(self.START + np.interp(quantile, elapsed, hours) * HOUR)

    def _degrees(self, random: np.random.Generator, middle: float) -> pa.Array:
        return pa.array(np.round(random.normal(middle, 0.04, self.rows), 6))


@dataclass(frozen=True)
class CovidTables:
    """Q1: `train`, cases and deaths by day and province, one series after the other as in the real table.

    The real table has 23,562 rows: 306 series over 77 days. This one has as many countries of 1-14 provinces as the
    rows need (14 days of a country stay below MAXSIZE 200). One series has no province; a tenth of the provinces
    share their name with one of the next country, and both then report every second day. Each series reports at its
    own time of day.
    """

    rows: int
    seed: int = 1

    DAYS = 77
    #: 2020-01-21 16:00, the first day of the real table
    START = 1_579_622_400_000

    def tables(self) -> dict[str, pa.Table]:
        """The table by its name in the script."""
        random = np.random.default_rng([self.seed, 1])
        countries, provinces, halves = self._series(random)
        days = np.arange(self.DAYS)
        reported = (halves[:, None] < 0) | (days[None, :] % 2 == halves[:, None])
        series, day = (part[: self.rows] for part in np.nonzero(reported))
        offset = np.arange(len(countries)) * (DAY // len(countries))
        cases, deaths = self._curves(random, len(countries))
        province = numbered("Province ", provinces)
        none = pa.array(np.arange(len(provinces)) == 0)
        province = pc.if_else(none, pa.scalar(None, pa.string()), province)
        columns = {
            "Id": pa.array(np.arange(1, len(series) + 1, dtype=np.int32)),
            "Province_State": province.take(pa.array(series)),
            "Country_Region": numbered("Country ", countries).take(pa.array(series)),
            "Date": timestamps(self.START + day * DAY + offset[series]),
            "ConfirmedCases": pa.array(cases[series, day]),
            "Fatalities": pa.array(deaths[series, day]),
        }
        return {"train": pa.table(columns)}

    def _series(self, random: np.random.Generator) -> tuple[Int64s, Int64s, Int64s]:
        """Country and province number of each series, and the parity of its days (-1: every day)."""
        most = self.rows // (self.DAYS // 2) + 2
        sizes = random.integers(1, 15, most)
        countries = np.repeat(np.arange(most), sizes)[:most]
        provinces = np.arange(most)
        halves = np.full(most, -1)
        last = np.flatnonzero(np.diff(countries))[1:]  # the last series of a country and the first of the next
        shared = last[random.random(len(last)) < 0.7]
        shared = shared[np.concatenate([[True], np.diff(shared) > 1])] if len(shared) else shared
        provinces[shared + 1] = provinces[shared]
        halves[shared], halves[shared + 1] = 0, 1
        reports = np.where(halves < 0, self.DAYS, np.where(halves == 0, (self.DAYS + 1) // 2, self.DAYS // 2))
        used = int(np.searchsorted(np.cumsum(reports), self.rows)) + 1
        return countries[:used], provinces[:used], halves[:used]

    def _curves(self, random: np.random.Generator, count: int) -> tuple[Float64s, Float64s]:
        """Cumulative cases and deaths, (series, day): whole numbers that never fall."""
        days = np.arange(self.DAYS)
        middle = random.uniform(30, 90, (count, 1))
        top = random.pareto(1.1, (count, 1)) * 300
        cases = np.floor(top / (1 + np.exp((middle - days) / 6)))
        return cases, np.floor(cases * random.uniform(0, 0.08, (count, 1)))
