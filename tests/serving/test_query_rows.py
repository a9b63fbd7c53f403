"""A deployment that begins with the state of its stream's operators, which run here without Spark, answers as one to
which all rows were pushed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from sqlext_operators.exchange.blocks import Block
from sqlext_operators.exchange.bucket_state import BucketState
from sqlext_operators.exchange.placed import COPY
from sqlext_operators.exchange.stream import Progress
from sqlext_operators.sequences.sequence import SequenceSpec
from sqlext_operators.serving.steps import ServingSpec
from sqlext_operators.serving.steps import computed as computed_columns
from sqlext_operators.window.operator import WindowOperatorSpec
from sqlext_operators.window.reach import reach_of
from sqlext_operators.window.stream import WindowStream, WindowStreamSpec
from sqlext_planner.errors import SqlExtError
from sqlext_planner.serving import checkpoint
from sqlext_planner.serving.lowering import ServingSettings
from sqlext_planner.serving.steps import serving_plan
from sqlext_planner.serving.windows import ServedWindow
from sqlext_planner.window.inputs import state_parts

from sqlext.catalog.dictionary import DictCatalog
from sqlext.serving.deployment import Deployment
from sqlext.serving.values import to_batch
from sqlext.serving.verify import same
from sqlext.serving.warm import WarmStart
from tests.operators.exchange.memory_chunks import MemoryChunks
from tests.serving.warm_cases import (
    ARROW,
    COLUMNS,
    FILES,
    NAMES,
    READ,
    STATEMENTS,
    Row,
    batches,
    drawn,
    mapping,
    requests,
)
from tests.sql.streams import DELAY, SECOND

TABLES = dict.fromkeys((*NAMES, "wt"), COLUMNS)
#: What the subquery of one statement calls columns.
RENAMED = {"q.value": "wa.v", "q.s": "s", "q.n": "n"}
CASES = [title for title in STATEMENTS if "LAST JOIN" not in title]


#: The buckets that have all keys in each micro-batch: they move from the first to the second one.
MOVING = ((0,), (0, 1), (0, 1), (1,))
SPREAD = [title for title in CASES if "key" not in title and "standard" not in title]


SETTINGS: dict[str, Any] = {"ansi": True, "time_zone": "UTC"}


class Operator:
    """The operator of windows in two buckets: of half of the keys each, or as `members` says for all keys."""

    def __init__(self, window: ServedWindow, delay: int, members: Sequence[Sequence[int]]) -> None:
        self.window, self._delay, self._members = window, delay, members
        spec = replace(window.step.window, payload=window.payload)
        args = dict.fromkeys(arg for one in spec.windows for call in one.calls for arg in call.args)
        sequence = SequenceSpec(spec.keys, spec.order, tuple(args), spec.payload)
        operator, reach = WindowOperatorSpec(sequence, spec, 1 + len(window.step.unions)), reach_of(spec)
        self._spec = WindowStreamSpec(operator, copies=bool(members) and reach.shows_from)
        self.ahead = reach.ahead
        self.stores = [MemoryChunks(), MemoryChunks()]

    def step(self, inputs: list[pa.RecordBatch], watermark: int | None, number: int) -> list[pa.RecordBatch]:
        """What comes out of a micro-batch with new rows of each input."""
        mark = None if watermark is None else watermark - self._delay
        results = []
        for pid, store in enumerate(self.stores):
            blocks = []
            for tag, rows in enumerate(inputs):
                mine = self._routed(rows, tag, pid, number) if rows.num_rows else rows
                if mine.num_rows:
                    blocks.append(Block(pid, tag, number << 20, mine))
            results += list(WindowStream(self._spec).step(store, blocks, mark, Progress()))
            store.watermark = mark
        return results

    def _routed(self, rows: pa.RecordBatch, tag: int, pid: int, number: int) -> pa.RecordBatch:
        """The rows of an input that a bucket gets."""
        if not self._members:
            keys = rows.column(self.window.step.window.keys[0]).to_pylist()
            return rows.filter(pa.array([(key or 0) % 2 == pid for key in keys]))
        members = self._members[number]
        if tag or pid not in members:
            return rows if pid in members else rows.slice(0, 0)
        owned = [members[row % len(members)] == pid for row in range(rows.num_rows)]
        if not self._spec.copies:
            return rows.filter(pa.array(owned))
        marks = pa.array([not one for one in owned])
        return pa.RecordBatch.from_arrays([*rows.columns, marks], names=[*rows.schema.names, COPY])

    def rows(self, variable: str, fingerprint: str) -> Iterator[dict[str, Any]]:
        """The rows of a variable of its state, as Spark gives them."""
        for pid, store in enumerate(self.stores):
            if variable == "meta":
                state = BucketState(fingerprint, f"o{pid}", store.watermark, store.next_no, None, 0, store.index())
                yield {"key": (pid,), "value": state.row}
            else:
                for number, data in store.data.items():
                    key = {"key": (pid,), "partition_id": pid}
                    yield {**key, "user_map_key": (number,), "user_map_value": (data,)}


class Query:
    """A streaming query of a deployment's statement."""

    def __init__(self, deployment: Deployment, members: Sequence[Sequence[int]] = ()) -> None:
        self._spec: ServingSpec
        self._spec, windows = serving_plan(deployment.plan, deployment.request, deployment.settings)
        self._operators: list[Operator] = []
        for window in windows:
            self._operators.append(Operator(window, sum(one.ahead for one in self._operators), members))
        self._more = {"partitioner": "broadcast"} if members else {}

    def run(self, parts: list[dict[str, list[Row]]]) -> None:
        """Micro-batches, and one without rows."""
        newest: dict[str, int] = {}
        watermark = None
        for number, part in enumerate([*parts, {}]):
            self._step({name: table(part.get(name, [])) for name in TABLES}, watermark, number)
            for name in part:
                newest[name] = max(newest.get(name, 0), *(row[3] for row in part[name]))
            watermark = min(newest[name] for name in NAMES if name in self._spec.tables) - DELAY * SECOND

    def _step(self, tables: dict[str, pa.RecordBatch], watermark: int | None, number: int) -> None:
        given = tables["wa"].rename_columns([f"wa.{name}" for name in COLUMNS])
        for operator in self._operators:
            step = operator.window.step
            names = {name for _, item in step.wire for name in item.inputs()} | {*operator.window.payload}
            source = pa.RecordBatch.from_pydict(
                {name: given.column(RENAMED.get(name, name.replace("q.", "wa."))) for name in sorted(names)}
            )
            wire = computed_columns(step.wire, source)
            passed = [name for name in operator.window.payload if name not in wire.schema.names]
            shipped = pa.RecordBatch.from_arrays(
                [*source.select(passed).columns, *wire.columns], names=[*passed, *wire.schema.names]
            )
            inputs = (self._spec.inputs[place] for place in step.unions)
            results = operator.step([shipped, *(item.rows(tables[item.table]) for item in inputs)], watermark, number)
            empty = self._empty(operator, source)
            given = pa.Table.from_batches(results or [empty]).combine_chunks().to_batches()
            given = given[0] if given else empty

    @staticmethod
    def _empty(operator: Operator, source: pa.RecordBatch) -> pa.RecordBatch:
        calls = [call.output for window in operator.window.step.window.windows for call in window.calls]
        fields = [source.schema.field(name) for name in operator.window.payload]
        schema = pa.schema([*fields, *(pa.field(name, pa.int64()) for name in calls)])
        return schema.empty_table().to_batches()[0] if schema.empty_table().to_batches() else _no_rows(schema)

    # what `StoredState` tells of it

    batch = 7

    def operators(self, *_: str) -> list[int]:
        """Those above come first, as in Spark."""
        return list(range(len(self._operators)))

    def rows(self, number: int, variable: str) -> Iterator[dict[str, Any]]:
        """The rows of a variable."""
        place = len(self._operators) - 1 - number
        operator = self._operators[place]
        spec = operator.window.step.window
        calls = [call.output for window in spec.windows for call in window.calls]
        results = ", ".join(f"{name} bigint" for name in (*operator.window.payload, *calls))
        parts = {**state_parts(spec, operator.window.computed, ansi=spec.ansi), "results": results, "partitions": "2"}
        more = {**self._more, **({"delay of its inputs": "4s"} if place else {})}
        return operator.rows(variable, json.dumps({**parts, **more}, sort_keys=True))


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], item.type) for item in schema], schema=schema)


def table(rows: list[Row]) -> pa.RecordBatch:
    columns = [pa.array([row[place] for row in rows], item.type) for place, item in enumerate(ARROW)]
    return pa.RecordBatch.from_arrays(columns, schema=ARROW)


def answers(deployment: Deployment, asked: list[Row]) -> list[tuple[dict[str, Any], bool]]:
    request = deployment.request
    rows = to_batch([mapping(row) for row in asked], deployment.schemas[request], request)
    return [(answer.row, answer.is_partial) for answer in deployment.answers(rows)]


def loaded(monkeypatch: pytest.MonkeyPatch, deployment: Deployment, query: Query) -> WarmStart:
    """What a deployment begins with, of a query instead of its checkpoint."""
    monkeypatch.setattr(checkpoint, "StoredState", lambda spark, location: query)
    return deployment.load_checkpoint("somewhere", object())  # type: ignore[arg-type]


def deployed(sql: str, **settings: Any) -> Deployment:
    """A deployment over the tables."""
    return Deployment(sql, DictCatalog(TABLES), settings=ServingSettings(**{**SETTINGS, **settings}), lateness=None)


@pytest.mark.parametrize(
    ("title", "members"), [*((title, ()) for title in CASES), *((title, MOVING) for title in SPREAD)]
)
def test_a_deployment_begins_where_its_query_is(
    monkeypatch: pytest.MonkeyPatch, title: str, members: Sequence[Sequence[int]]
) -> None:
    rows = {name: batches(drawn(name)) for name in NAMES}
    sql = STATEMENTS[title].format("", "")
    warm, full = deployed(sql), deployed(sql)
    query = Query(warm, members)
    static = {"wt": drawn("wt", 20)}
    query.run([{name: rows[name][place] for name in NAMES} | (static if not place else {}) for place in range(READ)])
    begun = loaded(monkeypatch, warm, query)
    assert begun.rows == warm.kept_rows > 0
    for name, part in static.items():
        if name in full.tables:
            full.push(name, table(part))
    newest = min(max(row[3] for part in rows[name][:READ] for row in part) for name in NAMES if name in full.tables)
    for place in range(FILES):
        for name in NAMES:
            if name in full.tables:
                full.push(name, table(rows[name][place]))
                if place >= READ:
                    warm.push(name, table(rows[name][place]))
        if place >= READ - 1:
            asked = requests(f"{title} {place}")
            for row, (answer, is_partial), (wanted, _) in zip(
                asked, answers(warm, asked), answers(full, asked), strict=True
            ):
                assert not is_partial or row[3] < newest - DELAY * SECOND
                assert is_partial or same(answer, wanted), (row, answer, wanted)


UNION = STATEMENTS["a union"].format("", "")


@pytest.fixture(scope="module")
def union() -> Query:
    """A query of the first statement."""
    return begun_query(UNION)


def begun_query(sql: str) -> Query:
    """A query that has read the first files."""
    query = Query(deployed(sql))
    query.run([{name: batches(drawn(name))[place] for name in NAMES} for place in range(READ)])
    return query


JOINED = """SELECT a.id, {0} FROM wa a LAST JOIN {1} t ORDER BY t.ts ON a.s = t.s AND t.ts <= a.ts
    WINDOW w AS (UNION wb PARTITION BY a.k ORDER BY a.ts ROWS_RANGE BETWEEN 20s PRECEDING AND CURRENT ROW)"""
OTHER = {
    "another frame": (UNION.replace("20s", "21s"), "belongs to another query: windows was"),
    "another key": (UNION.replace("BY k", "BY g"), "belongs to another query: keys and order was"),
    "a computed column": (UNION.replace("sum(v)", "sum(v + 2)"), "belongs to another query: expressions was "),
    "more windows": (STATEMENTS["two keys"].format("", ""), "belongs to another query"),
    "no windows": (
        "SELECT a.id, t.s FROM wa a LAST JOIN wt t ORDER BY t.ts ON a.k = t.k AND t.ts <= a.ts",
        "has no windows",
    ),
    "joined rows": (JOINED.format("sum(t.v) OVER w AS s", "wt"), "show rows of 'wa' with columns of a LAST JOIN"),
}


@pytest.mark.parametrize("title", list(OTHER))
def test_the_state_of_another_statement_is_refused(monkeypatch: pytest.MonkeyPatch, union: Query, title: str) -> None:
    sql, message = OTHER[title]
    deployment = deployed(sql)
    with pytest.raises(SqlExtError, match=message) as caught:
        loaded(monkeypatch, deployment, union)
    assert (caught.value.condition, deployment.kept_rows) == ("checkpoint-mismatch", 0)
    assert caught.value.help


def test_a_table_of_a_window_and_a_join_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = deployed(JOINED.format("t.v, sum(a.v) OVER w AS s", "wb"))
    with pytest.raises(SqlExtError, match="'wb' is read by windows and by a LAST JOIN"):
        loaded(monkeypatch, deployment, Query(deployment))


def test_an_operator_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    query = begun_query(STATEMENTS["two keys"].format("", ""))
    sql = """SELECT id, sum(v) OVER w AS s FROM wa WINDOW w AS (UNION wb PARTITION BY k ORDER BY ts
        ROWS_RANGE BETWEEN 10s PRECEDING AND 4s FOLLOWING)"""
    with pytest.raises(SqlExtError, match="has 1 more operators with state"):
        loaded(monkeypatch, deployed(sql), query)


def test_other_settings_are_refused(monkeypatch: pytest.MonkeyPatch, union: Query) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"time_zone": "Asia/Tokyo"}, "time zone was UTC"),
        ({"ansi": False}, "enabled was true"),
    ]
    for settings, message in cases:
        with pytest.raises(SqlExtError, match=message):
            loaded(monkeypatch, deployed(UNION, **settings), union)


def test_rows_are_not_stored_twice(monkeypatch: pytest.MonkeyPatch, union: Query) -> None:
    deployment = deployed(UNION)
    deployment.push("wb", table(drawn("wb")[:1]))
    with pytest.raises(SqlExtError, match="rows of 'wb' are stored already") as caught:
        loaded(monkeypatch, deployment, union)
    assert caught.value.condition == "python-call"
    deployment = deployed(UNION)
    loaded(monkeypatch, deployment, union)
    with pytest.raises(SqlExtError, match="are stored already"):
        loaded(monkeypatch, deployment, union)


def test_rows_to_come_are_treated_as_pushed_ones(monkeypatch: pytest.MonkeyPatch, union: Query) -> None:
    """A bound of minus a hundred years makes all rows such."""
    far = -100 * 365 * 86_400
    with pytest.raises(SqlExtError, match="have a time that is more than"):
        loaded(monkeypatch, deployed(UNION, future="fail", future_bound=far), union)
    assert loaded(monkeypatch, deployed(UNION, future="drop", future_bound=far), union).rows == 0
    assert loaded(monkeypatch, deployed(UNION, future="keep", future_bound=far), union).rows > 0


def test_damage_is_told_and_nothing_is_stored(monkeypatch: pytest.MonkeyPatch, union: Query) -> None:
    def damaged(number: int, variable: str) -> Iterator[dict[str, Any]]:
        for row in read(number, variable):
            yield {**row, **({"user_map_value": (row["user_map_value"][0][:-1],)} if variable == "chunks" else {})}

    def lost(number: int, variable: str) -> Iterator[dict[str, Any]]:
        yield from read(number, variable) if variable == "meta" else ()

    def newer(number: int, variable: str) -> Iterator[dict[str, Any]]:
        for row in read(number, variable):
            yield {**row, **({"value": (99, *row["value"][1:])} if variable == "meta" else {})}

    read = union.rows
    cases = (
        (damaged, "is damaged", "stream-state-damaged"),
        (lost, "lacks chunk", "stream-state-damaged"),
        (newer, "in format 99", "checkpoint-mismatch"),
    )
    for change, message, condition in cases:
        monkeypatch.setattr(union, "rows", change)
        deployment = deployed(UNION)
        with pytest.raises(SqlExtError, match=message) as caught:
            loaded(monkeypatch, deployment, union)
        assert (caught.value.condition, deployment.kept_rows) == (condition, 0)
