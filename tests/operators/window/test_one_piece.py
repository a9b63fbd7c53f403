"""Windows over a partition that comes in one piece, with calls that several of them have, against the processor of any
pieces."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlext_operators.errors import RowOverflowError
from sqlext_operators.window.functions import FUNCTIONS
from sqlext_operators.window.one_piece import OnePieceProcessor
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec

from tests.operators.window.test_window_twins import plain, run
from tests.operators.window.window_data import ALL_CALLS, TYPES, Line, frames, lines, modified, to_piece
from tests.properties import examples


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
@examples(20)
@given(st.data())
def test_windows_share_calls(function: str, data: st.DataObject) -> None:
    """Bit-identical results, whatever piece came before."""
    call = data.draw(modified(data.draw(st.sampled_from([c for c in ALL_CALLS if c.function == function]))))
    sources = st.sets(st.integers(1, 2)).map(lambda numbers: tuple(sorted(numbers)))
    kinds = data.draw(st.lists(st.tuples(frames(), sources), min_size=1, max_size=4))
    windows = tuple(
        Window(frame, numbers, (replace(call, output=f"w{place}"), Call("count", (), f"n{place}")))
        for place, (frame, numbers) in enumerate(kinds)
    )
    columns = sorted(set(call.args))
    processor = OnePieceProcessor(WindowUnionSpec(("k",), "ts", ("id",), windows), TYPES)
    for _ in range(2):
        rows = data.draw(lines(columns))
        whole = run(windows, rows, [])
        if not whole.num_rows:
            continue
        results = processor.process(to_piece(rows, columns))
        assert sorted(results) == sorted({*whole.column_names} - {"id"})
        for name, column in results.items():
            assert repr(plain(pa.chunked_array([column]))) == repr(plain(whole[name]))


def test_an_error_is_about_the_window_that_has_it() -> None:
    windows = (
        Window(Frame("rows", 0, 0), (), (Call("sum", ("i64",), "alone"),)),
        Window(Frame("rows", -1, 0), (), (Call("sum", ("i64",), "with the one before"),)),
    )
    spec = WindowUnionSpec(("k",), "ts", (), windows, ansi=True)
    rows = [Line(0, place, 0, {"i64": 2**63 - 1}) for place in range(2)]
    with pytest.raises(RowOverflowError) as error:
        OnePieceProcessor(spec, TYPES).process(to_piece(rows, ["i64"]))
    assert error.value.about == "with the one before"
