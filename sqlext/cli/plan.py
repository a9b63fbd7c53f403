"""`sqlext plan`: a statement at every stage of planning, without Spark unless it is to be measured."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from sqlext_planner.config import Config
from sqlext_planner.errors import SqlExtError

from sqlext.catalog.options import FolderOptions
from sqlext.cli.source import read_schema, read_settings, read_sql, refuse_spark_settings
from sqlext.cli.terminal import StageProgress, exact_output, json_visible, progress, visible, writing
from sqlext.explain.pages import PAGE, STAGES, render
from sqlext.run.pipeline import stage

if TYPE_CHECKING:
    from sqlext_planner.catalog import Catalog

    from sqlext.run.pipeline import StagedPlan

DEFAULT_STAGES = PAGE


def run_plan(
    file: str | None,
    sql: str | None,
    data: str | None,
    schema: Path | None,
    stage_name: str | None,
    format: str,
    output: Path | None,
    conf: Sequence[str],
    compat: str | None,
    *,
    analyze: bool = False,
    read: Sequence[str] = (),
) -> None:
    """Print the requested stages, or write them to `output`; with `analyze` also what a run on Spark measures."""
    text = read_sql(file, sql)
    options = FolderOptions.of_texts(read)
    settings, spark = read_settings(conf)
    if analyze and (data is None or schema is not None):
        raise typer.BadParameter("--analyze runs the query: give its tables with --data, and no --schema")
    if not analyze:
        refuse_spark_settings(spark)
    if format in ("mermaid", "dot") and stage_name == "all":
        raise typer.BadParameter(f"--format {format} draws one stage: give --stage physical, or leave --stage out")
    if format in ("mermaid", "dot") and analyze:
        raise typer.BadParameter(f"--format {format} shows nothing that was measured: use text, json or html")
    default = ("physical",) if analyze and format != "html" else DEFAULT_STAGES
    stages = default if stage_name is None else STAGES if stage_name == "all" else (str(stage_name),)
    try:
        if analyze:
            plan = _measured(text, str(data), options, {**spark, **settings}, compat)
        else:
            catalog = catalog_of(data, options, schema, text, compat)
            plan = stage(text, catalog, Config.from_mapping(settings), compat)
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


def _measured(
    text: str, data: str, options: FolderOptions, settings: Mapping[str, str], compat: str | None
) -> StagedPlan:
    from sqlext.cli.run import register_tables
    from sqlext.session import Session

    with progress("Starting Spark"):
        session = Session(compat=compat, config=settings)
        spark = session.spark
    try:
        with StageProgress(spark):
            register_tables(session, data, options)
            return session.analyze(text)
    finally:
        spark.stop()


def catalog_of(data: str | None, options: FolderOptions, schema: Path | None, text: str, compat: str | None) -> Catalog:
    """The tables of --data, or those of --schema and of the CREATE TABLE statements before a script's query."""
    from sqlext.catalog import DictCatalog, FileCatalog
    from sqlext.catalog.ddl import read_ddl

    if data is not None and schema is not None:
        raise typer.BadParameter("give --data or --schema, not both")
    if data is not None:
        return FileCatalog(data, options, instants=compat is not None)
    script = text if compat == "openmldb" else ""
    return DictCatalog({**read_ddl(script), **(read_schema(schema) if schema is not None else {})})
