"""A deployment that begins with the checkpoint of a stream of its statement answers as batch over the stream's rows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
from pyspark.sql import SparkSession
from sqlext_planner.errors import SqlExtError

from sqlext import Session
from sqlext.cli.serve import _locations, _warm
from sqlext.serving.deployment import Deployment
from sqlext.serving.division import division
from sqlext.serving.journal import Journal
from sqlext.serving.service import Service
from sqlext.serving.values import to_batch
from sqlext.serving.verify import same
from sqlext.serving.warm import WarmStart
from sqlext.serving.workers import Divided
from tests.serving.servers import served
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
from tests.sql.streams import DELAY, SECOND, register, started, stream_conf, write_batches

pytestmark = pytest.mark.spark

DDL = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())


@pytest.fixture(scope="module")
def rows() -> dict[str, list[Row]]:
    return {name: drawn(name) for name in NAMES}


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, rows: dict[str, list[Row]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Streams of the first files, and a table."""
    folder = tmp_path_factory.mktemp("warm")
    with stream_conf(spark):
        for name in NAMES:
            write_batches(folder / name, batches(rows[name])[:READ], ARROW)
            register(spark, name, folder / name, schema=DDL)
        table(spark, "wt", drawn("wt", 20))
        yield folder
        for name in ("wt", *NAMES, *(f"{name}_t" for name in NAMES)):
            spark.catalog.dropTempView(name)


def table(spark: SparkSession, name: str, rows: list[Row]) -> None:
    columns = [pa.array([row[place] for row in rows], item.type) for place, item in enumerate(ARROW)]
    spark.createDataFrame(pa.table(columns, schema=ARROW), DDL).coalesce(1).createOrReplaceTempView(name)


def apart(rows: list[Row], universe: int) -> list[Row]:
    """Rows with keys that no other universe has: 300 is a multiple of 3."""
    return [(row[0], row[1] + 300 * universe, row[2] + 300 * universe, *row[3:]) for row in rows]


def batch(
    spark: SparkSession, sql: str, stored: dict[str, list[Row]], asked: list[Row], static: list[Row]
) -> dict[int, dict[str, Any]]:
    """The rows of batch for each request alone, over all stored rows."""
    universes = range(len(asked))
    for name, found in stored.items():
        every = [row for number in universes for row in apart(found, number)]
        more = [apart([row], number)[0] for number, row in enumerate(asked)] if name == "wa" else []
        table(spark, f"{name}_u", [*every, *more])
    table(spark, "wt_u", [row for number in universes for row in apart(static, number)])
    found = Session(spark).sql(sql.replace(" wt", " wt_u")).collect()
    for name in (*stored, "wt"):
        spark.catalog.dropTempView(f"{name}_u")
    return {row["id"]: row.asDict() for row in found if row["id"] >= 0}


def run(session: Session, sql: str, folder: Path) -> Path:
    started(session.sql(sql), folder).awaitTermination()
    return folder / "checkpoint"


def asked_rows(deployment: Deployment, asked: list[Row]) -> list[tuple[dict[str, Any], bool]]:
    request = deployment.request
    found = deployment.answers(to_batch([mapping(row) for row in asked], deployment.schemas[request], request))
    return [(answer.row, answer.is_partial) for answer in found]


def check(
    session: Session, rows: dict[str, list[Row]], deployment: Deployment, title: str, files: int, low: int
) -> None:
    """All answers that are not partial are those of batch over the first files; from a time on none is partial."""
    stored = {name: [row for part in batches(rows[name])[:files] for row in part] for name in NAMES}
    asked, static = requests(f"{title} {files}"), drawn("wt", 20)
    wanted = batch(session.spark, STATEMENTS[title].format("_u", ""), stored, asked, static)
    answers = asked_rows(deployment, asked)
    for row, (answer, is_partial) in zip(asked, answers, strict=True):
        assert not is_partial or row[3] < low, (row, low)
        assert is_partial or same(answer, wanted[row[0]]), (row, answer, wanted[row[0]])
    assert sum(not is_partial for _, is_partial in answers) >= 5


CASES = [
    *((title, "") for title in STATEMENTS),
    ("a union", "/*+ PARTITIONER(broadcast) */"),
    ("rows to come", "/*+ PARTITIONER(fragment) */"),
    ("rows to come", "/*+ PARTITIONER(hybrid) */"),
    ("counted rows", "/*+ PARTITIONER(broadcast) */"),
    ("without the other rows of the table", "/*+ PARTITIONER(fragment) */"),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("title", "hint"), CASES)
def test_answers_after_a_warm_start_are_those_of_batch(
    session: Session, rows: dict[str, list[Row]], tmp_path: Path, title: str, hint: str
) -> None:
    checkpoint = run(session, STATEMENTS[title].format("", hint), tmp_path)
    deployment = session.deploy(STATEMENTS[title].format("", ""), lateness=None)
    begun = deployment.load_checkpoint(checkpoint)
    joined = title == "a LAST JOIN with a table"
    assert begun.missing == (("wt",) if joined else ())
    assert "wa" in begun.tables or "INSTANCE_NOT" in STATEMENTS[title]
    assert begun.rows == deployment.kept_rows > 0
    if joined:
        deployment.load("wt", session.spark.table("wt"))
    read = [name for name in NAMES if name in deployment.tables]
    newest = [max(row[3] for part in batches(rows[name])[:READ] for row in part) for name in read]
    check(session, rows, deployment, title, READ, min(newest) - DELAY * SECOND)
    for name in NAMES:
        if name in deployment.tables:
            for part in batches(rows[name])[READ:]:
                deployment.push(name, [mapping(row) for row in part])
    check(session, rows, deployment, title, FILES, min(newest) - DELAY * SECOND)


UNION = STATEMENTS["a union"].format("", "")


@pytest.fixture(scope="module")
def union(session: Session, views: Path) -> Path:
    """The checkpoint of the first statement."""
    return run(session, UNION, views / "union")


def test_a_checkpoint_of_another_statement_is_refused(session: Session, union: Path) -> None:
    deployment = session.deploy(UNION.replace("20s", "21s"))
    with pytest.raises(SqlExtError, match="belongs to another query: windows was") as caught:
        deployment.load_checkpoint(union)
    assert (caught.value.condition, deployment.kept_rows) == ("checkpoint-mismatch", 0)


def test_a_copied_checkpoint_is_read_where_it_is(session: Session, union: Path, tmp_path: Path) -> None:
    shutil.copytree(union, tmp_path / "copy")
    deployment, other = session.deploy(UNION), session.deploy(UNION)
    found = deployment.load_checkpoint(tmp_path / "copy")
    assert found == other.load_checkpoint(union)
    assert isinstance(found, WarmStart)
    files = list((tmp_path / "copy" / "state").glob("*/_metadata/v2/[0-9]*"))
    assert files
    assert all(str(tmp_path) in file.read_text() for file in files)


def test_the_query_may_run_on(session: Session, union: Path, rows: dict[str, list[Row]], tmp_path: Path) -> None:
    """What is read is the last micro-batch that is committed, while the query waits for more."""
    writer = session.sql(UNION).writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.start()
    try:
        query.processAllAvailable()
        deployment, other = session.deploy(UNION, lateness=None), session.deploy(UNION, lateness=None)
        begun = deployment.load_checkpoint(tmp_path / "c")
        assert query.isActive
    finally:
        query.stop()
    assert begun.rows == other.load_checkpoint(union).rows
    asked = requests("running")
    assert asked_rows(deployment, asked) == asked_rows(other, asked)


@pytest.mark.parametrize("what", ["a folder", "an empty folder", "nothing", "no micro-batch", "lost files"])
def test_a_folder_that_cannot_be_read_is_told(session: Session, union: Path, tmp_path: Path, what: str) -> None:
    place = tmp_path / "c"
    if what == "a folder":
        place.mkdir()
        (place / "file").write_text("x")
    elif what == "an empty folder":
        place.mkdir()
    elif what != "nothing":
        shutil.copytree(union, place)
    if what == "no micro-batch":
        shutil.rmtree(place / "commits")
        (place / "commits").mkdir()
    if what == "lost files":
        for path in [*place.glob("state/0/[0-9]*/*.zip"), *place.glob("state/0/[0-9]*/*.changelog")]:
            path.unlink()
    deployment = session.deploy(UNION)
    with pytest.raises(SqlExtError) as caught:
        deployment.load_checkpoint(place)
    assert caught.value.condition in ("stream-state-damaged", "checkpoint-mismatch")
    assert str(place) in caught.value.message
    assert deployment.kept_rows == 0


def test_a_server_reads_a_checkpoint_once(session: Session, union: Path, tmp_path: Path) -> None:
    saved = session.deploy(UNION, name="warm", lateness=None).saved
    asked = requests("served")[0]
    body = {"input": {**mapping(asked), "ts": mapping(asked)["ts"].isoformat()}}

    def service(location: Path, journal: str, files: Any = None) -> Service:
        deployment = Deployment.of(saved)
        warm = partial(_warm, {"warm": deployment}, {"warm": str(location)})
        return Service([deployment], Journal(tmp_path / journal), files, warm)

    deployment = Deployment.of(saved)
    deployment.load_checkpoint(union)
    (expected,) = asked_rows(deployment, [asked])
    with served(service=service(union, "j", lambda table: [str(tmp_path / "unread")])) as client:
        answer = client.send("POST", "/deployments/warm", body).json
        assert answer["output"]["s"] == expected[0]["s"]
        pushed = {**body["input"], "v": 100}
        assert client.send("PUT", "/tables/wb", [pushed]).json == {"stored": 1}
    # the query has gone on by now; the journal has what the server began with
    with served(service=service(tmp_path / "none", "j")) as client:
        answer = client.send("POST", "/deployments/warm", body).json
        assert answer["output"]["s"] == (expected[0]["s"] or 0) + 100
    with served(Deployment.of(saved), journal=tmp_path / "other") as client:
        assert client.send("PUT", "/tables/wb", [pushed]).json == {"stored": 1}
    with (
        pytest.raises(SqlExtError, match="has rows that were pushed") as caught,
        served(service=service(union, "other")),
    ):
        pass
    assert caught.value.condition == "journal"


def test_a_divided_deployment_begins_with_a_checkpoint(session: Session, spark: SparkSession, union: Path) -> None:
    deployment = session.deploy(UNION, lateness=None)
    deployment.load_checkpoint(union)
    found = division(deployment.spec)
    assert found is not None
    divided = Divided(deployment.saved, found, 2)
    try:
        divided.load_checkpoint(union, spark)
        assert divided.kept_rows == deployment.kept_rows
        asked = requests("divided")
        assert asked_rows(divided, asked) == asked_rows(deployment, asked)
    finally:
        divided.close()


def test_which_deployment_a_checkpoint_is_for() -> None:
    assert _locations(["/c"], ["one"]) == {"one": "/c"}
    assert _locations(["one=/c", "two=s3a://b/x=1"], ["one", "two"]) == {"one": "/c", "two": "s3a://b/x=1"}
    assert _locations(["day=1/c"], ["one"]) == {"one": "day=1/c"}
    for texts in (["/c"], ["three=/c"], ["one=/c", "one=/d"]):
        with pytest.raises(typer.BadParameter):
            _locations(texts, ["one", "two"])
