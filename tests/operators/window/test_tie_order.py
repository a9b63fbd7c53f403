"""Rows of equal order keys come in the order of the further keys, FROM rows that are equal in all else in that of their
tie column, however they arrive, in any budget."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from sqlext_operators.exchange.scatter import KeyRouter, ScatterSpec, scatter
from sqlext_operators.sequences.sequence import FurtherKey, SequenceSpec

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


@pytest.mark.few(3)
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


def keyed_rows(seed: int, first: int, count: int) -> pa.RecordBatch:
    """Rows with few values in `a` and `s`, some of them NULL; `v` counts the rows."""
    random = Random(seed)
    columns = {
        "k": pa.array([random.randrange(2) for _ in range(count)]),
        "ts": pa.array([random.randrange(3) for _ in range(count)]),
        "a": pa.array([random.choice([None, -(2**63), -1, 0, 2**63 - 1]) for _ in range(count)], pa.int64()),
        "s": pa.array([random.choice([None, "", "a", "b", "é"]) for _ in range(count)]),
        "v": pa.array(range(first, first + count)),
    }
    return pa.RecordBatch.from_pydict(columns)


@pytest.mark.few
@pytest.mark.parametrize("memory_bytes", [1 << 20, 1, 4_000])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_further_keys_order_ties_of_all_inputs(memory_bytes: int, descending: bool, nulls_first: bool) -> None:
    """A string, whose codes of two runs cannot be compared, then an integer at the ends of its type."""
    batches = [keyed_rows(1, 0, 150), keyed_rows(2, 1_000, 60)]
    found = []
    for tag, rows in enumerate(batches):
        spec = ScatterSpec(tag, tuple(rows.schema.names), KeyRouter(("k",)), 1, block_bytes=256)
        found += list(scatter(spec, 0, [rows.slice(start, 25) for start in range(0, rows.num_rows, 25)]))
    Random(3).shuffle(found)
    keys = (FurtherKey("s", descending, nulls_first), FurtherKey("a"))
    sequence = SequenceSpec(("k",), "ts", ("v", "k"), ("v",), further=keys, memory_bytes=memory_bytes)
    pieces = [piece for piece, _ in gather(sequence, found)]
    got = [
        pair for piece in pieces for pair in zip(*(piece.args[name].to_pylist() for name in ("k", "v")), strict=True)
    ]
    rows = {row["v"]: row for batch in batches for row in batch.to_pylist()}

    def place(v: int) -> tuple[object, ...]:
        row = rows[v]
        text, number = row["s"], row["a"]
        code = 0 if text is None else ["", "a", "b", "é"].index(text) * (-1 if descending else 1)
        is_late = (text is None) != nulls_first
        return row["ts"], is_late, code, number is not None, number or 0, v < 1_000, v

    for k in (0, 1):
        assert [v for key, v in got if key == k] == sorted((v for v in rows if rows[v]["k"] == k), key=place)
