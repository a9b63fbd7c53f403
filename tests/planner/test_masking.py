"""Credentials in URIs are shown nowhere: in messages, excerpts, plans, logs."""

from __future__ import annotations

import logging

import pytest
from sqlext_planner.config import Config
from sqlext_planner.errors import ConfigurationError, Span, masked

from sqlext.catalog import DictCatalog
from sqlext.catalog.reading import explained
from sqlext.cli.failures import explained as told
from sqlext.explain.pages import STAGES, render
from sqlext.run.pipeline import stage

SHOWN = {
    "'s3a://KEY:SE/CR@ET@b/x' cannot": "'s3a://***@b/x' cannot",
    "`s3n://KEY:SECRET@b/x.csv`": "`s3n://***@b/x.csv`",
    "ftp://user:geheim@h/x": "ftp://***@h/x",
    "https://h/x?se=1&sig=AbC%2F&y=2": "https://h/x?se=1&sig=***&y=2",
    "wasbs://c@a/x?sv=1&SIG=zz": "wasbs://c@a/x?sv=1&SIG=***",
    "jdbc:sqlserver://h;user=u;password=geheim": "jdbc:sqlserver://h;user=u;password=***",
    "https://b?X-Amz-Credential=AA/2&X-Amz-Signature=ff&amp;X-Amz-Security-Token=q": "https://b?X-Amz-Credential=***"
    "&X-Amz-Signature=***&amp;X-Amz-Security-Token=***",
    "abfss://c@a.dfs.core.windows.net/x": "abfss://c@a.dfs.core.windows.net/x",
    "hdfs://h:9000/a@b and file:///a?x=1": "hdfs://h:9000/a@b and file:///a?x=1",
    "SELECT a&key=3, b": "SELECT a&key=3, b",
}


@pytest.mark.parametrize("text", list(SHOWN))
def test_masked(text: str) -> None:
    assert masked(text) == SHOWN[text]
    assert len(masked(text, same_length=True)) == len(text)
    assert masked(masked(text)) == masked(text)


URI = "s3a://KEY:SECRET@b/x.csv"


def test_errors_show_no_credentials() -> None:
    sql = f"SELECT * FROM csv.`{URI}` WHERE nope = 1"
    error = ConfigurationError(
        f"'{URI}' cannot be read",
        condition="file-access",
        span=Span(sql.index("nope"), sql.index("nope") + 4),
        help=lambda: f"check {URI}",
        notes=(f"it was {URI}",),
        sql=sql,
    )
    for text in (str(error), error.text(80), error.message, repr(error), told(error)[0]):
        assert "SECRET" not in text
        assert "s3a://***" in text
    lines = str(error).splitlines()
    assert lines[2].index("nope") == lines[3].index("^")
    message, help = explained(URI, f"java.io.IOException: no {URI}?sig=SECRET", "4.3.0")
    assert "SECRET" not in str(ConfigurationError(message, condition="file-access", help=help))
    assert "SECRET" not in told(OSError(2, "No such file", URI))[0]
    assert "SECRET" not in told(RuntimeError(URI))[0]


@pytest.mark.parametrize("format", ["text", "json", "html", "mermaid", "dot"])
def test_plans_show_no_credentials(format: str) -> None:
    sql = f"SELECT a.v, b.v FROM a LAST JOIN a AS b ON a.k = b.k AND a.u <> '{URI}' AND a.u <> 'https://h/x?sig=SECRET'"
    plan = stage(sql, DictCatalog({"a": {"k": "int", "v": "int", "u": "string"}}), Config())
    page = render(plan, STAGES, format)
    assert "SECRET" not in page
    assert "***" in page
    assert "SECRET" not in str(plan) + plan.html() + plan._repr_html_()


def test_logs_show_no_credentials(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "sqlext")
    from sqlext.run.pipeline import left_to_spark

    left_to_spark(ConfigurationError(URI, condition="file-access"))
    assert "planning failed" in caplog.text
    assert "SECRET" not in caplog.text
