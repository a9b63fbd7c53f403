"""The rows that a streaming query of a deployment's statement keeps, for the deployment to begin with.

The windows of the deployment are found again among the operators of the query by what the state of each depends on:
the same that a query compares that goes on with a checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlext_operators.errors import TaskError
from sqlext_operators.exchange.bucket_state import CHUNKS, META, BucketState, differing, shown_parts
from sqlext_operators.sequences.sequence import FROM
from sqlext_operators.serving.steps import InputSpec
from sqlext_operators.serving.streamed import Bucket, StreamedWindow, as_kept, computed, one_of_each

from sqlext_planner.errors import ConfigurationError
from sqlext_planner.exchange.stream_driver import unreferenced
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.serving.lowering import ServingSettings
from sqlext_planner.serving.steps import serving_plan
from sqlext_planner.serving.windows import ServedWindow
from sqlext_planner.spark.stored_state import StoredState
from sqlext_planner.spark.workers import task_error
from sqlext_planner.window.inputs import state_parts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The part of a fingerprint that an operator over results of others has.
_CHAINED = "delay of its inputs"


@dataclass(frozen=True, eq=False)
class _Operator:
    """An operator of the query with windows of the deployment: its number (None: one that has had no rows yet), and
    what its buckets say of themselves, by their numbers."""

    number: int | None
    window: ServedWindow
    states: Mapping[int, BucketState]

    @property
    def parts(self) -> dict[str, str]:
        """What its state depends on."""
        parts: dict[str, str] = {}
        for state in self.states.values():
            parts = json.loads(state.fingerprint)
            break
        return parts

    @property
    def is_spread(self) -> bool:
        """Whether a key may be in several buckets."""
        return "partitioner" in self.parts or any(state.placement for state in self.states.values())

    @property
    def inputs(self) -> list[tuple[int, int]]:
        """The numbers of its inputs with rows that the deployment needs, and of the deployment's inputs for these."""
        step = self.window.step
        shown = [] if step.own is None else [(FROM, step.own)]
        return [*shown, *enumerate(step.unions, FROM + 1)]


class QueryRows:
    """The rows that a query keeps for the windows of a deployment, which is an optimized plan, its request table and
    its settings.

    Raises ConfigurationError for a checkpoint of another query or in another format, for one that cannot be read or is
    damaged, and for a deployment whose windows show rows that no stream keeps.
    """

    def __init__(
        self, spark: SparkSession, location: str, plan: LogicalPlan, request: str, settings: ServingSettings
    ) -> None:
        self._spec, windows = serving_plan(plan, request, settings)
        if not windows:
            raise _refused(
                "the statement has no windows, and a stream keeps no rows for LAST JOINs with tables",
                "load the tables: deployment.load, or sqlext serve --data",
            )
        for window in windows:
            self._check_shown(window)
        self._state = StoredState(spark, location)
        self._operators = self._matched(windows)
        #: The numbers of the inputs that get their rows from the query, with the operator that has them.
        self._sources: dict[int, _Operator] = {}
        for operator in self._operators:
            for _, place in operator.inputs:
                self._sources.setdefault(place, operator)
        self._check_tables()

    @property
    def batch(self) -> int:
        """The number of the last micro-batch whose rows these are."""
        return self._state.batch

    @property
    def cutoffs(self) -> dict[int, int]:
        """For each input that the query has rows of: the time below which rows may be gone."""
        return {
            place: _streamed(operator).cutoff(operator.states.values()) for place, operator in self._sources.items()
        }

    @property
    def missing(self) -> tuple[str, ...]:
        """The tables whose rows the query does not keep: the right sides of LAST JOINs."""
        rest = (item.table for place, item in enumerate(self._spec.inputs) if place not in self._sources)
        return tuple(sorted(set(rest)))

    def batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The number of an input, and rows that it keeps: those of a key in the order of their times and then as they
        came. Raises as the class."""
        # a window above others has the older rows of its FROM, those below have the rest
        for operator in reversed(self._operators):
            try:
                yield from self._of_operator(operator)
            except TaskError as error:
                raise task_error(error) or error from None

    def _of_operator(self, operator: _Operator) -> Iterator[tuple[int, pa.RecordBatch]]:
        streamed = _streamed(operator)
        tags = [(tag, place) for tag, place in operator.inputs if self._sources[place] is operator]
        above = self._own_above(operator)
        if above:
            self._check_payload(operator)
        held: dict[int, list[pa.RecordBatch]] = {}
        has_copies = False
        for bucket in self._buckets(operator):
            for tag, place in tags:
                rows = streamed.rows(bucket, tag)
                if rows is not None:
                    has_copies = has_copies or (tag == FROM and operator.is_spread and streamed.has_copies(bucket))
                    held.setdefault(tag, []).append(as_kept(rows, self._input(place).kept.schema))
            if not operator.is_spread:
                yield from ((place, rows) for tag, place in tags for rows in held.pop(tag, ()))
            for rows in streamed.waiting(bucket) if above else ():
                yield from ((place, computed(rows, self._input(place))) for place in above)
        for tag, place in tags:
            parts = held.pop(tag, [])
            if parts and (tag != FROM or has_copies):
                keys, order = self._input(place).kept.keys, self._input(place).kept.order
                parts = [one_of_each(parts, keys, str(order))]
            yield from ((place, rows) for rows in parts)

    def _own_above(self, operator: _Operator) -> list[int]:
        """The inputs of windows above an operator that show rows of the request table: they lack those that wait."""
        above = self._operators[self._operators.index(operator) + 1 :]
        owned = {one.window.step.own: one for one in above}
        return [place for place, one in owned.items() if place is not None and self._sources[place] is one]

    def _buckets(self, operator: _Operator) -> Iterator[Bucket]:
        """The buckets with their chunks. Spark gives the rows of a partition one after the other."""
        partition, chunks = None, dict[int, dict[int, bytes]]()
        left = dict(operator.states)
        for row in () if operator.number is None else self._state.rows(operator.number, CHUNKS[0]):
            if row["partition_id"] != partition:
                yield from (Bucket(left.pop(pid), data) for pid, data in chunks.items() if pid in left)
                partition, chunks = row["partition_id"], {}
            chunks.setdefault(row["key"][0], {})[row["user_map_key"][0]] = bytes(row["user_map_value"][0])
        yield from (Bucket(left.pop(pid), data) for pid, data in chunks.items() if pid in left)
        yield from (Bucket(state, {}) for state in left.values())

    def _input(self, place: int) -> InputSpec:
        return self._spec.inputs[place]

    # Which operator has which windows

    def _matched(self, windows: Sequence[ServedWindow]) -> list[_Operator]:
        """The operators of the windows, in the order in which they are computed."""
        every = {number: self._states(number) for number in self._state.operators(CHUNKS[0], META[0])}
        left = {number: states for number, states in every.items() if states}
        without_rows = len(every) - len(left)
        operators: list[_Operator] = []
        unknown: list[tuple[int, ServedWindow]] = []
        for place, window in enumerate(windows):
            same = [number for number, states in left.items() if not _differences(states, window, place)]
            if len(same) > 1:
                raise _refused(
                    f"{len(same)} operators of the query have the same windows, and their rows cannot be told apart",
                    "load the rows of the tables: deployment.load, or sqlext serve --data",
                )
            if not same:
                unknown.append((place, window))
            number = same[0] if same else None
            operators.append(_Operator(number, window, {} if number is None else left.pop(number)))
        if left or len(unknown) > without_rows:
            raise _other_query(unknown, left)
        return operators

    def _states(self, number: int) -> dict[int, BucketState]:
        try:
            rows = self._state.rows(number, META[0])
            return {row["key"][0]: BucketState.of(tuple(row["value"])) for row in rows}
        except TaskError as error:
            raise task_error(error) or error from None

    # What no stream keeps

    def _check_shown(self, window: ServedWindow) -> None:
        """Raises ConfigurationError for windows that show joined rows of the request table: a stream keeps them as they
        were joined, and a deployment joins them again when it is asked."""
        step = window.step
        if step.own is None:
            return
        lacking = [name for name in self._input(step.own).kept.schema.names if name not in step.types.names]
        if lacking:
            raise _refused(
                f"windows show rows of '{self._spec.request}' with columns of a LAST JOIN: a stream keeps them as they "
                f"were joined, and not {', '.join(lacking)}, by which a deployment joins them when it is asked",
                "load the rows of the tables: deployment.load, or sqlext serve --data",
            )

    def _check_tables(self) -> None:
        """Raises ConfigurationError for a table that a LAST JOIN reads too: its rows would be stored twice."""
        filled = {self._input(place).table for place in self._sources}
        both = sorted(filled & set(self.missing))
        if both:
            raise _refused(
                f"'{both[0]}' is read by windows and by a LAST JOIN, and the query keeps its rows for the windows only",
                "load the rows of the tables: deployment.load, or sqlext serve --data",
            )

    def _check_payload(self, operator: _Operator) -> None:
        """Raises ConfigurationError if other columns pass through the windows of the query."""
        calls = [call.output for window in operator.window.step.window.windows for call in window.calls]
        names = [*operator.window.payload, *calls]
        text = operator.parts.get("results", "")
        if operator.parts and re.fullmatch(", ".join(f"{re.escape(name)} .+" for name in names), text) is None:
            raise _refused(
                f"the results of its windows are {text}, and those of the deployment {', '.join(names)}",
                "deploy the statement of the query as it is",
            )


def _streamed(operator: _Operator) -> StreamedWindow:
    step = operator.window.step
    return StreamedWindow(replace(step.window, payload=operator.window.payload), 1 + len(step.unions))


def _parts(window: ServedWindow) -> dict[str, str]:
    spec = window.step.window
    return unreferenced(state_parts(spec, window.computed, ansi=spec.ansi))


def _differences(states: Mapping[int, BucketState], window: ServedWindow, place: int) -> list[str]:
    """The parts in which the state of an operator is that of other windows; `place` counts the windows below."""
    fingerprint = next(iter(states.values())).fingerprint
    parts = differing(fingerprint, _parts(window))
    if parts is None:
        return ["description"]
    return parts + [_CHAINED] * ((_CHAINED in json.loads(fingerprint)) is not (place > 0))


def _other_query(
    unknown: Sequence[tuple[int, ServedWindow]], left: Mapping[int, Mapping[int, BucketState]]
) -> ConfigurationError:
    """The error for operators and windows that have no equal."""
    help = "deploy the statement of the query as it is, with its settings, or name the checkpoint of another query"
    if not left:
        return _refused(f"the query of the checkpoint has {len(unknown)} operators with windows less", help)
    if not unknown:
        return _refused(f"the query of the checkpoint has {len(left)} more operators with state", help)
    place, window = unknown[0]
    states = min(left.values(), key=lambda states: len(_differences(states, window, place)))
    try:
        before = json.loads(next(iter(states.values())).fingerprint)
        shown = shown_parts(before, _parts(window), _differences(states, window, place))
    except (ValueError, TypeError, AttributeError):
        shown = "its description cannot be read"
    return _refused(f"the checkpoint belongs to another query: {shown}", help)


def _refused(message: str, help: str) -> ConfigurationError:
    return ConfigurationError(message, condition="checkpoint-mismatch", help=help)
