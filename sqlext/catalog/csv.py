"""Schemas of CSV files: names from a header, types from looking at every value.

Spark gets the same types when it reads the file (`read_files`), so that a plan made without Spark and the run agree,
and Spark need not read the file twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from sqlext_planner.errors import ConfigurationError

from sqlext.catalog.memory import kept_by_files

#: How Spark reads the files: a quote in a quoted value is doubled, and a value of another type is an error.
CSV_OPTIONS = {"header": "true", "quote": '"', "escape": '"', "mode": "FAILFAST"}

_DATE = r"\d{4}-\d{2}-\d{2}"
#: Types from narrow to wide, with a pattern for their values. Integers are also checked for their range.
_PATTERNS = (
    ("boolean", r"(?i)^(true|false)$"),
    ("int", r"^[+-]?\d{1,10}$"),
    ("bigint", r"^[+-]?\d{1,19}$"),
    ("double", r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^NaN$|^-?Infinity$"),
    ("date", f"^{_DATE}$"),
    ("timestamp", rf"^{_DATE}([ T]\d{{2}}:\d{{2}}(:\d{{2}}(\.\d{{1,6}})?)?(Z|[+-]\d{{2}}:\d{{2}})?)?$"),
)
#: Longest header line, in characters: a file without line ends is then not read whole.
_MOST_HEADER = 16 << 20
_LIMITS = {"int": pa.int32(), "bigint": pa.int64()}


@kept_by_files(256)
def csv_columns(files: Sequence[Path]) -> tuple[tuple[tuple[str, str], ...], int, int]:
    """Columns from the header of the first file, with types that fit every value of every file; rows, bytes of text.

    An empty value is NULL. Raises ConfigurationError for files with different headers, ArrowException.
    """
    header = _header(files[0])
    names = _names(files[0], header)
    possible = [[name for name, _ in _PATTERNS] for _ in header]
    import pyarrow.compute as pc  # 60 ms that planning without CSV files need not spend

    filled = [False] * len(header)
    rows = 0
    for file in files:
        if _header(file) != header:
            raise ConfigurationError(
                f"'{file}' has another header than '{files[0]}'",
                condition="table-files",
                help="the files of one table must have the same columns",
            )
        for batch in _batches(file, header):
            rows += batch.num_rows
            for i, column in enumerate(batch.columns):
                values = column.filter(pc.not_equal(column, ""))
                filled[i] = filled[i] or len(values) > 0
                possible[i] = [name for name in possible[i] if _fits(name, values)]
    types = [kinds[0] if kinds and some else "string" for kinds, some in zip(possible, filled, strict=True)]
    size = sum(file.stat().st_size for file in files)
    return tuple(zip(names, types, strict=True)), rows, size


def _header(file: Path) -> list[str]:
    import csv

    with file.open(encoding="utf-8-sig", newline="") as text:
        first = text.readline(_MOST_HEADER + 1)
        if len(first) > _MOST_HEADER:
            raise ConfigurationError(
                f"the first line of '{file}' has more than {_MOST_HEADER >> 20} MB",
                condition="table-files",
                help="the first line of a CSV file must name its columns",
            )
        text.seek(0)
        try:
            header = next(csv.reader(text), None)
        except csv.Error as error:
            raise ConfigurationError(
                f"the header of '{file}' cannot be read: {error}",
                condition="table-files",
                help="correct its first line",
            ) from None
    if not header:
        raise ConfigurationError(
            f"'{file}' has no header",
            condition="table-files",
            help="the first line of a CSV file must name its columns",
        )
    return header


def _names(file: Path, header: Sequence[str]) -> list[str]:
    """The column names: an empty one is _c0, _c1, ... as in Spark. Raises ConfigurationError for a repeated one."""
    names = [name or f"_c{i}" for i, name in enumerate(header)]
    known: set[str] = set()
    for name in names:
        if name.lower() in known:
            raise ConfigurationError(
                f"the header of '{file}' names column '{name}' twice",
                condition="table-files",
                help="rename one of them",
            )
        known.add(name.lower())
    return names


def _batches(file: Path, header: Sequence[str]) -> pa.RecordBatchReader:
    from pyarrow import csv

    places = [str(i) for i in range(len(header))]
    return csv.open_csv(
        file,
        read_options=csv.ReadOptions(skip_rows=1, column_names=places),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(places, pa.string()), strings_can_be_null=False, quoted_strings_can_be_null=False
        ),
    )


def _fits(kind: str, values: pa.Array) -> bool:
    import pyarrow.compute as pc

    if len(values) == 0:
        return True
    if not pc.all(pc.match_substring_regex(values, dict(_PATTERNS)[kind])).as_py():
        return False
    if kind not in _LIMITS:
        return True
    try:
        pc.cast(pc.utf8_ltrim(values, "+"), _LIMITS[kind])
    except pa.ArrowInvalid:
        return False
    return True
