"""Output batches of an interval join: payload columns of pairs, and of rows that all their matches decide; and
candidate pairs for a test that someone else makes, with the join's rows after it.

`CandidateOutput` gives pairs with the numbers of their rows, and after all pairs of a row that its matches decide
the row itself, its end. Someone drops the pairs that fail the test, keeping ends and order; `completed` then makes the
join's output in the same task: a row whose number no pair has brought has no match.

NUMBER has both: of a pair the number of the row that is decided, or left << 32 | right if both are; of the end of row
n -1 - (2 n + side). One column for all of it, since each costs Spark's time for every candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.reshape import rows_without_columns
from sqlext_operators.errors import RowOverflowError
from sqlext_operators.exchange.profile import measured
from sqlext_operators.interval_join.passes import SIDES, Side, other_side
from sqlext_operators.interval_join.spec import COUNT, MATCHES, ROW, IntervalJoinSpec, Kind

#: Bytes of one output batch, if rows are of even length.
_OUTPUT_BYTES = 64 << 20
_LONG = pa.int64()

#: Rows of the output: all, or only those that (do not) wait for their copies in other tiles.
ResultPart = Literal["all", "decided", "undecided"]
Rows = npt.NDArray[np.int32] | npt.NDArray[np.int64]
NUMBER = "__sqlext_number"
_HALF = 32
#: Rows of one side whose numbers fit into half of NUMBER.
MOST_ROWS = 1 << 31


class IntervalOutput:
    """Makes batches of `schema` with at most `batch_rows` rows and about 64 MB.

    `left` and `right` are schemas that have the payload columns. `row` is the column of the sides' rows that has a
    number where only all copies of a row together decide. Then every kind but "inner" gets two more columns, int64
    ROW (NULL for pairs and for rows that are decided here) and MATCHES, the copy's own matches. An undecided row is
    output once for each copy, with the other side and COUNT NULL: left, right, full and anti need it if the matches of
    all copies are 0, semi if they are not, count with their sum if that is not 0. Counts without a payload are added up
    at once, copies or not. `part` leaves out either the undecided rows, and with them the two columns, or all others;
    undecided rows alone are found without going through pairs.
    """

    def __init__(
        self,
        spec: IntervalJoinSpec,
        left: pa.Schema,
        right: pa.Schema,
        batch_rows: int,
        row: str | None = None,
        part: ResultPart = "all",
    ) -> None:
        self._spec = spec
        self._part = part
        self.has_pairs = spec.pairs and part != "undecided"
        self._payload: dict[Side, pa.Schema] = {
            "left": pa.schema([left.field(name) for name in spec.left.payload]),
            "right": pa.schema([right.field(name) for name in spec.right.payload] if spec.pairs else []),
        }
        self._batch_rows = batch_rows
        self._row = row
        has_row = row is not None and spec.kind != "inner" and part != "decided"
        self._extra = [pa.field(ROW, _LONG), pa.field(MATCHES, _LONG)] if has_row else []
        count = [pa.field(COUNT, _LONG)] if spec.kind == "count" else []
        self.schema = pa.schema([*self._payload["left"], *self._payload["right"], *count, *self._extra])

    def numbers_for(self, side: Side, count: int) -> int:
        """The first of `count` numbers for a batch of a side, for outputs that number rows."""
        return 0

    def number_from(self, side: Side, start: int) -> None:
        """The rows of the side's batch that is joined now have the numbers from `start` on."""

    def pair_rows(self, left: pa.RecordBatch, right: pa.RecordBatch) -> int:
        """How many pairs fit into one batch."""
        return self._fitting(_width(left) + _width(right))

    def pairs(self, left: pa.RecordBatch, left_rows: Rows, right: pa.RecordBatch, right_rows: Rows) -> pa.RecordBatch:
        """One batch of pairs of rows."""
        columns = _taken(self._payload["left"], left, left_rows) + _taken(self._payload["right"], right, right_rows)
        return self._batch(columns + [_nulls(field.type, len(left_rows)) for field in self._extra], len(left_rows))

    def decided(self, side: Side, rows: pa.RecordBatch, counts: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
        """The rows of a side that are output besides pairs, by how many matches they have, and its undecided ones."""
        if self._spec.kind == "count" and not self._spec.left.payload:
            total = int(counts.sum())
            if total:
                yield self._batch([pa.array([total]), *(_nulls(field.type, 1) for field in self._extra)], 1)
            return
        undecided = self._undecided(rows)
        chosen = counts == 0 if self._spec.keeps(side) else counts > 0
        if self._part != "undecided":
            yield from self._chunks(side, rows, counts, np.flatnonzero(chosen & ~undecided), partial=False)
        if self._part != "decided":
            yield from self._chunks(side, rows, counts, np.flatnonzero(undecided), partial=True)

    def _undecided(self, rows: pa.RecordBatch) -> Bools:
        """bool[n], the rows that wait for their copies in other tiles."""
        if self._row is None:
            return np.zeros(rows.num_rows, np.bool_)
        undecided: Bools = rows.column(self._row).is_valid().to_numpy(zero_copy_only=False)
        return undecided

    def _chunks(
        self, side: Side, rows: pa.RecordBatch, counts: npt.NDArray[np.int64], places: Rows, *, partial: bool
    ) -> Iterator[pa.RecordBatch]:
        step = self._fitting(_width(rows))
        for start in range(0, len(places), step):
            chunk = places[start : start + step]
            columns = _alone(self._payload, side, rows, chunk)
            if self._spec.kind == "count":
                columns.append(_nulls(_LONG, len(chunk)) if partial else pa.array(counts[chunk]))
            if self._extra and partial and self._row is not None:
                columns += [rows.column(self._row).take(pa.array(chunk)), pa.array(counts[chunk])]
            elif self._extra:
                columns += [_nulls(field.type, len(chunk)) for field in self._extra]
            yield self._batch(columns, len(chunk))

    def _batch(self, columns: list[pa.Array], count: int) -> pa.RecordBatch:
        if not columns:
            return rows_without_columns(count)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _fitting(self, width: int) -> int:
        return max(1, min(self._batch_rows, _OUTPUT_BYTES // max(1, width)))


def _taken(schema: pa.Schema, rows: pa.RecordBatch, places: Rows) -> list[pa.Array]:
    """The columns of a schema of rows at these places."""
    with measured("output"):
        indices = pa.array(places) if schema.names else None
        return [rows.column(name).take(indices) for name in schema.names]


def _alone(columns: Mapping[Side, pa.Schema], side: Side, rows: pa.RecordBatch, places: Rows) -> list[pa.Array]:
    """The columns of both sides for rows of one, NULL in those of the other."""
    taken = {side: _taken(columns[side], rows, places)}
    nulls = {other_side(side): [_nulls(field.type, len(places)) for field in columns[other_side(side)]]}
    return [column for name in SIDES for column in (taken | nulls)[name]]


def _width(rows: pa.RecordBatch) -> int:
    return int(rows.nbytes // max(1, rows.num_rows))


def _nulls(kind: pa.DataType, count: int) -> pa.Array:
    return pa.nulls(count, kind)


def candidate_columns(spec: IntervalJoinSpec, side: Side) -> tuple[str, ...]:
    """The columns of one side in the output of candidates: its payload, then what else is tested."""
    own = spec.side(side)
    payload = own.payload if side == "left" or spec.pairs else ()
    return tuple(dict.fromkeys((*payload, *own.tested)))


class CandidateOutput(IntervalOutput):
    """Output of candidates: the columns of `candidate_columns` of both sides, NUMBER, and ROW with tiles.

    A pair has the columns that are tested, and the payload if the join outputs its pairs. An end has its own side's
    columns and NULL for the other's. Rows without a candidate have an end too, unless they then are no output.
    """

    def __init__(
        self,
        spec: IntervalJoinSpec,
        left: pa.Schema,
        right: pa.Schema,
        batch_rows: int,
        row: str | None = None,
        part: ResultPart = "all",
    ) -> None:
        super().__init__(spec, left, right, batch_rows, row, part)
        self.has_pairs = True
        schemas: dict[Side, pa.Schema] = {"left": left, "right": right}
        self._columns = {
            side: pa.schema([schema.field(name) for name in candidate_columns(spec, side)])
            for side, schema in schemas.items()
        }
        self._starts = {"left": 0, "right": 0}
        self._ends_at = {"left": 0, "right": 0}
        self._deciding = tuple(side for side in SIDES if spec.decides(side))
        more = [pa.field(name, _LONG) for name in (NUMBER, *([ROW] if part == "undecided" else []))]
        self.schema = pa.schema([*self._columns["left"], *self._columns["right"], *more])

    def numbers_for(self, side: Side, count: int) -> int:
        start = self._ends_at[side]
        self._ends_at[side] += count
        if self._ends_at[side] > MOST_ROWS:
            raise RowOverflowError(
                f"a task of an interval join has more than {MOST_ROWS:,} rows of one side",
                "set sqlext.exchange.partitions to more, or give the join a key",
                condition="result-too-large",
            )
        return start

    def number_from(self, side: Side, start: int) -> None:
        self._starts[side] = start

    def pairs(self, left: pa.RecordBatch, left_rows: Rows, right: pa.RecordBatch, right_rows: Rows) -> pa.RecordBatch:
        columns: list[pa.Array] = []
        given: tuple[tuple[Side, pa.RecordBatch, Rows], ...] = (("left", left, left_rows), ("right", right, right_rows))
        for side, rows, places in given:
            needed = self._columns[side].names if self._spec.pairs else self._spec.side(side).tested
            indices = pa.array(places)
            columns += [
                rows.column(item.name).take(indices) if item.name in needed else pa.nulls(len(places), item.type)
                for item in self._columns[side]
            ]
        numbers = [self._numbers(side, places) for side, _, places in given if side in self._deciding]
        columns.append(pa.array(numbers[0] if len(numbers) == 1 else numbers[0] << _HALF | numbers[1]))
        columns += [pa.nulls(len(left_rows), _LONG)] if self._part == "undecided" else []
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def decided(self, side: Side, rows: pa.RecordBatch, counts: Int64s) -> Iterator[pa.RecordBatch]:
        wanted = np.ones(rows.num_rows, np.bool_) if self._spec.keeps(side) else counts > 0
        undecided = self._undecided(rows)
        wanted = undecided if self._part == "undecided" else wanted & ~undecided
        places = np.flatnonzero(wanted)
        step = self.pair_rows(rows, rows)
        for start in range(0, len(places), step):
            yield self._ends(side, rows, places[start : start + step])

    def _ends(self, side: Side, rows: pa.RecordBatch, places: Rows) -> pa.RecordBatch:
        columns = _alone(self._columns, side, rows, places)
        columns.append(pa.array(-1 - (2 * self._numbers(side, places) + SIDES.index(side))))
        if self._part == "undecided" and self._row is not None:
            columns.append(rows.column(self._row).take(pa.array(places)))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _numbers(self, side: Side, places: Rows) -> Int64s:
        numbers: Int64s = places.astype(np.int64) + self._starts[side]
        return numbers


@dataclass(frozen=True)
class CompletionSpec:
    """How the rows of a join are completed: `payload` is how many columns of the two sides come first, then NUMBER; of
    copies in several tiles (`undecided`) ROW, which the output has too, with MATCHES. `names` are the output's columns.
    """

    kind: Kind
    payload: int
    names: tuple[str, ...]
    undecided: bool = False

    @classmethod
    def of(cls, join: IntervalJoinSpec, names: tuple[str, ...], *, undecided: bool = False) -> CompletionSpec:
        """The completion of a join's candidates."""
        payload = len(join.left.payload) + (len(join.right.payload) if join.pairs else 0)
        return cls(join.kind, payload, names, undecided)


def completed(spec: CompletionSpec, partition: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a join from the candidates of a task that have passed, in their order, and the ends."""
    matched = _Numbers(), _Numbers()
    gives_pairs = spec.kind in ("left", "right", "full") and not spec.undecided
    for batch in batches:
        numbers = batch.column(spec.payload).to_numpy(zero_copy_only=False)
        is_end = numbers < 0
        are_pairs = not is_end.any()  # those of most batches
        pairs = numbers if are_pairs else numbers[~is_end]
        if spec.kind == "full":
            matched[0].add(pairs >> _HALF)
            matched[1].add(pairs & (1 << _HALF) - 1)
        else:
            matched[spec.kind == "right"].add(pairs)
        if are_pairs and not gives_pairs:
            continue
        if are_pairs and spec.payload:
            yield pa.RecordBatch.from_arrays(batch.columns[: spec.payload], names=list(spec.names))
            continue
        is_output = np.full(batch.num_rows, gives_pairs)
        matches = np.zeros(batch.num_rows, np.int64)
        places = np.flatnonzero(is_end)
        ended = -1 - numbers[places]
        of_right = (ended & 1).astype(np.bool_)
        has = np.where(of_right, matched[1].among(ended >> 1), matched[0].among(ended >> 1))
        matches[places] = has
        is_output[places] = True if spec.undecided else has == (spec.kind == "semi")
        yield from _rows(spec, batch, np.flatnonzero(is_output), matches)


def _rows(spec: CompletionSpec, batch: pa.RecordBatch, places: Rows, matches: Int64s) -> Iterator[pa.RecordBatch]:
    if not len(places):
        return
    indices = pa.array(places)
    columns = [batch.column(place).take(indices) for place in range(spec.payload)]
    if spec.undecided:
        columns += [batch.column(spec.payload + 1).take(indices), pa.array(matches[places])]
    if not columns:
        yield rows_without_columns(len(places))
        return
    yield pa.RecordBatch.from_arrays(columns, names=list(spec.names))


class _Numbers:
    """A set of small numbers, a byte for each up to the largest."""

    def __init__(self) -> None:
        self._held = np.zeros(1024, np.bool_)

    def add(self, numbers: Int64s) -> None:
        if not len(numbers):
            return
        most = int(numbers.max())
        if most >= len(self._held):
            held = np.zeros(max(most + 1, 2 * len(self._held)), np.bool_)
            held[: len(self._held)] = self._held
            self._held = held
        self._held[numbers] = True

    def among(self, numbers: Int64s) -> Bools:
        """bool[n], which of the numbers are in the set."""
        known = numbers < len(self._held)
        return known & self._held[np.where(known, numbers, 0)]
