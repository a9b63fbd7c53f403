"""What people put in place of a feature server: DuckDB in the process of a small web service, or Redis beside one with
the aggregates in Python. Started by the interpreter of .peers/serving as

    python serving_peer.py duckdb|redis q1|lookup FILE [SOCKET OF REDIS]

It prints its address once it has the rows of the Parquet file. POST /features takes {"input": {...}}, a row, and
answers {"output": {...}}: the window features of FEBench's Q1 over the table `train`, or the row of a user. It imports
nothing of this project.
"""

from __future__ import annotations

import asyncio
import json
import math
import socket
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from zoneinfo import ZoneInfo

import duckdb
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_DAY = 86_400_000_000
_ZONE = ZoneInfo("Asia/Shanghai")
PROVINCE, COUNTRY = "Province_State", "Country_Region"
#: Name of the feature: key, days, most rows, aggregate.
WINDOWS: Mapping[str, tuple[str, int, int, str]] = {
    "train_Fatalities_window_min_7": (PROVINCE, 2, 200, "min"),
    "train_Fatalities_window_min_8": (PROVINCE, 7, 200, "min"),
    "train_Fatalities_window_min_10": (COUNTRY, 2, 100, "min"),
    "train_Fatalities_window_min_11": (COUNTRY, 5, 200, "min"),
    "train_Fatalities_window_avg_12": (PROVINCE, 2, 200, "avg"),
    "train_Fatalities_window_avg_13": (PROVINCE, 5, 200, "avg"),
    "train_Fatalities_window_sum_14": (PROVINCE, 7, 100, "sum"),
    "train_Fatalities_window_avg_15": (COUNTRY, 2, 100, "avg"),
    "train_Fatalities_window_max_16": (COUNTRY, 5, 200, "max"),
    "train_Fatalities_window_max_17": (COUNTRY, 14, 200, "max"),
    "train_Country_Region_window_count_20": (PROVINCE, 14, 100, "same"),
    "train_Country_Region_window_count_21": (PROVINCE, 64, 100, "same"),
}
#: Over the newest rows of the country.
ROWS_AVERAGE, ROWS_RATIO, NEWEST = "train_Fatalities_window_avg_18", "train_Province_State_window_top1_ratio_19", 10
#: Stored rows that a window has at most: with that of the request 200.
_MOST = 199
_ORDERED = f"""SELECT file_row_number AS id, epoch_us("Date") AS moment, Fatalities AS deaths,
  {COUNTRY} AS country, {PROVINCE} AS province FROM read_parquet('{{file}}', file_row_number = true)
ORDER BY file_row_number"""


class Work(Protocol):
    """Answers a row."""

    async def answer(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The features of a row."""


def micros(text: str) -> int:
    """Microseconds since 1970 of ISO text."""
    return round(datetime.fromisoformat(text).timestamp() * 1_000_000)


def literal(value: str | float | None) -> str:
    """A value as SQL: DuckDB takes no parameters of EXECUTE."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else repr(value)


def scalars(row: Mapping[str, Any], now: int) -> dict[str, Any]:
    """The features of the row alone."""
    deaths, day = row["Fatalities"], datetime.fromtimestamp(now / 1_000_000, _ZONE).isoweekday() % 7 + 1
    names = row[PROVINCE], row[COUNTRY]
    return {
        "train_Fatalities_log_6": math.log(deaths) if deaths is not None and deaths > 0 else None,
        "train_combine_9": None if None in names else "".join(names),
        "train_Date_dayofweek_22": day,
        "train_Date_isweekday_23": 1 if 1 < day < 7 else 0,
    }


class DuckDbQ1:
    """Two tables in the order of their key and time, with an index for the key; one prepared statement a request."""

    def __init__(self, file: str) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute(f"CREATE TEMP TABLE rows AS {_ORDERED.format(file=file)}")
        for key in ("province", "country"):
            self._connection.execute(f"CREATE TABLE by_{key} AS SELECT * FROM rows ORDER BY {key}, moment, id")
            self._connection.execute(f"CREATE INDEX index_{key} ON by_{key} ({key})")
        self._connection.execute("DROP TABLE rows")
        self._connection.execute(f"PREPARE features AS {_statement()}")

    async def answer(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The features of a row."""
        now = micros(row["Date"])
        given = [row[PROVINCE], row[COUNTRY], now, row["Fatalities"]]
        result = self._connection.execute(f"EXECUTE features({', '.join(map(literal, given))})")
        names = [item[0] for item in result.description or []]
        return dict(zip(names, result.fetchone() or (), strict=True)) | scalars(row, now)


def _statement() -> str:
    """Each source is read once; the windows are filters of its aggregates."""
    sources, lists = [], []
    for name, key, place in (("p", PROVINCE, 1), ("c", COUNTRY, 2)):
        column = "province" if key == PROVINCE else "country"
        sources.append(
            f"{name} AS MATERIALIZED (SELECT *, row_number() OVER (ORDER BY moment DESC, id DESC) AS n FROM ("
            f"(SELECT id, moment, deaths, country, province FROM by_{column} WHERE {column} = ${place}::VARCHAR "
            f"AND moment <= $3::BIGINT ORDER BY moment DESC, id DESC LIMIT {_MOST}) UNION ALL "
            "SELECT 1000000000000, $3::BIGINT, $4::DOUBLE, $2::VARCHAR, $1::VARCHAR))"
        )
        items = []
        for feature, (of, days, most, aggregate) in WINDOWS.items():
            if of == key:
                where = f"n <= {most} AND moment > $3::BIGINT - {days * _DAY}"
                if aggregate == "same":
                    items.append(f"count(*) FILTER ({where} AND country = $2::VARCHAR) AS {feature}")
                else:
                    items.append(f"{aggregate}(deaths) FILTER ({where}) AS {feature}")
        if name == "c":
            items.append(f"avg(deaths) FILTER (n <= {NEWEST}) AS {ROWS_AVERAGE}")
        lists.append(f"(SELECT {', '.join(items)} FROM {name})")
    counts = f"SELECT count(*) AS m FROM c WHERE n <= {NEWEST} AND province IS NOT NULL GROUP BY province"
    lists.append(f"(SELECT coalesce(max(m) / sum(m)::DOUBLE, 0) AS {ROWS_RATIO} FROM ({counts}))")
    return f"WITH {', '.join(sources)} SELECT * FROM {', '.join(lists)}"


class RedisQ1:
    """A sorted set of rows for each key, by time; one round trip a request, and Python for the aggregates.

    A member is the row's number in ten digits, which orders rows of one time, and its values as JSON.
    """

    def __init__(self, file: str, place: str) -> None:
        import redis.asyncio

        rows = duckdb.connect().execute(_ORDERED.format(file=file))
        with redis.Redis(unix_socket_path=place) as client:
            for part in _parts(rows):
                sets: dict[str, dict[str, int]] = {}
                for number, moment, deaths, country, province in part:
                    member = f"{number:010}{json.dumps([moment, deaths, country, province])}"
                    for name in (f"p:{province}", f"c:{country}"):
                        sets.setdefault(name, {})[member] = moment
                pipe = client.pipeline(transaction=False)
                for name, members in sets.items():
                    pipe.zadd(name, members)
                pipe.execute()
        self._client = redis.asyncio.Redis(unix_socket_path=place)

    async def answer(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The features of a row."""
        now = micros(row["Date"])
        pipe = self._client.pipeline(transaction=False)
        for name in (f"p:{row[PROVINCE]}", f"c:{row[COUNTRY]}"):
            pipe.zrange(name, now, "-inf", byscore=True, desc=True, offset=0, num=_MOST)
        request = [now, row["Fatalities"], row[COUNTRY], row[PROVINCE]]
        stored = [[request, *_rows(members)] for members in await pipe.execute()]
        return _features(*stored) | scalars(row, now)


def _parts(rows: Any) -> Iterator[list[Any]]:
    while part := rows.fetchmany(50_000):
        yield part


def _rows(members: Sequence[bytes]) -> list[Any]:
    """The newest first, all of them read as one JSON text."""
    found: list[Any] = json.loads(b"[" + b",".join([member[10:] for member in members]) + b"]")
    return found


def _features(province: Sequence[Any], country: Sequence[Any]) -> dict[str, Any]:
    """Of the rows of the province and of the country, that of the request first and then the newest."""
    now, _, this_country, _ = province[0]
    deaths, ages = {}, {}
    for key, rows in ((PROVINCE, province), (COUNTRY, country)):
        deaths[key] = [row[1] for row in rows]
        ages[key] = [now - row[0] for row in rows]
    features: dict[str, Any] = {}
    for name, (key, days, most, aggregate) in WINDOWS.items():
        size = min(most, bisect_left(ages[key], days * _DAY))
        if aggregate == "same":
            features[name] = sum(row[2] == this_country for row in province[:size])
        else:
            features[name] = _aggregate(aggregate, deaths[key][:size])
    features[ROWS_AVERAGE] = _aggregate("avg", deaths[COUNTRY][:NEWEST])
    counts = Counter(row[3] for row in country[:NEWEST] if row[3] is not None)
    features[ROWS_RATIO] = max(counts.values()) / sum(counts.values()) if counts else 0.0
    return features


def _aggregate(name: str, values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    if name == "avg":
        return sum(known) / len(known)
    return min(known) if name == "min" else max(known) if name == "max" else sum(known)


_USER = "user_id, age, city, spent, orders"


class DuckDbLookup:
    """A table with a primary key, and a prepared statement."""

    def __init__(self, file: str) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute(
            "CREATE TABLE users (user_id BIGINT PRIMARY KEY, age INT, city VARCHAR, spent DOUBLE, orders BIGINT)"
        )
        self._connection.execute(f"INSERT INTO users SELECT {_USER} FROM read_parquet('{file}')")
        self._connection.execute(f"PREPARE look_up AS SELECT {_USER} FROM users WHERE user_id = $1::BIGINT")

    async def answer(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The user's row."""
        found = self._connection.execute(f"EXECUTE look_up({literal(row['user_id'])})").fetchone()
        return dict(zip(_USER.split(", "), found or (), strict=True))


class RedisLookup:
    """A JSON text for each user."""

    def __init__(self, file: str, place: str) -> None:
        import redis.asyncio

        names = _USER.split(", ")
        rows = duckdb.connect().execute(f"SELECT {_USER} FROM read_parquet('{file}')")
        with redis.Redis(unix_socket_path=place) as client:
            for part in _parts(rows):
                client.mset({f"user:{row[0]}": json.dumps(dict(zip(names, row, strict=True))) for row in part})
        self._client = redis.asyncio.Redis(unix_socket_path=place)

    async def answer(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The user's row."""
        text = await self._client.get(f"user:{row['user_id']}")
        found: dict[str, Any] = json.loads(text or "{}")
        return found


WORKS: Mapping[tuple[str, str], Any] = {
    ("duckdb", "q1"): DuckDbQ1,
    ("duckdb", "lookup"): DuckDbLookup,
    ("redis", "q1"): RedisQ1,
    ("redis", "lookup"): RedisLookup,
}


def application(work: Work) -> Starlette:
    """The web service."""

    async def features(request: Request) -> Response:
        row = json.loads(await request.body())["input"]
        content = json.dumps({"output": await work.answer(row)}, separators=(",", ":"))
        return Response(content, media_type="application/json")

    async def is_ready(request: Request) -> Response:
        return Response("{}", media_type="application/json")

    return Starlette(routes=[Route("/features", features, methods=["POST"]), Route("/readyz", is_ready)])


def main() -> None:
    """Serve until a signal comes."""
    kind, name, *places = sys.argv[1:]
    work: Work = WORKS[kind, name](*places)
    config = uvicorn.Config(application(work), log_config=None, access_log=False, timeout_keep_alive=300)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/", flush=True)
        asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    main()
