"""Pieces on their way to a processor: joined when it holds much, so that a long group is not gone through each time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from sqlext_operators.sequences.sequence import Piece, processed


class Keeper:
    """Holds every row that it was given, and goes through all of them for every piece."""

    def __init__(self) -> None:
        self.held = 0
        self.pieces = 0
        self.work = 0

    def process(self, piece: Piece, last: bool) -> Iterator[pa.RecordBatch]:
        self.held += len(piece.group)
        self.pieces += 1
        self.work += self.held
        if last:
            yield pa.RecordBatch.from_pydict({"rows": np.arange(self.held)})


def pieces(count: int, rows: int) -> Iterator[tuple[Piece, bool]]:
    for number in range(count):
        zero = np.zeros(rows, np.int64)
        values = pa.array(np.arange(rows) + number * rows)
        payload = pa.RecordBatch.from_arrays([values], ["x"])
        yield Piece(zero, zero, zero.astype(np.uint8), {"x": values}, payload), number == count - 1


def test_the_work_is_linear_in_the_rows() -> None:
    keeper = Keeper()
    (found,) = processed(pieces(1_000, 7), lambda first: keeper, batch_rows=1_000_000)
    assert found.num_rows == keeper.held == 7_000
    assert keeper.pieces < 60
    assert keeper.work < 10 * 7_000


@pytest.mark.parametrize("count", [1, 2, 5, 30])
def test_every_row_comes_once_and_in_order(count: int) -> None:
    seen: list[int] = []

    class Collecting(Keeper):
        def process(self, piece: Piece, last: bool) -> Iterator[pa.RecordBatch]:
            assert piece.args["x"].equals(piece.payload.column(0))
            seen.extend(piece.args["x"].to_pylist())
            return super().process(piece, last)

    batches = list(processed(pieces(count, 3), lambda first: Collecting(), batch_rows=4))
    assert seen == list(range(3 * count))
    assert [batch.num_rows for batch in batches[:-1]] == [4] * (len(batches) - 1)
    assert sum(batch.num_rows for batch in batches) == 3 * count
