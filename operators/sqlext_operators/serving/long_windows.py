"""The calls of windows whose rows can be condensed: partial calls over condensed rows and over those at the ends of a
window, by the operator of batch.

What counts by category is condensed for each category, and each category is a group of the operator.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Int64s
from sqlext_operators.columns.compact import concatenate
from sqlext_operators.columns.flat import valid_mask
from sqlext_operators.columns.reshape import rows_without_columns
from sqlext_operators.kernels.sequence_sort import COPIED
from sqlext_operators.sequences.sequence import Piece
from sqlext_operators.serving.condensed import Recipe
from sqlext_operators.serving.store import AskedRows, KeptRows, Span
from sqlext_operators.window.condense import PartialCall, SplitCall, split_call
from sqlext_operators.window.evaluators.base import Rows
from sqlext_operators.window.frames import Frames
from sqlext_operators.window.functions.table import call_site
from sqlext_operators.window.one_piece import OnePieceProcessor
from sqlext_operators.window.reach import window_reach
from sqlext_operators.window.spec import Call, Window, WindowUnionSpec

Stores = Sequence[KeptRows | AskedRows]
#: Rows of a source with their times.
Part = tuple[int, Int64s, pa.RecordBatch]
#: Times are cut here, so that adding a reach cannot overflow.
FARTHEST = 1 << 62
_CATE = "_cate"
#: What rows are condensed by: a category, and what counts distinct values, which leaves more rows than all else.
Stem = tuple[str | None, PartialCall | None]
_BY_CATEGORY = ("count", "sum", "avg", "min", "max")


def processed(
    processors: MutableMapping[str, Any], name: str, spec: WindowUnionSpec, piece: Piece
) -> dict[str, pa.Array]:
    """The results of windows over a piece, by their names. The processor is kept for the next time under a name."""
    processor = processors.pop(name, None)
    if processor is None:
        processor = OnePieceProcessor(spec, {column: array.type for column, array in piece.args.items()})
    found: dict[str, pa.Array] = processor.process(piece)
    processors[name] = processor  # not after an error
    return found


def piece_of(parts: Sequence[Part], types: pa.Schema, group: Int64s | None = None) -> Piece:
    """The rows of parts (source, times, rows), with the columns of a schema, in the order of group and time; those of
    earlier parts first where times are equal."""
    columns = zip(types.names, types.types, strict=True)
    args = {name: concatenate([rows.column(name) for *_, rows in parts], kind) for name, kind in columns}
    source = np.concatenate([np.full(len(times), number, np.uint8) for number, times, _ in parts])
    times = np.concatenate([times for _, times, _ in parts])
    if group is not None or (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable") if group is None else np.lexsort((times, group))
        places = pa.array(order)
        times, source = times[order], source[order]
        args = {name: column.take(places) for name, column in args.items()}
        group = None if group is None else group[order]
    group = np.zeros(len(source), np.int64) if group is None else group
    return Piece(group, times, source, args, rows_without_columns(int(np.count_nonzero(source == 0))))


@dataclass(frozen=True)
class LongCall:
    """A call as partial calls, and the name of its result; `counts`: 0 is none by category."""

    name: str
    split: SplitCall
    counts: bool

    @classmethod
    def of(cls, call: Call, types: pa.Schema, *, ansi: bool) -> tuple[str | None, LongCall] | None:
        """The call with its category, if it has one; None if its rows cannot be condensed."""
        base, where, _ = call.function.partition("_where")
        category, inner = None, call
        if base.endswith(_CATE) and base.removesuffix(_CATE) in _BY_CATEGORY:
            base, args = base.removesuffix(_CATE), list(call.args)
            category = args.pop(-2 if call.filtered else -1)
            inner = replace(call, function=base + where, args=tuple(args))
        split = split_call(inner, {item.name: item.type for item in types}, ansi=ansi)
        return None if split is None else (category, cls(call.output, split, base == "count"))


@dataclass(frozen=True)
class LongCalls:
    """Calls of one window that are computed of condensed rows, all of them by one category or none.

    `inputs` are by source of the specification the places of the stores; COPIED: rows of the request table.
    """

    spec: WindowUnionSpec
    window: Window
    inputs: Mapping[int, int]
    types: pa.Schema
    calls: tuple[LongCall, ...]
    recipe: Recipe
    processors: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def moved(self) -> tuple[WindowUnionSpec, pa.Schema]:
        """The window with the partial calls, over condensed rows too, and the types of their columns."""
        partials = dict.fromkeys(partial for call in self.calls for partial in call.split.partials)
        calls = tuple(partial.call for partial in partials)
        window = replace(self.window, sources=(*self.window.sources, self.condensed), calls=calls)
        types = pa.schema([(partial.column, partial.dtype(self.types)) for partial in partials])
        return replace(self.spec, windows=(window,)), types

    @property
    def condensed(self) -> int:
        """The source of condensed rows: the next one."""
        return max([0, *(source for source in self.inputs if source != COPIED)]) + 1

    def results(self, asked: pa.RecordBatch, key: pa.RecordBatch, time: int, stores: Stores) -> dict[str, pa.Array]:
        """The calls' results for a request row, by their names. Raises OverflowError under ANSI."""
        parts = self._parts(key, time, stores)
        parts.append((0, np.array([time]), self.recipe.columns(asked)))
        if self.recipe.category is not None:
            return self._by_category(self.recipe.category, parts, time)
        spec, types = self.moved
        return self._finished(processed(self.processors, "all", spec, piece_of(parts, types)))

    def _finished(self, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        """The calls' results of those of partial calls."""
        return {
            call.name: call.split.finish([columns[partial.column] for partial in call.split.partials])
            for call in self.calls
        }

    def _parts(self, key: pa.RecordBatch, time: int, stores: Stores) -> list[Part]:
        """The rows that the window reaches: those before the request's time condensed where they are many."""
        end, reach = self.window.frame.end or 0, window_reach(self.window)
        span = Span(max(time - reach.back, -FARTHEST), min(time + end, FARTHEST))
        shown = () if self.window.frame.instance_not_in_window else (COPIED,)
        parts = []
        for source in (*sorted(self.window.sources, reverse=True), *shown):
            store = stores[self.inputs[source]]
            store = store.stored if source == COPIED else store
            for rows, times, is_condensed in store.cover(key, span, min(time, span.high), self.recipe):
                columns = rows if is_condensed else self.recipe.columns(rows)
                parts.append((self.condensed if is_condensed else source, times, columns))
        return parts

    def _by_category(self, category: str, parts: Sequence[Part], time: int) -> dict[str, pa.Array]:
        """The texts `category:value`. Each category is a group with one row to answer: the request row, or one without
        values."""
        spec, types = self.moved
        known: list[Part] = []
        for source, times, rows in parts:
            valid = valid_mask(rows.column(category))
            if valid is not None:
                times, rows = times[valid], rows.filter(pa.array(valid))
            known.append((source, times, rows))
        every = concatenate([rows.column(category) for *_, rows in known], self.types.field(category).type)
        coded = every.dictionary_encode()
        codes = coded.indices.to_numpy().astype(np.int64)
        if not len(codes):
            return {call.name: pa.array([""]) for call in self.calls}
        is_asked = np.zeros(len(coded.dictionary), np.bool_)
        is_asked[codes[len(codes) - known[-1][2].num_rows :]] = True
        others = np.flatnonzero(~is_asked)
        nothing = pa.RecordBatch.from_arrays([pa.nulls(len(others), item.type) for item in types], schema=types)
        piece = piece_of([*known, (0, np.full(len(others), time), nothing)], types, np.concatenate([codes, others]))
        found = self._finished(processed(self.processors, "all", spec, piece))
        return {call.name: self._text(call, coded.dictionary, found[call.name]) for call in self.calls}

    def _text(self, call: LongCall, categories: pa.Array, values: pa.Array) -> pa.Array:
        """One text of the values by category, as `max_cate` writes it; without those that have none."""
        some = pc.greater(values, 0) if call.counts else values.is_valid()
        pairs = (values, categories) if some.true_count == len(some) else (values.filter(some), categories.filter(some))
        types = tuple(array.type for array in pairs)
        name = f"text of {types}"
        evaluator = self.processors.pop(name, None)
        if evaluator is None:
            written = Call("max_cate", ("value", "category"), "text")
            site = call_site(written, types, unbounded=False, ansi=self.spec.ansi, time_zone=self.spec.time_zone)
            evaluator = site.function.evaluation.create(site)
        evaluator.forget()
        evaluator.load(Rows(pairs, None, len(pairs[0])))
        text = evaluator.evaluate(Frames.whole(len(pairs[0])))
        self.processors[name] = evaluator  # not after an error
        return text


@dataclass(frozen=True)
class LongWindows:
    """The windows of a step: the calls over rows that can be condensed, and the windows with the other calls."""

    calls: tuple[LongCalls, ...]
    rest: WindowUnionSpec | None

    @classmethod
    def of(cls, spec: WindowUnionSpec, types: pa.Schema, inputs: Mapping[int, int]) -> LongWindows:
        """The calls of windows. Only rows of `inputs` can be condensed."""
        chosen: list[tuple[Window, dict[Stem, list[LongCall]]]] = []
        rest = []
        for window in spec.windows:
            by_stem: dict[Stem, list[LongCall]] = {}
            others = []
            for call in window.calls:
                found = LongCall.of(call, types, ansi=spec.ansi) if _has_stretches(spec, window, inputs) else None
                if found is None:
                    others.append(call)
                else:
                    category, long_call = found
                    distinct = next((one for one in long_call.split.partials if one.form == "distinct"), None)
                    by_stem.setdefault((category, distinct), []).append(long_call)
            chosen.append((window, by_stem))
            if others:
                rest.append(replace(window, calls=tuple(others)))
        partials: dict[Stem, dict[PartialCall, None]] = {}
        for _, by_stem in chosen:
            for stem, calls in by_stem.items():
                known = partials.setdefault(stem, {})
                known.update(dict.fromkeys(partial for call in calls for partial in call.split.partials))
        recipes = {stem: Recipe(tuple(known), stem[0]) for stem, known in partials.items()}
        long = tuple(
            LongCalls(spec, window, inputs, types, tuple(calls), recipes[stem])
            for window, by_stem in chosen
            for stem, calls in by_stem.items()
        )
        return cls(long, replace(spec, windows=tuple(rest)) if rest else None)


def _has_stretches(spec: WindowUnionSpec, window: Window, inputs: Mapping[int, int]) -> bool:
    """Whether a window holds all rows of stretches of time that are kept as they are."""
    frame = window.frame
    is_kept = frame.instance_not_in_window or COPIED in inputs
    return (
        spec.order is not None
        and is_kept
        and frame.unit == "range"
        and None not in (frame.start, frame.end)
        and (frame.maxsize is None)
    )
