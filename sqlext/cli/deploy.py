"""`sqlext deploy`: a statement as a folder that `sqlext serve` answers from."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer
from sqlext_planner.config import Config
from sqlext_planner.errors import DataError, SqlExtError
from sqlext_planner.serving.lowering import ServingSettings

from sqlext.catalog.options import FolderOptions
from sqlext.cli.plan import catalog_of
from sqlext.cli.source import read_settings, read_sql
from sqlext.serving.deployment import Deployment
from sqlext.serving.folder import checked_name
from sqlext.serving.values import zone_of
from sqlext.serving.verify import Difference
from sqlext.serving.verify import verify as replayed
from sqlext.session import OPENMLDB_SETTINGS, ZONE
from sqlext.syntax.scripts import deployed_name
from sqlext.syntax.sql_settings import ANSI

_FUTURE = ("sqlext.stream.future", "sqlext.stream.futureBound")
#: Microseconds; a number alone counts units of the order column.
_UNITS = {"w": 604_800_000_000, "d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000}


def run_deploy(
    file: str | None,
    sql: str | None,
    output: Path,
    data: str | None,
    schema: Path | None,
    request: str | None,
    lateness: str,
    name: str | None,
    conf: Sequence[str],
    compat: str | None,
    read: Sequence[str],
    verify: int = 0,
) -> None:
    """Plan the statement as a deployment, write its folder, and say what it keeps; with `verify`, compare so many
    answers with batch. Raises DataError if one differs."""
    if verify and data is None:
        raise typer.BadParameter("--verify replays rows of tables: give them with --data DIR")
    text = read_sql(file, sql)
    late = _lateness(lateness)
    settings = _settings(conf, compat)
    stem = Path(file).stem if file not in (None, "-") else output.resolve().name
    named = checked_name(name or (deployed_name(text) if compat is not None else None) or stem)
    try:
        deployment = Deployment(
            text,
            catalog_of(data, FolderOptions.of_texts(read), schema, text, compat),
            request=request,
            settings=settings,
            name=named,
            compat=compat,
            lateness=late,
        )
    except SqlExtError as error:
        raise error.with_sql(text) from error.__cause__
    deployment.save(output)
    typer.echo(deployment.explain())
    typer.echo(f"Written to {output}. Answer from it: sqlext serve {output}")
    if verify:
        _verify(deployment, data, read, verify)


def _verify(deployment: Deployment, data: str | None, read: Sequence[str], rows: int) -> None:
    """Replay rows, and say how many answers are batch's. Raises DataError if one is not."""
    from sqlext.cli.run import open_session, register_tables
    from sqlext.cli.terminal import progress

    settings = deployment.settings
    with progress("Starting Spark"):
        session = open_session(
            (f"{ANSI}={str(settings.ansi).lower()}", f"{ZONE}={settings.time_zone}"), deployment.compat
        )
        register_tables(session, data, FolderOptions.of_texts(read))
    with progress(f"Replaying {rows} rows of {deployment.request}"):
        session.read_named(deployment.sql)
        found = replayed(session, deployment, rows)
    typer.echo(str(found))
    if found.differences:
        raise differs(found.differences[0])


def differs(one: Difference) -> DataError:
    """The error of an answer that is not batch's."""
    return DataError(
        f"an answer differs from batch: {dict(one.answer)}, where batch has {dict(one.batch)}",
        condition="answer-differs",
        help=f"the row is {dict(one.request)}; please report it",
    )


def _lateness(text: str) -> int | None:
    if text.strip().lower() == "unbounded":
        return None
    match = re.fullmatch(r"(\d{1,15})\s*(ms|[smhdw]?)", text.strip(), re.IGNORECASE)
    if match is None:
        raise typer.BadParameter(f"--lateness {text}: write it as 90s, 15m, 1h, 2d or unbounded")
    return int(match[1]) * _UNITS.get(match[2].lower(), 1)


def _settings(conf: Sequence[str], compat: str | None) -> ServingSettings:
    """What of --conf the meaning of a statement depends on; by default as OpenMLDB or a Spark here has it."""
    ours, given = read_settings(conf)
    if compat == "openmldb":
        given = {**OPENMLDB_SETTINGS, **given}
    unknown = next((key for key in (*ours, *given) if key not in (ANSI, ZONE, *_FUTURE)), None)
    if unknown is not None:
        known = ", ".join((ANSI, ZONE, *_FUTURE))
        raise typer.BadParameter(f"--conf {unknown}: a deployment depends on {known} only")
    config = Config.from_mapping(ours)
    ansi = given.get(ANSI, "true").lower()
    if ansi not in ("true", "false"):
        raise typer.BadParameter(f"--conf {ANSI}={given[ANSI]}: write true or false")
    zone = given.get(ZONE) or machine_zone(os.environ)
    zone_of(zone)
    return ServingSettings(ansi == "true", zone, config.stream_future, config.stream_future_bound)


def machine_zone(environment: Mapping[str, str], link: Path = Path("/etc/localtime")) -> str:
    """The region of this machine's clock, as Java and with it Spark takes it; UTC where nothing says one."""
    named = environment.get("TZ", "").lstrip(":") or str(link.resolve()).partition("zoneinfo/")[2]
    try:
        zone_of(named)
    except SqlExtError:
        return "UTC"
    return named
