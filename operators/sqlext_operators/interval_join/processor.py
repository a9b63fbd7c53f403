"""Interval joins of two sides in memory: one side held, the other in one or several batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Int32s, Int64s
from sqlext_operators.columns.keys import KeyCodes, null_keys
from sqlext_operators.expressions.evaluation import true_rows
from sqlext_operators.interval_join.codes import Encoder, periods_of, value_encoders
from sqlext_operators.interval_join.matches import Buffers, PassMatches, values_used
from sqlext_operators.interval_join.output import IntervalOutput
from sqlext_operators.interval_join.passes import Side, other_side
from sqlext_operators.interval_join.rows import CodedRows
from sqlext_operators.interval_join.spec import IntervalJoinSpec
from sqlext_operators.interval_join.tiles import TILE, Tiles


class IntervalJoinProcessor:
    """The interval join operator over one partition.

    `rows` are all rows of the side `held`, with the columns that the specification names; the other side comes in
    batches to `join`, each of which is joined on its own. With `tiles`, rows of both sides have the tile that a copy is
    for in the column TILE. Types are equal on both sides, or differ in the width of integers or floats; int64 row
    counts are kept for the sides whose rows must be decided (`spec.decides`).

    Raises ValueError for types and shifts that do not fit, EmptyPeriodError as the specification says, KeyTypeError for
    a type that cannot be a key.
    """

    def __init__(
        self,
        spec: IntervalJoinSpec,
        held: Side,
        rows: pa.RecordBatch,
        output: IntervalOutput,
        tiles: Tiles | None = None,
    ) -> None:
        self._spec, self._held, self._output, self._tiles = spec, held, output, tiles
        columns = self._keys(held, rows)
        self._key_codes = KeyCodes(max(1, len(columns)))
        group = self._key_codes.encode(columns) if columns else np.zeros(rows.num_rows, np.int64)
        values = spec.side(held).values
        encoders, self._encoder_of = value_encoders([rows.column(name) for name in values])
        self._rows = self._coded(held, rows, group, dict(zip(values, encoders, strict=True)))
        self._counts = np.zeros(rows.num_rows, np.int64) if spec.decides(held) else None
        self._buffers: Buffers | None = None

    def join(self, rows: pa.RecordBatch, counts: Int64s | None = None) -> Iterator[pa.RecordBatch]:
        """The pairs of a batch of the other side, if the output has them; adds how many matches each row has to
        `counts`, int64[rows], if it is given. Unless the kind is "count", counts may be too small, but not 0."""
        other = other_side(self._held)
        columns = self._keys(other, rows)
        group = self._key_codes.find(columns) if columns else np.zeros(rows.num_rows, np.int64)
        encoders = {name: self._encoder_of(rows.column(name).type) for name in self._spec.side(other).values}
        coded = self._coded(other, rows, group, encoders)
        sides = {self._held: self._rows, other: coded}
        match_counts = {self._held: self._counts, other: counts}
        exactly = self._spec.kind == "count"
        for conditions, passes in zip(self._spec.alternatives, self._spec.alternative_passes, strict=True):
            used = dict(zip(("left", "right"), values_used(conditions), strict=True))
            for item in passes:
                probe = other_side(item.window)
                names = (used[item.window], used[probe])
                matches = PassMatches(item, sides[item.window], sides[probe], names, self._spec.algorithm)
                if self._spec.residual is not None:
                    yield from self._tested(matches, item.window, sides, match_counts)
                    continue
                matches.add_counts(match_counts[item.window], match_counts[probe], exactly=exactly)
                if self._output.has_pairs:
                    yield from self._pairs(matches, item.window, sides)

    @property
    def held_counts(self) -> Int64s | None:
        """The matches of the held rows so far, int64[rows]; None if nothing depends on them."""
        return self._counts

    def decide(self, rows: pa.RecordBatch, counts: Int64s) -> Iterator[pa.RecordBatch]:
        """The output's rows of the other side besides pairs; `counts` are all their matches."""
        yield from self._output.decided(other_side(self._held), rows, counts)

    def decide_held(self) -> Iterator[pa.RecordBatch]:
        """The output's held rows besides pairs, after all batches of the other side."""
        if self._counts is not None:
            yield from self._output.decided(self._held, self._rows.rows, self._counts)

    def _pairs(self, matches: PassMatches, window: Side, sides: dict[Side, CodedRows]) -> Iterator[pa.RecordBatch]:
        buffers, left, right = self._room(window, sides)
        for count in matches.pairs(buffers):
            yield self._output.pairs(sides["left"].rows, left[:count], sides["right"].rows, right[:count])

    def _room(self, window: Side, sides: dict[Side, CodedRows]) -> tuple[Buffers, Int32s, Int32s]:
        """The buffers for pairs, and where their left and right rows are."""
        if self._buffers is None:
            self._buffers = Buffers.of(self._output.pair_rows(sides["left"].rows, sides["right"].rows))
        buffers = self._buffers
        return (buffers, *((buffers.window, buffers.probe) if window == "left" else (buffers.probe, buffers.window)))

    def _tested(
        self, matches: PassMatches, window: Side, sides: dict[Side, CodedRows], counts: dict[Side, Int64s | None]
    ) -> Iterator[pa.RecordBatch]:
        """The pairs for which the residual is true, counted and output; only as many as decide the rows where no pair
        is output."""
        buffers, left, right = self._room(window, sides)
        exactly, has_pairs = self._spec.kind == "count", self._output.has_pairs
        enough = not (exactly or has_pairs)
        decided = counts[window]
        alone = enough and decided is not None and counts[other_side(window)] is None
        found = matches.undecided_pairs(buffers, decided) if alone and decided is not None else matches.pairs(buffers)
        test = PairTest(self._spec, sides["left"].rows, sides["right"].rows)
        for count in found:
            pairs = left[:count], right[:count]
            if enough and not alone:
                pairs = _undecided(counts, *pairs)
            ours, theirs = test.passing(*pairs)
            _count(counts["left"], ours, exactly=exactly)
            _count(counts["right"], theirs, exactly=exactly)
            if has_pairs and len(ours):
                yield self._output.pairs(sides["left"].rows, ours, sides["right"].rows, theirs)

    def _keys(self, side: Side, rows: pa.RecordBatch) -> list[pa.Array]:
        """The key columns; the tile is one of them."""
        names = [*self._spec.side(side).keys, *([TILE] if self._tiles is not None else [])]
        return [rows.column(name) for name in names]

    def _coded(self, side: Side, rows: pa.RecordBatch, group: Int64s, encoders: Mapping[str, Encoder]) -> CodedRows:
        own = self._spec.side(side)
        without = null_keys([rows.column(name) for name in own.keys], self._spec.null_safe)
        if without is not None:
            group = np.where(without, -1, group)
        periods = periods_of(own, rows, self._spec.empty)
        tiles = None
        if self._tiles is not None:
            tiles = (self._tiles, rows.column(TILE).to_numpy(zero_copy_only=False).astype(np.int64))
        groups = max(1, len(self._key_codes))
        return CodedRows(rows, group, groups, encoders, periods, tiles)


def _undecided(counts: dict[Side, Int64s | None], left: Int32s, right: Int32s) -> tuple[Int32s, Int32s]:
    """The pairs of which a row that waits for a match has none yet."""
    open_rows = np.zeros(len(left), np.bool_)
    for found, rows in ((counts["left"], left), (counts["right"], right)):
        if found is not None:
            open_rows |= found[rows] == 0
    return left[open_rows], right[open_rows]


def _count(counts: Int64s | None, rows: Int32s, *, exactly: bool) -> None:
    """Count the pairs of `rows`; unless `exactly`, rows with a pair get any number above 0."""
    if counts is None:
        return
    if exactly:
        counts += np.bincount(rows, minlength=len(counts))
    else:
        counts[rows] = 1


def join_batches(
    spec: IntervalJoinSpec, left: pa.RecordBatch, right: pa.RecordBatch, batch_rows: int = 262_144
) -> Iterator[pa.RecordBatch]:
    """The whole join of two batches; output batches have at most `batch_rows` rows."""
    output = IntervalOutput(spec, left.schema, right.schema, batch_rows)
    processor = IntervalJoinProcessor(spec, "right", right, output)
    counts = np.zeros(left.num_rows, np.int64) if spec.decides("left") else None
    yield from processor.join(left, counts)
    if counts is not None:
        yield from processor.decide(left, counts)
    yield from processor.decide_held()


class PairTest:
    """Tests pairs of rows of two batches, which have the `tested` columns of their sides."""

    def __init__(self, spec: IntervalJoinSpec, left: pa.RecordBatch, right: pa.RecordBatch) -> None:
        assert spec.residual is not None
        self._residual = spec.residual
        self._columns = [
            {name: rows.column(name) for name in side.tested} for side, rows in ((spec.left, left), (spec.right, right))
        ]

    def passing(self, left: Int32s, right: Int32s) -> tuple[Int32s, Int32s]:
        """The pairs (left[i], right[i]) for which the residual is true. Raises RowOverflowError as `evaluate` does."""
        if not len(left):
            return left, right
        places = [pa.array(left), pa.array(right)]
        taken: dict[str, pa.Array] = {}

        def column(name: str) -> pa.Array:
            if name not in taken:
                side = 0 if name in self._columns[0] else 1
                taken[name] = self._columns[side][name].take(places[side])
            return taken[name]

        passing = true_rows(self._residual, column, len(left))
        return left[passing], right[passing]
