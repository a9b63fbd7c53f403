"""What a failed command prints, and its exit code. Mistakes that Spark finds in a statement are errors of ours: one
paragraph, with the place in the user's text."""

from __future__ import annotations

import re
import sys
import traceback
from typing import TYPE_CHECKING, Any

import typer
from sqlext_planner.conditions import Condition, condition_of, look_up
from sqlext_planner.errors import (
    WIDTH,
    AnalysisError,
    ConfigurationError,
    DataError,
    ParseError,
    Span,
    SqlExtError,
    masked,
)
from sqlext_planner.spark.connectors import jars_error
from sqlext_planner.spark.versions import as_sparks, condition_name, message_of, text_places

from sqlext.cli.signals import stopped_by
from sqlext.cli.terminal import visible, width_of

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

_CONDITION = re.compile(r"^\s*\[([A-Z0-9_.]+)\]\s*")
_STATE = re.compile(r"\s*SQLSTATE: \w+\s*$")
_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")


def kind_of(error: BaseException) -> type[SqlExtError] | None:
    """The class of our error for an exception that Spark raises for a user's mistake; None for any other exception."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import errors

    kinds: tuple[tuple[type[BaseException], type[SqlExtError]], ...] = (
        (errors.ParseException, ParseError),
        (errors.AnalysisException, AnalysisError),
        (errors.NumberFormatException, DataError),
        (errors.IllegalArgumentException, AnalysisError),
        (errors.ArithmeticException, DataError),
        (errors.ArrayIndexOutOfBoundsException, DataError),
        (errors.DateTimeException, DataError),
    )
    return next((ours for theirs, ours in kinds if isinstance(error, theirs)), None)


def condition_of_spark(error: PySparkException) -> Condition | None:
    """The condition of an error that Spark raises: of a mistake by Spark's name for it, of a failed job by what its
    text says of the machine; None if neither tells."""
    if kind_of(error) is not None:
        return condition_of(_name(error))
    return failure_condition(str(error))


def failure_condition(text: str) -> Condition | None:
    """What the text of a failure says of the machine."""
    return next((condition for words, condition in _FAILURES if words in text), None)


#: Words in the texts of failed jobs that are about the machine.
_FAILURES: tuple[tuple[str, Condition], ...] = (
    ("OutOfMemoryError", "out-of-memory"),
    ("MemoryError", "out-of-memory"),
    ("Python worker exited unexpectedly", "out-of-memory"),
    ("No space left on device", "disk-full"),
    ("Too many open files", "too-many-open-files"),
)


def placed(error: BaseException, statement: str) -> SqlExtError | None:
    """The error with its place in `statement`; None if it is no mistake that Spark has found, or has no place."""
    from pyspark.errors import PySparkException

    error = as_sparks(error)
    kind = kind_of(error)
    if kind is None or not isinstance(error, PySparkException):
        return None
    span = _place(error, statement)
    if span is None:
        return None
    if kind is ParseError:
        from sqlext.syntax.typos import misspelt

        typo = misspelt(statement)
        if typo is not None:
            return typo
    message, notes = _message(error)
    return kind(message, condition=condition_of(_name(error)), span=span, notes=notes)


def _name(error: PySparkException) -> str | None:
    """Spark's name of the error. PySpark does not know it of every exception, but its text begins with it."""
    found = _CONDITION.match(str(error))
    return found[1] if found is not None else condition_name(error)


def _message(error: PySparkException) -> tuple[str, tuple[str, ...]]:
    """Spark's words, and a note with the name under which its documentation has the error."""
    text = message_of(error).strip()
    found = _CONDITION.match(text)
    words = " ".join(_STATE.sub("", _CONDITION.sub("", text)).split())
    return words, (f"Spark calls this error {found[1]}",) if found else ()


def _place(error: PySparkException, statement: str) -> Span | None:
    """The characters of the statement that the error is about."""
    for place in text_places(error):
        # Of a view's text, or of a text that we have made, it says nothing about the user's.
        if statement[place.start : place.end] == place.text:
            return Span(place.start, place.end)
    found = _POSITION.search(str(error))
    if found is None:
        return None
    lines = statement.split("\n")
    line, column = int(found[1]), int(found[2])
    if line > len(lines):
        return None
    start = sum(len(one) + 1 for one in lines[: line - 1]) + column
    word = re.compile(r"\w+|.", re.DOTALL).match(statement, start)
    return Span(start, word.end() if word else start + 1)


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

    error = as_sparks(error)
    text = str(error)
    jars = jars_error(text) if isinstance(error, (PySparkException, Py4JError)) else None
    if jars is not None:
        return jars.text(width_of(sys.stderr, WIDTH)), USER_ERROR
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
    lines: list[str] = []
    for line in text.splitlines():
        if re.match(r"\s*(JVM stacktrace|Driver stacktrace|at [\w.$]+\()", line):
            break
        if re.match(r"\s*[+:]- ", line):
            lines = lines[:-1]
            break
        if re.match(r"'\w+ \[", line):  # an unresolved plan of a single node
            break
        lines.append(line)
    return "\n".join(lines).strip() or text.strip().splitlines()[0]
