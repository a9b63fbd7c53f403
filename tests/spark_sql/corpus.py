"""Statements of ordinary Spark SQL by area, and what Spark and the lowered plans make of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from sqlext.run.spark_analysis import nullable

QUERIES = Path(__file__).parent / "queries"

#: Every so many statements of an area are run by `make test`; all of them by `make test-all`.
STEP = 4


@dataclass(frozen=True)
class Outcome:
    """What a statement gives: names, types and rows, or the condition of its error."""

    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    error: str | None = None
    message: str = ""


def statements(path: Path) -> list[str]:
    """The statements of a file: each ends with a semicolon at the end of a line; lines that begin with -- are notes."""
    lines = (line for line in path.read_text().splitlines() if not line.lstrip().startswith("--"))
    parts = ("\n".join(lines) + "\n").split(";\n")
    return [part.strip() for part in parts if part.strip()]


def outcome(run: Callable[[str], DataFrame], sql: str) -> Outcome:
    """Run a query to its end."""
    try:
        frame = run(sql)
        schema = frame.schema
        rows = tuple(str(tuple(map(_shown, row))) for row in frame.collect())
    except PySparkException as error:
        return Outcome(error=str(error.getCondition() or type(error).__name__), message=str(error))
    except Py4JJavaError as error:  # what PySpark does not translate
        condition = re.search(r"\[([A-Z_.]+)\]", str(error))
        return Outcome(error=condition[1] if condition else type(error).__name__, message=str(error))
    types = tuple(nullable(field.dataType).simpleString() for field in schema.fields)
    return Outcome(tuple(schema.names), types, rows)


def difference(native: Outcome, lowered: Outcome, *, ordered: bool) -> str | None:
    """What kind of difference there is; None for none."""
    if native.error is not None or lowered.error is not None:
        if lowered.error is None:
            return "accepted"
        if native.error is None:
            return "refused"
        return None if native.error == lowered.error else "other error"
    if native.names != lowered.names:
        return "names"
    if native.types != lowered.types:
        return "types"
    if sorted(native.rows) != sorted(lowered.rows):
        return "rows"
    return "order" if ordered and native.rows != lowered.rows else None


def _shown(value: Any) -> str:
    """A value so that equal ones look alike: the entries of a map have no order."""
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{_shown(key)}: {_shown(item)}" for key, item in value.items())) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return repr(value)
