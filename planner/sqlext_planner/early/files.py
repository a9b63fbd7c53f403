"""The columns that a replay needs, from a CSV or Parquet file; two files as two streams: times by a rate, arrivals by
random delays, slices; as PECJ's loader makes them."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pyarrow.types as types
from sqlext_operators.early.replay import Stream, WindowBounds, window_starts

from sqlext_planner.early.options import SEEDS, STEP, UNITS, Columns, ReplayOptions
from sqlext_planner.errors import AnalysisError, ConfigurationError, DataError

_MOST_BLOCK = (1 << 31) - 1
_MOST_MICROS = 1 << 61
#: Squares and their sums have to be numbers
_MOST_VALUE = 1e100


@dataclass(frozen=True)
class FileRows:
    """Rows of a file in its order: keys (Arrow, without NULL), values, times and arrivals in microseconds or None.

    `timestamps`: the times are timestamps, not numbers.
    """

    path: Path
    keys: pa.Array
    values: np.ndarray[Any, np.dtype[np.float64]]
    times: np.ndarray[Any, np.dtype[np.int64]] | None
    arrivals: np.ndarray[Any, np.dtype[np.int64]] | None
    timestamps: bool = False

    def __len__(self) -> int:
        return len(self.keys)


def read_rows(path: Path, columns: Columns, unit: int) -> FileRows:
    """Read one side. `unit`: microseconds of one unit of times that are numbers.

    Rows without a key match nothing and rows without a value count for nothing: both are left out. Raises
    ConfigurationError for a file that cannot be read, AnalysisError for a missing column or one of a wrong type,
    DataError for times that are missing or out of range, and for a file without rows.
    """
    wanted = {"key": columns.key, "value": columns.value, "time": columns.time, "arrival": columns.arrival}
    names = {role: name for role, name in wanted.items() if name is not None}
    table = _read(path, list(dict.fromkeys(names.values())))
    if not table.num_rows:
        raise DataError(f"{path} has no rows", condition="replay-files")
    times = _times(path, columns.time, table, unit) if columns.time is not None else None
    arrivals = _times(path, columns.arrival, table, unit) if columns.arrival is not None else None
    values = _numbers(path, columns.value, table) if columns.value is not None else np.ones(table.num_rows)
    is_complete = np.logical_and.reduce(
        [table.column(names[role]).is_valid().to_numpy() for role in ("key", "value") if role in names]
    )
    if not is_complete.any():
        raise DataError(
            f"{path} has no rows with a key{' and a value' if columns.value is not None else ''}",
            condition="replay-files",
        )
    stamped = columns.time is not None and types.is_temporal(table.schema.field(columns.time).type)
    keys = table.column(columns.key).combine_chunks()
    keys = keys.chunk(0) if isinstance(keys, pa.ChunkedArray) and keys.num_chunks else keys
    return FileRows(
        path,
        keys.filter(pa.array(is_complete)),
        values[is_complete],
        None if times is None else times[is_complete],
        None if arrivals is None else arrivals[is_complete],
        stamped,
    )


def same_codes(left: FileRows, right: FileRows) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Codes from 0 of the keys of both. Raises AnalysisError if their types cannot be equal."""
    kinds = left.keys.type, right.keys.type
    if kinds[0] != kinds[1]:
        if not all(types.is_integer(kind) for kind in kinds):
            raise AnalysisError(
                f"the keys are {kinds[0]} in {left.path} and {kinds[1]} in {right.path}",
                condition="replay-files",
                help="give both files keys of one type",
            )
        kinds = pa.int64(), pa.int64()
    both = pa.chunked_array([left.keys.cast(kinds[0]), right.keys.cast(kinds[0])])
    codes = both.dictionary_encode().unify_dictionaries()
    mine, other = (chunk.indices.to_numpy(zero_copy_only=False).astype(np.int64) for chunk in codes.chunks)
    return mine, other


def _read(path: Path, names: list[str]) -> pa.Table:
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise ConfigurationError(
            f"{path} is neither .csv nor .parquet", condition="replay-files", help="convert it to one of these"
        )
    try:
        if suffix == ".parquet":
            known = pa.parquet.read_schema(path).names
            return pa.parquet.read_table(path, columns=_known(path, names, known))
        size = path.stat().st_size
        if not size:
            raise DataError(
                f"{path} is empty", condition="replay-files", help="the first line of a CSV file names its columns"
            )
        # one block, so that the types are those of all rows
        read = pa.csv.ReadOptions(block_size=min(max(size + 1, 1 << 16), _MOST_BLOCK))
        known = pa.csv.open_csv(path).schema.names
        convert = pa.csv.ConvertOptions(include_columns=_known(path, names, known), strings_can_be_null=True)
        return pa.csv.read_csv(path, read_options=read, convert_options=convert)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {error.strerror or error}", condition="replay-files", help="check the path"
        ) from error
    except pa.ArrowException as error:
        raise DataError(f"cannot read {path}: {error}", condition="replay-files") from error


def _known(path: Path, names: list[str], known: list[str]) -> list[str]:
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"its columns are {', '.join(known[:20])}"
            raise AnalysisError(f"{path} has no column '{name}'", condition="replay-files", help=hint)
    return names


def _numbers(path: Path, name: str, table: pa.Table) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A column as numbers; 0 for NULL."""
    column = table.column(name)
    kind = column.type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind)):
        raise AnalysisError(
            f"column '{name}' of {path} is {kind}, not a number", condition="replay-files", help="--value needs numbers"
        )
    filled = column.cast(pa.float64(), safe=False).fill_null(0.0)
    values: np.ndarray[Any, np.dtype[np.float64]] = filled.to_numpy()
    _finite(path, name, values)
    if np.abs(values).max(initial=0) > _MOST_VALUE:
        raise DataError(
            f"column '{name}' of {path} has values beyond {_MOST_VALUE:g}",
            condition="replay-files",
            help="use a larger unit",
        )
    return values


def _times(path: Path, name: str, table: pa.Table, unit: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    column = table.column(name)
    kind = column.type
    if column.null_count:
        row = pc.index(pc.is_null(column), True).as_py()
        raise DataError(
            f"{path} has no '{name}' in row {row + 1}", condition="replay-files", help="leave such rows out"
        )
    if types.is_timestamp(kind) or types.is_date(kind):
        stamps = column.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        return np.asarray(stamps.cast(pa.int64()).to_numpy(), np.int64)
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        raise AnalysisError(
            f"column '{name}' of {path} is {kind}, not a time",
            condition="replay-files",
            help="times are timestamps, or numbers with --unit",
        )
    numbers = column.cast(pa.float64(), safe=False).to_numpy() * float(unit)
    _finite(path, name, numbers)
    if np.abs(numbers).max(initial=0) > _MOST_MICROS:
        raise DataError(
            f"column '{name}' of {path} has times that are out of range", condition="replay-files", help="check --unit"
        )
    if types.is_integer(kind):
        return np.asarray(column.cast(pa.int64()).to_numpy(), np.int64) * unit
    rounded: np.ndarray[Any, np.dtype[np.int64]] = np.rint(numbers).astype(np.int64)
    return rounded


def _finite(path: Path, name: str, values: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise DataError(
            f"column '{name}' of {path} is {values[wrong[0]]} in row {wrong[0] + 1}",
            condition="replay-files",
            help="leave it out",
        )


Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class LoadedStreams:
    """Both streams, the windows to replay, and how late rows can be (microseconds).

    `dropped`: rows that are left out because they arrive later than that.
    """

    left: Stream
    right: Stream
    starts: list[int]
    lateness: int
    dropped: int = 0


def load(left: FileRows, right: FileRows, options: ReplayOptions) -> LoadedStreams:
    """The streams of two files. Raises DataError if there is no window, or if rows arrive before they happen."""
    bounds = WindowBounds(options.window, options.closed)
    keys = same_codes(left, right)
    if options.rate is None:
        assert left.times is not None
        assert right.times is not None
        places = [np.arange(len(rows), dtype=np.int64) for rows in (left, right)]
        times = [left.times, right.times]
        starts = None
    else:
        places, times, starts = _by_rate(len(left), len(right), options.rate, bounds, options)
    streams = []
    for side, rows in enumerate((left, right)):
        chosen = places[side]
        arrivals = rows.arrivals
        if options.delay is not None:
            arrivals = times[side] + uniform_delays(SEEDS[side] + options.seed, len(chosen), options.delay)
        assert arrivals is not None
        streams.append(Stream(keys[side][chosen], rows.values[chosen], times[side], arrivals))
    lateness, dropped = options.lateness or options.delay, 0
    if lateness is None:
        lateness = _longest(left, right, streams)
    elif options.lateness is not None:
        streams, dropped = _in_time(streams, lateness)
    found = window_starts(streams[0], streams[1], bounds) if starts is None else starts
    if not found:
        raise DataError("no row arrives within --lateness", condition="replay-files", help="give a longer one")
    return LoadedStreams(streams[0], streams[1], found, lateness, dropped)


def rate_times(count: int, rate: int) -> Ints:
    """Microseconds of the first `count` rows: after the first row, 50 rows share each stamp."""
    stamps = (np.arange(count, dtype=np.int64) + STEP - 1) // STEP
    return stamps * _grow(rate)


def _grow(rate: int) -> int:
    return STEP * UNITS["s"] // rate


def uniform_delays(seed: int, count: int, longest: int) -> Ints:
    """Integers from 1 to `longest`, all equally likely: std::uniform_int_distribution over std::mt19937.

    (libstdc++ from release 11 on: D. Lemire, Fast random integer generation in an interval, 2019.)
    """
    random = np.random.RandomState(seed % (1 << 32))
    delays = np.empty(0, np.int64)
    least = (1 << 32) % longest
    while len(delays) < count:
        drawn = random.randint(0, 1 << 32, size=count - len(delays), dtype=np.uint64) * np.uint64(longest)
        fair = (drawn & np.uint64(0xFFFFFFFF)) >= np.uint64(least)
        delays = np.concatenate([delays, (drawn[fair] >> np.uint64(32)).astype(np.int64) + 1])
    return delays


def _by_rate(
    left: int, right: int, rate: int, bounds: WindowBounds, options: ReplayOptions
) -> tuple[list[Ints], list[Ints], list[int]]:
    """(places in the files, times) of both sides' rows, and the windows that the files fill to their end."""
    shorter, grow = min(left, right), _grow(rate)

    def rows_until(end: int) -> int:
        """The number of rows up to the end of a window."""
        return STEP * ((end - (not bounds.closed)) // grow) + 1

    whole = rows_until(bounds.length)
    if whole > shorter:
        raise DataError(
            f"{shorter:,} rows at {rate:,} rows a second do not fill a window of {bounds.length / 1000:g} ms",
            condition="replay-files",
            help="give a shorter --window or a higher --rate",
        )
    if options.slices is None:
        places = [np.arange(count, dtype=np.int64) for count in (left, right)]
        times = [rate_times(count, rate) for count in (left, right)]
        ends = range(bounds.length, int(times[0][-1]) + 2 * bounds.length, bounds.length)
        return places, times, [end - bounds.length for end in ends if rows_until(end) <= shorter]
    if options.slices > shorter - whole + 1:
        raise DataError(
            f"{shorter:,} rows are too few for {options.slices:,} slices",
            condition="replay-files",
            help="give fewer --slices",
        )
    longest = options.delay or 0
    apart = ((bounds.length + longest) // bounds.length + 2) * bounds.length
    number = np.repeat(np.arange(options.slices, dtype=np.int64), whole)
    places = [
        number * (count - whole) // options.slices + np.tile(np.arange(whole, dtype=np.int64), options.slices)
        for count in (left, right)
    ]
    stamps = number * apart + np.tile(rate_times(whole, rate), options.slices)
    return places, [stamps, stamps], [int(start) for start in np.arange(options.slices) * apart]


def _longest(left: FileRows, right: FileRows, streams: list[Stream]) -> int:
    """The longest delay of all rows."""
    for rows, stream in zip((left, right), streams, strict=True):
        early = stream.arrivals < stream.events
        if early.all():
            raise DataError(
                f"every row of {rows.path} arrives before it happens",
                condition="replay-files",
                help="are --time and --arrival swapped?",
            )
    return max(0, *(int((stream.arrivals - stream.events).max()) for stream in streams))


def _in_time(streams: list[Stream], lateness: int) -> tuple[list[Stream], int]:
    in_time = []
    dropped = 0
    for stream in streams:
        keep = stream.arrivals - stream.events <= lateness
        dropped += int(np.sum(~keep))
        in_time.append(Stream(stream.keys[keep], stream.values[keep], stream.events[keep], stream.arrivals[keep]))
    return in_time, dropped
