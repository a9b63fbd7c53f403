"""The window union on streams gives what the batch operator gives, whatever the micro-batches are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from sqlext_operators.errors import RowError
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.stream import Progress
from sqlext_operators.sequences.sequence import SequenceSpec
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.reach import reach_of, window_reach
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec
from sqlext_operators.window.stream import WindowStreamSpec
from sqlext_operators.window.stream_split import split_windows

from tests.operators.exchange.memory_chunks import MemoryChunks
from tests.operators.window.window_data import ALL_CALLS, COLUMNS, TYPES, modified, windows
from tests.properties import examples

LAST = 1 << 40


@dataclass(frozen=True)
class Row:
    """One row of an input."""

    tag: int
    key: int | None
    time: int | None
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """Rows in micro-batches, each with the watermark that is known when it comes."""

    spec: WindowOperatorSpec
    columns: tuple[str, ...]
    batches: tuple[tuple[int | None, tuple[Row, ...]], ...]


def spec_of(found: Sequence[Window], inputs: int, *, ansi: bool = False) -> WindowOperatorSpec:
    args = tuple(dict.fromkeys(name for window in found for call in window.calls for name in call.args))
    sequence = SequenceSpec(("k",), "ts", args, ("id", "k", "ts"), piece_rows=7)
    return WindowOperatorSpec(sequence, WindowUnionSpec(("k",), "ts", ("id", "k", "ts"), tuple(found), ansi), inputs, 5)


def blocks_of(columns: Sequence[str], rows: Sequence[Row], inputs: int, first: int) -> list[Block]:
    """One block for each input; `first` is the number of the first row."""
    schema = pa.schema(
        [("id", pa.int64()), ("k", pa.int32()), ("ts", pa.int64()), *((name, TYPES[name]) for name in columns)]
    )
    numbered = [(row.tag, (first + n, row.key, row.time, *row.values)) for n, row in enumerate(rows)]
    found = []
    for tag in range(inputs):
        chosen = [values for owner, values in numbered if owner == tag]
        arrays = [pa.array([v[i] for v in chosen], field.type) for i, field in enumerate(schema)]
        if chosen:
            found.append(Block(0, tag, first, pa.RecordBatch.from_arrays(arrays, schema=schema)))
    return found


def results(batches: Iterable[pa.RecordBatch]) -> Counter[str]:
    found: Counter[str] = Counter()
    for batch in batches:
        found.update(map(str, batch.to_pylist()))
    return found


def in_batch(case: Case) -> Counter[str]:
    """The batch operator over all rows in the order of arrival."""
    with case.spec.operator() as operator:
        first = 0
        for _, rows in case.batches:
            for block in blocks_of(case.columns, rows, case.spec.inputs, first):
                operator.push(block)
            first += len(rows)
        return results(operator.finish())


def in_stream(case: Case, condense_from: int) -> tuple[Counter[str], Progress, MemoryChunks]:
    """The stream's operator, with its state written down and read back after each step."""
    store, progress = MemoryChunks(), Progress()
    found: Counter[str] = Counter()
    first = 0
    for watermark, rows in (*case.batches, (LAST, ())):
        operator = WindowStreamSpec(case.spec, condense_from=condense_from).stream()
        wakes = operator.wakes_at(store)
        given = blocks_of(case.columns, rows, case.spec.inputs, first)
        new = list(operator.step(store, given, watermark, progress))
        if store.watermark is not None:  # how late rows come, which an operator above relies on
            floor = store.watermark - reach_of(case.spec.window).ahead
            assert all(time >= floor for batch in new for time in batch.column("ts").to_pylist())
        found += results(new)
        if any(batch.num_rows for batch in new) and not rows:
            assert wakes is not None
            assert watermark is not None
            assert wakes <= watermark
        if watermark is not None:
            store.watermark = max(watermark, store.watermark or watermark)
        first += len(rows)
        again = MemoryChunks(store.index(), store.data)
        again.watermark, again.next_no = store.watermark, store.next_no
        store = again
    return found, progress, store


def is_streamed(case: Case) -> bool:
    """Whether every window has a bound: the planner refuses the others."""
    splits, _ = split_windows(case.spec.window, {name: TYPES[name] for name in case.columns})
    for window, split in zip(case.spec.window.windows, splits, strict=True):
        frame = window.frame
        if frame.unit == "rows" and (frame.end is None or frame.end > 0):
            return False
        if frame.end is None or frame.end > LAST:
            return False
        if window_reach(window).unbounded and split is None:
            return False
        if any(call.function == "lead" or (call.function == "lag" and call.filtered) for call in window.calls):
            return False
    return True


@st.composite
def cases(draw: st.DrawFn, span: int = 12) -> Case:
    """Rows of up to three unions and a few keys, out of order within a random delay."""
    found = [draw(windows(n, size=3)) for n in range(draw(st.integers(1, 3)))]
    columns = tuple(dict.fromkeys(name for window in found for call in window.calls for name in call.args))
    value = st.tuples(*(COLUMNS[name][1] | st.none() for name in columns))
    inputs = 4
    delay = draw(st.integers(0, 6))
    batches: list[tuple[int | None, tuple[Row, ...]]] = []
    seen: int | None = None
    watermark: int | None = None
    for n in range(draw(st.integers(1, 6))):
        low = watermark if watermark is not None else -5
        times = st.integers(low, low + delay + draw(st.integers(0, span)))
        row = st.builds(Row, st.integers(0, inputs - 1), st.none() | st.integers(0, 2), times, value)
        rows = tuple(draw(st.lists(row, max_size=8)))
        batches.append((watermark if draw(st.booleans()) or n else None, rows))
        if rows:
            seen = max([row.time for row in rows if row.time is not None] + ([] if seen is None else [seen]))
        if seen is not None and draw(st.integers(0, 3)):
            watermark = max(seen - delay, watermark if watermark is not None else seen - delay)
    return Case(spec_of(found, inputs), columns, tuple(batches))


LIMITS = st.sampled_from([0, 4, 1000])


@given(case=cases(), condense_from=LIMITS)
@examples(60, share=8)
def test_stream_equals_batch(case: Case, condense_from: int) -> None:
    check(case, condense_from)


@pytest.mark.slow
@given(case=cases(), condense_from=LIMITS)
@examples(1000)
def test_a_thousand_streams_equal_batch(case: Case, condense_from: int) -> None:
    check(case, condense_from)


def check(case: Case, condense_from: int) -> None:
    """Raises AssertionError where the stream differs from the batch."""
    assume(is_streamed(case))
    event(f"condense from {condense_from}")
    found, progress, store = in_stream(case, condense_from)
    assert found == in_batch(case)
    assert progress.late == progress.timeless == 0
    assert progress.rows == sum(len(rows) for _, rows in case.batches)
    reach = reach_of(case.spec.window)
    if not (reach.rows or reach.unbounded or reach.back > LAST):
        assert not list(store.all()), "rows are kept that nothing can reach any more"


SUMMED = ("count", "sum", "avg", "min", "max", "distinct_count", "count_where", "sum_where", "avg_where", "min_where")


@st.composite
def summed_windows(draw: st.DrawFn, number: int) -> Window:
    """A window over time of functions whose rows can be condensed."""
    calls = draw(st.lists(st.sampled_from([c for c in ALL_CALLS if c.function in SUMMED]), min_size=1, max_size=3))
    start = draw(st.none() | st.integers(-40, -1))
    end = draw(st.integers(-3, 3)) if start is None or start < -3 else 0
    frame = Frame(
        "range",
        start,
        end,
        end_following=end > 0,
        exclude_current_row=draw(st.booleans()),
        exclude_current_time=draw(st.booleans()),
        instance_not_in_window=draw(st.booleans()),
    )
    named = tuple(replace(draw(modified(c)), output=f"w{number}_{i}") for i, c in enumerate(calls))
    return Window(frame, tuple(sorted(draw(st.sets(st.integers(1, 3))))), named)


@st.composite
def summed_cases(draw: st.DrawFn) -> Case:
    """Many rows in windows that are condensed."""
    found = [draw(summed_windows(n)) for n in range(draw(st.integers(1, 3)))]
    columns = tuple(dict.fromkeys(name for window in found for call in window.calls for name in call.args))
    value = st.tuples(*(COLUMNS[name][1] | st.none() for name in columns))
    batches: list[tuple[int | None, tuple[Row, ...]]] = []
    for n in range(draw(st.integers(2, 8))):
        row = st.builds(Row, st.integers(0, 3), st.none() | st.integers(0, 1), st.integers(10 * n, 10 * n + 12), value)
        batches.append((10 * n - 1 if n else None, tuple(draw(st.lists(row, max_size=10)))))
    return Case(spec_of(found, 4), columns, tuple(batches))


@given(case=summed_cases())
@examples(60, share=8)
def test_condensed_windows_equal_batch(case: Case) -> None:
    check(case, 0)


@pytest.mark.slow
@given(case=summed_cases())
@examples(1000)
def test_a_thousand_condensed_windows_equal_batch(case: Case) -> None:
    check(case, 0)


#: Calls whose answers depend on the order of rows, over numbers that all differ.
_ORDERED = (
    Call("sum", ("i64",), ""),
    Call("lag", ("i64",), "", (1,)),
    Call("lag", ("i64",), "", (3,)),
    Call("first_value", ("i64",), ""),
    Call("count", (), ""),
)


@st.composite
def counted_windows(draw: st.DrawFn, number: int) -> Window:
    """A window that counts rows, by ROWS, MAXSIZE or lag; beside it, windows over time."""
    calls = draw(st.lists(st.sampled_from(_ORDERED), min_size=1, max_size=2))
    count = draw(st.integers(1, 4))
    kind = draw(
        st.sampled_from(["rows", "rows", "maxsize", "lag"] if number == 0 else ["rows", "range", "sums", "first"])
    )
    if kind == "rows":
        frame = Frame("rows", -count, draw(st.integers(-count, 0)))
    elif kind == "maxsize":
        frame = Frame("range", None, draw(st.sampled_from([-2, 0, 0, 3])), maxsize=count)
    else:
        calls = {"lag": [Call("lag", ("i64",), "", (count,))], "range": calls}.get(kind, [Call("sum", ("i64",), "")])
        start = None if kind == "first" else -draw(st.sampled_from([0, 1, 3, 50, 400]))
        frame = Frame("range", start, draw(st.sampled_from([0, 0, 3])))
    frame = replace(
        frame,
        end_following=frame.end is not None and frame.end > 0,
        exclude_current_row=draw(st.booleans()),
        exclude_current_time=frame.unit == "range" and draw(st.booleans()),
        instance_not_in_window=draw(st.integers(0, 3)) == 0,
    )
    named = tuple(replace(call, output=f"w{number}_{i}") for i, call in enumerate(calls))
    return Window(frame, tuple(sorted(draw(st.sets(st.integers(1, 2))))), named)


@st.composite
def counted_cases(draw: st.DrawFn) -> Case:
    """Pairs of times near each other, the pairs far apart, and the watermark at the later time of each pair. So chunks
    of rows of one time go one by one, and the rows to answer span far more than what is kept before them."""
    found = [draw(counted_windows(n)) for n in range(draw(st.integers(1, 2)))]
    steps = draw(st.lists(st.sampled_from([(40, 1), (40, 3), (150, 2), (700, 5)]), min_size=3, max_size=4))
    starts = accumulate((before + after for after, before in steps), initial=draw(st.integers(0, 500)))
    pairs = [(start, start + near) for start, (_, near) in zip(starts, steps, strict=False)]
    batches: list[tuple[int | None, tuple[Row, ...]]] = []
    watermark, count = None, 0
    for (early, late), following in pairwise(pairs):
        for times in ((early, late, *following), (early, early, late)):
            time = st.sampled_from([one for one in times if watermark is None or one >= watermark] or [late])
            row = st.tuples(st.sampled_from([0, 0, 0, 1, 2]), time, st.sampled_from([1, 1, 1, 2]))
            rows = draw(st.lists(row, min_size=1, max_size=4))
            batches.append(
                (watermark, tuple(Row(tag, key, at, (1 << (count + n),)) for n, (tag, at, key) in enumerate(rows)))
            )
            count += len(rows)
        watermark = draw(st.sampled_from([late, late, late, early, watermark]))
    return Case(spec_of(found, 3), ("i64",), tuple(batches))


@given(case=counted_cases(), condense_from=st.sampled_from([0, 1000]))
@examples(100, derandomize=True)
def test_windows_by_count_equal_batch_over_long_spans(case: Case, condense_from: int) -> None:
    check(case, condense_from)


@pytest.mark.slow
@given(case=counted_cases(), condense_from=LIMITS)
@examples(2000)
def test_two_thousand_windows_by_count_equal_batch_over_long_spans(case: Case, condense_from: int) -> None:
    check(case, condense_from)


@pytest.mark.parametrize(
    "window",
    [
        Window(Frame("rows", -1, 0, exclude_current_row=True), (1, 2), (Call("sum", ("i64",), "s"),)),
        Window(Frame("range", None, 0, maxsize=2), (1, 2), (Call("sum", ("i64",), "s"),)),
        Window(Frame("range", 0, 0), (1, 2), (Call("lag", ("i64",), "s", (1,)),)),
        Window(Frame("rows", -1, 0, instance_not_in_window=True), (1, 2), (Call("sum", ("i64",), "s"),)),
    ],
    ids=["rows", "maxsize", "lag", "rows of unions alone"],
)
def test_rows_of_one_time_keep_the_order_of_arrival_when_the_later_ones_go_first(window: Window) -> None:
    """The chunk of the later row goes with the watermark 40, that of the earlier row stays for its row at 55. Unions
    are before FROM at equal times, and the one that is listed last before the others."""
    differ = []
    for shift, earlier, later in product(range(0, 16, 4), range(3), range(3)):
        first = (Row(earlier, 1, shift + 36, (1,)), Row(0, 1, shift + 40, (2,)), Row(earlier, 1, shift + 55, (4,)))
        batches = (
            (None, first),
            (None, (Row(later, 1, shift + 36, (8,)),)),
            (shift + 40, ()),
            (shift + 40, (Row(0, 1, shift + 55, (16,)), Row(0, 1, shift + 301, (32,)))),
        )
        case = Case(spec_of([window], 3), ("i64",), batches)
        if in_stream(case, 1000)[0] != in_batch(case):
            differ.append((shift, earlier, later))
    assert differ == []


@pytest.mark.parametrize("maxsize", [None, 1])
def test_a_window_without_start_that_ends_before_its_row_leaves_out_what_is_between(maxsize: int | None) -> None:
    window = Window(Frame("range", None, -3, maxsize=maxsize), (1,), (Call("sum", ("i64",), "s"),))
    batches = (
        (None, (Row(1, 1, 0, (1,)), Row(1, 1, 8, (2,)))),
        (9, (Row(0, 1, 10, (4,)),)),
        (10, (Row(0, 1, 12, (8,)),)),
    )
    case = Case(spec_of([window], 2), ("i64",), batches)
    assert in_stream(case, 0)[0] == in_batch(case)


def test_late_rows_change_nothing() -> None:
    window = Window(Frame("range", -10, 0), (1,), (Call("sum", ("i64",), "s"),))
    batches = (
        (None, (Row(0, 1, 5, (1,)), Row(1, 1, 4, (2,)), Row(0, 1, None, (7,)))),
        (20, (Row(1, 1, 4, (100,)), Row(0, 1, 19, (5,)), Row(0, 1, 20, (3,)))),
        (20, (Row(1, 1, 19, (100,)), Row(1, 1, 20, (4,)))),
    )
    found, progress, _ = in_stream(Case(spec_of([window], 2), ("i64",), batches), 0)
    # the second batch still takes rows at 4 and 19: nothing had been answered before it came
    assert {row.split("'s': ")[1] for row in found} == {"103}", "5}", "12}"}
    assert (progress.late, progress.timeless) == (1, 1)


def test_late_rows_fail_where_they_must_not_be_lost() -> None:
    window = Window(Frame("range", -10, 0), (1,), (Call("sum", ("i64",), "s"),))
    store = MemoryChunks()
    store.watermark = 10
    operator = WindowStreamSpec(spec_of([window], 2), late="fail").stream()
    blocks = blocks_of(("i64",), (Row(0, 1, 5, (1,)), Row(0, 1, None, (1,))), 2, 0)
    with pytest.raises(RowError, match="1 row older than the watermark and 1 row without a time"):
        list(operator.step(store, blocks, 10, Progress()))


@st.composite
def late_cases(draw: st.DrawFn) -> Case:
    """Rows of any age, some without a time, below watermarks that move by any step."""
    found = [draw(summed_windows(n)) for n in range(draw(st.integers(1, 2)))]
    columns = tuple(dict.fromkeys(name for window in found for call in window.calls for name in call.args))
    value = st.tuples(*(COLUMNS[name][1] | st.none() for name in columns))
    row = st.builds(Row, st.integers(0, 3), st.integers(0, 1), st.none() | st.integers(0, 60), value)
    watermarks = sorted(draw(st.lists(st.integers(0, 60), min_size=2, max_size=5)))
    return Case(spec_of(found, 4), columns, tuple((w, tuple(draw(st.lists(row, max_size=8)))) for w in watermarks))


@given(case=late_cases())
@examples(150)
def test_late_rows_come_out_with_their_phase(case: Case) -> None:
    """Every row of FROM comes out once. The finished ones are those that come out without the late ones."""
    calls = [call for window in case.spec.window.windows for call in window.calls]
    plain, marked = {}, {}
    progress = Progress()
    schema: pa.Schema | None = None
    for late, found in (("drop", plain), ("rows", marked)):
        store, first = MemoryChunks(), 0
        for watermark, rows in (*case.batches, (LAST, ())):
            spec = WindowStreamSpec(case.spec, "rows" if late == "rows" else "drop", schema if late == "rows" else None)
            new = blocks_of(case.columns, rows, case.spec.inputs, first)
            counted = progress if late == "rows" else Progress()
            for batch in spec.stream().step(store, new, watermark, counted):
                schema = schema or batch.schema
                for item in batch.to_pylist():
                    assert item["id"] not in found
                    found[item["id"]] = item
            store.watermark = watermark
            first += len(rows)
        if schema is None:  # nothing is ever complete: the types of results do not matter
            fields = [("id", pa.int64()), ("k", pa.int32()), ("ts", pa.int64())]
            schema = pa.schema([*fields, *((call.output, pa.int64()) for call in calls)])
    numbers = [n for n, row in enumerate(row for _, rows in case.batches for row in rows) if row.tag == 0]
    times = [row.time for _, rows in case.batches for row in rows]
    assert sorted(marked) == numbers
    phases = {n: item.pop("phase") for n, item in marked.items()}
    assert str({n: marked[n] for n in sorted(plain)}) == str(dict(sorted(plain.items())))
    assert {n for n, phase in phases.items() if phase == "final"} == set(plain)
    for n, item in marked.items():
        assert (phases[n] == "timeless") == (times[n] is None)
        if phases[n] != "final":
            assert all(item[call.output] is None for call in calls)
    event(f"late rows: {min(3, sum(phase == 'late' for phase in phases.values()))}")
