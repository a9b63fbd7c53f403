"""Options and formats that commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sqlext.cli.settings_and_errors import completed_settings

#: What `plan --stage` prints.
Stage = StrEnum("Stage", "parsed analyzed optimized physical all")
#: How `plan` prints, and how `run` does.
PlanFormat = StrEnum("PlanFormat", "text json mermaid dot html")
RunFormat = StrEnum("RunFormat", "table csv json jsonl parquet")
#: What `bundle` packs.
BundleKind = StrEnum("BundleKind", "zip venv")
#: Dialects in which a statement may be read.
Compat = StrEnum("Compat", "openmldb")
#: How commands print that have no other format, and those that show a table.
TextOrJson = StrEnum("TextOrJson", "text json")
TableOrJson = StrEnum("TableOrJson", "table json")

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
Packages = Annotated[
    list[str] | None,
    typer.Option(
        metavar="G:A:V",
        help="A package of Spark, as group:artifact:version, that Spark downloads when it starts, such as "
        "io.delta:delta-spark_2.13:4.2.0. Can be given several times, or with commas.",
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
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file.", metavar="OUT")]
CompatOption = Annotated[
    Compat | None,
    typer.Option(
        help="Read the SQL as OpenMLDB does: windows mean what they mean there, and what it refuses is an error."
    ),
]


def settings_with(conf: list[str] | None, packages: list[str] | None) -> list[str]:
    """What was given with --conf, and the packages of --packages behind those of --conf."""
    from sqlext.packages import PACKAGES

    texts = list(conf or [])
    given = [text.partition("=")[2] for text in texts if text.partition("=")[0].strip() == PACKAGES][-1:]
    return [*texts, f"{PACKAGES}={','.join([*given, *packages])}"] if packages else texts
