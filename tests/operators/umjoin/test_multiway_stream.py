"""The multi-way join on streams gives, after every micro-batch, what the rows that have come make, each row once."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.chunks import Chunk
from sqlext_operators.exchange.stream import Progress
from sqlext_operators.umjoin.spec import Kind, MultiwayInput, MultiwayJoinSpec
from sqlext_operators.umjoin.stream import MultiwayStreamSpec
from sqlext_operators.umjoin.stream_bounds import StreamTimes, TimeBound

from tests.operators.exchange.memory_chunks import MemoryChunks
from tests.properties import examples

LAST = 10_000


@dataclass(frozen=True)
class Row:
    tag: int
    no: int
    time: int | None
    keys: tuple[int | None, ...]


@dataclass(frozen=True)
class Case:
    """Micro-batches with the watermark that is known when each comes."""

    spec: MultiwayStreamSpec
    batches: tuple[tuple[int | None, tuple[Row, ...]], ...]


def schema_of(item: MultiwayInput) -> pa.Schema:
    return pa.schema([*((name, pa.int64()) for name in item.keys), ("t", pa.int64()), ("no", pa.int64())])


def blocks_of(spec: MultiwayStreamSpec, rows: Sequence[Row]) -> list[Block]:
    found = []
    for tag, schema in enumerate(spec.schemas):
        own = [(*row.keys, row.time, row.no) for row in rows if row.tag == tag]
        if own:
            columns = [pa.array(values, pa.int64()) for values in zip(*own, strict=True)]
            found.append(Block(0, tag, 0, pa.RecordBatch.from_arrays(columns, schema=schema)))
    return found


class Model:
    """All rows that have come, joined by brute force."""

    def __init__(self, spec: MultiwayStreamSpec) -> None:
        self.spec = spec
        self.rows: list[Row] = []
        self.watermark: int | None = None
        self.late = self.timeless = 0

    def add(self, rows: Sequence[Row], watermark: int | None) -> None:
        for row in rows:
            timed = self.spec.times.columns[row.tag] is not None
            is_compared = any(row.tag in (bound.earlier, bound.later) for bound in self.spec.times.bounds)
            if timed and is_compared and row.time is None:
                self.timeless += 1
            elif timed and self.watermark is not None and row.time is not None and row.time < self.watermark:
                self.late += 1
            elif None not in row.keys:
                self.rows.append(row)
        if watermark is not None:
            self.watermark = max(watermark, self.watermark or watermark)

    def joined(self) -> Counter[tuple[int | None, ...]]:
        """The rows that should have come out: the numbers of the inner and left inputs' rows."""
        inputs = self.spec.join.inputs
        inner = [i for i, item in enumerate(inputs) if item.kind == "inner"]
        by_tag = [[row for row in self.rows if row.tag == tag] for tag in range(len(inputs))]
        found: Counter[tuple[int | None, ...]] = Counter()
        for chosen in itertools.product(*(by_tag[i] for i in inner)):
            have = dict(zip(inner, chosen, strict=True))
            values: dict[int, int | None] = {}
            if not all(self._fits(row, values) for row in chosen) or not self._bounded(have):
                continue
            if not self._is_due(have):
                continue
            matches = {
                i: [row for row in by_tag[i] if self._fits(row, dict(values)) and self._bounded({**have, i: row}, i)]
                for i, item in enumerate(inputs)
                if item.kind != "inner"
            }
            if any(not rows for i, rows in matches.items() if inputs[i].kind == "semi"):
                continue
            if any(rows for i, rows in matches.items() if inputs[i].kind == "anti"):
                continue
            left = [i for i in matches if inputs[i].kind == "left"]
            for extra in itertools.product(*(matches[i] or [None] for i in left)):
                shown: dict[int, Row | None] = {**have, **dict(zip(left, extra, strict=True))}
                found[tuple(None if row is None else row.no for _, row in sorted(shown.items()))] += 1
        return found

    def _fits(self, row: Row, values: dict[int, int | None]) -> bool:
        classes = self.spec.join.inputs[row.tag].classes
        return all(values.setdefault(place, key) == key for place, key in zip(classes, row.keys, strict=True))

    def _bounded(self, have: dict[int, Row], member: int | None = None) -> bool:
        for bound in self.spec.times.bounds:
            own = (bound.earlier, bound.later)
            if all(i in have for i in own) and (member is None or member in own):
                low, high = have[bound.earlier].time, have[bound.later].time
                assert low is not None
                assert high is not None
                if high - low > bound.most:
                    return False
        return True

    def _is_due(self, have: dict[int, Row]) -> bool:
        for member in self.spec.times.waited:
            anchor, wait = self.spec.times.waits[member]
            time = have[anchor].time
            assert time is not None
            if self.watermark is None or time + wait >= self.watermark:
                return False
        return True


def check(case: Case) -> Counter[tuple[int | None, ...]]:
    """All rows that came out; raises AssertionError where they are not what should have come."""
    model, store, progress = Model(case.spec), MemoryChunks(), Progress()
    found: Counter[tuple[int | None, ...]] = Counter()
    times: dict[int, int | None] = {}
    for watermark, rows in (*case.batches, (LAST, ())):
        operator = case.spec.stream()
        wakes = operator.wakes_at(store)
        before = sum(found.values())
        new: list[tuple[int | None, ...]] = []
        for batch in operator.step(store, blocks_of(case.spec, rows), watermark, progress):
            new += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        found.update(new)
        times |= {row.no: row.time for row in rows}
        check_delays(case.spec, new, times, rows, store.watermark)
        if watermark is not None:
            store.watermark = max(watermark, store.watermark or watermark)
        model.add(rows, watermark)
        assert found == model.joined()
        if not rows and sum(found.values()) > before:
            assert wakes is not None
            assert watermark is not None
            assert wakes <= watermark
        again = MemoryChunks(store.index(), store.data)
        again.watermark, again.next_no = store.watermark, store.next_no
        store = again
    assert (progress.late, progress.timeless) == (model.late, model.timeless)
    if all(kept is not None for kept in case.spec.times.retention):
        assert not list(store.all())
    return found


def check_delays(
    spec: MultiwayStreamSpec,
    found: Sequence[tuple[int | None, ...]],
    times: Mapping[int, int | None],
    new: Sequence[Row],
    before: int | None,
) -> None:
    """Raises AssertionError for a result with a row that is older than the watermark of the step before, or than all
    new rows that are in time, by more than it is kept."""
    if before is None or not found:
        return
    timed = [row.time for row in new if spec.times.columns[row.tag] is not None and row.time is not None]
    floor = min([before, *(time for time in timed if time >= before)])
    shown = [i for i, item in enumerate(spec.join.inputs) if item.kind in ("inner", "left")]
    for place, i in enumerate(shown):
        kept = spec.times.retention[i]
        if kept is not None:
            own = [times[row[place]] for row in found if row[place] is not None]  # type: ignore[index]
            assert all(time is not None and time >= floor - max(kept, 0) for time in own)


@st.composite
def cases(draw: st.DrawFn, *, close: bool = False) -> Case:
    """Any joins; or those with several inputs that are not inner, bounds for most, and a watermark that is close to the
    rows, so that they go while others come."""
    inner = draw(st.integers(1, 2 if close else 4))
    count = draw(st.integers(1, 1 if close else 3))
    inputs: list[MultiwayInput] = []
    bound: set[int] = set()
    for i in range(inner):
        classes = set(draw(st.sets(st.integers(0, count - 1), min_size=1)))
        if i == inner - 1:
            classes |= set(range(count)) - bound
        if bound and not classes & bound and draw(st.booleans()):  # else times may join it with the others
            classes.add(draw(st.sampled_from(sorted(bound))))
        bound |= classes
        own = tuple(sorted(classes))
        inputs.append(MultiwayInput("inner", own, tuple(f"k{c}" for c in own), ("no",)))
    member_kinds = draw(st.sampled_from([("left", "semi", "anti"), ("semi",)] if close else [("left", "semi", "anti")]))
    for _ in range(draw(st.integers(2, 3) if close else st.integers(0 if inner > 1 else 1, 2))):
        kind = draw(st.sampled_from(member_kinds))
        own = tuple(sorted(draw(st.sets(st.integers(0, count - 1), min_size=1))))
        payload = ("no",) if kind == "left" else ()
        inputs.append(MultiwayInput(kind, own, tuple(f"k{c}" for c in own), payload))  # type: ignore[arg-type]
    order = draw(st.permutations(range(len(inputs))))
    inputs = [inputs[i] for i in order]
    kinds = tuple(item.kind for item in inputs)
    inner_places = [i for i, kind in enumerate(kinds) if kind == "inner"]
    bounds = []
    often, widest = (9, 9) if close else draw(st.sampled_from([(1, 10), (3, 10), (9, 4)]))  # of ten bounds
    for i, j in itertools.permutations(range(len(inputs)), 2):
        if "inner" in (kinds[i], kinds[j]) and draw(st.integers(1, 10)) <= often:
            bounds.append(TimeBound(i, j, draw(st.integers(-2, widest))))
    if any(kind in ("left", "anti") for kind in kinds):
        for i, kind in enumerate(kinds):
            if kind != "inner" and not any(b.later == i and b.earlier in inner_places for b in bounds):
                bounds.append(TimeBound(draw(st.sampled_from(inner_places)), i, draw(st.integers(-2, 10))))
    classes_of = [item.classes for item in inputs]
    for i in StreamTimes(kinds, ("t",) * len(inputs), tuple(bounds)).apart(classes_of):
        bounds += [
            TimeBound(*pair, draw(st.integers(0, widest))) for pair in ((inner_places[0], i), (i, inner_places[0]))
        ]
    assume(not StreamTimes(kinds, ("t",) * len(inputs), tuple(bounds)).apart(classes_of))
    needed = {i for b in bounds for i in (b.earlier, b.later)}
    columns = tuple("t" if i in needed or draw(st.booleans()) else None for i in range(len(inputs)))
    spec = MultiwayStreamSpec(
        MultiwayJoinSpec(tuple(inputs), count),
        StreamTimes(kinds, columns, tuple(bounds)),
        tuple(map(schema_of, inputs)),
        batch_rows=draw(st.sampled_from([3, 1000])),
    )
    rng = random.Random(draw(st.integers(0, 1 << 30)))  # lists of hypothesis are short: few rows would match
    number = itertools.count()
    values = (0, 1, 2) if close else draw(st.sampled_from([(0,), (0, 0, 0, 1), (0, 1), (0, 1, 2, None)]))
    timeless = draw(st.sampled_from([0.0, 0.1]))
    batches = []
    watermark = 0 if close else draw(st.none() | st.integers(0, 5))
    most = 6 if close else 14 if len(inputs) < 4 else 10
    pace, ahead = (2, 3) if close else (4, 10)
    for n in range(draw(st.integers(5, 10) if close else st.integers(1, 8))):
        rows = []
        for _ in range(rng.randint(0, most)):
            tag = rng.randrange(len(inputs))
            time = None if rng.random() < timeless else rng.randint(pace * n, pace * n + ahead)
            rows.append(Row(tag, next(number), time, tuple(rng.choice(values) for _ in inputs[tag].keys)))
        batches.append((watermark, tuple(rows)))
        if watermark is not None or draw(st.booleans()):
            watermark = (watermark or 0) + (pace if close else draw(st.integers(0, 6)))
    return Case(spec, tuple(batches))


@given(case=cases())
@examples(100, share=8)
def test_every_micro_batch_gives_what_has_come(case: Case) -> None:
    kinds = sorted({item.kind for item in case.spec.join.inputs})
    event(f"{'+'.join(kinds)}: {'rows' if check(case) else 'no rows'}")


@pytest.mark.parametrize("seed", range(4))
def test_inner_inputs_that_times_join_have_keys_with_a_semi_input_alone(seed: int) -> None:
    """One inner input has the key 0, the other one 1, a third one neither; a semi input has both."""
    rng = random.Random(seed)
    keys: list[tuple[Kind, tuple[int, ...]]] = [("inner", (0,)), ("inner", (1,)), ("semi", (0, 1)), ("semi", (0,))]
    keys = [*keys[: 3 + seed % 2], *([("inner", (2,))] if seed > 1 else [])]
    rng.shuffle(keys)
    inputs = [
        MultiwayInput(kind, own, tuple(f"k{c}" for c in own), ("no",) if kind == "inner" else ()) for kind, own in keys
    ]
    kinds = tuple(item.kind for item in inputs)
    inner = [i for i, kind in enumerate(kinds) if kind == "inner"]
    pairs = [pair for pair in itertools.permutations(range(len(inputs)), 2) if set(pair) & set(inner)]
    bounds = tuple(
        TimeBound(*pair, rng.randint(1, 4)) for pair in pairs if set(pair) <= set(inner) or rng.random() < 0.6
    )
    times = StreamTimes(kinds, ("t",) * len(kinds), bounds)
    join = MultiwayJoinSpec(tuple(inputs), 3 if seed > 1 else 2)
    spec = MultiwayStreamSpec(join, times, tuple(map(schema_of, inputs)))
    number = itertools.count()
    batches = []
    for n in range(7):
        tags = [rng.randrange(len(inputs)) for _ in range(12)]
        rows = [
            (tag, rng.randint(3 * n, 3 * n + 7), tuple(rng.randint(0, 1) for _ in inputs[tag].keys)) for tag in tags
        ]
        batches.append((3 * n, tuple(Row(tag, next(number), time, own) for tag, time, own in rows)))
    assert check(Case(spec, tuple(batches)))


@given(case=cases(close=True))
@examples(100, share=8)
def test_rows_stay_as_long_as_others_need_them(case: Case) -> None:
    check(case)


@pytest.mark.slow
@given(case=cases() | cases(close=True))
@examples(3_000)
def test_three_thousand_joins_give_what_has_come(case: Case) -> None:
    check(case)


def test_rows_stay_until_the_semi_input_beside_a_left_one_is_complete() -> None:
    """The join waits for the semi input by the times of one inner input, and a row of another one is bound to it more
    closely than by way of these."""
    kinds: tuple[Kind, ...] = ("inner", "inner", "left", "semi")
    items = tuple(MultiwayInput(kind, (0,), ("k0",), () if kind == "semi" else ("no",)) for kind in kinds)
    bounds = [(0, 1, 3), (1, 0, 0), (0, 2, 0), (1, 3, 1), (0, 3, 2)]
    times = StreamTimes(kinds, ("t",) * 4, tuple(TimeBound(*bound) for bound in bounds))
    spec = MultiwayStreamSpec(MultiwayJoinSpec(items, 1), times, tuple(map(schema_of, items)))
    rows = (Row(0, 1, 0, (7,)), Row(1, 2, 3, (7,)), Row(3, 3, 2, (7,)))
    assert check(Case(spec, ((None, rows), (4, ()), (5, ())))) == {(1, 2, None): 1}


def test_matches_in_a_semi_input_stay_until_those_in_another_one_are_known() -> None:
    """The rows of the first are as old as the row that they match, those of the second may come later."""
    kinds: tuple[Kind, ...] = ("inner", "semi", "semi")
    items = tuple(MultiwayInput(kind, (0,), ("k0",), () if kind == "semi" else ("no",)) for kind in kinds)
    bounds = [(0, 1, 0), (1, 0, 0), (0, 2, 3), (2, 0, 0)]
    times = StreamTimes(kinds, ("t",) * 3, tuple(TimeBound(*bound) for bound in bounds))
    assert times.retention == (3, 3, 3)
    spec = MultiwayStreamSpec(MultiwayJoinSpec(items, 1), times, tuple(map(schema_of, items)))
    first, last = (Row(0, 1, 1, (7,)), Row(1, 2, 1, (7,))), (Row(2, 3, 4, (7,)),)
    assert check(Case(spec, ((1, first), (2, ()), (3, last)))) == {(1,): 1}


class CountedChunks(MemoryChunks):
    """Knows of which chunks something was computed."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[int, ...]] = []

    def derived(
        self, sources: Sequence[Chunk], recipe: str, high: int, make: Callable[[], pa.RecordBatch]
    ) -> pa.RecordBatch:
        def counted() -> pa.RecordBatch:
            self.made.append(tuple(chunk.no for chunk in sources))
            return make()

        return super().derived(sources, recipe, high, counted)


def test_hashes_of_rows_that_are_kept_for_ever_are_computed_once() -> None:
    items = tuple(MultiwayInput("inner", (0,), ("k0",), ("no",)) for _ in range(2))
    times = StreamTimes(("inner", "inner"), ("t", "t"))
    spec = MultiwayStreamSpec(MultiwayJoinSpec(items, 1), times, tuple(map(schema_of, items)))
    store, progress = CountedChunks(), Progress()
    for number in range(4):
        rows = [Row(tag, number, 100 * number, (number,)) for tag in (0, 1)]
        list(spec.stream().step(store, blocks_of(spec, rows), 100 * number, progress))
        store.watermark = 100 * number
    assert len(store.made) == len(set(store.made)) > 2
