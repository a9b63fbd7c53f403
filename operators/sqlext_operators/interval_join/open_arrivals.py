"""New rows of a side whose periods come as two rows: which row opens a period, and which one closes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.arrays import Bools, Int64s
from sqlext_operators.columns.batches import take_rows, whole
from sqlext_operators.columns.codes import NULL_ORDER, order_values
from sqlext_operators.columns.keys import KeyCodes, null_keys
from sqlext_operators.columns.reshape import with_column
from sqlext_operators.columns.times import shown
from sqlext_operators.errors import RowError
from sqlext_operators.exchange.placed import COPY, owned_rows
from sqlext_operators.exchange.stream import Progress, admitted, late_error
from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.held import HeldRows, Search, prepared, searches_of
from sqlext_operators.interval_join.matches import Buffers
from sqlext_operators.interval_join.passes import Side
from sqlext_operators.interval_join.spec import IntervalJoinSpec, IntervalSide
from sqlext_operators.interval_join.stream_sides import OpenPeriod, StreamJoin, StreamRows

_FOUND_AT_ONCE = 65_536


@dataclass(frozen=True)
class ArrivedPeriods:
    """New rows in time: the rows that open a period, and periods with both ends. `opens` int64[n] is the id of the
    open row that a closed one replaces, -1 for none. `whole` are those of no opening row at all."""

    opened: pa.RecordBatch
    closed: pa.RecordBatch
    opens: Int64s
    whole: pa.RecordBatch


class KeyIndex:
    """Rows by key columns, where NULL equals NULL, prepared once for all searches."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = tuple(dict.fromkeys(keys))
        zeros = ("__sqlext_new", "__sqlext_held")
        sides = [IntervalSide(self.keys, (zero,)) for zero in zeros]
        same = (Condition(zeros[0], "<=", zeros[1]),)
        self._join = IntervalJoinSpec("inner", sides[0], sides[1], (True,) * len(self.keys), (same,))
        self._searches: tuple[Search, ...] = searches_of(self._join, "right")
        self._buffers = Buffers.of(_FOUND_AT_ONCE)

    def prepare(self, rows: pa.RecordBatch, ids: Int64s) -> pa.RecordBatch:
        """The rows as `find` needs them."""
        return prepared(self._join, "right", self._with_zeros("right", rows), ids, self._searches)

    def find(
        self, rows: pa.RecordBatch, held: pa.RecordBatch, alive: Callable[[Int64s], Bools] | None = None
    ) -> Int64s:
        """int64[n], the id of a prepared row that has a row's keys, -1 if there is none. `alive` says by ids which rows
        count; None: all."""
        matches = np.full(rows.num_rows, -1)
        new = StreamRows(self._join, "left", self._with_zeros("left", rows))
        index = HeldRows(self._join, "right", held, self._searches)
        for ours, theirs in index.pairs(new, self._buffers):
            ids = index.ids[theirs]
            kept = alive(ids) if alive is not None else slice(None)
            matches[ours[kept]] = ids[kept]
        return matches

    def codes(self, batches: Sequence[pa.RecordBatch]) -> list[Int64s]:
        """Dense codes of the keys of several batches together, one array for each."""
        codes = KeyCodes(len(self.keys))
        return [codes.encode([batch.column(name) for name in self.keys]) for batch in batches]

    def _with_zeros(self, side: Side, rows: pa.RecordBatch) -> pa.RecordBatch:
        zeros = pa.array(np.zeros(rows.num_rows, np.int64))
        return with_column(rows.select(list(self.keys)), self._join.side(side).values[0], zeros)


class OpenArrivals:
    """Takes the new rows of a side with an open period."""

    def __init__(self, spec: StreamJoin, side: Side, columns: pa.Schema) -> None:
        side_spec = spec.side(side)
        assert side_spec.open is not None
        assert side_spec.time is not None
        self._spec, self._side, self._columns = spec, side, columns
        self.period: OpenPeriod = side_spec.open
        self._time = side_spec.time
        keys = spec.join.side(side).keys
        #: Open rows by what a closing row has, and periods with both ends by what an opening row has.
        self.by_key = KeyIndex((*keys, *side_spec.open.key))
        self.by_start = KeyIndex((*keys, *side_spec.open.key, side_spec.open.start))

    def take(
        self,
        batches: Sequence[pa.RecordBatch],
        before: int | None,
        progress: Progress,
        find_open: Callable[[pa.RecordBatch], Int64s],
        find_whole: Callable[[pa.RecordBatch], Int64s],
        rows_of: Callable[[Int64s], pa.RecordBatch],
    ) -> ArrivedPeriods:
        """The rows that are not below the watermark `before`. `find_open` and `find_whole` give the ids of open rows,
        and of periods that came with both ends, by key; `rows_of` gives open rows by their ids.

        Raises RowError for a row with another time than its period says, for a period that is opened twice, and for
        one that is closed twice in one micro-batch."""
        fails = self._spec.late == "fail"
        found = admitted(batches, self._time, before, progress, fails=fails)
        self._check_times(found.batch)
        marks = [COPY] if COPY in found.batch.schema.names else []
        marked = self._with_keys(take_rows(found.batch, found.rows).select([*self._columns.names, *marks]))
        rows, is_own = marked.select(self._columns.names), owned_rows(marked)
        is_open = rows.column(self.period.end).is_null().to_numpy(zero_copy_only=False)
        opened, both = (take_rows(rows, np.flatnonzero(chosen)) for chosen in (is_open, ~is_open))
        opened = take_rows(opened, np.flatnonzero(find_whole(opened) < 0))
        if (twice := find_open(opened) >= 0).any():
            raise self._twice("opened", opened, int(np.argmax(twice)))
        stored = find_open(both)
        inside = self._inside(opened, both)
        self._check_closed_once(both, np.where(inside >= 0, -2 - inside, stored))
        alone = (stored < 0) & (inside < 0)
        starts = order_values(both.column(self.period.start))
        in_time = starts != NULL_ORDER if before is None else starts >= before
        late = alone & ~in_time
        told = int(np.count_nonzero(late & is_own[~is_open]))
        progress.late += told
        if fails and told:
            raise late_error(told, 0)
        return self._arrived(opened, both, stored, inside, np.flatnonzero(alone & in_time), rows_of)

    def _arrived(
        self,
        opened: pa.RecordBatch,
        both: pa.RecordBatch,
        stored: Int64s,
        inside: Int64s,
        alone: Int64s,
        rows_of: Callable[[Int64s], pa.RecordBatch],
    ) -> ArrivedPeriods:
        before, beside = np.flatnonzero(stored >= 0), np.flatnonzero(inside >= 0)
        complete = take_rows(both, alone)
        parts = [
            self._closed(rows_of(stored[before]), take_rows(both, before)),
            self._closed(take_rows(opened, inside[beside]), take_rows(both, beside)),
            complete,
        ]
        left = np.ones(opened.num_rows, np.bool_)
        left[inside[beside]] = False
        opens = np.concatenate([stored[before], np.full(len(beside) + len(alone), -1)])
        return ArrivedPeriods(take_rows(opened, np.flatnonzero(left)), whole(self._columns, parts), opens, complete)

    def _closed(self, opened: pa.RecordBatch, closing: pa.RecordBatch) -> pa.RecordBatch:
        """Opening rows with what their closing rows say of the end."""
        columns = [(closing if name in self.period.closing else opened).column(name) for name in self._columns.names]
        return pa.RecordBatch.from_arrays(columns, schema=self._columns)

    def _with_keys(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows whose keys may match."""
        own = self._spec.join.side(self._side)
        without = null_keys([rows.column(name) for name in own.keys], self._spec.join.null_safe)
        matchable = rows if without is None else take_rows(rows, np.flatnonzero(~without))
        opening = matchable.column(self.period.end).is_null()
        for name in self.period.key:
            if any((matchable.column(name).is_null().to_numpy(False)) & opening.to_numpy(False)):
                raise RowError(
                    f"an opening row of the {self._side} side has no period key: {name} is NULL",
                    "name a column after BY that has a value in every row",
                    condition="open-period-rows",
                )
        return matchable

    def _inside(self, opened: pa.RecordBatch, both: pa.RecordBatch) -> Int64s:
        """int64[both], the new opening row with the same key, -1 if there is none."""
        ours, theirs = self.by_key.codes([opened, both])
        place = np.full(max(ours.max(initial=-1), theirs.max(initial=-1)) + 1, -1)
        place[ours] = np.arange(len(ours))
        twice = place[ours] != np.arange(len(ours))
        if twice.any():
            raise self._twice("opened", opened, int(np.argmax(twice)))
        return place[theirs]

    def _check_closed_once(self, both: pa.RecordBatch, closes: Int64s) -> None:
        order = np.argsort(closes, kind="stable")
        again = (closes[order][1:] == closes[order][:-1]) & (closes[order][1:] != -1)
        if again.any():
            raise self._twice("closed", both, int(order[1:][again][0]))

    def _twice(self, what: str, rows: pa.RecordBatch, row: int) -> RowError:
        values = ", ".join(shown(rows.column(name), row) for name in self.by_key.keys)
        return RowError(
            f"a period of the {self._side} side is {what} twice: the one of ({values})",
            "name a column that no two periods share: PERIOD(ts, te OPEN BY id); leave out repeated rows",
            condition="open-period-rows",
        )

    def _check_times(self, rows: pa.RecordBatch) -> None:
        """Raises RowError where the event time is not that of the row's event."""
        start, end, time = (
            order_values(rows.column(name)) for name in (self.period.start, self.period.end, self._time)
        )
        wrong = np.where(end == NULL_ORDER, start, end) != time
        if wrong.any():
            row = int(np.argmax(wrong))
            texts = [shown(rows.column(name), row, "open") for name in (self._time, self.period.start, self.period.end)]
            raise RowError(
                f"{np.count_nonzero(wrong)} of {rows.num_rows} rows of the {self._side} side have another event time "
                f"than their event, such as {texts[0]} for the period [{texts[1]}, {texts[2]})",
                "put the watermark on a column that is the end in a closing row and the start in an opening row: "
                "coalesce(te, ts)",
                condition="open-period-rows",
            )
