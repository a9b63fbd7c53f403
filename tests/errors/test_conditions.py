"""Every error condition: it can be raised, the command line prints its anchor, and docs/errors.md has an entry for it.

An entry with a statement says itself how its error comes; the others are raised by the cases below: by a command, by a
Session, or by what a task does. The message that an entry shows is compared with the real one.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from sqlext_operators.columns.empty_periods import refuse_empty
from sqlext_operators.conditions import TaskCondition
from sqlext_operators.errors import Places, TaskError, explained, spilling
from sqlext_operators.exchange.bucket_state import changed_query
from sqlext_operators.exchange.source_files import opened, planned
from sqlext_operators.exchange.stateful import StoredChunks
from sqlext_operators.exchange.stream import late_error
from sqlext_operators.umjoin.processor import checked_count
from sqlext_operators.window.texts import _seconds
from sqlext_planner.bundle import with_required
from sqlext_planner.conditions import CONDITIONS
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError, statement
from sqlext_planner.expressions.types import to_arrow
from sqlext_planner.serving.lowering import ServingSettings
from sqlext_planner.spark.connectors import jars_error, kafka_error
from sqlext_planner.spark.session import check_version, settings_changed
from sqlext_planner.spark.streams import check_settings, future_error
from sqlext_planner.spark.workers import WORKER_MARK, _start_error, task_error
from starlette.requests import Request

from sqlext import Session
from sqlext.catalog import DictCatalog
from sqlext.cli import _run
from sqlext.cli.deploy import differs
from sqlext.cli.failures import report
from sqlext.cli.settings_and_errors import entries
from sqlext.embedded import find_java, start_spark
from sqlext.run.parameters import format_references
from sqlext.run.pipeline import stage
from sqlext.serving.bodies import parsed_json
from sqlext.serving.deployment import Deployment
from sqlext.serving.gate import Gate, ServerOptions, address_error, failure
from sqlext.serving.journal import Journal
from sqlext.serving.server import _Server
from sqlext.serving.service import Service
from sqlext.serving.values import to_batch
from sqlext.serving.verify import Difference

COLUMNS = {"user_id": "bigint", "ts": "timestamp", "item": "string", "price": "double"}
PERIODS = {**COLUMNS, "te": "timestamp"}
CATALOG = DictCatalog({"views": COLUMNS, "orders": COLUMNS, "s": PERIODS, "r": PERIODS}, streams=("s", "r"))
W = "PARTITION BY user_id ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW"
WINDOWS = "window(s.ts, '10 seconds') = window(r.ts, '10 seconds')"
ENTRIES = entries()
SQL = re.compile(r"```sql\n(.*?)\n```", re.DOTALL)
SHOWN = re.compile(r"```text\n(.*?)\n```", re.DOTALL)


def plan(sql: str, **arguments: Any) -> None:
    """Plan a statement over the tables of the demo, and over two streams s and r of the same columns."""
    try:
        stage(sql, CATALOG, Config.from_mapping({}), **arguments)
    except SqlExtError as error:
        raise error.with_sql(sql) from None


def in_task(work: Callable[[], Any]) -> None:
    """What a task raises comes back from Spark as part of a Java text; here it is the text alone."""
    try:
        list(explained(Places(), lambda: iter([work()])))
    except TaskError as error:
        found = task_error(RuntimeError(f"org.apache.spark.SparkException: Job aborted\n{error}\n\tat Main.java"))
        assert found is not None
        raise found from None


def worker(kind: str, what: str) -> None:
    """Raise what a worker's refusal becomes."""
    found = task_error(RuntimeError(f"{WORKER_MARK} {kind}: {what}"))
    assert found is not None
    raise found


def fails(error: BaseException) -> Any:
    raise error


def spill(code: int) -> None:
    with spilling("/tmp/spill"):
        raise OSError(code, os.strerror(code))


def changed_file() -> None:
    path = "changed.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    with opened(path) as (_, state):
        pass
    pq.write_table(pa.table({"x": [1, 2]}), path)
    with planned(path, state):
        pass


def row_of_the_future() -> None:
    with statement("", lambda span: span):
        raised = future_error("ts", 3600)
    found = task_error(RuntimeError(raised))
    assert found is not None
    raise found


def fails_in_row(text: str, to: str) -> None:
    from sqlext_operators.expressions.time_texts import read_date

    read_date(text)


def deployed(text: str) -> None:
    columns = {"user_id": "int", "price": "double"}
    Deployment(text, DictCatalog({"views": columns}), settings=ServingSettings(True, "UTC"))


def scalar(text: str) -> None:
    from sqlext_planner.expressions.nodes import Column
    from sqlext_planner.expressions.operator_expressions import OperatorExpressions
    from sqlext_planner.expressions.scalars.settings import ScalarSettings

    from tests.planner.plans import written

    columns = {"s": "string"}
    types = {Column("a", name): dtype for name, dtype in columns.items()}
    OperatorExpressions(types, ScalarSettings.of({})).required(written(text, {"a": columns}))


def ends(*values: int) -> pa.Array:
    return pa.array(values)


def open_row() -> None:
    from sqlext_operators.interval_join.open_arrivals import OpenArrivals

    keys = SimpleNamespace(keys=())
    period = SimpleNamespace(end="te", key=("id",))
    spec = SimpleNamespace(join=SimpleNamespace(side=lambda side: keys, null_safe=()))
    arrivals = SimpleNamespace(_spec=spec, _side="left", period=period)
    rows = pa.RecordBatch.from_pydict({"te": pa.nulls(1, pa.int64()), "id": pa.nulls(1, pa.int64())})
    OpenArrivals._with_keys(arrivals, rows)  # type: ignore[arg-type]


def large_state() -> None:
    from sqlext_operators.exchange.stream import check_size

    chunks = [SimpleNamespace(size=3 << 20, kind="rows", rows=0)]
    check_size(
        SimpleNamespace(all=lambda: chunks), SimpleNamespace(rows=lambda store: 9, keys=lambda kind: ()), 1 << 20
    )


def lost_chunk() -> None:
    cache, state = SimpleNamespace(find=lambda name: None), SimpleNamespace(getValue=lambda key: None)
    StoredChunks(state, cache, "w").read(SimpleNamespace(name="a", no=1))


def service() -> Service:
    columns = {"k": "int", "ts": "timestamp", "v": "int"}
    window = "PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW"
    sql = f"SELECT k, sum(v) OVER ({window}) AS s FROM t"
    settings = ServingSettings(ansi=True, time_zone="UTC")
    return Service([Deployment(sql, DictCatalog({"t": columns}), settings=settings, name="spent")])


def admit(**options: Any) -> None:
    """Ask more often than a server admits, without a token."""
    gate = Gate(lambda: None, ServerOptions(**options), SimpleNamespace(), {})  # type: ignore[arg-type]
    for _ in range(9):
        gate._admit({"path": "/", "client": ("a", 1), "headers": []})


def read_body(size: int) -> None:
    scope = {"type": "http", "headers": [(b"content-length", str(size).encode())]}
    asyncio.run(_Server(service(), ServerOptions(max_body=1000)).body(Request(scope)))


def ask_while_it_stops() -> None:
    stopping = service()
    stopping.stop()
    asyncio.run(_Server(stopping, ServerOptions()).compute(int))


def reuse_a_key() -> None:
    running, loaded = service(), threading.Event()
    running.start(loaded.set)
    try:
        loaded.wait(60)
        table = running.table("t")
        for k in (1, 2):
            rows = pa.RecordBatch.from_pylist([{"k": k, "ts": 0}], schema=table.schema)
            running.push(table, rows, "key", str(k)).result()
    finally:
        running.stop()


def open_twice() -> None:
    journal = Journal(Path("journal"))
    try:
        Journal(Path("journal"))
    finally:
        journal.close()


def damaged_journal() -> None:
    Path("damaged").mkdir()
    Path("damaged/journal-1.log").write_text("something else")
    journal = Journal(Path("damaged"))
    try:
        list(journal.pushes())
    finally:
        journal.close()


#: Raised in this process, in an empty folder, without Spark.
CASES: dict[str, Callable[[], Any]] = {
    "several-statements": lambda: plan(f"SELECT 1; SELECT sum(price) OVER ({W}) FROM views"),
    "nested-too-deeply": lambda: plan(f"SELECT {'(' * 30_000}1{')' * 30_000}, sum(price) OVER ({W}) FROM views"),
    "parameter-value": lambda: format_references("SELECT * FROM views WHERE user_id = {user}", {}, repr),
    "unknown-type": lambda: DictCatalog({"orders": {"ts": "datetime2"}}),
    "unsupported-type": lambda: to_arrow("array<" * 200 + "int" + ">" * 200),
    "no-equivalent": lambda: plan("SELECT price FROM views INTO OUTFILE 'x.csv'", compat="openmldb"),
    "window-without-key": lambda: plan(
        f"SELECT sum(price) OVER ({W.removeprefix('PARTITION BY user_id ')}) FROM views", compat="openmldb"
    ),
    "stream-needs-watermark": lambda: plan(
        f"SELECT sum(price) OVER (UNION (SELECT user_id, ts, item, price FROM r) {W}) FROM views"
    ),
    "stream-unbounded": lambda: plan("SELECT * FROM views LAST JOIN s ORDER BY s.ts ON views.user_id = s.user_id"),
    "stream-not-supported": lambda: plan("SELECT user_id, distinct_count(item) FROM s GROUP BY user_id"),
    "open-period": lambda: plan(
        "SELECT s.item FROM s JOIN r ON PERIOD(s.ts, s.te OPEN BY s.user_id + 1) OVERLAPS PERIOD(r.ts, r.te)"
    ),
    "early-answer-options": lambda: plan(
        f"SELECT window.start, count(*) FROM s JOIN r ON s.user_id = r.user_id AND {WINDOWS} "
        "GROUP BY window(s.ts, '10 seconds') EMIT AFTER DELAY 7s COMPENSATE USING guess"
    ),
    "late-rows": lambda: in_task(lambda: fails(late_error(2, 0))),
    "future-rows": row_of_the_future,
    "open-period-rows": lambda: in_task(open_row),
    "stream-state-too-large": lambda: in_task(large_state),
    "stream-state-damaged": lambda: in_task(lost_chunk),
    "checkpoint-mismatch": lambda: in_task(lambda: fails(changed_query('{"frame": "1h"}', '{"frame": "2h"}'))),
    "empty-period": lambda: in_task(lambda: refuse_empty(ends(1, 5), ends(2, 3), np.array([False, True]))),
    "result-too-large": lambda: in_task(lambda: checked_count(1 << 63)),
    "time-zone": lambda: in_task(lambda: _seconds(pa.array([0], pa.timestamp("s", tz="UTC")), "Mars/Olympus")),
    "changed-file": lambda: in_task(changed_file),
    "out-of-memory": lambda: in_task(lambda: fails(MemoryError())),
    "disk-full": lambda: in_task(lambda: spill(errno.ENOSPC)),
    "temporary-folder": lambda: in_task(lambda: spill(errno.EACCES)),
    "value-needs-spark": lambda: in_task(lambda: fails_in_row("12000-01-01", "date")),
    "scalar-needs-spark": lambda: scalar("soundex(s)"),
    "too-many-open-files": lambda: in_task(lambda: spill(errno.EMFILE)),
    "python-call": lambda: Session(compat="flink"),
    "missing-package": lambda: with_required(["no-such-package-of-sqlext"]),
    "worker-packages": lambda: worker("lacking", "the executor on node3 (/usr/bin/python3) lacks numba"),
    "worker-python": lambda: fails(_start_error('Cannot run program "/nowhere/python3": No such file') or KeyError()),
    "spark-version": lambda: check_version(SimpleNamespace(version="3.5.1")),  # type: ignore[arg-type]
    "spark-connect": lambda: remote_settings(),
    "spark-stopped": lambda: Session(SimpleNamespace(_sc=SimpleNamespace(_jsc=None))),  # type: ignore[arg-type]
    "deployment-folder": lambda: Deployment.open("empty"),
    "not-servable": lambda: deployed("SELECT user_id FROM views WHERE price > 1"),
    "row-value": lambda: to_batch([{"n": "x"}], pa.schema([("n", pa.int32())]), "views"),
    "answer-differs": lambda: fails(differs(Difference({"id": 1}, {"id": 1, "s": 2.0}, {"id": 1, "s": 3.0}))),
    "journal": open_twice,
    "journal-damaged": damaged_journal,
    "request-body": lambda: parsed_json(b""),
    "unknown-address": lambda: fails(address_error()),
    "unknown-deployment": lambda: service().deployment("nothing"),
    "missing-token": lambda: admit(tokens=("a",)),
    "body-too-large": lambda: read_body(1001),
    "too-many-requests": lambda: admit(rate=5),
    "idempotency-key": reuse_a_key,
    "server-busy": ask_while_it_stops,
    "server-failure": lambda: fails(failure()),
    "stream-settings": lambda: check_settings(SimpleNamespace(conf={})),  # type: ignore[arg-type]
    "connector-jars": lambda: fails(
        jars_error("java.lang.NoClassDefFoundError: org/apache/spark/kafka010/KafkaConfigUpdater") or KeyError()
    ),
    "kafka-away": lambda: stopped(
        "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: describeTopics"
    ),
    "kafka-messages-gone": lambda: stopped(
        "[KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data may have been lost because they are not available in Kafka any "
        "more;\n...\nReason: Starting offset for orders-0 was 12 but consumer reset to 40. SQLSTATE: 22000"
    ),
    "kafka-repeated": lambda: stopped(
        'Cannot invoke "scala.collection.IterableOps.map(scala.Function1)" because the return value of '
        '"scala.Option.get()" is null SQLSTATE: XXKST\nCurrent Committed Offsets: {KafkaV2[Subscribe[orders]]: {}}'
    ),
    "kafka-topic": lambda: stopped(
        "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this partition."
    ),
}


def stopped(text: str) -> None:
    """What Spark says when Kafka stops a query."""
    fails(kafka_error(f"[STREAM_FAILED] Query [id = 1] terminated with exception: {text}") or KeyError())


def remote_settings() -> None:
    with settings_changed(SimpleNamespace(conf=SimpleNamespace(getAll={})), {"spark.sql.ansi.enabled": "true"}):  # type: ignore[arg-type]
        pass


#: Command lines, run in an empty folder.
COMMANDS: dict[str, Sequence[str]] = {
    "command-line": ("plan", "-e", "SELECT 1", "--format", "pdf"),
    "file-access": ("plan", "nowhere.sql"),
    "unknown-setting": ("plan", "-e", "SELECT 1", "--conf", "sqlext.nothing=1"),
    "setting-value": ("plan", "-e", "SELECT 1", "--conf", "sqlext.exchange.partitions=many"),
    "benchmark": ("tpch", "plan", "--queries", "99"),
    "table-files": ("plan", "--data", "empty", "-e", "SELECT * FROM t"),
    "needs-spark": ("plan", "--data", "json", "-e", "SELECT * FROM t"),
    "schema-file": ("plan", "--schema", "bad.json", "-e", "SELECT 1"),
    "replay-files": (
        "pecj", "replay", "--left", "a.csv", "--right", "a.csv", "--key", "k", "--time", "when",
        "--delay", "uniform:1ms", "--window", "1s", "--emit-after", "1s",
    ),
}  # fmt: skip

#: Statements for `sqlext run`, with Spark.
NEAR = "PERIOD(t.id, t.id + 1) OVERLAPS PERIOD(u.id, u.id + 1)"
STATEMENTS: dict[str, str] = {
    "wrong-type": f"SELECT sum(price) OVER w, map(1, 2) + 1 FROM t WINDOW w AS ({W})",
    "spark-refused": "SELECT * FROM t TABLESAMPLE (300 PERCENT)",
    "overflow": f"SELECT sum(9223372036854775807 - id) OVER w FROM t WINDOW w AS ({W})",
    "division-by-zero": "SELECT 1 / (user_id - user_id) FROM t",
    "invalid-value": "SELECT CAST(item AS int) FROM t",
    "left-to-spark": f"SET sqlext.fallback=fail; SELECT t.id FROM t JOIN t AS u ON ({NEAR}) IS NOT FALSE",
    "setting-changes-meaning": f"SET spark.sql.timestampType=TIMESTAMP_NTZ; SELECT sum(price) OVER ({W}) FROM t",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with files for the commands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty" / "t").mkdir(parents=True)
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "t.json").write_text('{"a": 1}\n')
    (tmp_path / "bad.json").write_text("[1]")
    (tmp_path / "a.csv").write_text("k,ts\n1,2\n")
    return tmp_path


def told(condition: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command line says of the condition's case."""
    capsys.readouterr()
    if condition in COMMANDS:
        assert _run(COMMANDS[condition]) == 2
    else:
        example = SQL.search(ENTRIES[condition])
        case = CASES[condition] if example is None else lambda: plan(example[1])
        with pytest.raises(SqlExtError) as caught:
            case()
        assert caught.value.condition == condition
        assert report(caught.value) == 2
    return capsys.readouterr().err


def check(condition: str, text: str) -> None:
    """The text ends with the anchor, and is what the page shows."""
    *message, last = text.rstrip("\n").splitlines()
    assert last == f"see: docs/errors.md#{condition}, or run: sqlext errors {condition}"
    shown = SHOWN.search(ENTRIES[condition])
    assert shown is not None, "the entry shows no message"
    pattern = re.escape(shown[1]).replace(re.escape("..."), ".*")
    assert re.fullmatch(pattern, "\n".join(message), re.DOTALL), text


WITHOUT_CASE = ("missing-java", "spark-start", "fixed-setting", *STATEMENTS)


@pytest.mark.parametrize("condition", [name for name in CONDITIONS if name not in WITHOUT_CASE])
def test_an_error_names_its_condition(condition: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(condition, told(condition, capsys))


def test_without_java(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SqlExtError) as caught:
        find_java({})
    report(caught.value)
    check("missing-java", capsys.readouterr().err)


def test_spark_that_does_not_start(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    def refuses(builder: Any) -> None:
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr("sqlext.embedded.active_session", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", refuses)
    with pytest.raises(SqlExtError) as caught:
        start_spark()
    report(caught.value)
    check("spark-start", capsys.readouterr().err)


def test_a_setting_that_spark_reads_when_it_starts(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SqlExtError) as caught:
        Session(spark, config={"spark.driver.memory": "77g"})
    report(caught.value)
    check("fixed-setting", capsys.readouterr().err)


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param(name, marks=[pytest.mark.spark_since("4.3", "its name")] if name == "spark-refused" else [])
        for name in STATEMENTS
    ],
)
def test_what_spark_finds(condition: str, here: Any, tmp_path: Path) -> None:
    rows = {"id": [1, 2], "user_id": [1, 1], "ts": pa.array([0, 1], pa.timestamp("us", tz="UTC")), "item": ["a", "b"]}
    pq.write_table(pa.table({**rows, "price": [1.0, 2.0]}), tmp_path / "t.parquet")
    done = here("run", "--data", tmp_path, "-e", STATEMENTS[condition])
    assert done.returncode == 2, done.stderr
    check(condition, done.stderr)


def test_every_condition_has_an_entry_with_cause_and_remedy() -> None:
    assert sorted(ENTRIES) == sorted(CONDITIONS)
    for name, text in ENTRIES.items():
        assert re.fullmatch(r"[^*].*\*\*Cause\.\*\* .*\*\*Remedy\.\*\* .*", text, re.DOTALL), name


def test_every_case_is_of_a_condition() -> None:
    cases = [*CASES, *COMMANDS, *WITHOUT_CASE, *(name for name, text in ENTRIES.items() if SQL.search(text))]
    assert sorted(cases) == sorted(CONDITIONS)


def test_a_task_keeps_its_condition_on_the_way_through_spark() -> None:
    for condition in get_args(TaskCondition):
        with pytest.raises(SqlExtError) as caught:
            in_task(lambda condition=condition: fails(TaskError("no", condition=condition)))  # type: ignore[misc]
        assert caught.value.condition == condition


def test_the_terminal_shows_the_entries(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["errors", "docs/errors.md#unknown-column"]) == 0
    shown = capsys.readouterr().out
    assert shown == f"### unknown-column\n\n{ENTRIES['unknown-column']}\n"
    assert "fails:" not in shown
    assert _run(["errors"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(ENTRIES)
    assert _run(["errors", "unknown-colum"]) == 2
    assert "did you mean 'unknown-column'?" in capsys.readouterr().err
