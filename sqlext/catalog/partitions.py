"""Columns that are in the names of folders: `dt=2024-01-01/city=Bern/part.parquet`, read as Spark reads them.

The rules are those of Spark's PartitioningUtils under the setting
spark.sql.sources.partitionColumnTypeInference.enabled; `tests/catalog/test_partitions.py` compares with Spark itself.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path

import pyarrow as pa
from sqlext_planner.errors import ConfigurationError
from sqlext_planner.spark.versions import may_have

from sqlext.catalog.inferred_types import tells_apart

_wrong_folders = partial(ConfigurationError, condition="table-files")

_NULL = "__HIVE_DEFAULT_PARTITION__"
_LAYOUT = "all files of a table must be below folders of the same columns: dt=2024-01-01/city=Bern/part.parquet"

#: Java's Double.parseDouble, and the numbers without a fraction that its BigDecimal reads.
_DOUBLE = re.compile(
    r"""[\x00-\x20]* [+-]? (NaN | Infinity
      | ( ([0-9]+\.?[0-9]* | \.[0-9]+) ([eE][+-]?[0-9]+)?
        | 0[xX] ([0-9a-fA-F]+\.? | [0-9a-fA-F]*\.[0-9a-fA-F]+) [pP][+-]?[0-9]+ ) [fFdD]? ) [\x00-\x20]*""",
    re.VERBOSE,
)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NUMBER = re.compile(r"[+-]?(?P<whole>\d*)\.?(?P<part>\d*)([eE](?P<exponent>[+-]?\d{1,9}))?")
_YEAR = r"(?P<year>-?[0-9]{4}|[+-][0-9]{5,7})"
_DATE = re.compile(rf"{_YEAR}-(?P<month>[0-9]{{2}})-(?P<day>[0-9]{{2}})")
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_TIMESTAMP = re.compile(rf"(?P<date>.*) {_CLOCK}(\.[0-9])?")
_TIME = re.compile(rf"{_CLOCK}(\.[0-9]{{1,6}})?")
#: Days of 400 years.
_DAYS_OF_CYCLE = 146_097
#: The last day, before and after 1970, of which every timestamp is a long of microseconds.
_LAST_DAY = (1 << 63) // 86_400_000_000 - 1


@dataclass(frozen=True)
class FolderPartitioning:
    """The partition columns of a table: names and Spark's types, in the order of the folders below `base`."""

    columns: tuple[tuple[str, str], ...]
    base: Path

    def beside(self, columns: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """The table's columns, given those of its files. One that is in both keeps its place and takes name and type of
        the folders, because Spark reads the value from there."""
        mine = {name.lower(): (name, dtype) for name, dtype in self.columns}
        merged = [mine.pop(name.lower(), (name, dtype)) for name, dtype in columns]
        return (*merged, *mine.values())


def partitioning(
    files: Sequence[Path], bases: Collection[Path], text: str, *, typed: bool = True
) -> FolderPartitioning | None:
    """The partition columns of files below `bases`; None if no folder between them is named like one.

    `typed` is the setting: without it every column is a string. Raises ConfigurationError for layouts that Spark
    refuses, and for files without partition columns beside files that have them, of which Spark would lose the rows.
    """
    known = [_split(folder, bases) for folder in dict.fromkeys(file.parent for file in files)]
    partitioned = [(base, pairs) for base, pairs in known if pairs]
    if not partitioned:
        return None
    if len(partitioned) < len(known):
        plain = next(base for base, pairs in known if not pairs)
        raise _wrong_folders(
            f"'{text}' has files without partition columns (in '{plain}') "
            f"beside folders like '{_shown(partitioned[0][1])}'",
            help=_LAYOUT,
        )
    first = partitioned[0]
    names = [name for name, _ in first[1]]
    for base, pairs in partitioned[1:]:
        if [name for name, _ in pairs] != names or base != first[0]:
            raise _wrong_folders(
                f"'{text}' has folders like '{_shown(first[1])}' and '{_shown(pairs)}', below "
                + (f"'{base}'" if base == first[0] else f"'{first[0]}' and '{base}'"),
                help=_LAYOUT,
            )
    if len({name.lower() for name in names}) < len(names):
        raise _wrong_folders(f"'{text}' has folders that name a column twice: '{_shown(first[1])}'", help=_LAYOUT)
    values = zip(*(pairs for _, pairs in partitioned), strict=True)
    columns = tuple((name, _type_of(of_name, typed)) for name, of_name in zip(names, values, strict=True))
    return FolderPartitioning(columns, first[0])


def _type_of(pairs: Collection[tuple[str, str]], typed: bool) -> str:
    """The type of a column with these (name, value) pairs."""
    kinds = {"void" if value == _NULL else "string" if not typed else value_type(value) for _, value in pairs}
    found = reduce(wider, sorted(kinds))
    return "string" if found == "double" and not _tells_apart(value for _, value in pairs if value != _NULL) else found


def _tells_apart(values: Iterable[str]) -> bool:
    """Whether no two of these numbers become the same double. (Spark makes one of them: here they are strings.)"""
    numbers = pa.array(sorted(set(filter(_DECIMAL.fullmatch, values))), pa.string())
    return tells_apart(lambda: [numbers])


def _split(folder: Path, bases: Collection[Path]) -> tuple[Path, list[tuple[str, str]]]:
    """The folder above the partition folders, and their names and values; folders below them may have any name."""
    pairs: list[tuple[str, str]] = []
    place = folder
    while place not in bases and place != place.parent:
        pair = _pair(place.name)
        if pair is None and pairs:
            break
        if pair is not None:
            pairs.append(pair)
        place = place.parent
    return (place, pairs[::-1]) if pairs else (folder, [])


def _pair(name: str) -> tuple[str, str] | None:
    column, sign, value = name.partition("=")
    if not sign:
        return None
    if not column or not value:
        raise _wrong_folders(
            f"folder '{name}' has no {'value' if column else 'column name'}",
            help=f"rename it; a missing value is written as {column or 'column'}={_NULL}",
        )
    return unescaped(column), value


def _shown(pairs: Sequence[tuple[str, str]]) -> str:
    return "/".join(f"{name}={value}" for name, value in pairs)


def unescaped(text: str) -> str:
    """`a%20b` -> `a b`, character by character as in Hive."""
    return re.sub("%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), text)


def value_type(text: str) -> str:
    """The type of a value in a folder's name, from narrow to wide: the first that can read it."""
    if re.fullmatch(r"[+-]?\d+", text):
        number = int(text)
        for name, bits in (("int", 31), ("bigint", 63)):
            if -(1 << bits) <= number < 1 << bits:
                return name
    plain = unescaped(text)
    timestamp = _TIMESTAMP.fullmatch(plain)
    if (digits := _decimal_digits(text)) is not None:
        return f"decimal({digits},0)"
    if _DOUBLE.fullmatch(text):
        return "double"
    if _is_timestamp(timestamp):
        return "timestamp"
    if _day(text) is not None:
        return "date"
    return "time(6)" if _TIME.fullmatch(plain) and may_have("times") else "string"


def _decimal_digits(text: str) -> int | None:
    """The digits of a number without a fraction; None for any other text, and for more digits than a decimal has."""
    match = _NUMBER.fullmatch(text)
    if match is None or not match["whole"] + match["part"]:
        return None
    power = int(match["exponent"] or 0) - len(match["part"])
    written = len(str(int(match["whole"] + match["part"])))
    return written + power if power >= 0 and written + power <= 38 else None


def _day(text: str) -> int | None:
    """The number of a day since 1970 as Spark reads it; None for any other text, minus the year 0 among them."""
    match = _DATE.fullmatch(text)
    if match is None or re.fullmatch("-0+", match["year"]):
        return None
    cycles, year = divmod(int(match["year"]), 400)  # the calendar repeats itself
    try:
        day = datetime.date(year + 400, int(match["month"]), int(match["day"]))
    except ValueError:
        return None
    return (cycles - 1) * _DAYS_OF_CYCLE + (day - datetime.date(1970, 1, 1)).days


def _is_timestamp(match: re.Match[str] | None) -> bool:
    """Whether a day and a clock are a moment of which the microseconds are a long; the year has at most six digits."""
    if match is None or (day := _day(match["date"])) is None or len(match["date"]) > len("+123456-01-01"):
        return False
    return abs(day) <= _LAST_DAY


def wider(one: str, other: str) -> str:
    """The type of a column with values of both types: strings, where neither can hold the other exactly."""
    if one == other or other == "void":
        return one
    if one == "void":
        return other
    kinds = {one, other}
    if kinds == {"int", "bigint"}:
        return "bigint"
    if kinds == {"int", "double"}:
        return "double"
    if kinds == {"date", "timestamp"}:
        return "timestamp"
    digits = [_digits(kind) for kind in (one, other)]
    return f"decimal({max(digits)},0)" if all(digits) else "string"


def _digits(kind: str) -> int:
    """Of an integer or decimal type; 0 for others."""
    if kind in ("int", "bigint"):
        return 10 if kind == "int" else 20
    return int(kind[8:].partition(",")[0]) if kind.startswith("decimal") else 0
