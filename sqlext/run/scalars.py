"""Scalars of numpy and pandas as Python values, in the types that `pyspark.sql.functions.lit` gives them.

pandas need not be there: its scalars are told by their types' names.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: Suffixes of number literals by Spark's types; an int has none.
_SUFFIXES = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_INTEGERS = {1: "tinyint", 2: "smallint", 4: "int", 8: "bigint"}
#: Units of `numpy.datetime64` that are whole days.
_DATES = ("Y", "M", "W", "D")


def plain(value: Any) -> Any:
    """A scalar of numpy or pandas as a Python value, None for NaT and NA; a 1-dimensional array as the list of its
    scalars; anything else as it is.

    Raises TypeError for a time finer than a microsecond, which no value of Spark is, and for numbers that Spark lacks.
    """
    kind = type(value)
    if _is_of_pandas(value):
        return _of_pandas(value, kind.__name__)
    if isinstance(value, np.ndarray) and value.ndim < 2:
        return plain(value[()]) if value.ndim == 0 else list(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return _time(value)
    if isinstance(value, (np.longdouble, np.complexfloating)) and not isinstance(value, float):
        raise TypeError(f"a value of type {kind.__name__} has no SQL literal")
    return value.item() if isinstance(value, np.generic) else value


def is_foreign(value: Any) -> bool:
    """Whether a value is a scalar of numpy or pandas that is no text."""
    return (isinstance(value, np.generic) and not isinstance(value, str)) or (
        _is_of_pandas(value) and type(value).__name__ in _PANDAS
    )


def number_literal(value: Any) -> str | None:
    """A number of numpy as a literal of the Spark type of its width, an unsigned one of the next wider type; None for
    any other value."""
    value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(value, (np.float32, np.float16)):
        number = np.float32(value)
        text = f"{number!s}F" if math.isfinite(number) else f"CAST('{number!s}' AS FLOAT)"
    elif isinstance(value, np.integer) and not isinstance(value, (np.timedelta64, np.uint64)):
        width = value.dtype.itemsize * (2 if isinstance(value, np.unsignedinteger) else 1)
        text = f"{int(value)}{_SUFFIXES[_INTEGERS[width]]}"
    else:
        return None
    return f"({text})" if text.startswith("-") else text


_PANDAS = ("NaTType", "NAType", "Timestamp", "Timedelta")


def _is_of_pandas(value: Any) -> bool:
    return type(value).__module__.split(".")[0] == "pandas"


def _of_pandas(value: Any, name: str) -> Any:
    if name in ("NaTType", "NAType"):
        return None
    if name == "Timestamp":
        _refuse_nanoseconds(value, value.nanosecond)
        return value.to_pydatetime()
    if name == "Timedelta":
        _refuse_nanoseconds(value, value.nanoseconds)
        return value.to_pytimedelta()
    return value


def _time(value: np.datetime64 | np.timedelta64) -> Any:
    """A date, a datetime without zone, or a timedelta."""
    if np.isnat(value):
        return None
    unit = np.datetime_data(value.dtype)[0]
    if unit == "generic":
        raise TypeError("a numpy.timedelta64 without a unit has no SQL literal")
    date = isinstance(value, np.datetime64) and unit in _DATES
    if isinstance(value, np.timedelta64) and unit in ("Y", "M"):
        raise TypeError("a numpy.timedelta64 in months or years has no fixed length")
    kind = "datetime64" if isinstance(value, np.datetime64) else "timedelta64"
    fine = value.astype(f"{kind}[{'D' if date else 'us'}]")
    _refuse_nanoseconds(value, fine.astype(value.dtype) != value)
    found = fine.item()
    if isinstance(found, int):
        raise TypeError(f"{value!s} is beyond the years that Python has")
    return found


def _refuse_nanoseconds(value: object, found: Any) -> None:
    if found:
        raise TypeError(f"{value!s} is finer than a microsecond, which no time of Spark is; round it first")
