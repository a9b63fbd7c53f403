"""A checkpoint that another query, another version or a defect has left: refused with a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row
from sqlext_operators.errors import TaskError
from sqlext_operators.exchange import bucket_state
from sqlext_operators.exchange.blocks import Block, WireBatch
from sqlext_operators.exchange.chunks import FORMAT, ChunkCache
from sqlext_operators.exchange.stateful import StatefulOperator, StatefulSpec
from sqlext_operators.sequences.sequence import SequenceSpec
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.spec import Call, Frame, Window, WindowUnionSpec
from sqlext_operators.window.stream import WindowStreamSpec

#: Spark's own, from 4.2 on.
TwsTester = pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="needs Spark 4.2").TwsTester

KEY = 7
_CALL = Call("sum", ("v",), "s")
_WINDOW = Window(Frame("range", -1_000_000, 0), (1,), (_CALL,))
_SPEC = WindowOperatorSpec(
    SequenceSpec(("k",), "ts", ("v",), ("id", "ts")),
    WindowUnionSpec(("k",), "ts", ("id", "ts"), (_WINDOW,)),
    2,
)
FINGERPRINT = {"windows": "1s", "time zone": "UTC"}


def new_tester(fingerprint: Mapping[str, str] = FINGERPRINT) -> TwsTester:
    operator = StatefulOperator(StatefulSpec(WindowStreamSpec(_SPEC), fingerprint), ChunkCache(None))
    return TwsTester(operator, timeMode="EventTime", eventTimeExtractor=lambda row: 1 << 60)  # type: ignore[arg-type]


def wire(first: int) -> list[Row]:
    """Ten rows of each input, 100 ms from one to the next."""
    times = [(first + n) * 100_000 + 1_000_000 for n in range(10)]
    found = WireBatch()
    for tag in range(2):
        columns = {"id": range(10), "k": [1] * 10, "ts": [time + tag for time in times], "v": range(10)}
        found.add(Block(0, tag, 0, pa.RecordBatch.from_pydict({name: list(of) for name, of in columns.items()})))
    return [Row(pid=KEY, tag=row["tag"], block=row["block"]) for row in found.finish().to_pylist()]


def restarted(old: TwsTester, fingerprint: Mapping[str, str] = FINGERPRINT) -> TwsTester:
    """Another processor with the state of one; its worker has no chunk at hand."""
    found = new_tester(fingerprint)
    found.updateValueState("meta", KEY, old.peekValueState("meta", KEY))
    found.updateMapState("chunks", KEY, old.peekMapState("chunks", KEY))
    return found


def results(rows: Any) -> int:
    return sum(row.asDict()["rows_out"] for row in rows)


def without_digest(meta: tuple[Any, ...], **changed: Any) -> tuple[Any, ...]:
    """The state's description as the version before lists had digests wrote it, with other values."""
    fingerprint, index = changed.get("fingerprint", meta[1]), changed.get("index", bytes(meta[-1])[32:])
    return (2, fingerprint, *meta[2:-1], index)


@pytest.fixture
def before() -> TwsTester:
    tester = new_tester()
    tester.test(KEY, wire(0))
    return tester


def test_a_restart_goes_on(before: TwsTester) -> None:
    after = restarted(before)
    after.test(KEY, wire(10))
    assert results(after.setWatermark(10_000) or after.test(KEY, [])) == 20


def test_a_chunk_that_the_list_names_and_the_state_lacks(before: TwsTester) -> None:
    after = restarted(before)
    chunks = after.peekMapState("chunks", KEY)
    del chunks[min(chunks)]
    after.updateMapState("chunks", KEY, chunks)
    after.setWatermark(10_000)
    with pytest.raises(TaskError, match="lacks chunk 0") as caught:
        after.test(KEY, wire(10))
    assert "new checkpoint" in str(caught.value)


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"\x07" * len(data)])
def test_a_chunk_with_other_bytes(before: TwsTester, damage: Any) -> None:
    after = restarted(before)
    chunks = after.peekMapState("chunks", KEY)
    chunks[min(chunks)] = (damage(chunks[min(chunks)][0]),)
    after.updateMapState("chunks", KEY, chunks)
    after.setWatermark(10_000)
    with pytest.raises(TaskError, match=r"chunk 0 .* is damaged"):
        after.test(KEY, wire(10))


def test_another_fingerprint(before: TwsTester) -> None:
    after = restarted(before, {"windows": "2s", "time zone": "UTC"})
    with pytest.raises(TaskError, match="belongs to another query: windows was 1s, and is 2s") as caught:
        after.test(KEY, wire(10))
    assert "time zone" not in str(caught.value)


def test_other_types_of_results_say_that_the_version_may_be_another(before: TwsTester) -> None:
    """A sum of ints was an int in the version that has written the checkpoint."""
    after = restarted(before, {"windows": "1s", "time zone": "UTC", "results": "s bigint"})
    with pytest.raises(TaskError, match=r"had other columns or types: results was nothing, and is s bigint") as caught:
        after.test(KEY, wire(10))
    assert "start the query with a new checkpoint location" in str(caught.value)


def test_the_text_of_a_call_has_no_type() -> None:
    """So a stream of a version without types goes on, if its results have the same ones."""
    call = Call("sum", ("v",), "s", openmldb=True)
    assert repr(call) == "Call(function='sum', args=('v',), output='s', constants=())"


@pytest.mark.parametrize("text", ["garbage", "[1]", "null"])
def test_a_fingerprint_that_cannot_be_read(before: TwsTester, text: str) -> None:
    after = restarted(before)
    meta = after.peekValueState("meta", KEY)
    assert meta is not None
    after.updateValueState("meta", KEY, (meta[0], text, *meta[2:]))
    with pytest.raises(TaskError, match="list of the stream's chunks is damaged"):
        after.test(KEY, wire(10))
    after.updateValueState("meta", KEY, without_digest(meta, fingerprint=text))
    with pytest.raises(TaskError, match="its description cannot be read"):
        after.test(KEY, wire(10))


def test_another_format(before: TwsTester, monkeypatch: pytest.MonkeyPatch) -> None:
    after = restarted(before)
    monkeypatch.setattr(bucket_state, "FORMAT", FORMAT + 1)
    with pytest.raises(TaskError, match=f"state in format {FORMAT}, and this version reads {FORMAT + 1}"):
        after.test(KEY, wire(10))


@pytest.mark.parametrize(
    "damage", [lambda index: b"", lambda index: index[: len(index) // 2], lambda index: b"\x07" * 99]
)
def test_a_list_of_chunks_that_cannot_be_read(before: TwsTester, damage: Any) -> None:
    after = restarted(before)
    meta = after.peekValueState("meta", KEY)
    assert meta is not None
    after.updateValueState("meta", KEY, (*meta[:-1], damage(bytes(meta[-1]))))
    with pytest.raises(TaskError, match="list of the stream's chunks is damaged"):
        after.test(KEY, wire(10))
    after.updateValueState("meta", KEY, without_digest(meta, index=damage(bytes(meta[-1])[32:])))
    with pytest.raises(TaskError, match="list of the stream's chunks cannot be read"):
        after.test(KEY, wire(10))
