"""Early answers: aggregates over a window join of two streams, and windows of rows over streams.

Which estimators there are is in a table of the operators, which is loaded when it is asked for. The windows are those
of Spark's function window(): ``window(ts, '10 seconds')``, written in a condition or computed below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from sqlext_planner.errors import AnalysisError, InternalError, Span, UnsupportedError
from sqlext_planner.expressions.arithmetic import INTEGERS
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.expressions.typed import FunctionCall
from sqlext_planner.relational.logical_plan import Built, Field, LogicalPlan, Needs, comma, with_fields
from sqlext_planner.relational.nodes import Filter, Hint, Project, SubqueryAlias
from sqlext_planner.tree import Clause

#: What can be estimated.
EarlyFunction = Literal["count", "sum", "avg"]
BOUND_TYPES = {"lower": "double", "upper": "double", "coverage": "double", "reliable": "boolean"}


@dataclass(frozen=True)
class Emission:
    """What EMIT AFTER says: microseconds from the start of a window to its early answer, the estimator, the share of
    intervals that are to hold the exact answer. `delay_span` is the place of the interval."""

    delay: int
    estimator: str
    confidence: float
    delay_span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"after {self.delay / 1e6:g}s by {self.estimator}, confidence {self.confidence:g}"

    def parts(self) -> dict[str, str]:
        """What the state of a stream depends on, by names that a user knows."""
        return {"delay": f"{self.delay / 1e6:g}s", "estimator": self.estimator, "confidence": f"{self.confidence:g}"}


def value_type_error(function: str, kind: str, span: Span | None) -> UnsupportedError:
    """The error for a call over values that no estimator takes."""
    return UnsupportedError(
        f"EMIT AFTER does not compute {function} over values of the type {kind}",
        condition="early-answer",
        span=span,
        help="cast the value to double or bigint",
    )


def late_answer_error(emission: Emission, message: str) -> AnalysisError:
    """The error for an answer that would come when its window or row is final."""
    return AnalysisError(
        message,
        condition="early-answer-options",
        span=emission.delay_span,
        help="give a shorter DELAY, or leave EMIT AFTER out",
    )


@dataclass(frozen=True)
class EarlyCall:
    """One aggregate over the pairs: of a value of one side, or COUNT(*) without one.

    `bounds` are the columns lower, upper, coverage and reliable.
    """

    function: EarlyFunction
    value: Expression | None
    side: Literal["left", "right"]
    column: Column
    bounds: tuple[Column, ...]
    text: str = field(compare=False)
    span: Span | None = field(default=None, compare=False, repr=False)

    def dtype(self, known: dict[Column, str | None]) -> str | None:
        """The type of Spark's aggregate."""
        if self.function != "sum" or self.value is None:
            return {"count": "bigint", "avg": "double"}.get(self.function)
        kind = self.value.result_type(known)
        return None if kind is None else "bigint" if kind in INTEGERS else "double"

    def __str__(self) -> str:
        return f"{self.function}({'*' if self.value is None else self.value}) AS {self.column}"


@dataclass(frozen=True)
class EarlyAggregate(LogicalPlan):
    """Aggregates over the pairs of rows with equal keys in one window, by window: an early row and a final one of each.

    ``SELECT w.start, count(*) FROM l JOIN r ON l.k = r.k AND l.w = r.w GROUP BY l.w EMIT AFTER DELAY 7s`` is
    ``EarlyAggregate([k = k], [count(*)], l, r)``. `left_keys[i] = right_keys[i]`; windows are `length` microseconds
    long, begin at `offset` plus multiples of that, and hold the times `left_time` and `right_time`. `start` and `end`
    are those of the window, `phase` is early or final.
    """

    is_extension = True
    operator_name = "EMIT AFTER"

    left: LogicalPlan
    right: LogicalPlan
    left_keys: tuple[Expression, ...]
    right_keys: tuple[Expression, ...]
    left_time: Column
    right_time: Column
    length: int
    offset: int
    calls: tuple[EarlyCall, ...]
    start: Column
    end: Column
    phase: Column
    emission: Emission

    def __post_init__(self) -> None:
        if not self.left_keys or len(self.left_keys) != len(self.right_keys) or not self.calls:
            raise InternalError("a window join with early answers has keys and aggregates")
        self.check_unique_output()

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        return with_fields(self, left=built(self.left), right=built(self.right))

    @cached_property
    def output(self) -> tuple[Field, ...]:
        known = {**self.left.dtypes, **self.right.dtypes}
        kind = known.get(self.left_time)
        found = [Field(self.start, kind), Field(self.end, kind), Field(self.phase, "string")]
        for call in self.calls:
            found.append(Field(call.column, call.dtype(known)))
            found += [Field(column, kind) for column, kind in zip(call.bounds, BOUND_TYPES.values(), strict=True)]
        return tuple(found)

    def expressions(self) -> Iterator[Expression]:
        yield from (*self.left_keys, *self.right_keys, self.left_time, self.right_time)
        yield from (call.value for call in self.calls if call.value is not None)

    def label(self) -> str:
        keys = " AND ".join(f"{a} = {b}" for a, b in zip(self.left_keys, self.right_keys, strict=True))
        begins = f" + {self.offset / 1e6:g}s" if self.offset else ""
        windows = f"{self.length / 1e6:g}s{begins} of {self.left_time}, {self.right_time}"
        return f"EarlyAggregate: ON {keys} WINDOWS {windows} [{comma(self.calls)}] EMIT {self.emission}"


def default_estimator() -> str:
    """The one that is used if none is named."""
    from sqlext_operators.early.estimators import DEFAULT

    return DEFAULT


def estimator_docs() -> dict[str, str]:
    """A line about each estimator, by name."""
    from sqlext_operators.early.estimators import ESTIMATORS

    return {name: kind.doc for name, kind in ESTIMATORS.items()}


def stream_estimators() -> list[str]:
    """Those that need no arrivals, which a stream does not keep."""
    from sqlext_operators.early.estimators import ESTIMATORS

    return [name for name, kind in ESTIMATORS.items() if not kind.follows_arrivals]


@dataclass(frozen=True)
class TimeWindow:
    """Windows of `length` that begin at `offset` plus multiples of it, in microseconds, over the time in a column.

    `time` is None where the plan computes the window and does not pass the time on. A `slide` other than the length
    means windows that overlap.
    """

    time: Column | None
    length: int
    slide: int
    offset: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """What two windows have to share."""
        return self.length, self.offset % self.length


#: Microseconds of an interval's text; None for text that is none of a fixed length.
Microseconds = Callable[[str], int | None]


def time_window(expression: Expression, plan: LogicalPlan, micros: Microseconds) -> TimeWindow | None:
    """The windows that an expression over a plan's columns gives; None for any other expression."""
    if isinstance(expression, Column):
        return _below(expression, plan, micros)
    match expression:
        case FunctionCall(name="window", arguments=(Column() as time, first, *others)) if len(others) < 3:
            found = [micros(_plain(str(item))) for item in (first, *others)]
            known = [item for item in found if item is not None]
            if len(known) < len(found) or known[0] <= 0:
                return None
            slide = known[1] if len(known) > 1 else known[0]
            return TimeWindow(time, known[0], slide, known[2] if len(known) > 2 else 0)
    return None


def _plain(text: str) -> str:
    """What a string or an INTERVAL says."""
    return text[1:-1] if text[0] in "'\"" else text.lower().partition("interval")[2].strip()


def _below(column: Column, plan: LogicalPlan, micros: Microseconds) -> TimeWindow | None:
    """The windows that a column holds, with their time as a column of this plan."""
    match plan:
        case SubqueryAlias(child=child):
            names = dict(zip(child.output_columns, plan.output_columns, strict=True))
            source = next((inner for inner, outer in names.items() if outer == column), None)
            window = None if source is None else _below(source, child, micros)
            return window and replace(window, time=None if window.time is None else names.get(window.time))
        case Project(items=items, child=child):
            item = next((item for item in items if item.column == column), None)
            window = None if item is None else time_window(item.expression, child, micros)
            time = next((item.column for item in items if window is not None and item.expression == window.time), None)
            return window and replace(window, time=time)
        case Filter(child=child) | Hint(child=child):
            return _below(column, child, micros)
    return None


def row_estimators() -> list[str]:
    """The names of the estimators for windows of rows. Their table, the operators', is loaded when asked for."""
    from sqlext_operators.early_windows.answers import ROW_ESTIMATORS

    return list(ROW_ESTIMATORS)


@dataclass(frozen=True)
class Bounds(Clause):
    """The columns lower, upper, coverage and reliable of the call whose values are in `column`."""

    column: Column
    bounds: tuple[Column, ...]

    def __str__(self) -> str:
        return str(self.column)


@dataclass(frozen=True)
class EarlyWindows(LogicalPlan):
    """Each row of `child`, a window union over streams, twice: with estimates of its calls, and as it is.

    ``SELECT ts, sum(v) OVER w FROM a WINDOW w AS (UNION b ...) EMIT AFTER DELAY 7s`` is ``EarlyWindows([sum],
    WindowUnion(...))``. Outputs the child's columns, the bounds of each call, and `phase`, which is early or final.
    """

    is_extension = True
    operator_name = "EMIT AFTER"

    calls: tuple[Bounds, ...]
    phase: Column
    emission: Emission
    child: LogicalPlan

    def __post_init__(self) -> None:
        self.check_unique_output()

    @cached_property
    def output(self) -> tuple[Field, ...]:
        found = [*self.child.output]
        for call in self.calls:
            found += [Field(column, kind) for column, kind in zip(call.bounds, BOUND_TYPES.values(), strict=True)]
        return (*found, Field(self.phase, "string"))

    def expressions(self) -> Iterator[Expression]:
        yield from (call.column for call in self.calls)

    def child_needs(self, needed: Set[Column]) -> Needs:
        columns = {call.column for call in self._pruned(needed)}
        return [(self.child, (needed & set(self.child.output_columns)) | columns)]

    def narrowed(self, needed: Set[Column], built: Built) -> LogicalPlan:
        return with_fields(self, calls=self._pruned(needed), child=built(self.child))

    def _pruned(self, needed: Set[Column]) -> tuple[Bounds, ...]:
        """The calls of which anything is needed; one stays if nothing is."""
        return tuple(call for call in self.calls if needed & {call.column, *call.bounds}) or self.calls[:1]

    def label(self) -> str:
        return f"EarlyWindows: [{comma(self.calls)}] EMIT {self.emission}"
