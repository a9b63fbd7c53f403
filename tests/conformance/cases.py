"""OpenMLDB's cases as data: loading a case file and choosing from it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class TableData:
    """One input: `columns` pairs names with OpenMLDB types, `rows` hold JSON values (timestamps are ms since epoch).

    `indexes` are written ``name:key|key:ts``, the last part being absent where rows stand in no order of time.
    `database` is given where the case's tables lie in several.
    """

    name: str | None
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]
    indexes: tuple[str, ...] = ()
    database: str | None = None

    def in_index_order(self) -> TableData:
        """The table with its rows in the order of time of its first index; rows of one time, and all rows without
        an index, in the order of the file."""
        times = [parts[2] for parts in (index.split(":") for index in self.indexes) if len(parts) > 2]
        place = next((i for i, (name, _) in enumerate(self.columns) if name in times[:1]), None)
        if place is None:
            return self
        rows = sorted(self.rows, key=lambda row: (row[place] is not None, row[place] or 0))
        return replace(self, rows=tuple(rows))


@dataclass(frozen=True)
class ConformanceCase:
    """One statement, its inputs and what OpenMLDB answers.

    `columns` or `expected` None: anything goes, the statement must only run. `succeeds` False: it must be refused.
    `index_order`: a LAST JOIN without ORDER BY expects the newest row by the index of its table. `mode` has the
    modes of OpenMLDB in which the case does not run.
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
    index_order: bool = False
    mode: str = ""

    def statement(self, names: Collection[str]) -> str:
        """The SQL over tables called `names`, one for each input; database names before a table are dropped unless the
        inputs lie in several."""
        if self.has_databases:
            return self._filled(self.sql, names)
        text = re.sub(r"[`\w]+\.(?=\{\d+\})", "", self.sql)
        text = self._filled(text, names)
        if self.database is not None:
            for table in self.inputs:
                if table.name is not None:
                    text = re.sub(rf"\b{self.database}\.(?=`?{re.escape(table.name)}\b)", "", text)
        return text

    @property
    def has_databases(self) -> bool:
        """Whether the case says in which database each table lies."""
        return any(table.database for table in self.inputs)

    @staticmethod
    def _filled(text: str, names: Collection[str]) -> str:
        for number, name in enumerate(names):
            text = text.replace(f"{{{number}}}", name)
        return text


def load(path: Path) -> list[ConformanceCase]:
    """All cases of a file. Raises OSError or ValueError where it cannot be read."""
    return [_case(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def why_not_selected(case: ConformanceCase, functions: Collection[str]) -> str | None:
    """Why a case is no test of windows over `functions` (lower-case names); None if it is one."""
    if case.suspect is not None:
        return f"suspect: {case.suspect}"
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
        inputs=tuple(_table(table) for table in entry["inputs"]),
        columns=_columns(expect["columns"]) if expect["columns"] is not None else None,
        expected=_rows(expect["rows"]) if expect["rows"] is not None and not entry.get("smoke_only") else None,
        order=expect["order"],
        succeeds=expect["success"],
        message=expect.get("msg"),
        features=frozenset(entry["features"]),
        functions=frozenset(entry["functions"]),
        suspect=entry.get("suspect"),
        long_window=bool(entry.get("longWindow")),
        index_order=bool(entry.get("last_join_without_order")),
        mode=entry.get("mode") or "",
    )


def _table(entry: Mapping[str, Any]) -> TableData:
    return TableData(
        entry["name"],
        _columns(entry["columns"]),
        _rows(entry["rows"]),
        tuple(entry.get("indexs") or ()),
        entry.get("db"),
    )


def _columns(columns: list[dict[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((column["name"], column["type"]) for column in columns)


def _rows(rows: list[list[Any]] | None) -> tuple[tuple[Any, ...], ...]:
    return tuple(tuple(row) for row in rows or [])
