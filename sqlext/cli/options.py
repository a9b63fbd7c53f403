"""Options and formats that commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from sqlext.cli.settings_and_errors import completed_settings


class Stage(StrEnum):
    """What `plan --stage` prints."""

    parsed = "parsed"
    analyzed = "analyzed"
    optimized = "optimized"
    physical = "physical"
    all = "all"


class PlanFormat(StrEnum):
    """How `plan` prints."""

    text = "text"
    json = "json"
    mermaid = "mermaid"
    dot = "dot"
    html = "html"


class RunFormat(StrEnum):
    """How `run` prints."""

    table = "table"
    csv = "csv"
    json = "json"
    jsonl = "jsonl"
    parquet = "parquet"


class BundleKind(StrEnum):
    """What `bundle` packs."""

    zip = "zip"
    venv = "venv"


class Compat(StrEnum):
    """Dialects in which a statement may be read."""

    openmldb = "openmldb"


class TextOrJson(StrEnum):
    """How commands print that have no other format."""

    text = "text"
    json = "json"


class TableOrJson(StrEnum):
    """How commands print that show a table."""

    table = "table"
    json = "json"


File = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="File with the SQL; - is standard input, as is nothing at the end of a pipe."),
]
Sql = Annotated[str | None, typer.Option("-e", "--sql", metavar="SQL", help="The SQL itself.")]
Data = Annotated[
    str | None,
    typer.Option(
        help="Folder of tables: NAME.parquet, .csv, .orc, .json, .avro, or a folder NAME of such files. "
        "`run` takes URIs such as s3a://bucket/folder.",
        metavar="DIR",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        metavar="K=V",
        help="A setting, `sqlext.*` (`sqlext config` lists them) or Spark's. Can be given several times.",
        autocompletion=completed_settings,
    ),
]
Read = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[TABLE.]K=V",
        help="How to read the text files of --data, of all tables or of one: delimiter, header, multiline, types "
        "('orders.types=uid string'). Can be given several times; by default a look at the files tells.",
    ),
]
CompatOption = Annotated[
    Compat | None,
    typer.Option(
        help="Read the SQL as OpenMLDB does: windows mean what they mean there, and what it refuses is an error."
    ),
]
