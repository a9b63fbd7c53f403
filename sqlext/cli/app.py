"""The commands and their options. Their code is imported when they run, so that `--help` and `plan` are fast."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sqlext import __version__
from sqlext.cli.pecj import pecj_app
from sqlext.cli.tpc import tpc_app

app = typer.Typer(
    name="sqlext",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="""SQL for time on Spark: windows over the union of tables, on an ordinary Spark.

    [bold]Try it[/]

      sqlext demo

    [bold]See what happens to a query[/] (no Spark, no data needed)

      sqlext plan --data DIR query.sql

    [bold]Run one[/]

      sqlext run --data DIR -e "SELECT user, sum(amount) OVER w AS spent FROM actions
        WINDOW w AS (UNION orders PARTITION BY user ORDER BY ts
                     ROWS_RANGE BETWEEN 1h PRECEDING AND CURRENT ROW)"

    DIR contains the tables: NAME.parquet, NAME.csv, or a folder NAME of such files, is table NAME.
    """,
)


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
    parquet = "parquet"


class BundleKind(StrEnum):
    """What `bundle` packs."""

    zip = "zip"
    venv = "venv"


class Compat(StrEnum):
    """Dialects in which a statement may be read."""

    openmldb = "openmldb"


File = Annotated[str | None, typer.Argument(metavar="FILE", help="File with the SQL; - is standard input.")]
Sql = Annotated[str | None, typer.Option("-e", "--sql", metavar="SQL", help="The SQL itself.")]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder of tables: NAME.parquet, NAME.csv or a folder NAME of such files.", metavar="DIR"),
]
Conf = Annotated[
    list[str] | None, typer.Option(metavar="K=V", help="A setting, `sqlext.*` or Spark's. Can be given several times.")
]
CompatOption = Annotated[
    Compat | None,
    typer.Option(
        help="Read the SQL as OpenMLDB does: windows mean what they mean there, and what it refuses is an error."
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sqlext {__version__}")
        raise typer.Exit


@app.callback()
def sqlext(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options of every command."""


@app.command()
def demo(
    rows: Annotated[int, typer.Option(help="Total number of rows of the generated tables.", min=1000)] = 300_000,
    seed: Annotated[int, typer.Option(help="Seed of the generator: the same seed gives the same data.")] = 1,
    data: Annotated[Path | None, typer.Option(help="Keep the generated tables here.", metavar="DIR")] = None,
) -> None:
    """The main job, on generated data: features of each user action from the orders in the hour before it.

    Prints the SQL, the plan before and after the rules, the first rows and the time. Needs nothing but this package.

    [bold]Examples[/]

      sqlext demo

      sqlext demo --rows 2000000 --data /tmp/shop    (then: sqlext run --data /tmp/shop -e "...")
    """
    from sqlext.cli.demo import run_demo

    run_demo(rows, seed, data)


@app.command()
def plan(
    file: File = None,
    sql: Sql = None,
    data: Data = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            help='Only the types of the tables: {"table": {"column": "spark type"}}, or CREATE TABLE statements.',
            metavar="FILE.json|.sql",
        ),
    ] = None,
    stage: Annotated[
        Stage | None,
        typer.Option(help="One stage, or all; by default the plan before and after the rules, and the physical plan."),
    ] = None,
    format: Annotated[PlanFormat, typer.Option(help="How to print it.")] = PlanFormat.text,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file.", metavar="OUT")] = None,
    conf: Conf = None,
    compat: CompatOption = None,
) -> None:
    """Show how a statement is rewritten and what will run it. Starts no Spark.

    [bold]Examples[/]

      sqlext plan --data DIR query.sql

      sqlext plan --schema tables.json -e "SELECT ..." --stage physical

      sqlext plan --compat openmldb --schema Q3_create.sql Q3_deploy.sql

      sqlext plan --data DIR query.sql --format html -o plan.html
    """
    from sqlext.cli.plan import run_plan

    run_plan(file, sql, data, schema, stage, format, output, conf or [], compat)


@app.command()
def run(
    file: File = None,
    sql: Sql = None,
    data: Data = None,
    format: Annotated[
        RunFormat, typer.Option(help="A table of the first rows, or the whole result as csv, json or parquet.")
    ] = RunFormat.table,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file.", metavar="OUT")] = None,
    limit: Annotated[int, typer.Option(help="Number of rows that a table shows; 0 shows all.", min=0)] = 20,
    conf: Conf = None,
    compat: CompatOption = None,
) -> None:
    """Run one or more statements, separated by semicolons, on a local Spark in this process; print the last result.

    [bold]Examples[/]

      sqlext run --data DIR query.sql

      sqlext run --data DIR query.sql --format parquet -o features.parquet

      sqlext run --data DIR -e "SELECT count(*) FROM orders" --conf spark.driver.memory=8g
    """
    from sqlext.cli.run import run_query

    run_query(file, sql, data, format, output, limit, conf or [], compat)


@app.command()
def bundle(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this file or folder.", metavar="OUT")
    ] = None,
    kind: Annotated[
        BundleKind, typer.Option(help="zip: only the operators; venv: a Python environment with all they import.")
    ] = BundleKind.zip,
    python: Annotated[
        Path | None,
        typer.Option(
            help="With venv: where the executors' machines have their Python, if not where it is here.", metavar="PATH"
        ),
    ] = None,
) -> None:
    """Pack what a cluster's executors need, from what is installed here; docs/cluster.md says which kind fits where.

    [bold]Examples[/]

      sqlext bundle                       (then: spark.sparkContext.addPyFile("sqlext_operators-VERSION.zip"))

      sqlext bundle --kind venv -o /tmp   (then: --archives /tmp/sqlext_environment-....tar.gz#environment
                                           --conf spark.pyspark.python=./environment/bin/python)
    """
    from sqlext.cli.bundle import run_bundle

    run_bundle(output, kind, python)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def bench(context: typer.Context) -> None:
    """Compare with native Spark and DuckDB: `sqlext bench --help` lists the suites."""
    from sqlext.bench.cli import app as suites

    suites(args=context.args, prog_name="sqlext bench")


app.add_typer(pecj_app)
app.add_typer(tpc_app("tpch", "TPC-H"))
app.add_typer(tpc_app("tpcds", "TPC-DS"))
