"""Functions of dates and times. A time zone is an option: that of the session, for times that have none "UTC"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.flat import valid_mask
from sqlext_operators.expressions import time_texts, zones
from sqlext_operators.expressions.nodes import TaskCall
from sqlext_operators.expressions.values import (
    Kernel,
    Values,
    Whole,
    both_valid,
    by_row,
    like,
    malformed,
    overflow,
    whole,
)
from sqlext_operators.expressions.zones import DAY, SECOND

Days = npt.NDArray[np.datetime64]


def outside(values: Values, source: pa.Array, micros: Whole, zone: str) -> Values:
    """The values with an error for times whose offset in the zone is not certain."""
    rows = zones.unknown(micros, zone)
    valid = valid_mask(source)
    return values.failing(rows if valid is None else rows & valid, zones.uncertain(zone))


def local(array: pa.Array, zone: str) -> Whole:
    """The wall clock's microseconds of timestamps."""
    return zones.to_local(whole(array), zone)


def _months(days: Days) -> Whole:
    return days.astype("datetime64[M]").astype(np.int64)


def _week_of_year(days: Days) -> Whole:
    thursday = days.astype(np.int64) + 3 - _weekday(days)
    first = thursday.astype("datetime64[D]").astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
    return (thursday - first) // 7 + 1


def _weekday(days: Days) -> Whole:
    """0 for Monday."""
    return (days.astype(np.int64) + 3) % 7


#: The fields of a day, from days since 1970 as datetime64[D].
_FIELDS: dict[str, Callable[[Days], Whole]] = {
    "year": lambda days: days.astype("datetime64[Y]").astype(np.int64) + 1970,
    "quarter": lambda days: _months(days) % 12 // 3 + 1,
    "month": lambda days: _months(days) % 12 + 1,
    "day": lambda days: (days - days.astype("datetime64[M]")).astype(np.int64) + 1,
    "dayofyear": lambda days: (days - days.astype("datetime64[Y]")).astype(np.int64) + 1,
    "dayofweek": lambda days: (_weekday(days) + 1) % 7 + 1,
    "weekday": _weekday,
    "weekofyear": _week_of_year,
}


def _days_of(array: pa.Array) -> Days:
    return whole(array).astype("datetime64[D]")


def _date_field(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """A field of a date, by the option."""
    numbers = _FIELDS[call.options[0]](_days_of(arguments[0]))
    return Values(like(arguments[0], numbers.astype(np.int32), call.kind))


#: The fields of a wall clock, from microseconds.
_CLOCK: dict[str, Callable[[Whole], Whole]] = {
    "hour": lambda micros: micros // (3600 * SECOND) % 24,
    "minute": lambda micros: micros // (60 * SECOND) % 60,
    "second": lambda micros: micros // SECOND % 60,
}


def _time_field(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """A field of a timestamp; options: which one, the zone."""
    field, zone = call.options
    numbers = _CLOCK[field](local(arguments[0], zone))
    return outside(
        Values(like(arguments[0], numbers.astype(np.int32), call.kind)), arguments[0], whole(arguments[0]), zone
    )


def _plus_days(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """A date so many days later, or earlier; the option is 1 or -1. Wraps around as Java's int does."""
    days = whole(arguments[0]) + call.options[0] * whole(arguments[1])
    return _by_both(arguments, call, days.astype(np.int32))


def _difference(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """The days from the second date to the first one."""
    return _by_both(arguments, call, (whole(arguments[0]) - whole(arguments[1])).astype(np.int32))


def _by_both(arguments: Sequence[pa.Array], call: TaskCall, numbers: npt.NDArray[Any]) -> Values:
    valid = both_valid(arguments)
    plain = pa.array(numbers, mask=None if valid is None else ~valid)
    return Values(plain.view(call.kind) if plain.type != call.kind else plain)


def _plus_months(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """A date so many months later: its last day where the month is shorter."""
    days = _days_of(arguments[0])
    months = (_months(days) + whole(arguments[1])).astype("datetime64[M]")
    first = months.astype("datetime64[D]")
    length = ((months + 1).astype("datetime64[D]") - first).astype(np.int64)
    result = first.astype(np.int64) + np.minimum(_FIELDS["day"](days), length) - 1
    return _by_both(arguments, call, result.astype(np.int32))


def _last_day(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    last = (_days_of(arguments[0]).astype("datetime64[M]") + 1).astype("datetime64[D]").astype(np.int64) - 1
    return Values(like(arguments[0], last.astype(np.int32), call.kind))


#: The first days of what a day is in.
_STARTS: dict[str, Callable[[Days], Days]] = {
    "year": lambda days: days.astype("datetime64[Y]").astype("datetime64[D]"),
    "quarter": lambda days: (_months(days) // 3 * 3).astype("datetime64[M]").astype("datetime64[D]"),
    "month": lambda days: days.astype("datetime64[M]").astype("datetime64[D]"),
    "week": lambda days: days - _weekday(days),
    "day": lambda days: days,
}
_PARTS = {"hour": 3600 * SECOND, "minute": 60 * SECOND, "second": SECOND, "millisecond": 1000, "microsecond": 1}


def _date_start(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``trunc(date, unit)``; the unit is the option."""
    starts = _STARTS[call.options[0]](_days_of(arguments[0])).astype(np.int64)
    return Values(like(arguments[0], starts.astype(np.int32), call.kind))


def _time_start(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``date_trunc(unit, timestamp)``; options: the unit, the zone."""
    unit, zone = call.options
    micros = whole(arguments[0])
    walls = zones.to_local(micros, zone)
    if unit in _STARTS:
        days = _STARTS[unit]((walls // DAY).astype("datetime64[D]")).astype(np.int64)
        starts = zones.to_instants(days * DAY, zone)
    else:
        starts = zones.resolved(walls // _PARTS[unit] * _PARTS[unit], zones.offsets(micros, zone), zone)
    return outside(Values(like(arguments[0], starts, call.kind)), arguments[0], micros, zone)


def _plus_interval(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """A timestamp and an INTERVAL; options: its microseconds, the zone. Whole days are the calendar's."""
    micros, zone = call.options
    days, rest = divmod(abs(micros), DAY)
    sign = -1 if micros < 0 else 1
    given = whole(arguments[0])
    moved = (zones.plus_days(given, sign * days, zone) if days else given) + sign * rest
    values = Values(like(arguments[0], moved, call.kind))
    return outside(outside(values, arguments[0], given, zone), arguments[0], given + micros, zone) if days else values


def _plus_millis(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """A timestamp and so many milliseconds; options: 1 or -1, the zone. As `_plus_interval`."""
    sign, zone = call.options
    given = whole(arguments[0])
    fixed = zones.fixed_offset(zone) is not None

    def moved(micros: int, millis: int) -> Any:
        days, rest = divmod(abs(millis) * 1000, DAY)
        direction = sign if millis >= 0 else -sign
        if fixed or not days:
            return micros + direction * (days * DAY + rest)
        later = zones.plus_days(np.array([micros], np.int64), direction * days, zone)
        return int(later[0]) + direction * rest

    values = by_row(arguments, call, moved)
    return values if fixed else outside(values, values.array, given, zone)


def _units_since(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """Whole units since 1970, rounded down; the option is the unit in microseconds."""
    return Values(like(arguments[0], whole(arguments[0]) // call.options[0], call.kind))


def _units_cut(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """Whole units since 1970, or before it, towards 0; option as of `_units_since`."""
    micros = whole(arguments[0])
    units = np.where(micros < 0, -(-micros // call.options[0]), micros // call.options[0])
    return Values(like(arguments[0], units, call.kind))


def _from_units(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """The timestamp of a number of units since 1970; the option is the unit in microseconds."""
    unit = call.options[0]
    numbers = whole(arguments[0])
    with np.errstate(over="ignore"):
        micros = numbers * unit
    wrong = (numbers > (2**63 - 1) // unit) | (numbers < -(2**63 // unit))
    valid = valid_mask(arguments[0])
    return Values(like(arguments[0], micros, call.kind)).failing(
        wrong if valid is None else wrong & valid, overflow("a timestamp")
    )


def _formatted(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``date_format``; options: the pattern (as of `time_texts`), the zone."""
    pattern, zone = call.options
    micros = whole(arguments[0])
    walls = like(arguments[0], zones.to_local(micros, zone), pa.int64())
    values = by_row([walls], call, lambda wall: time_texts.written(wall, pattern))
    return outside(values, arguments[0], micros, zone)


def _parsed(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """``to_timestamp(text, pattern)``; options: the pattern, the zone, whether another text is an error."""
    pattern, zone, checked = call.options

    def parsed(text: str) -> int | None:
        wall = time_texts.read_by(text, pattern)
        if wall is None:
            if checked:
                raise malformed(text, f"time of the form {''.join(run.lstrip(chr(39)) for run in pattern)}")
            return None
        return zones.instant(wall, zone)

    return by_row(arguments, call, parsed)


def _days_since(arguments: Sequence[pa.Array], call: TaskCall) -> Values:
    """Days since 1970."""
    return Values(arguments[0].view(pa.int32()))


KERNELS: dict[str, Kernel] = {
    "days since": _days_since,
    "date field": _date_field,
    "time field": _time_field,
    "plus days": _plus_days,
    "date difference": _difference,
    "plus months": _plus_months,
    "last day": _last_day,
    "date start": _date_start,
    "time start": _time_start,
    "plus interval": _plus_interval,
    "plus millis": _plus_millis,
    "units since": _units_since,
    "units cut": _units_cut,
    "from units": _from_units,
    "format time": _formatted,
    "parse time": _parsed,
}
