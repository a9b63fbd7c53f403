"""OpenMLDB's windows over the union of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from sqlext_operators.window.functions import lookup
from sqlext_operators.window.spec import Call, Scalar

from sqlext_planner.errors import InternalError
from sqlext_planner.expressions.nodes import Column, Expression, ShownCall, is_exact, reads_only
from sqlext_planner.relational.joins import PartitionerHint, holds
from sqlext_planner.relational.logical_plan import (
    Built,
    Field,
    LogicalPlan,
    Needs,
    Passed,
    comma,
    reads,
    with_fields,
)
from sqlext_planner.relational.nodes import SortKey, by_position, exactly, filtered
from sqlext_planner.window.frame import WindowFrame


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
    tell apart, also those of different inputs, and no frame counts in them.
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
        keys = f"PARTITION BY {comma(self.partition_by)}{order}"
        hint = "" if self.partitioner is None else f" {self.partitioner}"
        return f"WindowUnion:{unions} {keys} [{comma(self.windows)}]{payload}{phase}{hint}"
