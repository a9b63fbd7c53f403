"""What a failed command prints, and its exit code."""

from __future__ import annotations

import re
import sys
import traceback
from typing import Any

import typer
from sqlext_planner.conditions import look_up
from sqlext_planner.errors import WIDTH, ConfigurationError, SqlExtError, masked

from sqlext.cli.signals import stopped_by
from sqlext.cli.spark_mistakes import condition_of_spark, failure_condition, kind_of
from sqlext.cli.terminal import visible, width_of

#: What stands above all that typer says of a wrong command line: its own TyperException, or click's ClickException.
_WrongWords: Any = typer.BadParameter.__mro__[2]

USER_ERROR = 2
FAILURE = 1

_MISSING_PACKAGE = re.compile(r"No module named '(sqlext_\w+|numba|pyarrow|numpy)'")


def report(error: BaseException) -> int:
    """Print what went wrong on stderr; returns the exit code."""
    message, code = explained(error)
    print(visible(message), file=sys.stderr)
    return code


def explained(error: BaseException) -> tuple[str, int]:
    """What went wrong, for the user, and the exit code of a command that it ends. Credentials in URIs are not shown."""
    message, code = _explained(error)
    return masked(message), code


def _explained(error: BaseException) -> tuple[str, int]:
    signal = stopped_by()
    if signal is not None or isinstance(error, KeyboardInterrupt):
        return "stopped", 128 + (signal or 2)
    match error:
        case SqlExtError():
            return error.text(width_of(sys.stderr, WIDTH)), USER_ERROR
        case _WrongWords():
            help = "help: see `sqlext --help` and `sqlext COMMAND --help`"
            return f"{error.format_message()}\n{help}\n{look_up('command-line')}", USER_ERROR
        case typer.Abort():
            return "stopped", FAILURE
        case OSError() if error.filename is not None:
            return f"{error.filename}: {error.strerror}\n{look_up('file-access')}", USER_ERROR
        case OSError():
            return str(error), FAILURE
    spark = _spark_failure(error)
    if spark is not None:
        return spark
    trace = "".join(traceback.format_exception(error))
    return f"{trace}this is a bug in sqlext; please report it with the lines above", FAILURE


def _spark_failure(error: BaseException) -> tuple[str, int] | None:
    """Message and exit code of an error that Spark raised, None for any other."""
    if "pyspark" not in sys.modules:
        return None
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    text = str(error)
    condition = failure_condition(text)
    if isinstance(error, Py4JError) and condition is not None:
        return f"{type(error).__name__}: {_without_java(text)}\n{look_up(condition)}", FAILURE
    if not isinstance(error, PySparkException):
        return None
    missing = _MISSING_PACKAGE.search(text)
    if missing is not None:
        return missing_package(missing.group(1)).text(), USER_ERROR
    condition = condition_of_spark(error)
    lines = [f"{type(error).__name__}: {_without_java(text)}", *([] if condition is None else [look_up(condition)])]
    return "\n".join(lines), USER_ERROR if kind_of(error) is not None else FAILURE


def missing_package(name: str) -> ConfigurationError:
    """The error if a Python worker of Spark lacks a package."""
    return ConfigurationError(
        f"Spark's Python workers cannot import '{name}'",
        condition="worker-packages",
        help="install this package on every executor, and point PYSPARK_PYTHON to that Python",
    )


def _without_java(text: str) -> str:
    """The message up to the Java stack or Spark's dump of the logical plan (a line, then `+- ` or `:- ` lines)."""
    kept: list[str] = []
    for line in text.splitlines():
        if re.match(r"\s*(JVM stacktrace|Driver stacktrace|at [\w.$]+\()", line):
            break
        if re.match(r"\s*[+:]- ", line):
            kept = kept[:-1]
            break
        if re.match(r"'\w+ \[", line):  # an unresolved plan of a single node
            break
        kept.append(line)
    return "\n".join(kept).strip() or text.strip().splitlines()[0]
