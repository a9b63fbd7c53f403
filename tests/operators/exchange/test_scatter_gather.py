"""Scatter and gather through plain iterators: every row arrives once, in sequence order, in any budget."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.columns.codes import NULL_ORDER
from sqlext_operators.exchange.blocks import decode
from sqlext_operators.exchange.scatter import KeyRouter, Routes, ScatterSpec, scatter
from sqlext_operators.sequences.sequence import Piece, SequenceSpec

from tests.operators.exchange.pieces import gather

PARTITIONS = 3
SEQUENCE = SequenceSpec(keys=("k", "name"), order="ts", args=("v",), payload=("id", "v", "extra"))


@dataclass(frozen=True)
class Row:
    """One row of the test inputs, with its place in the input order."""

    source: int
    place: tuple[int, int]
    k: int | None
    name: str | None
    ts: int | None
    v: float | None

    @property
    def id(self) -> str:
        return f"{self.source}/{self.place[0]}/{self.place[1]}"


def batch(rows: list[Row]) -> pa.RecordBatch:
    """The wire columns: unions have no payload."""
    columns = {
        "k": pa.array([row.k for row in rows], pa.int32()),
        "name": pa.array([row.name for row in rows], pa.string()),
        "ts": pa.array([row.ts for row in rows], pa.int64()),
        "v": pa.array([row.v for row in rows], pa.float64()),
    }
    if not rows or rows[0].source == 0:
        columns["id"] = pa.array([row.id for row in rows], pa.string())
        columns["extra"] = pa.array([[row.id, None] for row in rows], pa.list_(pa.string()))
    return pa.RecordBatch.from_pydict(columns)


@st.composite
def inputs(draw: st.DrawFn) -> list[list[Row]]:
    """FROM and up to two unions."""
    tables = []
    for source in range(draw(st.integers(1, 3))):
        size = draw(st.integers(0, 25))
        rows = [
            Row(
                source,
                (draw(st.integers(0, 1)), place),
                draw(st.none() | st.integers(0, 2)),
                draw(st.none() | st.sampled_from(["", "x"])),
                draw(st.none() | st.integers(-3, 3)),
                draw(st.none() | st.sampled_from([0.5, 1.5])),
            )
            for place in range(size)
        ]
        tables.append(sorted(rows, key=lambda row: row.place))
    return tables


def shipped(
    tables: list[list[Row]], *, block_bytes: int, batch_rows: int, compact: bool = False
) -> dict[int, list[pa.RecordBatch]]:
    """Wire rows by partition, in an order that the shuffle might bring them in (last first)."""
    arrived: dict[int, list[pa.RecordBatch]] = {pid: [] for pid in range(PARTITIONS)}
    for source, rows in enumerate(tables):
        names = batch(rows).schema.names if rows else []
        spec = ScatterSpec(source, tuple(names), KeyRouter(("k", "name")), PARTITIONS, block_bytes, compact=compact)
        for partition in (0, 1):
            part = [row for row in rows if row.place[0] == partition]
            batches = [batch(part[i : i + batch_rows]) for i in range(0, len(part), batch_rows)]
            for wire in scatter(spec, partition, batches):
                for i in range(wire.num_rows):
                    arrived[wire.column(0)[i].as_py()].insert(0, wire.slice(i, 1))
    return arrived


def expected_order(row: Row) -> tuple[Any, ...]:
    return (int(NULL_ORDER) if row.ts is None else row.ts, -row.source, row.place)


def rows_of(pieces: Iterable[tuple[Piece, bool]]) -> list[tuple[int, int, int, float | None, str | None]]:
    """(group, order, source, v, id of a FROM row) of all pieces; checks the flags and the payload's length."""
    found: list[tuple[int, int, int, float | None, str | None]] = []
    ended = False
    for piece, last in pieces:
        assert not ended
        ended = last
        assert piece.payload.num_rows == np.count_nonzero(piece.source == 0)
        payload = iter(piece.payload.to_pylist())
        for i, source in enumerate(piece.source.tolist()):
            identity = None
            if source == 0:
                row = next(payload)
                assert row["extra"] == [row["id"], None]
                assert row["v"] == piece.args["v"][i].as_py()
                identity = row["id"]
            found.append((int(piece.group[i]), int(piece.order[i]), source, piece.args["v"][i].as_py(), identity))
    return found


@given(
    inputs(),
    st.sampled_from([1, 200, 1 << 20]),
    st.integers(1, 7),
    st.sampled_from([1, 300, 1 << 20]),
    st.integers(1, 9),
    st.booleans(),
)
def test_every_row_arrives_once_in_sequence_order(
    tables: list[list[Row]], block_bytes: int, batch_rows: int, memory_bytes: int, piece_rows: int, compact: bool
) -> None:
    arrived = shipped(tables, block_bytes=block_bytes, batch_rows=batch_rows, compact=compact)
    spec = replace(SEQUENCE, memory_bytes=memory_bytes, piece_rows=piece_rows)
    seen: set[tuple[int | None, str | None]] = set()
    total = 0
    for wires in arrived.values():
        pieces = list(gather(spec, wires))
        assert all(len(piece.group) <= piece_rows for piece, _ in pieces)
        found = rows_of(pieces)
        if not found:
            continue
        assert [row[0] for row in found] == sorted(row[0] for row in found)
        by_id = {row.id: row for row in tables[0]}
        for group in dict.fromkeys(row[0] for row in found):
            members = [row for row in found if row[0] == group]
            keys = {(by_id[row[4]].k, by_id[row[4]].name) for row in members if row[4] is not None}
            assert len(keys) <= 1, "two keys in one group"
            for key in keys:
                assert key not in seen, "a key in two groups"
                seen.add(key)
                wanted = sorted((row for t in tables for row in t if (row.k, row.name) == key), key=expected_order)
                ids = [row.id if row.source == 0 else None for row in wanted]
                assert [row[4] for row in members] == ids
                assert [row[2] for row in members] == [row.source for row in wanted]
                assert [row[3] for row in members] == [row.v for row in wanted]
                assert [row[1] for row in members] == [expected_order(row)[0] for row in wanted]
        total += sum(row[2] == 0 for row in found)
    assert total == len(tables[0])
    assert seen == {(row.k, row.name) for row in tables[0]}


def test_without_order_rows_keep_input_order_and_unions_come_first() -> None:
    tables = [[Row(s, (0, i), 1, "x", 9 - i, None) for i in range(3)] for s in range(3)]
    arrived = shipped(tables, block_bytes=1, batch_rows=1)
    spec = replace(SEQUENCE, order=None)
    (found,) = [rows for wires in arrived.values() if (rows := rows_of(gather(spec, wires)))]
    assert [row[2] for row in found] == [2, 2, 2, 1, 1, 1, 0, 0, 0]
    assert [row[4] for row in found[6:]] == ["0/0/0", "0/0/1", "0/0/2"]
    assert {row[1] for row in found} == {0}


def group_keys(tables: list[list[Row]], spec: SequenceSpec) -> list[list[tuple[int | None, str | None]]]:
    """The keys of the groups as they come out, for each partition with FROM rows."""
    by_id = {row.id: row for row in tables[0]}
    found = []
    for wires in shipped(tables, block_bytes=50, batch_rows=4).values():
        rows = rows_of(gather(spec, wires))
        groups = dict.fromkeys((row[0], by_id[row[4]].k, by_id[row[4]].name) for row in rows if row[4] is not None)
        assert len({group for group, _, _ in groups}) == len(groups), "a group of two keys"
        found.append([(k, name) for _, k, name in groups])
    return [keys for keys in found if keys]


def tables_of_mixed_keys() -> list[list[Row]]:
    keys = itertools.product([2, None, -1, 10, 7], ["b", None, "", "a"])
    rows = [Row(0, (0, i), k, name, 0, None) for i, (k, name) in enumerate(keys)]
    return [rows * 2, [replace(row, source=1) for row in rows[::-1]]]


def test_groups_in_memory_are_in_descending_order_of_the_keys_with_null_last() -> None:
    def place(key: tuple[int | None, str | None]) -> tuple[Any, ...]:
        k, name = key
        return k is None, -(k or 0), name is None, [-ord(letter) for letter in name or ""] + [0]

    partitions = group_keys(tables_of_mixed_keys(), SEQUENCE)
    assert sum(len(keys) for keys in partitions) == 20
    for keys in partitions:
        assert keys == sorted(keys, key=place)


def test_other_groups_are_in_the_order_of_first_appearance(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = tables_of_mixed_keys()
    spilled = group_keys(tables, replace(SEQUENCE, memory_bytes=1))
    monkeypatch.setattr("sqlext_operators.sequences.sequence.MOST_RANKED_GROUPS", 2)
    many = group_keys(tables, SEQUENCE)
    assert [sorted(map(str, keys)) for keys in spilled] == [sorted(map(str, keys)) for keys in many]
    union_order = [(row.k, row.name) for row in tables[1]]
    assert all(keys == sorted(keys, key=union_order.index) for keys in many)


def test_a_payload_without_columns_keeps_its_rows() -> None:
    for memory in (1, 1 << 20):
        tables = [[Row(0, (0, i), 1, "x", i, None) for i in range(5)]]
        spec = replace(SEQUENCE, payload=(), memory_bytes=memory)
        wires = [wire for part in shipped(tables, block_bytes=1, batch_rows=2).values() for wire in part]
        assert sum(piece.payload.num_rows for piece, _ in gather(spec, wires)) == 5


def test_no_input_gives_nothing() -> None:
    assert list(scatter(ScatterSpec(0, ("k",), KeyRouter(("k",)), 2), 0, [])) == []
    empty = pa.RecordBatch.from_pydict({"k": pa.array([], pa.int32())})
    assert list(scatter(ScatterSpec(0, ("k",), KeyRouter(("k",)), 2), 0, [empty])) == []
    assert list(gather(SEQUENCE, [])) == []


def test_a_partition_without_from_rows_gives_nothing() -> None:
    tables = [[], [Row(1, (0, i), 1, "x", i, None) for i in range(5)]]
    for memory in (1, 1 << 20):
        wires = [wire for part in shipped(tables, block_bytes=1, batch_rows=2).values() for wire in part]
        assert list(gather(replace(SEQUENCE, memory_bytes=memory), wires)) == []


@pytest.mark.parametrize("outcome", ["finished", "closed", "failed"])
def test_spilled_runs_leave_no_files(outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    tables = [[Row(0, (0, i), 1, "x", i % 7, None) for i in range(40)]]
    wires = [wire for part in shipped(tables, block_bytes=1, batch_rows=4).values() for wire in part]

    def arriving() -> Iterator[pa.RecordBatch]:
        yield from wires
        if outcome == "failed":
            raise OSError("the shuffle went away")

    pieces = gather(replace(SEQUENCE, memory_bytes=1, piece_rows=3), arriving())
    if outcome == "failed":
        with pytest.raises(OSError, match="went away"):
            list(pieces)
    else:
        next(pieces)
        assert list(tmp_path.iterdir())
        pieces.close() if outcome == "closed" else list(pieces)  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []


@dataclass(frozen=True)
class Everywhere:
    """A router that sends each even row to every partition and drops odd ones."""

    def route(self, batch: pa.RecordBatch, partitions: int) -> Routes:
        kept = np.arange(0, batch.num_rows, 2, dtype=np.int64)
        pids = np.tile(np.arange(partitions, dtype=np.int32), len(kept))
        return Routes(pids, np.repeat(kept, partitions))


def test_a_router_may_replicate_and_drop_rows() -> None:
    rows = pa.RecordBatch.from_pydict({"x": pa.array(range(5), pa.int64())})
    (wire,) = scatter(ScatterSpec(7, ("x",), Everywhere(), 3), 0, [rows])
    blocks = list(decode(wire))
    assert [(block.pid, block.tag, block.batch.column(0).to_pylist()) for block in blocks] == [
        (pid, 7, [0, 2, 4]) for pid in range(3)
    ]


def test_specs_are_small_pickles_by_reference() -> None:
    assert len(pickle.dumps(ScatterSpec(0, ("k",), KeyRouter(("k",)), 2))) < 400
    assert len(pickle.dumps(SEQUENCE)) < 400
