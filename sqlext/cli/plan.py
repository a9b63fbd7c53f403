"""`sqlext plan`: a statement at every stage of planning, without Spark."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError

from sqlext.cli.source import read_schema, read_settings, read_sql
from sqlext.cli.terminal import exact_output, json_visible, visible, writing
from sqlext.explain.pages import PAGE, STAGES, render
from sqlext.run.pipeline import stage

if TYPE_CHECKING:
    from sqlext_planner.catalog import Catalog

DEFAULT_STAGES = PAGE


def run_plan(
    file: str | None,
    sql: str | None,
    data: str | None,
    schema: Path | None,
    wanted: str | None,
    format: str,
    output: Path | None,
    conf: Sequence[str],
    compat: str | None,
) -> None:
    """Print the requested stages, or write them to `output`."""
    text = read_sql(file, sql)
    settings, spark = read_settings(conf)
    if spark:
        raise typer.BadParameter(f"--conf {next(iter(spark))}: `plan` starts no Spark; give sqlext.* settings only")
    if format in ("mermaid", "dot") and wanted == "all":
        raise typer.BadParameter(f"--format {format} draws one stage: give --stage physical, or leave --stage out")
    stages = DEFAULT_STAGES if wanted is None else STAGES if wanted == "all" else (str(wanted),)
    try:
        plan = stage(
            text, _catalog(data, schema, text if compat == "openmldb" else ""), Config.from_mapping(settings), compat
        )
    except SqlExtError as error:
        raise error.with_sql(text) from error.__cause__
    page = render(plan, stages, str(format))
    if output is not None:
        with writing(output):
            output.write_text(page, encoding="utf-8", errors="backslashreplace")
    elif format == "json":
        with exact_output() as stream:
            stream.write(json_visible(page))
    else:
        sys.stdout.write(visible(page))


def _catalog(data: str | None, schema: Path | None, script: str) -> Catalog:
    """The tables of --data, or those of --schema and of the CREATE TABLE statements before a script's query."""
    from sqlext.catalog import DictCatalog, FileCatalog
    from sqlext.catalog.ddl import read_ddl

    if data is not None and schema is not None:
        raise typer.BadParameter("give --data or --schema, not both")
    if data is not None:
        return FileCatalog(data)
    return DictCatalog({**read_ddl(script), **(read_schema(schema) if schema is not None else {})})
