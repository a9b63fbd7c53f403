"""The options of `sqlext tpch` and `sqlext tpcds`, whose code is in `tpc_commands.py`, imported when it runs; and
`sqlext bench` in a clone, where the suites stand in the folder `benchmarks`, which is not part of the wheel."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlext_planner.errors import ConfigurationError

import sqlext
from sqlext.cli.options import Output, TextOrJson

_Queries = Annotated[
    str | None, typer.Option(help="Numbers of the queries, as in 3,5 or 1-9; by default all of them.", metavar="3,5")
]
_Scale = Annotated[
    float | None,
    typer.Option(help="Scale factor: 1 is about 1 GB of text. By default 0.1.", metavar="F", show_default=False),
]
_Conf = Annotated[
    list[str] | None, typer.Option(metavar="K=V", help="A setting, `sqlext.*` or Spark's. Can be given several times.")
]


def tpc_app(name: str, title: str) -> typer.Typer:
    """The commands of one benchmark: generate, plan, run."""
    app = typer.Typer(
        name=name,
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode="rich",
        help=f"""{title}: generate its tables, plan and run its queries, and check the answers against plain Spark.

        [bold]Examples[/]

          sqlext {name} plan --queries 3,5

          sqlext {name} generate --scale 1 --data DIR

          sqlext {name} run --data DIR --check

        Tables without --data are kept in ~/.cache/sqlext/{name}-SCALE (in XDG_CACHE_HOME if that is set).
        """,
    )

    @app.command(
        help=f"""Make the tables of {title} as Parquet files, one for each table. Does nothing if they already exist.

        Needs the packages of the extra `tpc` (DuckDB and its generator); downloads nothing. Memory stays below 2 GB.

        [bold]Examples[/]

          sqlext {name} generate

          sqlext {name} generate --scale 1 --data DIR
        """
    )
    def generate(
        scale: _Scale = None,
        data: Annotated[
            Path | None, typer.Option(help="Folder for the tables; by default the one in the cache.", metavar="DIR")
        ] = None,
    ) -> None:
        from sqlext.cli.tpc_commands import run_generate

        run_generate(name, scale, data)

    @app.command(
        help=f"""Show how the queries of {title} are rewritten. Starts no Spark and needs no data.

        Prints the plan before and after the rules, and the physical plan. --format json prints
        {{"benchmark": "{name}", "queries": {{"2": PAGE, ...}}}}, keyed by query number; a PAGE is what
        `sqlext plan --format json` prints: sql, stages, umjoins, extensions.

        [bold]Examples[/]

          sqlext {name} plan --queries 3,5

          sqlext {name} plan --format json -o plans.json
        """
    )
    def plan(
        queries: _Queries = None,
        data: Annotated[
            Path | None,
            typer.Option(
                help="Folder of the tables, whose sizes then guide the choices; by default only the types are known.",
                metavar="DIR",
            ),
        ] = None,
        format: Annotated[TextOrJson, typer.Option(help="How to print it.")] = TextOrJson.text,
        output: Output = None,
        conf: _Conf = None,
    ) -> None:
        from sqlext.cli.tpc_commands import run_plan

        run_plan(name, queries, data, str(format), output, conf or [])

    @app.command(
        help=f"""Run the queries of {title} on a local Spark: a line for each, with its rows and seconds.

        --check also runs each with plain spark.sql on the same tables and compares the answers: names and types of the
        columns, the rows with all their duplicates, NULL as NULL, and the order that ORDER BY asks for. With LIMIT,
        only rows that may be left out may be missing. Floats may differ by 1e-9. Exits with 1 if any answer differs.

        [bold]Examples[/]

          sqlext {name} run --check

          sqlext {name} run --queries 3,5 --data DIR --check --json checked.json

          sqlext {name} run --check --conf sqlext.planner.alwaysLower=true
        """
    )
    def run(
        queries: _Queries = None,
        scale: _Scale = None,
        data: Annotated[
            Path | None,
            typer.Option(
                help="Folder of the tables; by default the one in the cache, filled at --scale if it is empty.",
                metavar="DIR",
            ),
        ] = None,
        check: Annotated[bool, typer.Option("--check", help="Compare every answer with plain Spark's.")] = False,
        conf: _Conf = None,
        json: Annotated[Path | None, typer.Option(help="Write the outcomes to this file.", metavar="OUT")] = None,
    ) -> int:
        from sqlext.cli.tpc_commands import run_queries

        return run_queries(name, queries, scale, data, check, conf or [], json)

    return app


_CLONE = Path(sqlext.__file__).resolve().parents[1]


def completed_suites(incomplete: str) -> list[tuple[str, str]]:
    """The names of suites that begin so, with what they measure; none without a clone."""
    suites: Mapping[str, tuple[Any, Any, tuple[str, ...]]] = _commands().SUITES if _in_clone() else {}
    return [(name, help[0]) for name, (_, _, help) in suites.items() if name.startswith(incomplete)]


def run_suites(words: Sequence[str]) -> None:
    """Run `python -m benchmarks` with these words. Raises ConfigurationError if sqlext does not run from a clone."""
    if not _in_clone():
        raise ConfigurationError(
            "the suites of `sqlext bench` are not part of the installed package",
            condition="benchmark",
            help="they are in the project's repository: in a clone, run `make bench` or `python -m benchmarks --help`",
        )
    _commands().app(args=list(words), prog_name="sqlext bench")


def _in_clone() -> bool:
    return (_CLONE / "benchmarks" / "harness" / "suite.py").is_file()


def _commands() -> Any:
    """The module `benchmarks.cli` of the clone, whatever else is called so on the path."""
    sys.path.insert(0, str(_CLONE))
    return importlib.import_module("benchmarks.cli")
