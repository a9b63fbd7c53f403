"""DEPLOY ... OPTIONS (...) of OpenMLDB's scripts where they are deployed: all options are taken, mistakes are shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import AnalysisError, ParseError, SqlExtError
from sqlext_planner.serving.lowering import ServingSettings

from sqlext.catalog import DictCatalog
from sqlext.catalog.ddl import read_ddl
from sqlext.run.pipeline import stage
from sqlext.serving.deployment import Deployment
from tests.command_line import in_this_process

DDL = "CREATE TABLE t(k string, ts timestamp, v bigint, INDEX(KEY=k, TS=ts)); "
QUERY = (
    "SELECT k, sum(v) OVER w AS s, count(v) OVER Counts AS n FROM t "
    "WINDOW w AS (PARTITION BY k ORDER BY ts ROWS_RANGE BETWEEN 30d PRECEDING AND CURRENT ROW), "
    "Counts AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 999 PRECEDING AND CURRENT ROW)"
)


def deployed(script: str) -> Deployment:
    settings = ServingSettings(ansi=False, time_zone="Asia/Shanghai")
    return Deployment(script, DictCatalog(read_ddl(DDL)), settings=settings, compat="openmldb")


@pytest.mark.parametrize(
    "options",
    [
        'demo OPTIONS(long_windows="w:1d")',
        "demo OPTIONS(LONG_WINDOWS='w:1d, counts:100')",
        "demo options(long_windows='w')",
        "IF NOT EXISTS db.demo OPTIONS(SYNC='false', long_windows=\"w:20\", skip_index_check = TRUE)",
        "OPTIONS (SKIP_INDEX_CHECK=\"TRUE\") demo OPTIONS (range_bias=10d, rows_bias='inf')",
        "demo OPTIONS(RANGE_BIAS=1000, ROWS_BIAS=20)",
        "demo OPTIONS()",
        "demo",
    ],
)
def test_options_are_taken(options: str) -> None:
    deployment = deployed(f"{DDL}DEPLOY {options} {QUERY}")
    assert deployment.spec == deployed(QUERY).spec


@pytest.mark.parametrize(
    ("options", "error", "message", "shown"),
    [
        ("(long_windows='w:1d,u:1d')", AnalysisError, "the query has no window 'u'", "u"),
        ("(long_windows='w:1d,:1d')", ParseError, "':1d' is no long window", "'w:1d,:1d'"),
        ("(long_windows='w:soon')", ParseError, "'w:soon' is no long window", "'w:soon'"),
        ("(long_windows=w)", ParseError, "long_windows is no text", "w"),
        ("(long_window='w:1d')", ParseError, "DEPLOY has no option 'long_window'", "long_window"),
        ("(sync='true', ttl='1d')", ParseError, "DEPLOY has no option 'ttl'", "ttl"),
        ("(sync)", ParseError, "the option 'sync' has no value", "sync"),
        ("(sync=)", ParseError, "the option 'sync' has no value", "sync="),
        ("(sync='maybe')", ParseError, "maybe is no value of the option 'sync'", "'maybe'"),
        ("(range_bias='long')", ParseError, "long is no value of the option 'range_bias'", "'long'"),
        ("(rows_bias=10d)", ParseError, "10d is no value of the option 'rows_bias'", "10d"),
    ],
)
def test_mistakes_are_shown(options: str, error: type[SqlExtError], message: str, shown: str) -> None:
    script = f"{DDL}DEPLOY demo OPTIONS{options} {QUERY}"
    with pytest.raises(error, match=message) as caught:
        deployed(script)
    assert caught.value.help
    assert caught.value.span is not None
    assert script[caught.value.span.start : caught.value.span.end] == shown
    assert stage(script, DictCatalog(read_ddl(DDL)), Config(), "openmldb").analyzed is not None  # a comment in batch


def test_the_command_takes_openmldb_s_meaning_and_shows_mistakes(tmp_path: Path) -> None:
    words = ("-o", tmp_path / "d", "--compat", "openmldb")
    done = in_this_process("deploy", "-e", f"{DDL}DEPLOY demo OPTIONS(long_windows='w:1d') {QUERY}", *words)
    assert done.returncode == 0, done.stderr
    assert Deployment.open(tmp_path / "d").settings == ServingSettings(ansi=False, time_zone="Asia/Shanghai")
    given = ("--conf", "spark.sql.session.timeZone=UTC", "--conf", "spark.sql.ansi.enabled=true")
    assert in_this_process("deploy", "-e", f"{DDL}DEPLOY demo {QUERY}", *words, *given).returncode == 0
    assert Deployment.open(tmp_path / "d").settings == ServingSettings(ansi=True, time_zone="UTC")
    done = in_this_process("deploy", "-e", f"{DDL}DEPLOY demo OPTIONS(long_windows='x:1d') {QUERY}", *words)
    assert done.returncode == 2
    assert "the query has no window 'x'" in done.stderr
    assert "help: its windows are w, Counts" in done.stderr
