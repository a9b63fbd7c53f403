"""OpenMLDB's cases as data: loading a case file and choosing from it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class TableData:
    """One input: `columns` pairs names with OpenMLDB types, `rows` hold JSON values (timestamps are ms since epoch)."""

    name: str | None
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class ConformanceCase:
    """One statement, its inputs and what OpenMLDB answers.

    `columns` or `expected` None: anything goes, the statement must only run. `succeeds` False: it must be refused.
    """

    key: str
    description: str
    sql: str
    database: str | None
    inputs: tuple[TableData, ...]
    columns: tuple[tuple[str, str], ...] | None
    expected: tuple[tuple[Any, ...], ...] | None
    order: str | None
    succeeds: bool
    message: str | None
    features: frozenset[str]
    functions: frozenset[str]
    suspect: str | None
    long_window: bool

    def statement(self, names: Collection[str]) -> str:
        """The SQL over views called `names`, one for each input; database names before a table are dropped."""
        text = re.sub(r"[`\w]+\.(?=\{\d+\})", "", self.sql)
        for number, name in enumerate(names):
            text = text.replace(f"{{{number}}}", name)
        if self.database is not None:
            for table in self.inputs:
                if table.name is not None:
                    text = re.sub(rf"\b{self.database}\.(?=`?{re.escape(table.name)}\b)", "", text)
        return text


def load(path: Path) -> list[ConformanceCase]:
    """All cases of a file. Raises OSError or ValueError where it cannot be read."""
    return [_case(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def why_not_selected(case: ConformanceCase, functions: Collection[str]) -> str | None:
    """Why a case is no test of windows over `functions` (lower-case names); None if it is one."""
    if case.suspect is not None:
        return f"suspect: {case.suspect}"
    if re.search(r"\blast\s+join\b", case.sql, re.IGNORECASE):
        return "uses LAST JOIN"
    unknown = sorted(name for name in case.functions if name.lower() not in functions)
    if unknown:
        return "uses the functions " + ", ".join(unknown)
    if case.long_window and not case.succeeds and case.message is not None:
        return "the refusal belongs to the deployment option long_window, not to the SQL"
    return None


def _case(entry: Mapping[str, Any]) -> ConformanceCase:
    expect = entry["expect"]
    return ConformanceCase(
        key=entry["key"],
        description=entry["desc"] or "",
        sql=entry["sql"],
        database=entry.get("db"),
        inputs=tuple(
            TableData(table["name"], _columns(table["columns"]), _rows(table["rows"])) for table in entry["inputs"]
        ),
        columns=_columns(expect["columns"]) if expect["columns"] is not None else None,
        expected=_rows(expect["rows"]) if expect["rows"] is not None and not entry.get("smoke_only") else None,
        order=expect["order"],
        succeeds=expect["success"],
        message=expect.get("msg"),
        features=frozenset(entry["features"]),
        functions=frozenset(entry["functions"]),
        suspect=entry.get("suspect"),
        long_window=bool(entry.get("longWindow")),
    )


def _columns(columns: list[dict[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((column["name"], column["type"]) for column in columns)


def _rows(rows: list[list[Any]] | None) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(row) for row in rows or [])
