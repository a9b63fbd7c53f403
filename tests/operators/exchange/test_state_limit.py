"""State beyond its limit is an error with the size and the largest key, and nothing of the step is kept."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row
from sqlext_operators.errors import TaskError
from sqlext_operators.exchange.blocks import Block, WireBatch
from sqlext_operators.exchange.chunks import ChunkCache
from sqlext_operators.exchange.stateful import StatefulOperator, StatefulSpec
from sqlext_operators.exchange.stream import StreamSpec
from sqlext_operators.umjoin.spec import MultiwayInput, MultiwayJoinSpec
from sqlext_operators.umjoin.stream import MultiwayStreamSpec
from sqlext_operators.umjoin.stream_bounds import StreamTimes

from tests.operators.exchange.test_stateful_retries import STREAMS, rows_of, state_of

#: Spark's own, from 4.2 on.
TwsTester = pytest.importorskip("pyspark.sql.streaming.tws_tester", reason="needs Spark 4.2").TwsTester

KEY = 7
SECOND = 1_000_000


def join_stream() -> MultiwayStreamSpec:
    """A join of two inputs on k whose rows are never let go."""
    inputs = tuple(MultiwayInput("inner", (0,), (f"{n}k",), (f"{n}v", f"{n}id")) for n in "lr")
    times = StreamTimes(("inner", "inner"), (None, None), ())
    schemas = tuple(pa.schema([(f"{n}{name}", pa.int64()) for name in ("id", "k", "ts", "v", "te")]) for n in "lr")
    return MultiwayStreamSpec(MultiwayJoinSpec(inputs, 1), times, schemas)


ALL: dict[str, tuple[StreamSpec, str]] = {
    "range": (STREAMS["range"], ""),
    "rows": (STREAMS["rows"], ""),
    "left join": (STREAMS["left join"], "lr"),
    "multi-way join": (join_stream(), "lr"),
}


def wire(prefixes: str, keys: list[int]) -> list[Row]:
    """Rows of the second input with these keys; the columns of the inputs start with the prefixes."""
    found = WireBatch()
    numbers = range(len(keys))
    random = Random(1)
    values = [random.getrandbits(60) for _ in numbers]  # nothing that compresses
    columns = {"id": values, "k": keys, "ts": [SECOND * 10 + n for n in numbers], "v": values}
    columns["te"] = [SECOND * 100 + n for n in numbers]
    columns = {f"{prefixes[1:]}{name}": column for name, column in columns.items()}
    found.add(Block(0, 1, 0, pa.RecordBatch.from_pydict(columns)))
    return [Row(pid=KEY, tag=row["tag"], block=row["block"]) for row in found.finish().to_pylist()]


def limited_to(spec: StreamSpec, folder: Path, limit: int) -> TwsTester:
    operator: Any = StatefulOperator(StatefulSpec(spec, {}, state_bytes=limit), ChunkCache(folder))
    return TwsTester(operator, timeMode="EventTime", eventTimeExtractor=lambda row: 1 << 60)


@pytest.mark.parametrize("name", ALL)
def test_too_much_state_names_the_largest_key(name: str, tmp_path: Path) -> None:
    spec, prefixes = ALL[name]
    keys = [1, 2, 3] * 100 + [17] * 150
    rows = wire(prefixes, keys)
    runs = limited_to(spec, tmp_path / "enough", 1 << 20)
    size = next(answer.asDict()["state_bytes"] for answer in runs.test(KEY, rows))
    assert size > 1_000
    limited = limited_to(spec, tmp_path / "limited", size - 1)
    with pytest.raises(TaskError) as caught:
        limited.test(KEY, rows)
    most = Counter(keys).most_common(1)[0]
    assert f"({len(keys):,} rows) in one bucket" in caught.value.message
    assert f"the largest key is {most[0]} with {most[1]} rows" in caught.value.message
    assert "raise sqlext.stream.stateBytes" in (caught.value.help or "")
    assert limited_to(spec, tmp_path / "just", size).test(KEY, rows)


def test_a_query_with_a_higher_limit_goes_on(tmp_path: Path) -> None:
    """The state is that of before the step that failed."""
    spec, prefixes = ALL["multi-way join"]
    first, second = wire(prefixes, [1, 2]), wire(prefixes, [3] * 300)
    free = limited_to(spec, tmp_path / "free", 0)
    free.test(KEY, first)
    free.test(KEY, second)
    limited = limited_to(spec, tmp_path / "limited", 2_000)
    limited.test(KEY, first)
    kept = state_of(limited)
    with pytest.raises(TaskError, match="the largest key is 3 with 300 rows"):
        limited.test(KEY, second)
    assert state_of(limited)[0] == kept[0]  # the list of chunks; Spark rolls the chunks back with it
    assert not rows_of(free.test(KEY, wire(prefixes, [5])))


def test_several_columns_of_a_key_are_shown_together(tmp_path: Path) -> None:
    inputs = tuple(MultiwayInput("inner", (0, 1), (f"{n}k", f"{n}v"), (f"{n}id",)) for n in "lr")
    schemas = join_stream().schemas
    spec = MultiwayStreamSpec(MultiwayJoinSpec(inputs, 2), StreamTimes(("inner",) * 2, (None,) * 2, ()), schemas)
    with pytest.raises(TaskError, match=r"the largest key is \(4, \d+\) with 1 row"):
        limited_to(spec, tmp_path, 10).test(KEY, wire("lr", [4]))
