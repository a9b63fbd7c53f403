"""What people put in place of a feature server, for the windows of FEBench's Q1: DuckDB in the process, and Redis with
an aggregation in Python. Both get the rows of a key by an index, and compute the same features."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa

_DAY = 86_400_000_000
#: Name of the feature: key, days, most rows, aggregate.
WINDOWS: Mapping[str, tuple[str, int, int, str]] = {
    "train_Fatalities_window_min_7": ("Province_State", 2, 200, "min"),
    "train_Fatalities_window_min_8": ("Province_State", 7, 200, "min"),
    "train_Fatalities_window_min_10": ("Country_Region", 2, 100, "min"),
    "train_Fatalities_window_min_11": ("Country_Region", 5, 200, "min"),
    "train_Fatalities_window_avg_12": ("Province_State", 2, 200, "avg"),
    "train_Fatalities_window_avg_13": ("Province_State", 5, 200, "avg"),
    "train_Fatalities_window_sum_14": ("Province_State", 7, 100, "sum"),
    "train_Fatalities_window_avg_15": ("Country_Region", 2, 100, "avg"),
    "train_Fatalities_window_max_16": ("Country_Region", 5, 200, "max"),
    "train_Fatalities_window_max_17": ("Country_Region", 14, 200, "max"),
    "train_Country_Region_window_count_20": ("Province_State", 14, 100, "same"),
    "train_Country_Region_window_count_21": ("Province_State", 64, 100, "same"),
}
#: Over the newest ten rows of the country.
ROWS_AVERAGE, ROWS_RATIO = "train_Fatalities_window_avg_18", "train_Province_State_window_top1_ratio_19"
_MOST = 200


class Peer(Protocol):
    """Answers a row."""

    def answer(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The features of a row of `train`."""

    def close(self) -> None:
        """End it."""


def micros(value: datetime) -> int:
    """Microseconds since 1970."""
    return round(value.timestamp() * 1_000_000)


class DuckDbPeer:
    """DuckDB in this process, with an index for each key; one statement a request."""

    def __init__(self, train: pa.Table) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": 1})
        given = train.select(["Province_State", "Country_Region", "Date", "Fatalities"])
        given = given.set_column(2, "Date", given.column("Date").cast(pa.int64()))
        self._connection.register("given", given)
        self._connection.execute("CREATE TABLE train AS SELECT row_number() OVER () AS id, * FROM given")
        for key in ("Province_State", "Country_Region"):
            self._connection.execute(f"CREATE INDEX by_{key} ON train ({key})")
        self._sql = _statement()

    def answer(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The features of a row."""
        given = [row["Province_State"], row["Country_Region"], micros(row["Date"]), row["Fatalities"]]
        result = self._connection.execute(self._sql, given)
        names = [item[0] for item in result.description or []]
        return dict(zip(names, result.fetchone() or (), strict=True))

    def close(self) -> None:
        """End it."""
        self._connection.close()


def _statement() -> str:
    sources, items = [], []
    for name, key, place in (("p", "Province_State", 1), ("c", "Country_Region", 2)):
        sources.append(
            f"{name} AS (SELECT *, row_number() OVER (ORDER BY Date DESC, id DESC) AS n FROM (SELECT * FROM ("
            "SELECT id, Date, Fatalities, Country_Region, Province_State FROM train "
            f"WHERE {key} = ${place} AND Date <= $3 ORDER BY Date DESC, id DESC LIMIT {_MOST}) UNION ALL "
            "SELECT 1000000000, $3::BIGINT, $4::DOUBLE, $2::VARCHAR, $1::VARCHAR))"
        )
    for feature, (key, days, most, aggregate) in WINDOWS.items():
        source = "p" if key == "Province_State" else "c"
        kept = f"n <= {most} AND Date > $3 - {days * _DAY}"
        if aggregate == "same":
            items.append(f"(SELECT count(*) FROM {source} WHERE {kept} AND Country_Region = $2) AS {feature}")
        else:
            items.append(f"(SELECT {aggregate}(Fatalities) FROM {source} WHERE {kept}) AS {feature}")
    items.append(f"(SELECT avg(Fatalities) FROM c WHERE n <= 10) AS {ROWS_AVERAGE}")
    ratio = "SELECT count(*) AS m FROM c WHERE n <= 10 AND Province_State IS NOT NULL GROUP BY Province_State"
    known = "SELECT count(*) FROM c WHERE n <= 10 AND Province_State IS NOT NULL"
    items.append(f"(SELECT max(m) FROM ({ratio})) / nullif(({known}), 0)::DOUBLE AS {ROWS_RATIO}")
    return f"WITH {', '.join(sources)} SELECT {', '.join(items)}"


class RedisPeer:
    """Redis with a sorted set of JSON rows for each key, and Python for the aggregates: one round trip a request."""

    def __init__(self, train: pa.Table) -> None:
        binary = shutil.which("redis-server")
        if binary is None:
            raise FileNotFoundError("redis-server is not installed")
        import redis

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._folder = tempfile.TemporaryDirectory(prefix="sqlext-redis-")
        command = [binary, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", self._folder.name]
        self._server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self._client = redis.Redis(port=port)
        end = time.monotonic() + 20
        while True:
            try:
                self._client.ping()
                break
            except redis.ConnectionError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
        self._fill(train)

    def _fill(self, train: pa.Table) -> None:
        pipe = self._client.pipeline(transaction=False)
        columns = train.select(["Province_State", "Country_Region", "Date", "Fatalities"])
        times = columns.column("Date").cast(pa.int64()).to_pylist()
        rows = zip(columns[0].to_pylist(), columns[1].to_pylist(), times, columns[3].to_pylist(), strict=True)
        for number, (province, country, moment, deaths) in enumerate(rows):
            text = json.dumps([number, moment, deaths, country, province])
            for kind, key in (("p", province), ("c", country)):
                if key is not None:
                    pipe.zadd(f"{kind}:{key}", {text: moment})
            if number % 10_000 == 9_999:
                pipe.execute()
        pipe.execute()

    def answer(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The features of a row."""
        now, deaths = micros(row["Date"]), row["Fatalities"]
        own = [1 << 40, now, deaths, row["Country_Region"], row["Province_State"]]
        pipe = self._client.pipeline(transaction=False)
        names = {"Province_State": f"p:{row['Province_State']}", "Country_Region": f"c:{row['Country_Region']}"}
        for name in names.values():
            pipe.zrevrangebyscore(name, now, "-inf", start=0, num=_MOST)
        found = {}
        for key, texts in zip(names, pipe.execute(), strict=True):
            rows = [json.loads(text) for text in texts] if row[key] is not None else []
            found[key] = [own, *sorted(rows, key=lambda item: (item[1], item[0]), reverse=True)]
        features = {
            name: _feature(found[key], now, days, most, aggregate, own)
            for name, (key, days, most, aggregate) in WINDOWS.items()
        }
        newest = found["Country_Region"][:10]
        values = [item[2] for item in newest if item[2] is not None]
        features[ROWS_AVERAGE] = sum(values) / len(values) if values else None
        provinces = Counter(item[4] for item in newest if item[4] is not None)
        features[ROWS_RATIO] = max(provinces.values()) / sum(provinces.values()) if provinces else None
        return features

    def close(self) -> None:
        """End the server."""
        self._client.close()
        self._server.terminate()
        self._server.wait(10)
        self._folder.cleanup()


def _feature(rows: Sequence[Any], now: int, days: int, most: int, aggregate: str, own: Any) -> Any:
    kept = [item for item in rows[:most] if item[1] > now - days * _DAY]
    if aggregate == "same":
        return sum(item[3] == own[3] for item in kept)
    values = [item[2] for item in kept if item[2] is not None]
    if not values:
        return None
    if aggregate == "avg":
        return sum(values) / len(values)
    functions: dict[str, Any] = {"min": min, "max": max, "sum": sum}
    return functions[aggregate](values)
