"""FROM rows that are equal in all else come in the order of their tie column, however they arrive, in any budget."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from sqlext_operators.exchange.routing import KeyRouter
from sqlext_operators.exchange.scatter import ScatterSpec, scatter
from sqlext_operators.sequences.sequence import SequenceSpec

from tests.operators.exchange.pieces import gather

ROWS = 400


def wires(seed: int) -> list[pa.RecordBatch]:
    """FROM rows in random order with their true position in `place`, and union rows that have no such column."""
    random = Random(seed)
    places = random.sample(range(ROWS), ROWS)
    batch = pa.RecordBatch.from_pydict(
        {
            "k": [place % 3 for place in places],
            "ts": [place % 7 // 2 for place in places],
            "v": places,
            "place": pa.array(places, pa.int64()),
        }
    )
    union = pa.RecordBatch.from_pydict({"k": [0, 1, 2] * 20, "ts": [1, 2] * 30, "v": [-1 - i for i in range(60)]})
    found = []
    for tag, rows in enumerate((batch, union)):
        spec = ScatterSpec(tag, tuple(rows.schema.names), KeyRouter(("k",)), 1, block_bytes=256)
        parts = [rows.slice(start, 25) for start in range(0, rows.num_rows, 25)]
        found.extend(scatter(spec, 0, parts))
    random.shuffle(found)
    return found


@pytest.mark.parametrize("memory_bytes", [1 << 20, 1, 4_000])
@pytest.mark.parametrize("seed", range(3))
def test_ties_follow_the_column(seed: int, memory_bytes: int) -> None:
    spec = SequenceSpec(("k",), "ts", ("v",), ("k", "ts", "place"), tie_order="place", memory_bytes=memory_bytes)
    pieces = [piece for piece, _ in gather(spec, wires(seed))]
    rows = [row for piece in pieces for row in piece.payload.to_pylist()]
    assert len(rows) == ROWS
    for k in range(3):
        mine = [(row["ts"], row["place"]) for row in rows if row["k"] == k]
        assert mine == sorted(mine)
    values = [value for piece in pieces for value in piece.args["v"].to_pylist()]
    sources = [source for piece in pieces for source in piece.source.tolist()]
    assert [v for v, source in zip(values, sources, strict=True) if source == 0] == [row["place"] for row in rows]
    assert sorted(v for v in values if v < 0) == sorted(-1 - i for i in range(60))
