"""Every setting of the planner and the exchange, with its Spark-style key."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any

from sqlext_planner.errors import ConfigurationError

PREFIX = "sqlext."

_SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


#: How an exchange may spread its rows, by the names of the hint PARTITIONER and of the setting.
PARTITIONERS = ("hash", "key", "broadcast", "hybrid", "dynamic", "time_range", "fragment")
#: The most rows that one Arrow batch, or one array of 32-bit positions, can hold.
_MOST_ROWS = (1 << 31) - 1
#: A Spark column holds at most this many bytes in one row, and a block travels as such a value.
_MOST_BLOCK = 1 << 30
#: The most bytes that Spark broadcasts.
_MOST_BROADCAST = 8 << 30
#: Spark's driver keeps several kilobytes for each task.
_MOST_TASKS = 100_000


def _setting(key: str, default: Any, doc: str, kind: str, most: int | None = None) -> Any:
    return field(default=default, metadata={"key": PREFIX + key, "doc": doc, "kind": kind, "most": most})


@dataclass(frozen=True)
class Setting:
    """A setting, for people: its key, its default as text, what it takes, what it means."""

    key: str
    default: str
    kind: str
    most: int | None
    doc: str

    @property
    def words(self) -> tuple[str, ...]:
        """The values it takes, where they are words."""
        return ("true", "false") if self.kind == "boolean" else tuple(self.kind.split("|")) if "|" in self.kind else ()

    @property
    def values(self) -> str:
        """What it takes, in words."""
        if self.words:
            return " | ".join(self.words)
        numbers = "bytes such as 134217728 or 128m" if self.kind == "bytes" else "a whole number"
        return f"{numbers}, at most {self.most}"


@dataclass(frozen=True)
class Config:
    """Settings of one session; immutable, so that a plan and its execution see the same values."""

    always_lower: bool = _setting(
        "planner.alwaysLower",
        False,
        "Run every SELECT through sqlext's own plan, even if the text could go to spark.sql unchanged (for tests).",
        "boolean",
    )
    arrow_scan: str = _setting(
        "exchange.arrowScan",
        "auto",
        "Tasks read the plain Parquet inputs of an exchange themselves, with pyarrow. auto: if Spark's master is "
        "local[...]; true: also on a cluster, whose executors must see the files under the same paths (a "
        "shared mount); false: Spark reads them.",
        "auto|true|false",
    )
    target_partition_bytes: int = _setting(
        "exchange.targetPartitionBytes",
        128 << 20,
        "Target size of one exchange partition, in bytes of Arrow data.",
        "bytes",
        1 << 40,
    )
    partitions: int = _setting(
        "exchange.partitions",
        0,
        "Number of partitions of an exchange; 0 computes it from the number of bytes.",
        "count",
        _MOST_TASKS,
    )
    partitioner: str = _setting(
        "exchange.partitioner",
        "auto",
        "How the exchange of a window or a join spreads its rows over the partitions, where the statement allows it "
        "(docs/skew.md). hash: each key in the partition of its hash; key: each key in one partition, evenly; "
        "broadcast: every row in all; hybrid: the rows of a hot key in several; dynamic: as Scale-OIJ's schedule says; "
        "time_range: hot keys in ranges of time; fragment: the rows of a hot key in several, with copies of what "
        "they need; auto: the cheapest by a sample of the keys; on streams hash, and fragments of a hot key while they "
        "pay.",
        "auto|" + "|".join(PARTITIONERS),
    )
    block_bytes: int = _setting(
        "exchange.blockBytes", 4 << 20, "Size of one Arrow block in the shuffle, in bytes.", "bytes", _MOST_BLOCK
    )
    max_piece_rows: int = _setting(
        "exchange.maxPieceRows",
        4_000_000,
        "Number of rows in one sorted piece, which an operator sees at once.",
        "rows",
        _MOST_ROWS,
    )
    last_join_strategy: str = _setting(
        "lastJoin.strategy",
        "auto",
        "How LAST JOIN joins its right sides, where more than one way is exact. exchange: the operator of sqlext, "
        "behind one exchange; reduce: the last row of each key is broadcast; pairs: Spark makes all matching pairs; "
        "auto: reduce for small right sides, otherwise exchange.",
        "auto|exchange|reduce|pairs",
    )
    last_join_broadcast_bytes: int = _setting(
        "lastJoin.broadcastBytes",
        10 << 20,
        "Right sides of LAST JOIN up to this size are reduced to one row per key and broadcast, if their last rows do "
        "not depend on the left row.",
        "bytes",
        _MOST_BROADCAST,
    )
    interval_join_strategy: str = _setting(
        "intervalJoin.strategy",
        "auto",
        "How interval joins run. exchange: the operator of sqlext, behind one exchange; broadcast: one side is "
        "collected and sent to every task of the other, if the kind of join allows it; spark: Spark compares the "
        "rows; auto: chosen by size.",
        "auto|exchange|broadcast|spark",
    )
    interval_join_algorithm: str = _setting(
        "intervalJoin.algorithm",
        "slices",
        "How the operator finds the pairs of an interval join: as slices of sorted values, or with one of the sweeps "
        "over endpoints in docs/sweeps.md. The result is the same.",
        "slices|join-by-s|lazy-join-by-s",
    )
    interval_join_broadcast_bytes: int = _setting(
        "intervalJoin.broadcastBytes",
        256 << 20,
        "The smaller side of an interval join is broadcast up to this size, if that costs less than an exchange with "
        "the available cores.",
        "bytes",
        _MOST_BROADCAST,
    )
    interval_join_least_pairs: int = _setting(
        "intervalJoin.leastPairs",
        20_000_000,
        "A join on plain inequalities is left to Spark if the rows of its sides make fewer pairs than this.",
        "rows",
        (1 << 63) - 1,
    )
    interval_join_tiles: int = _setting(
        "intervalJoin.tiles",
        0,
        "Number of tiles of the time axis in the exchange of an interval join without keys; 0 computes it from the "
        "number of bytes.",
        "count",
        _MOST_TASKS,
    )
    interval_empty: str = _setting(
        "interval.empty",
        "drop",
        "What an empty or reversed period means in a period predicate. drop: it has no relation to any period; error: "
        "the statement fails; point: [t, t) is the single instant t, and reversed periods are dropped.",
        "drop|error|point",
    )
    umjoin_strategy: str = _setting(
        "umjoin.strategy",
        "auto",
        "How multi-way joins run. cascade: Spark's binary joins; factorised: aggregates run before the joins, if the "
        "query's aggregate allows it; operator: the operator of sqlext, behind one exchange, by a shared key or as a "
        "hypercube, if the conditions allow it; auto: chosen by estimated cost.",
        "auto|cascade|factorised|operator",
    )
    fallback: str = _setting(
        "fallback",
        "warn",
        "What a statement does whose period predicates or LAST JOINs none of our operators can compute, so that Spark "
        "compares rows (docs/invariants.md lists when). warn: a line in the log says so and why; fail: it is an error; "
        "silent: nothing. EXPLAIN says it in any case.",
        "warn|fail|silent",
    )
    output_batch_rows: int = _setting(
        "exchange.outputBatchRows",
        262_144,
        "Number of rows in one Arrow batch that an operator returns to Spark.",
        "rows",
        _MOST_ROWS,
    )

    streams: str = _setting(
        "streams",
        "auto",
        "Who runs plain SQL over streams, which Spark could run too (docs/streams.md). auto: the operators of sqlext "
        "where they keep no more state; ours: wherever the rows are the same; spark: Spark, unless a hint or "
        "sqlext.umjoin.strategy asks for an operator. Windows, which Spark refuses, are ours with auto and with ours.",
        "auto|ours|spark",
    )
    stream_late: str = _setting(
        "stream.late",
        "drop",
        "What a statement over streams does with rows that come after the watermark has passed their time, or have no "
        "time. drop: they are counted (session.streams shows how many) and change no answer; fail: the query fails; "
        "rows: as drop, and those of FROM come out with NULL as results. A last column, phase, tells them (late, "
        "timeless) from the others (final).",
        "drop|fail|rows",
    )
    stream_future: str = _setting(
        "stream.future",
        "keep",
        "What a statement over streams does with rows whose event time is more than sqlext.stream.futureBound after "
        "the clock at the start of their micro-batch: one of them moves the watermark, and all rows after it are late. "
        "keep: nothing, as Spark does; drop: they are counted (session.streams shows how many) and left out below the "
        "watermark; fail: the query fails.",
        "keep|drop|fail",
    )
    stream_future_bound: int = _setting(
        "stream.futureBound",
        3600,
        "How many seconds the event time of a stream may be after now, for sqlext.stream.future.",
        "count",
        100 * 366 * 86_400,
    )
    stream_state_bytes: int = _setting(
        "stream.stateBytes",
        0,
        "The most bytes that a statement over streams may keep in one bucket of keys, as they are written; "
        "sqlext.exchange.partitions is the number of buckets. Beyond it the query fails and names the largest key; 0: "
        "no limit.",
        "bytes",
        (1 << 63) - 1,
    )

    @classmethod
    def from_mapping(cls, settings: Mapping[str, str]) -> Config:
        """Settings from text, e.g. ``{"sqlext.planner.alwaysLower": "true"}``.

        Raises ConfigurationError for an unknown key or a value of the wrong kind.
        """
        known = {item.metadata["key"].lower(): item for item in fields(cls)}
        values: dict[str, Any] = {}
        for key, text in settings.items():
            item = known.get(key.lower())
            if item is None:
                raise _unknown_key(key, [found.metadata["key"] for found in fields(cls)])
            values[item.name] = _parse(item, text)
        return cls(**values)

    @classmethod
    def described(cls) -> Iterator[Setting]:
        """Every setting, for the manual and the command line."""
        for item in fields(cls):
            kind, most = item.metadata["kind"], item.metadata["most"]
            yield Setting(item.metadata["key"], str(item.default).lower(), kind, most, item.metadata["doc"])


def _unknown_key(key: str, known: list[str]) -> ConfigurationError:
    near = difflib.get_close_matches(key, known, n=1)
    help = f"did you mean '{near[0]}'?" if near else "known settings: " + ", ".join(sorted(known))
    return ConfigurationError(f"unknown setting '{key}'", condition="unknown-setting", help=help)


def _parse(item: Field[Any], text: str) -> Any:
    kind, key, word = item.metadata["kind"], item.metadata["key"], str(text).strip().lower()
    if kind == "boolean":
        if word not in ("true", "false"):
            raise ConfigurationError(
                f"setting '{key}' has the value '{text}'", condition="setting-value", help="use true or false"
            )
        return word == "true"
    if "|" in kind:
        if word not in kind.split("|"):
            raise ConfigurationError(
                f"setting '{key}' has the value '{text}'", condition="setting-value", help=f"use one of {kind}"
            )
        return word
    digits, unit = (word[:-1], word[-1]) if kind == "bytes" and word[-1:] in _SIZES else (word, "")
    least, most = 0 if kind == "count" or item.default == 0 else 1, item.metadata["most"]
    number = _whole(digits, most)
    if number is None or not least <= number * _SIZES.get(unit, 1) <= most:
        example = "a number of bytes such as 134217728 or 128m" if kind == "bytes" else f"a whole number >= {least}"
        shown = text if len(str(text)) <= 40 else f"{str(text)[:40]}..."
        help = f"use {example}, at most {most}"
        raise ConfigurationError(f"setting '{key}' has the value '{shown}'", condition="setting-value", help=help)
    return number * _SIZES.get(unit, 1)


def _whole(digits: str, most: int) -> int | None:
    """The number; None for other text and for a number with more digits than `most`."""
    if not (digits.isascii() and digits.isdigit()) or len(digits.lstrip("0")) > len(str(most)):
        return None
    return int(digits)
