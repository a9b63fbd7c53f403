"""`sqlext deploy` and `sqlext serve` on the command line, without Spark."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from sqlext.cli.deploy import _lateness, machine_zone
from sqlext.cli.serve import _bytes, _listening
from sqlext.serving.deployment import Deployment
from tests.cli.conftest import WINDOW
from tests.command_line import Sqlext
from tests.serving.servers import SPENT, TABLES

DDL = "CREATE TABLE a(k string, ts timestamp, v int, INDEX(KEY=k, TS=ts)); "
DEPLOY = (
    'DEPLOY IF NOT EXISTS db.features OPTIONS(long_windows="w:1d") SELECT k, sum(v) OVER w AS s, FROM a '
    "WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 1d PRECEDING AND CURRENT ROW)"
)


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    path = tmp_path / "tables.json"
    path.write_text(json.dumps(TABLES))
    return path


def test_a_statement_becomes_a_folder(sqlext: Sqlext, tmp_path: Path, tables: Path) -> None:
    (tmp_path / "spent.sql").write_text(SPENT)
    conf = ("--conf", "spark.sql.session.timeZone=Europe/Berlin", "--conf", "spark.sql.ansi.enabled=false")
    done = sqlext(
        "deploy", tmp_path / "spent.sql", "-o", tmp_path / "d", "--schema", tables, "--lateness", "15m", *conf
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, *_, last = done.stdout.splitlines()
    assert [first, last] == [
        "Deployment spent: a row of views",
        f"Written to {tmp_path / 'd'}. Answer from it: sqlext serve {tmp_path / 'd'}",
    ]
    deployment = Deployment.open(tmp_path / "d")
    assert (deployment.name, deployment.lateness, deployment.settings.ansi) == ("spent", 900_000_000, False)
    assert deployment.settings.time_zone == "Europe/Berlin"


def test_the_tables_of_a_folder(sqlext: Sqlext, tmp_path: Path, data: Path) -> None:
    done = sqlext("deploy", "-e", WINDOW, "-o", tmp_path / "d", "--data", data, "--name", "sums")
    assert done.returncode == 0, done.stderr
    assert Deployment.open(tmp_path / "d").tables["b"] == {"id": "int", "k": "string", "ts": "bigint", "v": "bigint"}


def test_a_script_of_openmldb(sqlext: Sqlext, tmp_path: Path) -> None:
    done = sqlext("deploy", "-e", DDL + DEPLOY, "-o", tmp_path / "d", "--compat", "openmldb")
    assert done.returncode == 0, done.stderr
    deployment = Deployment.open(tmp_path / "d")
    assert (deployment.name, deployment.compat, deployment.request) == ("features", "openmldb", "a")
    assert deployment.spec.names == ("k", "s")
    refused = sqlext("deploy", "-e", DEPLOY, "-o", tmp_path / "e")
    assert refused.returncode == 2
    assert "DEPLOY is OpenMLDB's" in refused.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-e", "SELECT 1"), "cannot be deployed"),
        (("-e", "SELECT user_id FROM views WHERE price > 1"), "it has no WHERE"),
        (("-e", SPENT, "--request", "nothing"), "reads no table 'nothing'"),
        (("-e", SPENT, "--lateness", "soon"), "write it as 90s, 15m, 1h, 2d or unbounded"),
        (("-e", SPENT, "--name", "a/b"), "cannot be the name of a deployment"),
        (("-e", SPENT, "--conf", "spark.driver.memory=1g"), "a deployment depends on"),
        (("-e", SPENT, "--conf", "spark.sql.ansi.enabled=maybe"), "write true or false"),
        (("-e", SPENT, "--conf", "spark.sql.session.timeZone=Mars/Olympus"), "is no time zone"),
    ],
)
def test_mistakes_of_a_deployment(
    sqlext: Sqlext, tmp_path: Path, tables: Path, words: tuple[str, ...], told: str
) -> None:
    done = sqlext("deploy", "-o", tmp_path / "d", "--schema", tables, *words)
    assert done.returncode == 2, done.stdout
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "d").exists()


def test_mistakes_of_a_server(sqlext: Sqlext, tmp_path: Path, tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlext.cli.serve._log_to_stderr", lambda **_: None)  # the loggers of this process stay
    assert sqlext("deploy", "-e", SPENT, "-o", tmp_path / "d", "--schema", tables).returncode == 0
    (tmp_path / "empty").write_text("\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = [
            ((tmp_path / "nothing",), "is no deployment"),
            ((tmp_path / "d", tmp_path / "d"), "two of the deployments have one name"),
            ((tmp_path / "d", "--port", port), f"cannot listen at 127.0.0.1:{port}"),
            ((tmp_path / "d", "--host", "no.such.host.invalid"), "cannot listen at no.such.host.invalid"),
            ((tmp_path / "d", "--token-file", tmp_path / "empty"), "has no tokens"),
            ((tmp_path / "d", "--max-body", "much"), "write it as 512KB or 4MB"),
            ((tmp_path / "d", "--journal", tmp_path / "empty"), "cannot be used"),
        ]
        for words, told in cases:
            done = sqlext("serve", *words)
            assert done.returncode == 2, done.stdout
            assert told in done.stderr
            assert "Traceback" not in done.stderr


def test_whoever_reads_the_address_may_connect_at_once() -> None:
    with _listening("127.0.0.1", 0) as listening:
        socket.create_connection(listening.getsockname(), timeout=10).close()


def test_lateness_and_sizes() -> None:
    texts = {"0s": 0, "7": 7, "90s": 90_000_000, "15m": 900_000_000, "1H": 3_600_000_000, "2d": 172_800_000_000}
    assert {text: _lateness(text) for text in texts} == texts
    assert _lateness("unbounded") is None
    assert [_bytes(text) for text in ("10", "1KB", "1m", "2 MB", "1GB")] == [10, 1024, 1 << 20, 2 << 20, 1 << 30]


def test_the_zone_of_a_machine(tmp_path: Path) -> None:
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/Europe/Berlin")
    assert machine_zone({}, link) == "Europe/Berlin"
    assert machine_zone({"TZ": ":Asia/Tokyo"}, link) == "Asia/Tokyo"
    assert machine_zone({"TZ": "nonsense"}, link) == "UTC"
    assert machine_zone({}, tmp_path / "nothing") == "UTC"


def test_the_help_teaches(sqlext: Sqlext) -> None:
    text = sqlext("serve", "--help").stdout
    for word in ("--journal", "curl", "Idempotency-Key", "/metrics", "SIGTERM"):
        assert word in text
