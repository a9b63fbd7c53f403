"""Dates and times read from texts and written as texts, as Spark's casts and its patterns do.

A pattern comes as its letters in runs: ("yyyy", "-", "MM"): a run of one letter is a field, anything else stands for
itself behind a quote ("'T"). Years are 1 to 9999; what is beyond is left to Spark.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from zoneinfo import available_timezones

from sqlext_operators.expressions.values import inexact

Pattern = tuple[str, ...]

_EPOCH = dt.datetime(1970, 1, 1)
#: What Spark's casts leave out at both ends: blanks and control characters.
_TRIMMED = "".join(map(chr, (*range(33), *range(127, 128))))
_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL | re.ASCII)
_TIME = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?(\D.*)?)?)?)?)?)?",
    re.DOTALL | re.ASCII,
)
_CLOCK = re.compile(r"T?\d{1,2}:.*|T\d.*", re.DOTALL | re.ASCII)
_OFFSET = re.compile(r"([+-])(\d{1,2})(?::(\d{1,2}))?", re.ASCII)


def trimmed(text: str) -> str:
    """The text as Spark's casts read it."""
    return text.strip(_TRIMMED)


def read_date(text: str) -> int | None:
    """Days since 1970; None for a text that is no date. Raises a TaskError for one that only Spark reads."""
    match = _DATE.fullmatch(trimmed(text))
    return None if match is None else _days(match[1], match[2], match[3] or "1", match[4] or "1")


def _days(sign: str, year: str, month: str, day: str) -> int | None:
    number = int(sign + year)
    if not 1 <= number <= 9999:
        raise inexact(f"a date of the year {sign}{year}")
    try:
        return dt.date(number, int(month), int(day)).toordinal() - _EPOCH.toordinal()
    except ValueError:
        return None


def read_time(text: str) -> tuple[int, str | None] | None:
    """(microseconds since 1970 of the wall clock, the zone in the text); None for a text that is no time. Raises a
    TaskError for one that only Spark reads."""
    text = trimmed(text)
    match = _TIME.fullmatch(text)
    if match is None:
        if _CLOCK.fullmatch(text) is not None:
            raise inexact(f"a time without a date ({text!r})")
        return None
    sign, year, month, day, hour, minute, second, fraction, zone = match.groups()
    clock = (int(hour or 0), int(minute or 0), int(second or 0))
    if clock[0] > 23 or clock[1] > 59 or clock[2] > 59:
        return None
    named = None if zone is None else _zone(zone.strip(_BLANKS))
    if zone is not None and named is None:
        return None
    days = _days(sign, year, month or "1", day or "1")
    if days is None:
        return None
    micros = int((fraction or "")[:6].ljust(6, "0"))
    return ((days * 24 + clock[0]) * 60 + clock[1]) * 60_000_000 + clock[2] * 1_000_000 + micros, named


#: What Java's trim() takes away.
_BLANKS = "".join(map(chr, range(33)))


def _zone(text: str) -> str | None:
    """The zone at the end of a time's text; None for what is none."""
    if text in ("Z", "UTC", "GMT"):
        return "UTC"
    match = _OFFSET.fullmatch(text)
    if match is not None:
        hours, minutes = int(match[2]), int(match[3] or 0)
        if hours > 18 or minutes > 59 or (hours == 18 and minutes):
            return None
        return f"{match[1]}{hours:02d}:{minutes:02d}"
    if "/" in text and text in available_timezones():
        return text
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9~/._+-]+|[+-][\d:]+", text, re.ASCII) is None:
        return None
    raise inexact(f"the time zone {text!r} in a text")


def date_text(days: int) -> str:
    """``2024-01-02``. Raises a TaskError beyond the years 1 to 9999."""
    return _moment(days * 86_400_000_000).date().isoformat()


def time_text(micros: int) -> str:
    """``2024-01-02 03:04:05.5`` of a wall clock's time: without zeros at the end of its fraction."""
    moment = _moment(micros)
    text = moment.replace(microsecond=0).isoformat(" ")
    return f"{text}.{moment.microsecond:06d}".rstrip("0") if moment.microsecond else text


def _moment(micros: int) -> dt.datetime:
    try:
        return _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        raise inexact("a time beyond the years 1 to 9999") from None


_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905

#: By letter: the number, or the names of one.
_NUMBERS: dict[str, Callable[[dt.datetime], int]] = {
    "y": lambda time: time.year,
    "M": lambda time: time.month,
    "d": lambda time: time.day,
    "D": lambda time: time.timetuple().tm_yday,
    "H": lambda time: time.hour,
    "h": lambda time: time.hour % 12 or 12,
    "m": lambda time: time.minute,
    "s": lambda time: time.second,
}
_NAMES: dict[str, Callable[[dt.datetime], str]] = {
    "M": lambda time: _MONTHS[time.month - 1],
    "E": lambda time: _DAYS[time.weekday()],
}


def written(micros: int, pattern: Pattern) -> str:
    """A wall clock's time by a pattern."""
    moment = _moment(micros)
    return "".join(_field(moment, run) for run in pattern)


def _field(moment: dt.datetime, run: str) -> str:
    letter, count = run[0], len(run)
    if letter == "'":
        return run[1:]
    if letter == "a":
        return "AM" if moment.hour < 12 else "PM"
    if letter == "S":
        return f"{moment.microsecond:06d}000"[:count]
    if letter in _NAMES and (letter == "E" or count > 2):
        name = _NAMES[letter](moment)
        return name if count == 4 else name[:3]
    number = _NUMBERS[letter](moment)
    return f"{number % 100:02d}" if run == "yy" else f"{number:0{count}d}"


def read_by(text: str, pattern: Pattern) -> int | None:
    """Microseconds since 1970 of the wall clock's time that a pattern reads; None for a text that it does not fit."""
    regex, fields = _reader(pattern)
    match = regex.fullmatch(text)
    if match is None:
        return None
    values = dict(zip(fields, match.groups(), strict=True))
    year = values.get("y", "1970")
    if year[0] in "+-" or int(year) == 0:
        raise inexact(f"a date of the year {year}")
    try:
        moment = dt.datetime(
            int(year),
            int(values.get("M", 1)),
            int(values.get("d", 1)),
            int(values.get("H", 0)),
            int(values.get("m", 0)),
            int(values.get("s", 0)),
            int(values.get("S", "0")[:6].ljust(6, "0")),
        )
    except (ValueError, OverflowError):
        return None
    return (moment - _EPOCH) // dt.timedelta(microseconds=1)


@lru_cache(256)
def _reader(pattern: Pattern) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """A pattern as a regular expression with a group for each field."""
    parts: list[str] = []
    fields: list[str] = []
    for run in pattern:
        if run[0] == "'":
            parts.append(re.escape(run[1:]))
            continue
        fields.append(run[0])
        parts.append(_group(run))
    return re.compile("".join(parts), re.ASCII | re.IGNORECASE), tuple(fields)


def _group(run: str) -> str:
    if run == "yyyy":
        return r"(\d{4}|\+\d{5,19}|-\d{4,19})"
    return rf"(\d{{{len(run)}}})" if len(run) > 1 or run == "S" else r"(\d{1,19})"


def readable(pattern: Sequence[str]) -> bool:
    """Whether `read_by` reads texts by the pattern as Spark does."""
    fields = [run for run in pattern if run[0] != "'"]
    known = all(
        run in ("yyyy", "MM", "dd", "HH", "mm", "ss", "M", "d", "H", "m", "s") or run[0] == "S" for run in fields
    )
    letters = [run[0] for run in fields]
    loose = [
        one
        for one, other in zip(pattern, [*pattern[1:], "'"], strict=True)
        if one in ("M", "d", "H", "m", "s") and (other[0] != "'" or other[1:2].isdigit())
    ]
    return known and len(set(letters)) == len(letters) and not loose
