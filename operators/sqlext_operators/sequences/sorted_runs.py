"""The rows of a task as sorted pieces; rows beyond memory go to sorted runs on local disk, which are merged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqlext_operators.columns.batches import take_rows, whole
from sqlext_operators.columns.compact import concatenate, plain, plain_column
from sqlext_operators.columns.keys import KeyCodes
from sqlext_operators.columns.reshape import rows_without_columns
from sqlext_operators.errors import spilling
from sqlext_operators.exchange.blocks import Block, local_folder
from sqlext_operators.exchange.operator import CollectedPart, with_last
from sqlext_operators.exchange.profile import counted, measured
from sqlext_operators.kernels.sequence_sort import merge_loaded
from sqlext_operators.sequences.sequence import FROM, FurtherKey, Piece, SequenceSpec, SortedRun

#: Loaded parts of all runs together take about 1/4 of the budget if there are this many runs.
_RUNS_PLANNED = 16
_MOST_CHUNK_ROWS = 65_536
_SPINE = ("group", "order", "source", "tie")


class SpilledRuns:
    """Sorted runs of one partition in a temporary folder of this worker, removed when the context is left.

    Group codes of all runs come from one KeyCodes.
    """

    def __init__(self, spec: SequenceSpec) -> None:
        self._spec = spec
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0
        self._schema: _RunSchema | None = None

    def __enter__(self) -> SpilledRuns:
        return self

    def __exit__(self, *error: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def __len__(self) -> int:
        return self._count

    def add(self, run: SortedRun, size: int) -> None:
        """Write a run whose blocks took `size` bytes."""
        if self._folder is None:
            self._folder = local_folder()
        if run.payload is not None and self._schema is None:
            args = {name: column.type for name, column in run.args.items()}
            self._schema = _RunSchema(args, run.payload.schema, self._spec.further)
        ties = run.ties()
        bytes_per_row = max(1, size // max(1, run.rows_in_memory))
        rows = max(1, min(_MOST_CHUNK_ROWS, self._spec.memory_bytes // (4 * _RUNS_PLANNED) // bytes_per_row))
        start = 0
        with measured("spill"), spilling(self._folder.name), _RunWriter(*self._paths(self._count)) as writer:
            for piece in run.pieces(rows):
                part = slice(start, start + len(piece.group))
                writer.write(piece, ties[part], run.further_columns(part))
                start = part.stop
        counted("spilled bytes", sum(path.stat().st_size for path in self._paths(self._count)))
        self._count += 1

    def merged(self) -> Iterator[Piece]:
        """The whole sequence in pieces, at most `piece_rows` rows each, with one chunk of each run in memory.

        Nothing if there is no FROM row in any run.
        """
        if self._schema is None:
            return
        assert self._folder is not None
        runs: list[_LoadedRun] = []
        try:
            with spilling(self._folder.name):
                for number in range(self._count):
                    runs.append(_LoadedRun(*self._paths(number)))
            while runs:
                with spilling(self._folder.name):
                    for run in runs:
                        run.load()
                runs = [run for run in runs if not run.done]
                if runs:
                    yield from _merge_round(runs, self._schema, self._spec.piece_rows)
        finally:
            for run in runs:
                run.close()

    def _paths(self, number: int) -> tuple[Path, Path]:
        assert self._folder is not None
        folder = Path(self._folder.name)
        return folder / f"{number}.spine", folder / f"{number}.payload"


@dataclass(frozen=True)
class _RunSchema:
    """The types of FROM's columns, which all pieces of a partition have, and the further keys of their order."""

    args: dict[str, pa.DataType]
    payload: pa.Schema
    further: tuple[FurtherKey, ...]


class _RunWriter:
    """One run as two IPC streams, chunk by chunk: spine, arguments and further keys of every row, and the payload of
    FROM rows."""

    def __init__(self, spine: Path, payload: Path) -> None:
        self._writers: list[pa.ipc.RecordBatchStreamWriter] = []
        self._files = [pa.OSFile(str(spine), "wb"), pa.OSFile(str(payload), "wb")]

    def __enter__(self) -> _RunWriter:
        return self

    def __exit__(self, *error: object) -> None:
        for closable in (*(self._writers if error[0] is None else ()), *self._files):
            closable.close()

    def write(self, piece: Piece, ties: npt.NDArray[np.int64], further: dict[str, pa.Array]) -> None:
        columns = [pa.array(piece.group), pa.array(piece.order), pa.array(piece.source), pa.array(ties)]
        names = [*_SPINE, *(f"arg.{name}" for name in piece.args), *(f"key.{name}" for name in further)]
        spine = pa.RecordBatch.from_arrays([*columns, *piece.args.values(), *further.values()], names=names)
        batches = (spine, piece.payload)
        if not self._writers:
            pairs = zip(self._files, batches, strict=True)
            self._writers = [pa.ipc.new_stream(file, batch.schema) for file, batch in pairs]
        for writer, batch in zip(self._writers, batches, strict=True):
            writer.write_batch(batch)


class _LoadedRun:
    """A run being read: the rows of it that are loaded and not merged yet."""

    def __init__(self, spine: Path, payload: Path) -> None:
        self._files = [pa.OSFile(str(spine)), pa.OSFile(str(payload))]
        self._readers = [pa.ipc.open_stream(file) for file in self._files]
        self.spine: pa.RecordBatch | None = None
        self.payload: pa.RecordBatch | None = None
        self.done = False

    def load(self) -> None:
        """Read the next chunk if no loaded row is left; `done` if there is none on disk either."""
        if self.spine is not None and self.spine.num_rows:
            return
        try:
            self.spine = self._readers[0].read_next_batch()
            self.payload = self._readers[1].read_next_batch()
        except StopIteration:
            self.done = True
            self.close()

    def drop(self, rows: int, from_rows: int) -> None:
        """Forget merged rows."""
        assert self.spine is not None
        assert self.payload is not None
        self.spine = self.spine.slice(rows)
        count = self.payload.num_rows - from_rows
        self.payload = self.payload.slice(from_rows) if self.payload.num_columns else rows_without_columns(count)

    def close(self) -> None:
        for file in self._files:
            file.close()


def _merge_round(runs: list[_LoadedRun], schema: _RunSchema, piece_rows: int) -> Iterator[Piece]:
    """Pieces from the loaded rows of `runs`, until one of them has to load more."""
    spines = [run.spine for run in runs if run.spine is not None]
    group, order, source, tie = (_gather_spine(spines, name) for name in _SPINE)
    columns = {name: concatenate([s.column(f"arg.{name}") for s in spines], kind) for name, kind in schema.args.items()}
    further = _further_codes(spines, schema.further)
    payload = _concatenate_payload(runs, schema.payload)
    payload_row = np.cumsum(source == FROM) - 1
    ends = np.cumsum([spine.num_rows for spine in spines]).astype(np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    heads = starts.copy()
    while (heads < ends).all():
        rows = np.empty(min(piece_rows, int(ends[-1])), np.int32)
        rows = rows[: merge_loaded(heads, ends, group, order, further, source, tie, rows)]
        indices = pa.array(rows)
        from_rows = payload_row[rows[source[rows] == FROM]]
        args = {name: column.take(indices) for name, column in columns.items()}
        yield Piece(group[rows], order[rows], source[rows], args, take_rows(payload, from_rows))
    for run, start, head in zip(runs, starts, heads, strict=True):
        run.drop(int(head - start), int(np.count_nonzero(source[start:head] == FROM)))


def _gather_spine(spines: list[pa.RecordBatch], name: str) -> npt.NDArray[Any]:
    return np.concatenate([spine.column(name).to_numpy(zero_copy_only=False) for spine in spines])


def _further_codes(spines: list[pa.RecordBatch], keys: Sequence[FurtherKey]) -> npt.NDArray[np.int64]:
    """int64[p, n], in the order of the further keys. They are made from all rows at hand: those of two chunks cannot be
    compared."""
    parts = []
    for key in keys:
        columns = [plain_column(spine.column(f"key.{key.name}")) for spine in spines]
        parts += key.codes(pa.concat_arrays(columns))
    return np.stack(parts) if parts else np.zeros((0, 0), np.int64)


def _concatenate_payload(runs: list[_LoadedRun], schema: pa.Schema) -> pa.RecordBatch:
    """Loaded FROM rows of all runs; a run without any FROM row has a payload without columns."""
    batches = [run.payload for run in runs if run.payload is not None and run.payload.num_rows]
    return whole(schema, batches)


def sorted_pieces(spec: SequenceSpec, parts: Iterable[CollectedPart]) -> Iterator[tuple[Piece, bool]]:
    """(piece, is it the last one) over the rows of a task; nothing without FROM rows.

    A part within the budget is sorted in memory; for a larger one, sorted runs are written to local disk and merged.
    Group codes are those of all parts together.
    """
    codes = KeyCodes(max(1, len(spec.keys)))
    yield from with_last(piece for part in parts for piece in _pieces_of(spec, codes, part))


def _pieces_of(spec: SequenceSpec, codes: KeyCodes, part: CollectedPart) -> Iterator[Piece]:
    held: list[Block] = []
    size = 0
    with SpilledRuns(spec) as runs:
        for block in part.all_blocks():
            # Runs are written chunk by chunk, each with types of its own if some were dictionaries.
            held.append(block if part.in_memory else replace(block, batch=plain(block.batch)))
            size += block.batch.nbytes
            if not part.in_memory and size > spec.memory_bytes:
                runs.add(SortedRun(spec, codes, held), size)
                held, size = [], 0
        if held and len(runs):
            runs.add(SortedRun(spec, codes, held), size)
        if len(runs):
            held = []
            yield from runs.merged()
        elif held:
            run = SortedRun(spec, codes, held, ranked=part.in_memory)
            held = []  # the run has copies of all columns: the blocks' memory is freed before the operator starts
            if run.payload is not None:
                yield from run.pieces(spec.piece_rows)
