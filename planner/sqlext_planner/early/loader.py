"""Two files as two streams: times by a rate, arrivals by random delays, slices; as PECJ's loader makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlext_operators.early.replay import Stream, WindowBounds, window_starts

from sqlext_planner.early.files import FileRows, same_codes
from sqlext_planner.early.options import SEEDS, STEP, UNITS, ReplayOptions
from sqlext_planner.errors import DataError

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
