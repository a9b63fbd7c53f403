"""Columns of every type for the comparison of scalar expressions with Spark.

A column has its type's edges and values around them. Two columns of each type hold them in another order.
"""

from __future__ import annotations

import datetime as dt
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

NAN, INF = float("nan"), float("inf")
_DAY = 86_400_000_000
_EPOCH = dt.datetime(1970, 1, 1)

TYPES: dict[str, tuple[str, pa.DataType]] = {
    "o": ("boolean", pa.bool_()),
    "t": ("tinyint", pa.int8()),
    "h": ("smallint", pa.int16()),
    "i": ("int", pa.int32()),
    "l": ("bigint", pa.int64()),
    "f": ("float", pa.float32()),
    "d": ("double", pa.float64()),
    "m": ("decimal(7,2)", pa.decimal128(7, 2)),
    "n": ("decimal(38,10)", pa.decimal128(38, 10)),
    "k": ("decimal(20,0)", pa.decimal128(20, 0)),
    "s": ("string", pa.string()),
    "u": ("string", pa.string()),  # text of many alphabets
    "x": ("string", pa.string()),  # numbers as text
    "q": ("string", pa.string()),  # times as text
    "y": ("date", pa.date32()),
    "z": ("timestamp", pa.timestamp("us", "UTC")),
    "w": ("timestamp_ntz", pa.timestamp("us")),
    "e": ("bigint", pa.int64()),  # times as numbers
    "c": ("int", pa.int32()),  # small numbers
    "b": ("double", pa.float64()),  # numbers near 1
}


def _bits(rng: random.Random, bits: int) -> int:
    size = rng.choice([2, 8, bits // 2, bits - 1])
    return rng.randint(-(1 << size), (1 << size) - 1) if size < bits else 0


def _double(rng: random.Random) -> float:
    match rng.randint(0, 5):
        case 0:
            value: float = struct.unpack("<d", rng.randbytes(8))[0]
            return value
        case 1:
            return rng.uniform(-1e4, 1e4)
        case 2:
            return round(rng.uniform(-1000, 1000), rng.randint(0, 4))
        case 3:
            return float(rng.randint(-(10**6), 10**6)) / 8
        case 4:
            return rng.choice([-1, 1]) * 10 ** rng.uniform(-20, 20)
        case _:
            return rng.gauss(0, 1)


def _decimal(rng: random.Random, precision: int, scale: int) -> Decimal:
    digits = rng.randint(1, precision)
    return Decimal(rng.choice([-1, 1]) * rng.randint(0, 10**digits - 1)).scaleb(-scale)


def _word(rng: random.Random) -> str:
    letters = rng.choice(["ab", "abcXYZ %_.-", "aA zZ09,|/\\", "éßİıſǆΣσςﬁ日🙂", "a\n\t \u00a0b"])
    return "".join(rng.choice(letters) for _ in range(rng.randint(0, 8)))


def _any_text(rng: random.Random) -> str:
    return "".join(
        chr(rng.choice([rng.randint(32, 0x24F), rng.randint(0x370, 0x58F), rng.randint(0x1E00, 0x2FEF)]))
        for _ in range(4)
    )


def _number_text(rng: random.Random) -> str:
    whole = str(_bits(rng, rng.choice([8, 16, 32, 64])))
    text = rng.choice(
        [
            whole,
            whole,
            f"{whole}.{rng.randint(0, 999)}",
            f"{rng.uniform(-100, 100):.{rng.randint(0, 5)}f}",
            f"{rng.uniform(-1, 1):e}",
            repr(_double(rng)),
            f"{rng.randint(0, 99)}{rng.choice('dDfFlLx')}",
            f".{rng.randint(0, 99)}",
            f"{rng.randint(0, 99)}.",
            _word(rng),
        ]
    )
    return rng.choice(["", "", "", " ", "\t", "+"]) + text + rng.choice(["", "", "", " ", "\n"])


def _time_text(rng: random.Random) -> str:
    moment = _EPOCH + dt.timedelta(microseconds=_micros(rng))
    date = rng.choice([moment.date().isoformat(), f"{moment.year}-{moment.month}-{moment.day}", f"{moment.year:04d}"])
    clock = rng.choice(
        [
            "",
            "",
            f"{moment:%H:%M:%S}",
            f"{moment:%H:%M:%S.%f}",
            f"{moment.hour}:{moment.minute}",
            "12",
            "25:00:00",
            "1:2:3.4",
        ]
    )
    zone = (
        rng.choice(["", "", "", "Z", " UTC", "+01:00", "-8", "+5:3", " Europe/Paris", " nowhere!", "+99:00"])
        if clock.count(":") == 2
        else ""
    )
    between = rng.choice([" ", "T", " ", "  "])
    text = date + between + clock + zone if clock else date
    return (
        rng.choice(["", "", " "])
        + rng.choice([text] * 8 + [_word(rng), f"{date}x", "2021-02-30", "2021-13-01"])
        + rng.choice(["", "", " "])
    )


_MOMENTS = [
    dt.datetime(*parts)
    for parts in (
        (1, 1, 3),
        (1582, 10, 4, 23),
        (1582, 10, 15),
        (1883, 11, 18, 12, 3, 58),
        (1893, 4, 1),
        (1899, 12, 31, 23, 59, 59),
        (1900, 1, 1),
        (1969, 12, 31, 23, 59, 59, 999999),
        (1970, 1, 1),
        (1991, 4, 14),
        (2000, 2, 29),
        (2015, 12, 31),
        (2016, 1, 3, 23, 59),
        (2024, 3, 10, 2, 30),
        (2024, 3, 10, 6, 59, 59),
        (2024, 3, 10, 7),
        (2024, 3, 31, 0, 59, 59, 999999),
        (2024, 3, 31, 1),
        (2024, 3, 31, 2, 30),
        (2024, 10, 27, 0, 30),
        (2024, 10, 27, 1, 30),
        (2024, 10, 27, 2, 30),
        (2024, 11, 3, 1, 30),
        (2024, 11, 3, 5, 30),
        (2024, 11, 3, 6, 30),
        (2038, 1, 19, 3, 14, 8),
        (2100, 2, 28),
        (2400, 7, 1),
        (9999, 12, 29, 23),
    )
]


def _micros(rng: random.Random) -> int:
    base = (rng.choice(_MOMENTS) - _EPOCH) // dt.timedelta(microseconds=1)
    spread = rng.choice([0, 1, 1_000_000, 3_600_000_000, _DAY, 400 * _DAY])
    last = (dt.datetime(9999, 12, 30) - _EPOCH) // dt.timedelta(microseconds=1)
    first = (dt.datetime(1, 1, 2) - _EPOCH) // dt.timedelta(microseconds=1)
    return min(max(base + rng.randint(-spread, spread), first), last)


def _edges(name: str) -> list[Any]:
    if name in "thil":
        bits = {"t": 8, "h": 16, "i": 32, "l": 64}[name]
        return [-(1 << (bits - 1)), 1 - (1 << (bits - 1)), (1 << (bits - 1)) - 1, -1, 0, 1, 2, 3, 10, 100]
    wide = [
        NAN,
        INF,
        -INF,
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        0.1,
        1e7,
        9999999.0,
        1e-3,
        0.125,
        1.005,
        2.0**31,
        2.0**63,
    ]
    return {
        "o": [True, False],
        "f": [*wide, 3.4e38, 1.2e-38, 1.4e-45, 16777217.0],
        "d": [*wide, -(2.0**63), 1e308, 5e-324, 1e23, 8.41e21, 2.0**53 + 1, 127.99, -128.99, 4.35, 1e39],
        "m": [
            Decimal(v)
            for v in ("0.00", "1.00", "-1.00", "0.01", "-0.01", "99999.99", "-99999.99", "0.50", "2.50", "127.99")
        ],
        "n": [
            Decimal(v)
            for v in ("0", "1", "-1", "0.0000000001", "9999999999999999999999999999.9999999999", "0.5", "3", "1e20")
        ],
        "k": [
            Decimal(v)
            for v in ("0", "1", "-1", "2", "3", "99999999999999999999", "9223372036854775807", "9223372036854775808")
        ],
        "s": [
            "",
            "a",
            "A",
            "ab",
            " a ",
            "%",
            "_",
            "a%b",
            "a_b",
            "\\",
            "🙂",
            "ß",
            "İ",
            "ΑΣ",
            "a,b,c",
            ",",
            "null",
            "true",
        ],
        "u": ["", "ß", "ΑΣ ΑΣ.", "ŉ", "ǰ", "ﬃ"],
        "x": [
            "",
            " ",
            "1",
            "-1",
            "+1",
            "1.5",
            "1.",
            ".5",
            ".",
            "-",
            "1e3",
            "1E400",
            "-1e-400",
            "NaN",
            "nan",
            "-NaN",
            "-nan",
            "inf",
            "+Infinity",
            "-INF",
            "Infinityd",
            "0x1p3",
            "1_0",
            "128",
            "-129",
            "2147483648",
            "9223372036854775807",
            "9223372036854775808",
            "1d",
            "1f",
            "1L",
            "true",
            "T",
            "yes",
            "no",
            "f",
            "0",
            "\u00a01",
            "１",
            "99999.995",
            "0.005",
            "1e-7",
            "123456789012345678901234567890",
            "1e37",
            "1e38",
            "1e100",
            "--1",
            "+-1",
            "1 2",
        ],
        "q": [
            "",
            "2024",
            "2024-2",
            "2024-02-29",
            "2023-02-29",
            "2024-02-29T",
            "2024-02-29 1",
            "2024-02-29 24:00:00",
            "2024-1-1 1:1:1",
            "2024-01-01 01:02:03.",
            "2024-01-01 01:02:03.1234567",
            "2024-01-01T01:02:03Z",
            "2024-01-01 01:02:03 +01:00",
            "2024-01-01 01:02:03+0100",
            "2024-01-01 01:02:03 foo/bar",
            "24-01-01",
            "+2024-01-01",
            "2024-01-01x",
            "2024/01/01",
            "20240101",
            "0000-01-01",
            "2024-03-31 02:30:00",
            "2024-10-27 02:30:00",
            "2024-03-10 02:30:00",
            "2024-11-03 01:30:00",
            "epoch",
            "now",
            "2024-01-01 01:02",
            "2024-01-01 01:02+01:00",
            "2024-12-31 23:59:59.999999 America/New_York",
        ],
        "e": [0, -1, 1, 1704067200, 1704067200000, -2208988800, 253402300799, 10**15, 2**62, -(2**62)],
        "c": [0, 1, -1, 2, -2, 3, 7, 30, -40, 400, 2147483647, -2147483648],
        "b": [
            1.0,
            2.0,
            10.0,
            100.0,
            1000.0,
            0.5,
            1e-10,
            -1.0,
            0.0,
            -0.0,
            INF,
            -INF,
            NAN,
            3.0,
            1024.0,
            709.78,
            -745.1,
            0.25,
            5e-324,
        ],
    }.get(name, [])


def _draw(name: str, rng: random.Random) -> Any:
    drawn: dict[str, Callable[[], Any]] = {
        "o": lambda: rng.random() < 0.5,
        "t": lambda: _bits(rng, 8),
        "h": lambda: _bits(rng, 16),
        "i": lambda: _bits(rng, 32),
        "l": lambda: _bits(rng, 64),
        "f": lambda: struct.unpack("<f", rng.randbytes(4))[0] if rng.random() < 0.2 else round(rng.gauss(0, 50), 3),
        "d": lambda: _double(rng),
        "m": lambda: _decimal(rng, 7, 2),
        "n": lambda: _decimal(rng, 38, 10),
        "k": lambda: _decimal(rng, 20, 0),
        "s": lambda: _word(rng),
        "u": lambda: _any_text(rng),
        "x": lambda: _number_text(rng),
        "q": lambda: _time_text(rng),
        "y": lambda: _micros(rng) // _DAY,
        "z": lambda: _micros(rng),
        "w": lambda: _micros(rng),
        "e": lambda: _micros(rng) // rng.choice([1, 1000, 1_000_000]),
        "c": lambda: rng.randint(-12, 12),
        "b": lambda: rng.choice(
            [rng.uniform(0, 3), abs(_double(rng)), rng.uniform(-20, 20), float(rng.randint(1, 50))]
        ),
    }
    return drawn[name]()


def table(rows: int, seed: int) -> pa.Table:
    """Columns `<name>1` and `<name>2` of each of `TYPES`: edges, NULLs, random values."""
    rng = random.Random(seed)
    columns = {}
    for name, (_, kind) in TYPES.items():
        for number in (1, 2):
            values = [None, *_edges(name)]
            values += [rng.choice(values) if rng.random() < 0.15 else _draw(name, rng) for _ in range(rows)]
            values = values[:rows]
            rng.shuffle(values)
            if pa.types.is_date(kind):
                array = pa.array(values, pa.int32()).view(kind)
            elif pa.types.is_temporal(kind):
                array = pa.array(values, pa.int64()).view(kind)
            else:
                array = pa.array(values, kind)
            columns[f"{name}{number}"] = array
    return pa.table(columns)
