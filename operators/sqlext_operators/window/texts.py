"""Values as text in the forms of OpenMLDB's `format_string` (hybridse/src/udf/udf.cc); strings as flat bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.columns.flat import fixed_width
from sqlext_operators.columns.times import time_texts
from sqlext_operators.errors import TaskError

#: The names of zones that Java has besides those of the time zone database (java.time.ZoneId.SHORT_IDS).
_SHORT_ZONES = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
    "Z": "UTC", "UT": "UTC",
}  # fmt: skip
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?")


@dataclass(frozen=True)
class Texts:
    """k texts end to end: text i is data[offsets[i]:offsets[i + 1]]; offsets int64[k + 1], data uint8[offsets[k]]."""

    offsets: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, strings: pa.Array) -> Texts:
        """The texts of a string or binary array without NULLs."""
        wide = strings.cast(pa.large_binary() if _is_binary(strings.type) else pa.large_string())
        _, bounds, data = wide.buffers()
        if len(wide) == 0 or bounds is None:
            return cls(np.zeros(1, np.int64), np.zeros(0, np.uint8))
        offsets = np.frombuffer(bounds, np.int64, len(wide) + 1 + wide.offset)[wide.offset :]
        first, last = int(offsets[0]), int(offsets[-1])
        # a copy, because Arrow's buffers are read-only: another type (and another compilation) for numba
        taken = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8, last)[first:].copy()
        return cls(offsets - first, taken)

    @property
    def longest(self) -> int:
        """Bytes of the longest text."""
        return int(np.diff(self.offsets).max(initial=0))


def value_texts(values: pa.Array, time_zone: str) -> pa.Array:
    """string[n], the text of each value; NULL stays NULL.

    Integers plain; float and double with six decimals (C's ``%f``: ``1.500000``, ``nan``, ``-inf``); decimals with
    all digits of their scale; dates ``2020-05-29``; timestamps ``2020-05-29 15:56:29`` in `time_zone` (any name that
    Spark takes; without a zone as they are), fractions of a second cut off; booleans ``true`` and ``false``; strings
    as they are. Raises ValueError for an unknown zone.
    """
    dtype = values.type
    if pa.types.is_floating(dtype):
        return _floats(values)
    if pa.types.is_decimal(dtype):
        return pa.array([None if v is None else format(v, "f") for v in values.to_pylist()], pa.string())
    if pa.types.is_timestamp(dtype):
        return time_texts(_seconds(values, time_zone), " ").cast(pa.string())
    if pa.types.is_date(dtype):
        return time_texts(values).cast(pa.string())
    return values if dtype == pa.string() else values.cast(pa.string())


def _floats(values: pa.Array) -> pa.Array:
    numbers: list[Any] = values.to_pylist()
    return pa.array([None if v is None else f"{v:f}" for v in numbers], pa.string())


def _seconds(values: pa.Array, time_zone: str) -> pa.Array:
    """timestamp[s] without a zone: the wall clock's time, fractions cut off."""
    mask = ~values.is_valid().to_numpy(False)
    seconds = fixed_width(values.cast(pa.timestamp("us", values.type.tz))).astype(np.int64) // 1_000_000
    shift = 0
    if values.type.tz is not None:
        offset = _OFFSET.fullmatch(time_zone)
        if offset is None:
            return _local(pa.array(seconds, pa.int64(), mask=mask), _SHORT_ZONES.get(time_zone, time_zone))
        sign, hours, minutes, rest = offset.groups(default="0")
        shift = int(sign + "1") * ((int(hours) * 60 + int(minutes)) * 60 + int(rest))
    return pa.array(seconds + shift, pa.int64(), mask=mask).cast(pa.timestamp("s"))


def _local(seconds: pa.Array, zone: str) -> pa.Array:
    try:
        return pc.local_timestamp(seconds.cast(pa.timestamp("s", tz=zone)))
    except pa.ArrowInvalid as error:
        raise TaskError(
            f"the Python workers do not know the time zone {zone!r}: {error}",
            "set spark.sql.session.timeZone to a region such as Europe/Berlin, or to an offset such as +01:00",
            condition="time-zone",
        ) from None


def _is_binary(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype))
