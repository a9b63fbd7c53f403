"""In which order classes are bound, and counts of branches that meet in one class, against the twin."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.umjoin.class_order import SearchOrder, class_order, search_order
from sqlext_operators.umjoin.processor import MultiwayJoin
from sqlext_operators.umjoin.spec import COUNT, Kind, MultiwayInput, MultiwayJoinSpec

from tests.operators.umjoin.umjoin_data import expected_rows, found_rows
from tests.properties import examples

#: Joins by the classes of their inputs, with the order that all classes of ten values and inputs of 100 rows get.
SHAPES: dict[str, tuple[tuple[tuple[int, ...], ...], SearchOrder]] = {
    "triangle": (((0, 1), (1, 2), (0, 2)), SearchOrder((0, 1, 2))),
    "4-cycle": (((0, 1), (1, 2), (2, 3), (3, 0)), SearchOrder((0,), ((3,), (1,)), 2)),
    "4-cycle with a chord": (((0, 1), (1, 2), (2, 3), (3, 0), (0, 2)), SearchOrder((0,), ((), (3,), (1,)), 2)),
    "three paths": (((0, 1), (1, 4), (0, 2), (2, 4), (0, 3), (3, 4)), SearchOrder((0,), ((3,), (2,), (1,)), 4)),
    "chain": (((0,), (0, 1), (1, 2), (2, 3), (3,)), SearchOrder((), ((2, 3), (0,)), 1)),
    "star": (((0,), (0,), (0,)), SearchOrder((0,))),
    "two triangles": (((0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)), SearchOrder((), ((3, 4), (0, 1)), 2)),
    "5-cycle": (((0, 1), (1, 2), (2, 3), (3, 4), (4, 0)), SearchOrder((0,), ((4, 3), (1,)), 2)),
}


def shape(classes: tuple[tuple[int, ...], ...], payload: tuple[int, ...] = ()) -> MultiwayJoinSpec:
    """A counting join of inner inputs of these classes, some of which have payload."""
    inputs = tuple(
        MultiwayInput("inner", own, tuple(f"k{place}" for place in own), ("id",) if i in payload else ())
        for i, own in enumerate(classes)
    )
    return MultiwayJoinSpec(inputs, 1 + max(place for own in classes for place in own), count=True)


@pytest.mark.parametrize("name", SHAPES)
def test_branches_of_shapes(name: str) -> None:
    classes, expected = SHAPES[name]
    spec = shape(classes)
    order = search_order(spec, [10] * spec.classes, [100] * len(classes))
    assert (order.prefix, set(order.branches), order.pivot) == (
        expected.prefix,
        set(expected.branches),
        expected.pivot,
    )


def test_branches_begin_below_what_payload_hangs_on() -> None:
    classes, _ = SHAPES["4-cycle"]
    everything = shape(classes, (0, 1, 2, 3))
    assert search_order(everything, [10] * 4, [100] * 4).branches == ()
    one_edge = search_order(shape(classes, (0,)), [10] * 4, [100] * 4)
    assert one_edge.branches == ()
    assert set(one_edge.prefix[:2]) == {0, 1}
    assert one_edge.emitted(shape(classes, (0,))) == 2
    chain, _ = SHAPES["chain"]
    by_end = search_order(shape(chain, (0,)), [10] * 4, [100] * 5)
    assert by_end.emitted(shape(chain, (0,))) == 1


def test_branches_of_different_size_are_not_counted_alone() -> None:
    classes, _ = SHAPES["4-cycle"]
    assert search_order(shape(classes), [10] * 4, [100, 100, 100_000, 100_000]).branches == ()


def test_the_next_class_shares_an_input_and_is_shared_by_many() -> None:
    spec = shape(((0, 1), (1, 2), (2, 3), (1,)))
    assert class_order(spec, [1, 900, 7, 5]) == (1, 2, 0, 3)
    assert class_order(spec, [9, 900, 7, 2]) == (1, 2, 3, 0)
    apart = shape(((0,), (1,), (1,)))
    assert class_order(apart, [5, 9]) == (1, 0)


@st.composite
def counting_joins(draw: st.DrawFn) -> tuple[MultiwayJoinSpec, list[pa.RecordBatch]]:
    """One of the shapes with extra inputs of any kind on some of its classes, some inner ones semi, some payload."""
    classes, _ = SHAPES[draw(st.sampled_from(sorted(SHAPES)))]
    bound = sorted({place for own in classes for place in own})
    extra = draw(st.lists(st.lists(st.sampled_from(bound), min_size=1, max_size=2, unique=True), max_size=2))
    items: list[MultiwayInput] = []
    tables = []
    for i, own in enumerate([*classes, *map(tuple, extra)]):
        kind: Kind = "inner" if i < len(classes) else draw(st.sampled_from(["semi", "semi", "left", "anti", "inner"]))
        names = tuple(f"k{place}" for place in own)
        payload = draw(st.sampled_from([(), (), (), ("id",)])) if kind in ("inner", "left") else ()
        items.append(MultiwayInput(kind, own, names, payload))
        value = st.sampled_from([0, 0, 1, 2, None])
        rows = draw(st.lists(st.tuples(*(value for _ in own)), max_size=5))
        columns = [pa.array([row[k] for row in rows], pa.int32()) for k in range(len(own))]
        tables.append(pa.RecordBatch.from_arrays([*columns, pa.array(range(len(rows)))], names=[*names, "id"]))
    return MultiwayJoinSpec(tuple(items), len(bound), draw(st.sampled_from([True, True, False]))), tables


@given(counting_joins(), st.booleans())
@examples(400)
def test_counts_of_shapes_agree_with_twin(join: tuple[MultiwayJoinSpec, list[pa.RecordBatch]], balanced: bool) -> None:
    spec, tables = join
    with pytest.MonkeyPatch.context() as patch:
        if not balanced:
            patch.setattr("sqlext_operators.umjoin.class_order._BALANCE", 1e9)
        batches = list(MultiwayJoin(spec, tables).batches(50))
    assert found_rows(spec, batches, 50) == expected_rows(spec, tables)


def test_chains_of_many_rows_are_counted_by_branch() -> None:
    """10^16 rows: the branches' counts are multiplied, nothing goes through their combinations."""
    spec = shape(((0,), (0, 1), (1, 2), (2, 3), (3,)))
    rows = 1_000
    ones = pa.array(np.zeros(rows, np.int64))
    names = [[f"k{place}" for place in item.classes] for item in spec.inputs]
    tables = [pa.RecordBatch.from_arrays([ones] * len(own), names=own) for own in names]
    tables[0] = tables[0].slice(0, 10_000 // rows)
    (batch,) = MultiwayJoin(spec, tables).batches()
    assert batch.to_pydict() == {COUNT: [10 * rows**4]}
