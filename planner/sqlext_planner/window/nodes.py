"""OpenMLDB's windows over the union of tables, and their frames in the user's terms and in the order column's units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from sqlext_operators.window.functions import lookup
from sqlext_operators.window.spec import Call, Frame, Scalar

from sqlext_planner.errors import AnalysisError, InternalError
from sqlext_planner.expressions.nodes import Column, Expression, ShownCall, is_exact, reads_only
from sqlext_planner.relational.joins import PartitionerHint, holds
from sqlext_planner.relational.logical_plan import Built, Field, LogicalPlan, Needs, Passed, comma, reads, with_fields
from sqlext_planner.relational.nodes import SortKey, by_position, exactly, filtered
from sqlext_planner.tree import Clause

Direction = Literal["preceding", "following"]

#: Microseconds in each unit. The users' text has no word for the first: they write INTERVAL.
UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}


@dataclass(frozen=True)
class Ticks:
    """The unit that an order column counts in: so many in an amount without a unit, and in a day."""

    plain: int
    day: int

    def of(self, amount: int, unit: str) -> int:
        """Ticks in an amount. Raises AnalysisError if they are not whole, which is found late where the type of the
        order column was not known before."""
        if not self.is_whole(amount, unit):
            raise AnalysisError(
                f"a frame bound of {shown_amount(amount, unit)} is no whole number of units of the order column",
                condition="window-frame",
                help="write whole days over a date, whole milliseconds over an integer",
            )
        return amount * self.day * UNITS[unit] // UNITS["d"] if unit else amount * self.plain

    def is_whole(self, amount: int, unit: str) -> bool:
        """Whether an amount is a whole number of ticks."""
        return not unit or amount * self.day * UNITS[unit] % UNITS["d"] == 0


#: An integer's own units, in which a time unit means milliseconds; and what ROWS counts.
ONES = Ticks(1, 86_400_000)
MICROSECONDS = Ticks(1_000, UNITS["d"])
DAYS = Ticks(1, 1)


def ticks_of(order_dtype: str | None) -> Ticks:
    """What ROWS_RANGE counts over an order column of a Spark type; those of an integer if it is unknown."""
    if order_dtype is None:
        return ONES
    return DAYS if order_dtype == "date" else MICROSECONDS if order_dtype.startswith("timestamp") else ONES


def shown_amount(amount: int, unit: str) -> str:
    """An amount as it may be written."""
    return f"INTERVAL {amount} MICROSECONDS" if unit == "us" else f"{amount}{unit}"


@dataclass(frozen=True)
class Bound:
    """One end of a frame: ``3h OPEN PRECEDING`` is Bound("preceding", 3, "h", True).

    `amount` None is UNBOUNDED; CURRENT ROW, 0 PRECEDING and 0 FOLLOWING are all amount 0.
    A unitless amount counts rows, or units of the order column (milliseconds for a timestamp, days for a date).
    """

    direction: Direction
    amount: int | None
    unit: str = ""
    open: bool = False

    def offset(self, ticks: Ticks, *, is_start: bool) -> int | None:
        """Signed distance from the current row in ticks, OPEN folded in; None for UNBOUNDED."""
        if self.amount is None:
            return None
        signed = ticks.of(self.amount, self.unit) * (-1 if self.direction == "preceding" else 1)
        return signed + ((1 if is_start else -1) if self.open else 0)

    def __str__(self) -> str:
        if self.amount is None:
            return f"UNBOUNDED {self.direction.upper()}"
        if self.amount == 0 and not self.open:
            return "CURRENT ROW"
        return f"{shown_amount(self.amount, self.unit)}{' OPEN' if self.open else ''} {self.direction.upper()}"


CURRENT_ROW = Bound("preceding", 0)


@dataclass(frozen=True)
class WindowFrame(Clause):
    """ROWS or ROWS_RANGE with its attributes, as written (docs/reference/windows.md, section 1).

    `peers`, which no statement writes: a range that ends at CURRENT ROW also holds the later rows of that time.
    `plain`: it is a frame of standard SQL over a stream, where every row may be kept if the window has no start.
    """

    unit: Literal["rows", "range"]
    start: Bound
    end: Bound
    maxsize: int | None = None
    exclude_current_row: bool = False
    exclude_current_time: bool = False
    instance_not_in_window: bool = False
    peers: bool = False
    plain: bool = False

    def resolve(self, order_dtype: str | None) -> Frame:
        """The operator's frame. Timestamps are counted in microseconds, dates in days, integers in their own units,
        in which a time unit (`3s`) means milliseconds."""
        ticks = ticks_of(order_dtype) if self.unit == "range" else ONES
        start = self.start.offset(ticks, is_start=True)
        end = self.end.offset(ticks, is_start=False)
        return Frame(
            unit=self.unit,
            start=start,
            end=end,
            start_following=self.start.direction == "following" and self.start.amount != 0,
            end_following=self.peers or (self.end.direction == "following" and self.end.amount != 0),
            maxsize=self.maxsize,
            exclude_current_row=self.exclude_current_row,
            exclude_current_time=self.exclude_current_time,
            instance_not_in_window=self.instance_not_in_window,
        )

    def __str__(self) -> str:
        ranged = "RANGE" if self.plain else "ROWS_RANGE"
        words = ["ROWS" if self.unit == "rows" else ranged, f"BETWEEN {self.start} AND {self.end}"]
        words += ["WITH PEERS"] if self.peers and not self.plain else []
        if self.maxsize is not None:
            words.append(f"MAXSIZE {self.maxsize}")
        words += ["EXCLUDE CURRENT_ROW"] if self.exclude_current_row else []
        words += ["EXCLUDE CURRENT_TIME"] if self.exclude_current_time else []
        words += ["INSTANCE_NOT_IN_WINDOW"] if self.instance_not_in_window else []
        return " ".join(words)


@dataclass(frozen=True)
class WindowCall(Expression):
    """One window function: `function(args, constants) AS column`.

    `args` are expressions over the FROM source's columns; they are evaluated on FROM and on union rows
    alike (union rows by position). `function` is a name of the function table. `openmldb`: the result has OpenMLDB's
    type, else Spark's (a sum of ints is a bigint); the analyzer decides, and everything below reads it here.
    `filtered`: the last of `args` is the condition of FILTER.
    """

    function: str
    args: tuple[Expression, ...]
    constants: tuple[Scalar, ...]
    column: Column
    dtype: str | None = None
    openmldb: bool = False
    filtered: bool = False

    @cached_property
    def references(self) -> frozenset[Column]:
        return frozenset().union(*(arg.references for arg in self.args))

    def shipped(self, name: Callable[[Expression], str]) -> Call:
        """The call over the columns on the wire that `name` gives its arguments."""
        args = tuple(name(arg) for arg in self.args)
        return Call(self.function, args, self.column.spark_name, self.constants, self.openmldb, self.filtered)

    def shown(self, over: str = "") -> ShownCall:
        """`sum(a.v) OVER w`; a function without a public name is shown by its column, which has the user's name."""
        function = lookup(self.function)
        plain = function is None or function.internal
        text = self.column.name if plain else f"{str(self).removesuffix(f' AS {self.column}')}{over}"
        return ShownCall(self.column, text, self.args, self.span)

    def __str__(self) -> str:
        plain, given = (self.args[:-1], self.args[-1:]) if self.filtered else (self.args, ())
        args = [*map(str, plain), *map(repr, self.constants)] or ["*"]
        condition = "".join(f" FILTER (WHERE {item})" for item in given)
        return f"{self.function}({', '.join(args)}){condition} AS {self.column}"


#: Functions whose rows can be condensed, so that windows without a start are bounded by what is kept for each key.
_CONDENSED = frozenset(
    f"{name}{suffix}" for name in ("count", "sum", "avg", "min", "max") for suffix in ("", "_where")
) | {"distinct_count"}


def is_condensed(call: WindowCall) -> bool:
    """Whether a few rows for each key can stand for all rows that a call has read. Its types are not asked."""
    # with a second condition, or where NULL is a value, there is no partial call (window/condense.py)
    alone = call.function == "distinct_count" or call.function.endswith("_where")
    return call.function in _CONDENSED and not (call.filtered and alone)


@dataclass(frozen=True)
class WindowGroup(Expression):
    """The calls of one frame. `sources` are indexes into WindowUnion.unions, first listed is the newest.

    Two groups may have equal frames and different sources. A group's name is the user's window name, or
    the frame's place in the statement for an anonymous window.
    """

    name: str
    frame: WindowFrame
    sources: tuple[int, ...]
    calls: tuple[WindowCall, ...]

    def with_sources(self, sources: tuple[int, ...]) -> WindowGroup:
        """The group over other unions."""
        return self if self.sources == sources else replace(self, sources=sources)

    def __str__(self) -> str:
        return f"{self.name} ({self.frame}): {comma(self.calls)}"


@dataclass(frozen=True)
class WindowUnion(LogicalPlan):
    """For each FROM row, the aggregates over windows on the union of FROM and other tables.

    ``SELECT sum(v) OVER w FROM a WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING
    AND CURRENT ROW)`` is ``WindowUnion(source=a, unions=(b,), ...)``. Outputs the source's columns, then one
    column a call. Each union's output matches the source's by position, in name and type (docs/reference/windows.md,
    section 2).
    `payload` lists the source columns that pass through to the output; None is all of them (set by column
    pruning: a column that only a call reads is shipped, but not returned). `tie_order` is the column that orders
    FROM rows of equal keys; without it that is the order in which the source gives its rows, which is the input
    order (partition index, position in the partition) only below the first exchange. `phase`, on streams only, is one
    more column at the end: while it is there, rows that are too late come out too, and it tells them from the others.
    `partitioner` is what a hint asked for. `further` are the keys behind `order_by`: they order rows that it does not
    tell apart, also those of different inputs, and no frame counts in them. `ahead`, on streams only: what is read of a
    row are the results of the row so many places before it (sqlext/analyzer/plain_windows.py), for EXPLAIN.
    """

    is_extension = True
    feeds_exchange = True
    operator_name = "a sqlext window"

    partition_by: tuple[Expression, ...]
    order_by: Expression | None
    windows: tuple[WindowGroup, ...]
    source: LogicalPlan
    unions: tuple[LogicalPlan, ...]
    payload: tuple[Column, ...] | None = None
    tie_order: Column | None = None
    phase: Column | None = None
    partitioner: PartitionerHint | None = None
    further: tuple[SortKey, ...] = ()
    ahead: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it holds a window of standard SQL."""
        return any(group.frame.plain for group in self.windows)

    @property
    def gives_late_rows(self) -> bool:
        return self.phase is not None

    def child_needs(self, needed: Set[Column]) -> Needs:
        windows = self._pruned(needed)
        if not windows:
            return [(self.source, needed)]
        wanted = set(self._source_columns(windows, needed))
        used = sorted({i for window in windows for i in window.sources})
        columns = self.source.output_columns
        return [(self.source, wanted), *((self.unions[i], by_position(columns, self.unions[i], wanted)) for i in used)]

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        windows = self._pruned(needed)
        if not windows:
            return built(self.source)
        wanted = set(self._source_columns(windows, needed))
        places = [i for i, column in enumerate(self.source.output_columns) if column in wanted]
        used = sorted({i for window in windows for i in window.sources})
        source = exactly(self.source, places, built(self.source))
        unions = tuple(exactly(self.unions[i], places, built(self.unions[i])) for i in used)
        payload = tuple(field.column for field in self.payload_fields if field.column in needed)
        renumbered = tuple(window.with_sources(tuple(used.index(i) for i in window.sources)) for window in windows)
        return with_fields(
            self,
            windows=renumbered,
            source=source,
            unions=unions,
            payload=None if payload == source.output_columns else payload,
            phase=self.phase if self.phase in needed else None,
        )

    def filtered_below(self, terms: Sequence[Expression]) -> Passed | None:
        """Terms over partition keys that are plain columns of the source, into every input: they drop whole partitions,
        and rows of one partition never see another's.

        ``SELECT * FROM (SELECT k, sum(v) OVER w AS s FROM a WINDOW w AS (UNION b PARTITION BY k ORDER BY ts ...))
        WHERE k = 7`` filters a and b. The union sources are filtered by position, on their own key columns; their rows
        in the dropped partitions would vanish anyway. A key column beyond a narrow union source's width leaves that
        source as it is. Keys must be of a type whose equal values are the same value: with a double key, 0.0 and -0.0
        are one partition, and ``1 / k > 0`` would split it.

        Not legal for other columns: ``WHERE ts > 100`` drops a's row with ts 99, which is in the window of the row with
        ts 101 and belongs to its sum. The exception: if every window has INSTANCE_NOT_IN_WINDOW, a row of a is in no
        window but its own, so any term over a's columns may filter a alone (never b).
        """
        known = self.source.dtypes
        keys = {key for key in self.partition_by if isinstance(key, Column) and is_exact(known.get(key))}
        everywhere = [term for term in terms if reads_only(term, keys)]
        loners = all(window.frame.instance_not_in_window for window in self.windows)
        others = [term for term in terms if loners and not holds(everywhere, term)]
        passed = [*everywhere, *(term for term in others if reads_only(term, self.source.column_set))]
        if not passed:
            return None
        unions = tuple(self._filtered_union(union, everywhere) for union in self.unions)
        return with_fields(self, source=filtered(passed, self.source), unions=unions), passed

    def _filtered_union(self, union: LogicalPlan, terms: Sequence[Expression]) -> LogicalPlan:
        names = dict(zip(self.source.output_columns, union.output_columns, strict=False))
        return filtered([term.substitute(names) for term in terms if term.references <= names.keys()], union)

    def _pruned(self, needed: Set[Column]) -> tuple[WindowGroup, ...]:
        """The groups with the calls that are needed. One stays if only the phase is needed."""
        windows = []
        for window in self.windows:
            calls = tuple(call for call in window.calls if call.column in needed)
            if calls:
                windows.append(window if calls == window.calls else replace(window, calls=calls))
        if not windows and self.phase in needed:
            return (replace(self.windows[0], calls=self.windows[0].calls[:1]),)
        return tuple(windows)

    def _source_columns(self, windows: Sequence[WindowGroup], needed: Set[Column]) -> tuple[Column, ...]:
        """Source columns that are passed through or read by keys, order or calls; at least one."""
        read = reads(self.partition_by) | {column for w in windows for call in w.calls for column in call.references}
        read |= self.order_by.references if self.order_by is not None else frozenset()
        read |= reads(self.further)
        read |= {field.column for field in self.payload_fields if field.column in needed}
        read |= {self.tie_order} if self.tie_order is not None else set()
        columns = self.source.output_columns
        return tuple(column for column in columns if column in read) or columns[:1]

    def __post_init__(self) -> None:
        width = len(self.source.output)
        if any(len(union.output) > width for union in self.unions):
            raise InternalError("a union source has more columns than the FROM source")
        if any(i >= len(self.unions) for window in self.windows for i in window.sources):
            raise InternalError("a window names a union source that is not there")
        self.check_unique_output()

    @cached_property
    def output(self) -> tuple[Field, ...]:
        calls = (call for window in self.windows for call in window.calls)
        phase = () if self.phase is None else (Field(self.phase, "string"),)
        return self.payload_fields + tuple(Field(call.column, call.dtype) for call in calls) + phase

    @cached_property
    def payload_fields(self) -> tuple[Field, ...]:
        """The source's fields that pass through."""
        if self.payload is None:
            return self.source.output
        known = self.source.dtypes
        return tuple(Field(column, known[column]) for column in self.payload)

    def missing_references(self) -> frozenset[Column]:
        needed = frozenset(column for item in self.expressions() for column in item.references)
        return needed - frozenset(self.source.output_columns)

    def expressions(self) -> Iterator[Expression]:
        yield from self.partition_by
        if self.order_by is not None:
            yield self.order_by
        yield from self.further
        for window in self.windows:
            yield from window.calls
        yield from self.payload or ()
        if self.tie_order is not None:
            yield self.tie_order

    def label(self) -> str:
        order = f" ORDER BY {comma((self.order_by, *self.further))}" if self.order_by is not None else ""
        order += f" TIES BY {self.tie_order}" if self.tie_order is not None else ""
        unions = f" UNION {len(self.unions)} sources" if self.unions else ""
        payload = "" if self.payload is None else f" PAYLOAD [{comma(self.payload)}]"
        phase = "" if self.phase is None else f" PHASE {self.phase}"
        phase += f" OF {self.ahead} ROWS BEFORE" if self.ahead else ""
        keys = f"PARTITION BY {comma(self.partition_by)}{order}"
        hint = "" if self.partitioner is None else f" {self.partitioner}"
        return f"WindowUnion:{unions} {keys} [{comma(self.windows)}]{payload}{phase}{hint}"
