"""Wall clocks of time zones: offsets from UTC at instants, and instants of local times as java.time resolves them.

A zone is "UTC", an offset ("+08:00") or a name of the time zone database. Times are microseconds since 1970. Offsets
are looked up once for each quarter of an hour in which values are, and for each value where they change within it.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from importlib import resources
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

import numpy as np

from sqlext_operators.arrays import Bools
from sqlext_operators.errors import TaskError
from sqlext_operators.expressions.values import Whole, inexact

SECOND = 1_000_000
DAY = 86_400 * SECOND
_BUCKET = 900
_EPOCH = dt.datetime(1970, 1, 1)
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")
#: The seconds whose years are 1 to 9999 in every zone: Python's calendar.
_FIRST, _LAST = -62_135_596_800 + 86_400, 253_402_300_800 - 86_400
#: In it so far that the wall clock's times, and a day more or less, are too.
_SURE_FIRST, _SURE_LAST = _FIRST + 2 * 86_400, _LAST - 2 * 86_400


@lru_cache(256)
def fixed_offset(zone: str) -> int | None:
    """Seconds of a zone that is an offset; None for a name."""
    if zone in ("UTC", "Z"):
        return 0
    match = _OFFSET.fullmatch(zone)
    if match is None:
        return None
    return (3600 * int(match[2]) + 60 * int(match[3])) * (1 if match[1] == "+" else -1)


def unknown(micros: Whole, zone: str) -> Bools:
    """bool[n], the times at which a named zone's offset is not certain to be Java's: outside of the years 1 to 9999,
    and before 1970 in zones that are links since then."""
    if fixed_offset(zone) is not None:
        return np.zeros(len(micros), np.bool_)
    seconds = micros // SECOND
    outside: Bools = (seconds < (_SURE_FIRST if zone in _apart() else 0)) | (seconds >= _SURE_LAST)
    return outside


@lru_cache(1)
def _apart() -> frozenset[str]:
    """The zones that differ since 1970, whose times before are the same in every edition of the database. Others were
    merged with a neighbour in some editions: of 565 zones in Java 17 (tzdata 2025) and Python's (2025b), 96 differ
    before 1970, none of them among these, and none afterwards but one transition of Tehran."""
    for folder in TZPATH:
        path = Path(folder) / "zone1970.tab"
        if path.exists():
            return _names(path.read_text(encoding="utf-8"))
    try:
        return _names(resources.files("tzdata.zoneinfo").joinpath("zone1970.tab").read_text(encoding="utf-8"))
    except (ModuleNotFoundError, FileNotFoundError):
        return frozenset()


def _names(text: str) -> frozenset[str]:
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return frozenset(row[2].strip() for row in rows if len(row) > 2)


def to_local(micros: Whole, zone: str) -> Whole:
    """The wall clock's times of instants; anything where they are `unknown`."""
    return micros + SECOND * _offsets(micros, zone, "utc")


def to_instants(local: Whole, zone: str) -> Whole:
    """The instants of wall clock's times: the earlier one of two; a time that is left out is moved by the gap."""
    instants: Whole = local - SECOND * _offsets(local, zone, "early")
    return instants


def instant(local: int, zone: str) -> int:
    """`to_instants` of one time. Raises a TaskError where it is not certain."""
    walls = np.array([local], np.int64)
    if unknown(walls, zone)[0]:
        raise uncertain(zone)
    return int(to_instants(walls, zone)[0])


def uncertain(zone: str) -> TaskError:
    """The error for a time whose offset is not certain."""
    return inexact(f"a time so long ago or so late in the zone {zone}")


def offsets(micros: Whole, zone: str) -> Whole:
    """The offsets at instants, in seconds."""
    return _offsets(micros, zone, "utc")


def plus_days(micros: Whole, days: int, zone: str) -> Whole:
    """Instants so many days of the calendar later: the same wall clock's time, of two the one with the same offset."""
    before = _offsets(micros, zone, "utc")
    return resolved(micros + SECOND * before + days * DAY, before, zone)


def resolved(local: Whole, before: Whole, zone: str) -> Whole:
    """`to_instants` of times that had the offsets `before`, in seconds: of two instants the one with that offset."""
    early, late = _offsets(local, zone, "early"), _offsets(local, zone, "late")
    repeated = (early > late) & (late == before)
    instants: Whole = local - SECOND * np.where(repeated, late, early)
    return instants


def _offsets(micros: Whole, zone: str, kind: str) -> Whole:
    """int64[n] seconds: `kind` as of `_offset`."""
    fixed = fixed_offset(zone)
    if fixed is not None:
        return np.full(len(micros), fixed, np.int64)
    if len(micros) == 1:  # of a request; what follows takes ten times as long
        second = min(max(int(micros[0]) // SECOND, _FIRST), _LAST - 1)
        in_bucket = _bucket_offset(zone, second // _BUCKET, kind)
        return np.array([_offset(zone, second, kind) if in_bucket is None else in_bucket], np.int64)
    inside = np.clip(micros // SECOND, _FIRST, _LAST - 1)
    buckets, places = np.unique(inside // _BUCKET, return_inverse=True)
    known = [_bucket_offset(zone, int(bucket), kind) for bucket in buckets]
    if None not in known:
        offsets: Whole = np.array(known, np.int64)[places]
        return offsets
    return np.array([_offset(zone, int(second), kind) for second in inside], np.int64)


@lru_cache(1 << 16)
def _bucket_offset(zone: str, bucket: int, kind: str) -> int | None:
    """The offset of a whole bucket; None where it changes."""
    first = _offset(zone, bucket * _BUCKET, kind)
    return first if first == _offset(zone, (bucket + 1) * _BUCKET - 1, kind) else None


def _offset(zone: str, second: int, kind: str) -> int:
    """The offset at a second, of UTC ("utc") or of the wall clock ("early", "late": which one of two)."""
    time = _EPOCH + dt.timedelta(seconds=second)
    info = ZoneInfo(zone)
    if kind == "utc":
        shifted = time.replace(tzinfo=dt.UTC).astimezone(info).utcoffset()
    else:
        shifted = time.replace(tzinfo=info, fold=int(kind == "late")).utcoffset()
    assert shifted is not None
    return shifted.days * 86_400 + shifted.seconds
