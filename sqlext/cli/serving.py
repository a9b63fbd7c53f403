"""`sqlext deploy` and `sqlext serve`: their options. Their code is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sqlext.cli import options


def deploy(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.", metavar="DIR")],
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
    request: Annotated[
        str | None,
        typer.Option(help="The table whose rows are asked; by default the first one of FROM.", metavar="TABLE"),
    ] = None,
    lateness: Annotated[
        str,
        typer.Option(
            help="How much later than the newest row of its table a row may come and still find all that it needs: "
            "90s, 15m, 1h, 2d; a number alone counts units of an order column that is no timestamp; or unbounded.",
            metavar="TIME",
        ),
    ] = "0s",
    name: Annotated[
        str | None,
        typer.Option(help="Its name in addresses; by default DEPLOY's, or that of the file.", metavar="NAME"),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K=V",
            help="spark.sql.ansi.enabled (true), spark.sql.session.timeZone (this machine's; with --compat openmldb "
            "false and Asia/Shanghai), or sqlext.stream.future and futureBound: what becomes of pushed rows whose time "
            "is to come (keep; they let no other row go).",
        ),
    ] = None,
    compat: options.CompatOption = None,
    read: options.Read = None,
    verify: Annotated[
        int,
        typer.Option(
            help="Then replay so many rows of the request table in --data, and compare each answer with batch on a "
            "local Spark; a difference is an error.",
            metavar="N",
            min=0,
        ),
    ] = 0,
) -> None:
    """Write a statement as a folder from which `sqlext serve` answers it, one row at a time. Starts no Spark, but for
    --verify.

    [bold]Examples[/]

      sqlext deploy features.sql -o features --data DIR       (columns and types are those of the tables there)

      sqlext deploy features.sql -o features --schema tables.json --lateness 15m

      sqlext deploy features.sql -o features --data DIR --verify 500      (500 of 500 rows equal)

      sqlext deploy --compat openmldb --schema Q3_create.sql Q3_deploy.sql -o q3

      sqlext serve features

    The folder holds the text, the types, the settings and what is kept, as text; docs/serving.md.
    """
    from sqlext.cli.deploy import run_deploy

    run_deploy(file, sql, output, data, schema, request, lateness, name, conf or [], compat, read or [], verify)


def serve(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders that `sqlext deploy` has written.")],
    host: Annotated[
        str, typer.Option(help="The address to listen at. By default only this machine reaches it; 0.0.0.0: all do.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one and prints it.", min=0, max=65535)] = 8080,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="A file of tokens, one a line: requests must show one of them as Authorization: Bearer TOKEN.",
            metavar="FILE",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder of Parquet tables whose rows are stored at the start, unless the journal has them already.",
            metavar="DIR",
        ),
    ] = None,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            help="The checkpoint of a streaming query of the same statement: the rows that the query keeps are stored "
            "at the start, by a Spark of its own, unless the journal has them already. NAME=DIR says for which one of "
            "several deployments.",
            metavar="DIR",
        ),
    ] = None,
    journal: Annotated[
        Path | None,
        typer.Option(
            help="Write pushed rows here before they are acknowledged, and read them again at the next start.",
            metavar="DIR",
        ),
    ] = None,
    max_body: Annotated[
        str, typer.Option(help="The largest body of a request; a larger one is refused.", metavar="SIZE")
    ] = "1MB",
    rate: Annotated[
        float | None,
        typer.Option(help="Requests a second that one client may send; more are refused.", metavar="N", min=0.01),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            help="Processes that keep rows and compute, each for a part of the keys; a deployment whose windows and "
            "joins have no column of keys in common stays in one.",
            min=1,
        ),
    ] = 1,
    max_waiting: Annotated[
        int, typer.Option(help="Requests that may wait; more are refused, to be sent again.", min=1)
    ] = 1000,
    grace: Annotated[
        int, typer.Option(help="Seconds that requests may take to end after SIGTERM.", metavar="SECONDS", min=0)
    ] = 30,
    allow_gaps: Annotated[
        bool,
        typer.Option(
            "--allow-gaps",
            help="Start although the journal lacks older rows of a deployment that is new or was changed.",
        ),
    ] = False,
    log_requests: Annotated[
        bool, typer.Option("--log-requests/--no-log-requests", help="A line of the log for each request.")
    ] = True,
) -> None:
    """Answer deployments over HTTP, one row at a time, in milliseconds. Starts no Spark, but for --checkpoint. Needs
    the extra `serve`.

    [bold]Examples[/]

      sqlext deploy features.sql -o features --data DIR

      sqlext serve features --journal rows

      sqlext serve features --data DIR --journal rows      (begins with the rows of the tables there)

      sqlext serve features --checkpoint DIR --journal rows      (begins with what a stream of the statement keeps)

      sqlext serve features fraud --journal rows --host 0.0.0.0 --token-file tokens

    [bold]Then, from another terminal[/]

      curl -X PUT localhost:8080/tables/orders -d '[{"user_id": 1, "ts": "2024-05-01T12:00:00", "price": "9.90"}]'

      curl localhost:8080/deployments/features -d '{"input": {"user_id": 1, "ts": "2024-05-01T12:30:00"}}'

    A push goes to every deployment that reads the table, and later answers see it. With --journal it is on disk before
    it is acknowledged; send an Idempotency-Key with it, and it is stored once however often it comes. http://.../ lists
    all addresses, /openapi.json for programs, /metrics for Prometheus. OpenMLDB's addresses, /dbs/DB/deployments/NAME
    and /dbs/DB/tables/TABLE, are answered as OpenMLDB does. The log goes to stderr, a line of JSON each.

    SIGTERM ends it: what was begun is answered, then the journal is closed. docs/serving.md has more.
    """
    from sqlext.cli.serve import run_serve

    run_serve(
        folders,
        host,
        port,
        token_file,
        data,
        checkpoint or [],
        journal,
        max_body,
        rate,
        max_waiting,
        grace,
        workers=workers,
        allow_gaps=allow_gaps,
        log_requests=log_requests,
    )
