"""Records of early answers, kept until their rows are final: what an estimator needs to learn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sqlext_operators.columns.batches import whole
from sqlext_operators.early.key_totals import Floats, Ints
from sqlext_operators.early_windows.answers import REMEMBERED
from sqlext_operators.exchange.chunks import ChunkStore

#: Of so many rows of a step at most, evenly spread over them: more would teach little.
MOST_RECORDS = 512


@dataclass(frozen=True)
class Records:
    """Chunks of a store of the kind `kind`; rows are final `ahead` after their times. Answers are of `calls` calls."""

    store: ChunkStore
    kind: int
    ahead: int
    calls: int

    def add(self, positions: Ints, times: Ints, bins: Ints, memories: Sequence[Mapping[str, Floats]]) -> None:
        """Remember the early answers of n rows (one at least): for each call, float64[n] by the names of
        `REMEMBERED`."""
        count = len(positions)
        chosen = np.unique(np.linspace(0, count - 1, min(count, MOST_RECORDS)).astype(np.int64))
        chosen = chosen[bins[chosen] >= 0]
        if not len(chosen):
            return
        found = {"position": positions[chosen], "bin": bins[chosen].astype(np.int8)}
        for number, memory in enumerate(memories):
            found |= {_name(number, name): memory[name][chosen] for name in REMEMBERED}
        batch = pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in found.items()})
        self.store.append(self.kind, int(times[chosen].min()), int(times[chosen].max()), batch)

    def until(self, watermark: int) -> Remembered | None:
        """The records of which some are of rows that are final at a watermark; None if there are none."""
        chunks = [chunk for chunk in self.store.chunks(self.kind) if chunk.low + self.ahead < watermark]
        if not chunks:
            return None
        batches = [self.store.read(chunk) for chunk in chunks]
        return Remembered(whole(batches[0].schema, batches), self.calls)

    def forget(self, watermark: int) -> None:
        """Drop the records of rows that are final at a watermark."""
        for chunk in self.store.chunks(self.kind):
            if chunk.high + self.ahead < watermark:
                self.store.drop(chunk)


class Remembered:
    """Some records, found by the positions of their rows."""

    def __init__(self, batch: pa.RecordBatch, calls: int) -> None:
        positions = batch.column("position").to_numpy()
        order = np.argsort(positions)
        self._positions: Ints = positions[order]
        self._batch = batch.take(pa.array(order))
        self._calls = calls

    def among(self, positions: Ints) -> tuple[Ints, Ints]:
        """(places, records): the rows at `places` of those with `positions` have these records."""
        found = np.minimum(np.searchsorted(self._positions, positions), len(self._positions) - 1)
        places = np.flatnonzero(self._positions[found] == positions)
        return places, found[places]

    def bins(self, records: Ints) -> Ints:
        """int64[n], the bins of records."""
        found: Ints = self._batch.column("bin").to_numpy()[records].astype(np.int64)
        return found

    def memories(self, records: Ints) -> list[dict[str, Floats]]:
        """For each call, what was remembered in records."""
        return [
            {name: self._batch.column(_name(number, name)).to_numpy()[records] for name in REMEMBERED}
            for number in range(self._calls)
        ]


def _name(call: int, name: str) -> str:
    return f"{name} {call}"
