"""The digits of Spark's number types, and the types of what is computed from them.

A whole number beside a decimal counts as a decimal with the digits of `INTEGERS` (Spark's `DecimalType.forType`).
"""

from __future__ import annotations

#: Whole-number types in ascending order, with their digits as decimals.
INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
SMALL_INTEGERS = ("tinyint", "smallint", "int")
FLOATS = ("float", "double")
#: A decimal has no more digits.
MOST_DIGITS = 38


def decimal_shape(dtype: str | None) -> tuple[int, int] | None:
    """(10, 2) for ``decimal(10,2)``; None for any other type."""
    if dtype is None or not dtype.startswith("decimal("):
        return None
    precision, scale = dtype[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def exact_shape(dtype: str | None) -> tuple[int, int] | None:
    """(digits, digits after the point) of a decimal or a whole number; None for any other type."""
    return (INTEGERS[dtype], 0) if dtype in INTEGERS else decimal_shape(dtype)


def decimal_type(precision: int, scale: int) -> str | None:
    """The name of a decimal type; None beyond 38 digits, where Spark's type depends on a setting."""
    return f"decimal({precision},{scale})" if precision <= MOST_DIGITS else None


def common_decimal(*dtypes: str | None) -> str | None:
    """The least decimal type that holds the values of all these types; None if there is none."""
    whole = scale = 0
    for dtype in dtypes:
        shape = exact_shape(dtype)
        if shape is None:
            return None
        whole, scale = max(whole, shape[0] - shape[1]), max(scale, shape[1])
    return decimal_type(whole + scale, scale)


def widest(dtypes: list[str]) -> str:
    """The widest of some whole-number types."""
    return max(dtypes, key=INTEGERS.__getitem__)
