"""Candidate pairs of an interval join for a test that someone else makes, and the join's rows after it.

`CandidateOutput` gives pairs with the numbers of their rows, and after all pairs of a row that its matches decide
the row itself, its end. Someone drops the pairs that fail the test, keeping ends and order; `completed` then makes the
join's output in the same task: a row whose number no pair has brought has no match.

NUMBER has both: of a pair the number of the row that is decided, or left << 32 | right if both are; of the end of row
n -1 - (2 n + side). One column for all of it, since each costs Spark's time for every candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.reshape import rows_without_columns
from sqlext_operators.errors import RowOverflowError
from sqlext_operators.interval_join.output import Output, Part, Rows
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.spec import ROW, IntervalJoinSpec, Kind

SIDES: tuple[Side, Side] = ("left", "right")
NUMBER = "__sqlext_number"
_LONG = pa.int64()
_HALF = 32
#: Rows of one side whose numbers fit into half of NUMBER.
MOST_ROWS = 1 << 31


def candidate_columns(spec: IntervalJoinSpec, side: Side) -> tuple[str, ...]:
    """The columns of one side in the output of candidates: its payload, then what else is tested."""
    own = spec.side(side)
    payload = own.payload if side == "left" or spec.pairs else ()
    return tuple(dict.fromkeys((*payload, *own.tested)))


class CandidateOutput(Output):
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
        part: Part = "all",
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
        given: tuple[tuple[Side, pa.RecordBatch, Rows], ...] = (
            ("left", left, left_rows),
            ("right", right, right_rows),
        )
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
        undecided = np.zeros(rows.num_rows, np.bool_)
        if self._row is not None:
            undecided = rows.column(self._row).is_valid().to_numpy(zero_copy_only=False)
        wanted = undecided if self._part == "undecided" else wanted & ~undecided
        places = np.flatnonzero(wanted)
        step = self.pair_rows(rows, rows)
        for start in range(0, len(places), step):
            yield self._ends(side, rows, places[start : start + step])

    def _ends(self, side: Side, rows: pa.RecordBatch, places: Rows) -> pa.RecordBatch:
        indices = pa.array(places)
        columns: list[pa.Array] = []
        for name in SIDES:
            columns += [
                rows.column(item.name).take(indices) if name == side else pa.nulls(len(places), item.type)
                for item in self._columns[name]
            ]
        columns.append(pa.array(-1 - (2 * self._numbers(side, places) + SIDES.index(side))))
        if self._part == "undecided" and self._row is not None:
            columns.append(rows.column(self._row).take(indices))
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
        kept = np.full(batch.num_rows, gives_pairs)
        matches = np.zeros(batch.num_rows, np.int64)
        places = np.flatnonzero(is_end)
        ended = -1 - numbers[places]
        of_right = (ended & 1).astype(np.bool_)
        has = np.where(of_right, matched[1].among(ended >> 1), matched[0].among(ended >> 1))
        matches[places] = has
        kept[places] = True if spec.undecided else has == (spec.kind == "semi")
        yield from _rows(spec, batch, np.flatnonzero(kept), matches)


def _rows(spec: CompletionSpec, batch: pa.RecordBatch, kept: Rows, matches: Int64s) -> Iterator[pa.RecordBatch]:
    if not len(kept):
        return
    indices = pa.array(kept)
    columns = [batch.column(place).take(indices) for place in range(spec.payload)]
    if spec.undecided:
        columns += [batch.column(spec.payload + 1).take(indices), pa.array(matches[kept])]
    if not columns:
        yield rows_without_columns(len(kept))
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
