"""The server: what each address answers, and what it says to whoever sends something else. Without Spark."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlext_operators.serving.store import _Run
from sqlext_planner.serving.lowering import ServingSettings

from sqlext.catalog import DictCatalog
from sqlext.serving.arrow_bodies import ARROW, arrow_stream
from sqlext.serving.deployment import Deployment
from sqlext.serving.gate import ServerOptions
from sqlext.serving.journal import Journal
from sqlext.serving.service import Service
from tests.serving.servers import COLUMNS, TABLES, Client, served, spent

ROW = {"user_id": 1, "ts": "2024-05-01T12:00:00", "price": "2.50"}
ARROW_BODY = {"Content-Type": ARROW}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A server with one deployment, for requests that leave nothing behind."""
    with served() as client:
        yield client


def test_a_push_is_seen_by_later_answers() -> None:
    with served() as client:
        assert client.ask(ROW).json == {
            "output": {"user_id": 1, "ts": "2024-05-01T12:00:00+02:00", "spent": "2.50", "n": 1}
        }
        assert client.push([{**ROW, "ts": "2024-05-01T11:30:00", "price": 1.25}]).json == {"stored": 1}
        assert client.send("PUT", "/tables/VIEWS", {"rows": [{**ROW, "user_id": 2}]}).json == {"stored": 1}
        answers = client.ask([ROW, {"USER_ID": 2, "Ts": ROW["ts"], "price": 2.5}])
        assert [(row["spent"], row["n"]) for row in answers.json["output"]] == [("3.75", 2), ("5.00", 2)]
        assert client.ask([]).json == {"output": []}


def test_arrow_bodies_are_answered_in_the_same_form(client: Client) -> None:
    times = pa.array([datetime(2024, 5, 1, 10), None], pa.timestamp("us", tz="UTC"))
    rows = pa.record_batch(
        {"user_id": pa.array([7, 8], pa.int32()), "ts": times, "price": pa.array([Decimal(1), None])}
    )
    answered = client.send("POST", "/deployments/spent", arrow_stream(rows.schema, [rows]), ARROW_BODY)
    assert (answered.status, answered.headers["content-type"]) == (200, ARROW)
    table = pa.ipc.open_stream(answered.body).read_all()
    assert table.column_names == ["user_id", "ts", "spent", "n"]
    assert table.to_pylist()[0] == {
        "user_id": 7, "ts": datetime(2024, 5, 1, 10, tzinfo=UTC), "spent": Decimal("1.00"), "n": 1,
    }  # fmt: skip


def test_times_of_arrow_without_a_zone_are_of_the_session(client: Client) -> None:
    rows = pa.record_batch({"user_id": [7], "ts": pa.array([datetime(2024, 5, 1, 12)], pa.timestamp("us"))})
    answered = client.send("POST", "/deployments/spent", arrow_stream(rows.schema, [rows]), ARROW_BODY)
    assert pa.ipc.open_stream(answered.body).read_all()["ts"][0].as_py() == datetime(2024, 5, 1, 10, tzinfo=UTC)


def test_what_deployments_there_are(client: Client) -> None:
    assert client.get("/deployments").json == {
        "deployments": [{"name": "spent", "request": "views", "answers": ["user_id", "ts", "spent", "n"]}]
    }
    told = client.get("/deployments/spent").json
    assert told["text"].startswith("SELECT user_id")
    assert told["tables"] == TABLES
    assert told["kept"] == {"rows": 0, "bytes": 0}
    assert told["settings"] == {"ansi": True, "time_zone": "Europe/Berlin", "lateness": 0}
    assert told["plan"][0] == "Deployment spent: a row of views"


def test_health_metrics_and_the_document(client: Client) -> None:
    assert client.get("/healthz").json == {"status": "alive"}
    assert client.get("/readyz").json == {"status": "ready"}
    client.ask(ROW)
    client.get("/nothing/here")
    metrics = client.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert 'sqlext_requests_total{route="/deployments/{name}",status="200"}' in metrics.body.decode()
    assert 'sqlext_kept_rows{deployment="spent"} 0.0' in metrics.body.decode()
    assert "here" not in metrics.body.decode()
    document = client.get("/openapi.json").json
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]["/deployments/spent"]) == {"get", "post"}
    page = client.get("/")
    assert "PUT /tables/orders" in page.body.decode()
    assert page.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(
    ("body", "condition", "words", "place"),
    [
        (b"", "request-body", "not JSON", {"line": 1, "column": 1}),
        (b'{"input": {"user_id": 1}', "request-body", "not JSON", {"line": 1, "column": 25}),
        (b"\xff\xfe", "request-body", "not UTF-8", {"byte": 0}),
        (b"[" * 100_000, "request-body", "nested too deeply", None),
        (b'{"input": ' + b"9" * 5000 + b"}", "request-body", "too many digits", None),
        (b'{"input": NaN}', "request-body", "NaN is not JSON", None),
        (b'{"input": {"price": 1, "price": 2}}', "request-body", "'price' twice", None),
        (b'{"input": {"price": 1, "PRICE": 2}}', "request-body", "a column twice", {"row": 0}),
        (b"{}", "request-body", "'input' alone", None),
        (b'{"input": {}, "inputs": {}}', "request-body", "'input' alone", None),
        (b'{"input": 3}', "request-body", "no row", None),
        (b'{"input": [{}, 3]}', "request-body", "row 1 is no object", {"row": 1}),
        (b'{"input": {"uid": 1}}', "unknown-column", "'uid'", {"row": 0, "column": "uid"}),
    ],
)
def test_bodies_that_are_no_rows(client: Client, body: bytes, condition: str, words: str, place: Any) -> None:
    answered = client.send("POST", "/deployments/spent", body)
    assert answered.status == 400
    assert answered.error["condition"] == condition
    assert words in answered.error["message"]
    assert answered.error["place"] == place


BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
#: Types, a value that fits and what comes back, and values that do not fit.
VALUES: list[tuple[str, list[tuple[Any, Any]], list[Any]]] = [
    *(
        (kind, [(-(1 << bits - 1), None), ((1 << bits - 1) - 1, None)], [1 << bits - 1, "1", 1.5, True, [], 1e300])
        for kind, bits in BITS.items()
    ),
    ("bigint", [(2**53 + 1, None), (3.0, 3), (1e3, 1000)], []),
    ("boolean", [(True, None), (False, None)], [1, "true"]),
    ("double", [(0.1, None), (1, 1.0), ("NaN", None), ("-Infinity", None)], ["1", "nan", True, 10**400]),
    ("float", [(0.5, None), ("Infinity", None)], [1e39]),
    ("string", [("", None), ("ä\u0000\U0001f600", None)], [1, "\ud800", {}]),
    (
        "decimal(10,2)",
        [("1.5", "1.50"), (1.25, "1.25"), ("-99999999.99", None), (7, "7.00"), ("1e2", "100.00"), ("1.500", "1.50")],
        ["1.005", "100000000", "1e999999", "x", True, "", "1e-999999"],
    ),
    ("decimal(38,0)", [("9" * 38, None), (10**37, "1" + "0" * 37)], ["9" * 39]),
    ("binary", [(base64.b64encode(b"\x00\xff").decode(), None)], ["x", 1]),
    ("date", [("2024-02-29", None), ("2020-5-5", "2020-05-05")], ["2023-02-29", "20240229", 1, "0000-01-01"]),
    (
        "timestamp",
        [
            ("2024-05-01T12:00:00Z", "2024-05-01T14:00:00+02:00"),
            ("2024-05-01 12:00:00.000001", "2024-05-01T12:00:00.000001+02:00"),
            ("2024-12-01", "2024-12-01T00:00:00+01:00"),
            (1714557600000, "2024-05-01T12:00:00+02:00"),
            (1714557600000.5, "2024-05-01T12:00:00.000500+02:00"),
            ("2024-03-31T02:30:00", "2024-03-31T03:30:00+02:00"),  # skipped by the clock
        ],
        ["12:00", "2024-13-01T00:00:00", True, 1e300, "10000-01-01T00:00:00", 253402300800000],
    ),
    ("timestamp_ntz", [("2024-05-01T12:00:00", None)], ["2024-05-01T12:00:00Z", 1714557600000]),
    ("array<int>", [([1, None], None)], [1, ["x"], [1 << 40]]),
    ("struct<a:int,b:string>", [({"a": 1, "b": None}, None)], [{"c": 1}, []]),
    ("map<string,int>", [({"x": 1}, None), ([["x", 1]], {"x": 1})], [{"x": "y"}, [1]]),
    ("map<int,int>", [([[1, 2]], None)], [[[None, 1]]]),
]


@pytest.mark.parametrize(
    ("kind", "fitting", "others"), VALUES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_values_of_each_type(kind: str, fitting: list[tuple[Any, Any]], others: list[Any]) -> None:
    catalog = DictCatalog({"t": {"k": "int", "ts": "bigint", "v": kind}, "u": {"k": "int", "ts": "bigint", "v": kind}})
    sql = "SELECT t.v, u.v AS w FROM t LAST JOIN u ORDER BY u.ts ON t.k = u.k"
    settings = ServingSettings(ansi=True, time_zone="Europe/Berlin")
    with served(Deployment(sql, catalog, settings=settings, name="d")) as client:
        for value, back in [*fitting, (None, None)]:
            pushed = client.push([{"k": 1, "ts": 5, "v": value}], "u")
            assert pushed.status == 200, pushed.body
            row = client.ask({"k": 1, "v": value}, "d").json["output"]
            expected = value if back is None else back
            assert row == {"v": expected, "w": expected}
            assert type(row["v"]) is type(expected)
        for value in others:
            refused = client.ask([{"k": 1}, {"k": 1, "v": value}], "d")
            assert refused.status == 400, value
            assert refused.error["place"] == {"row": 1, "column": "v"}
            assert "'v'" in refused.error["message"]
            assert len(refused.body) < 500


def test_a_pushed_row_needs_its_time() -> None:
    with served() as client:
        refused = client.push([ROW, {"user_id": 1}])
        assert refused.status == 400
        assert refused.error["place"] == {"column": "ts"}
        assert "'ts' is NULL" in refused.error["message"]
        assert client.ask(ROW).json["output"]["n"] == 1, "none of the rows was stored"


@pytest.mark.parametrize(
    ("method", "path", "status", "condition"),
    [
        ("GET", "/nowhere", 404, "unknown-address"),
        ("GET", "/deployments/", 404, "unknown-address"),
        ("GET", "/deployments/other", 404, "unknown-deployment"),
        ("POST", "/deployments/other", 404, "unknown-deployment"),
        ("PUT", "/tables/other", 404, "unknown-table"),
        ("DELETE", "/tables/orders", 405, "unknown-address"),
        ("GET", "/..%2f..%2fetc/passwd", 404, "unknown-address"),
    ],
)
def test_what_is_not_there(client: Client, method: str, path: str, status: int, condition: str) -> None:
    answered = client.send(method, path, b"{}" if method in ("POST", "PUT") else None)
    assert (answered.status, answered.error["condition"]) == (status, condition)
    if status == 405:
        assert answered.headers["allow"] == "PUT"


def bad_arrow() -> Iterator[tuple[str, bytes]]:
    rows = pa.record_batch({"user_id": [1]})
    stream = arrow_stream(rows.schema, [rows])
    yield "empty", b""
    yield "cut", stream[:-60]
    yield "no stream", b"ARROW1" * 40
    compressed = pa.BufferOutputStream()
    with pa.ipc.new_stream(compressed, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(rows)
    yield "compressed", bytes(compressed.getvalue())
    words = pa.record_batch({"item": pa.array(["a"]).dictionary_encode()})
    yield "a dictionary", arrow_stream(words.schema, [words])
    runs = pa.record_batch({"user_id": pa.RunEndEncodedArray.from_arrays(pa.array([2_000_000], pa.int32()), [1])})
    yield "runs", arrow_stream(runs.schema, [runs])
    nulls = pa.record_batch({"user_id": pa.nulls(10_000_000)})
    yield "many rows of nothing", arrow_stream(nulls.schema, [nulls])
    price = pa.Array.from_buffers(pa.decimal128(10, -1_459_617_790), 1, [None, pa.py_buffer(bytes(16))])
    prices = pa.record_batch([price], names=["price"])
    yield "a decimal that cannot be", arrow_stream(prices.schema, [prices])
    large = pa.record_batch({"user_id": pa.array([2**63], pa.uint64())})
    yield "too large", arrow_stream(large.schema, [large])
    other = pa.record_batch({"uid": [1]})
    yield "unknown column", arrow_stream(other.schema, [other])
    twice = pa.record_batch([pa.array([1]), pa.array([1])], names=["item", "ITEM"])
    yield "a column twice", arrow_stream(twice.schema, [twice])
    for flip in range(0, len(stream), 7):
        yield f"byte {flip}", stream[:flip] + bytes([stream[flip] ^ 0x55]) + stream[flip + 1 :]


def test_arrow_that_nobody_vouches_for(client: Client) -> None:
    for what, body in bad_arrow():
        answered = client.send("POST", "/deployments/spent", body, ARROW_BODY)
        assert answered.status == 400 or what.startswith("byte"), what
        assert answered.status in (200, 400), (what, answered.body)
        if answered.status == 400:
            assert answered.error["condition"] in ("request-body", "row-value", "unknown-column")


def test_a_large_body_is_refused() -> None:
    with served(options=ServerOptions(max_body=1000)) as client:
        assert client.push([ROW]).status == 200
        refused = client.send("PUT", "/tables/orders", b" " * 1001)
        assert (refused.status, refused.error["condition"]) == (413, "body-too-large")
        chunked = Client(client.port)
        chunked._connection.request("PUT", "/tables/orders", iter([b" " * 600] * 2), encode_chunked=True)
        assert chunked._connection.getresponse().status == 413
        chunked.close()


def test_a_client_that_asks_too_often_is_refused() -> None:
    with served(options=ServerOptions(rate=5)) as client:
        answered = [client.get("/deployments") for _ in range(20)]
        refused = [one for one in answered if one.status == 429]
        assert 10 <= len(refused) < 20
        assert refused[0].headers["retry-after"] == "1"
        assert refused[0].error["condition"] == "too-many-requests"
        assert client.get("/healthz").status == 200


def test_a_token() -> None:
    with served(options=ServerOptions(tokens=("old", "new"))) as client:
        for token in ("Bearer old", "bearer new"):
            assert client.get("/deployments", Authorization=token).status == 200
        for token in ("Bearer olds", "old", "Basic old", ""):
            refused = client.get("/deployments", Authorization=token)
            assert (refused.status, refused.error["condition"]) == (401, "missing-token")
            assert refused.headers["www-authenticate"] == "Bearer"
        assert client.get("/readyz").status == 200


def test_requests_wait_and_too_many_are_refused() -> None:
    deployment = spent()
    go = threading.Event()
    answers = deployment.answers
    deployment.answers = lambda rows: (go.wait(30), answers(rows))[1]  # type: ignore[method-assign]
    with served(deployment, options=ServerOptions(max_waiting=2)) as client, ThreadPoolExecutor(4) as pool:
        others = [Client(client.port) for _ in range(4)]
        waiting = [pool.submit(one.ask, ROW) for one in others[:2]]
        time.sleep(0.3)
        refused = others[2].ask(ROW)
        assert (refused.status, refused.error["condition"]) == (503, "server-busy")
        assert refused.headers["retry-after"] == "1"
        assert client.get("/healthz").status == 200, "the event loop is not kept"
        go.set()
        assert [one.result().status for one in waiting] == [200, 200]
        for one in others:
            one.close()


def test_nothing_is_answered_before_the_rows_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    service = Service([spent()])
    load = service._load
    monkeypatch.setattr(service, "_load", lambda then: (go.wait(30), load(then))[1])
    threading.Timer(0.5, go.set).start()
    monkeypatch.setattr(service, "state", "ready_soon")
    with served(service=service) as client:
        for refused in (client.get("/readyz"), client.ask(ROW), client.push([ROW])):
            assert (refused.status, refused.error["condition"]) == (503, "server-busy")
            assert refused.headers["retry-after"] == "1"
        told = client.get("/deployments/spent").json
        assert (told["kept"], told["plan"]) == (None, None)
        while client.get("/readyz").status != 200:
            time.sleep(0.02)
        assert client.ask(ROW).status == 200


def test_a_failure_of_the_server_shows_no_trace(caplog: pytest.LogCaptureFixture) -> None:
    from tests.told import bugs_noted

    deployment = spent()
    deployment.answers = lambda rows: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    with bugs_noted(), served(deployment) as client:
        failed = client.ask(ROW)
        assert (failed.status, failed.error["condition"]) == (500, "server-failure")
        assert not re.search(r"Traceback|\.py|division", failed.body.decode())
    assert "ZeroDivisionError" in caplog.text


def test_several_deployments_share_pushes() -> None:
    item = "SELECT v.user_id, o.item FROM views v LAST JOIN orders o ORDER BY o.ts ON v.user_id = o.user_id"
    settings = ServingSettings(ansi=True, time_zone="Europe/Berlin")
    last = Deployment(item, DictCatalog(TABLES), settings=settings, name="last")
    with served(spent(), last) as client:
        assert client.push([{**ROW, "item": "pen"}]).json == {"stored": 1}
        assert client.ask(ROW).json["output"]["n"] == 2
        assert client.ask(ROW, "last").json["output"] == {"user_id": 1, "item": "pen"}


def test_deployments_that_do_not_fit_together() -> None:
    from sqlext_planner.errors import ConfigurationError

    other = DictCatalog({**TABLES, "orders": {**COLUMNS, "more": "int"}})
    settings = ServingSettings(ansi=True, time_zone="Europe/Berlin")
    sql = "SELECT v.user_id, o.more FROM views v LAST JOIN orders o ORDER BY o.ts ON v.user_id = o.user_id"
    wider = Deployment(sql, other, settings=settings, name="wider")
    with pytest.raises(ConfigurationError, match="'spent' and 'wider' read a table 'orders' with different columns"):
        Service([spent(), wider])
    with pytest.raises(ConfigurationError, match="one name"):
        Service([spent(), spent()])
    with pytest.raises(ConfigurationError, match="cannot be the name"):
        Service([spent(name="a/b")])


def test_numbers_are_exact_on_their_way(client: Client) -> None:
    body = b'{"input": {"user_id": 9007199254740993, "price": 12345678.10}}'
    answered = client.send("POST", "/deployments/spent", body)
    assert b'"user_id":9007199254740993' in answered.body
    assert b'"spent":"12345678.10"' in answered.body


def test_the_log_is_lines_of_json() -> None:
    import logging

    from sqlext.serving.gate import JsonLines

    fields = {"path": "/a\nb", "status": 200}
    record = logging.LogRecord("sqlext.serving", logging.INFO, "", 0, "request", (), None)
    record.fields = fields
    line = JsonLines().format(record)
    assert "\n" not in line
    assert {**fields, "level": "info", "event": "request"}.items() <= json.loads(line).items()


def test_idempotency_keys() -> None:
    with served() as client:
        assert client.push([ROW], key="a").json == {"stored": 1}
        assert client.push([ROW], key="a").json == {"stored": 1, "repeated": True}
        refused = client.push([{**ROW, "price": 1}], key="a")
        assert (refused.status, refused.error["condition"]) == (422, "idempotency-key")
        assert client.push([ROW], key="x" * 201).status == 422
        assert client.ask(ROW).json["output"]["n"] == 2
        with ThreadPoolExecutor(8) as pool:
            clients = [Client(client.port) for _ in range(8)]
            answered = [one.json for one in pool.map(lambda one: one.push([ROW], key="b"), clients)]
            for one in clients:
                one.close()
        assert sorted(map(len, answered)) == [1, *[2] * 7]
        assert client.ask(ROW).json["output"]["n"] == 3


def test_a_folder_is_what_is_served(tmp_path: Path) -> None:
    spent().save(tmp_path / "d")
    with served(Deployment.open(tmp_path / "d")) as client:
        assert client.ask(ROW).json["output"]["spent"] == "2.50"


def test_a_server_begins_with_files_until_its_journal_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment, asked = spent(), {"user_id": 1, "ts": "2024-05-01T12:00:00", "price": 0}
    times = [datetime(2024, 5, 1, 11, minute, tzinfo=UTC) - timedelta(hours=2) for minute in range(30)]
    values = {"user_id": [1] * 30, "ts": times, "item": ["a"] * 30, "price": [Decimal(1)] * 30}
    rows = pa.table(values, schema=deployment.schemas["orders"])
    files = {"orders": [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")]}
    for part, path in zip((rows.slice(0, 20), rows.slice(20)), files["orders"], strict=True):
        pq.write_table(part, path)

    def counted(snapshot_bytes: int) -> int:
        journal = Journal(tmp_path / "journal", snapshot_bytes)
        service = Service([spent()], journal, lambda table: files.get(table, []))
        with served(service=service) as client:
            client.push([{"user_id": 1, "ts": "2024-05-01T11:59:00", "price": 1}])
            return int(client.ask(asked).json["output"]["n"])

    assert counted(1 << 30) == 32
    assert counted(1) == 33  # a snapshot is written
    service = Service([spent()], None, lambda table: files.get(table, []))
    with served(service=service) as client, monkeypatch.context() as patch:
        patch.setattr(_Run, "of", lambda *_: pytest.fail("an answer waits until rows are sorted"))
        assert client.ask(asked).json["output"]["n"] == 31
    files.clear()
    assert counted(1 << 30) == 34
