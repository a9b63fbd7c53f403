"""A newer DuckDB than the one in the project's environment.

`run` and `check` of the request are its SQL, over left_rows and right_rows if the tables are in memory.
"""

from __future__ import annotations

import time
from typing import Any

import duckdb

_state: dict[str, Any] = {}


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """`run` is timed; `check` returns rows and checksums (if it is missing, `run` does)."""
    if "connection" not in _state:
        _state["connection"] = duckdb.connect(config={"threads": request["threads"]})
    connection = _state["connection"]
    if request["memory"]:
        for side in ("left", "right"):
            table = f"CREATE OR REPLACE TEMP TABLE {side}_rows AS FROM read_parquet('{request[side]}')"
            connection.execute(table)
    start = time.perf_counter()
    found = connection.execute(request["run"]).fetchall()
    seconds = time.perf_counter() - start
    if request.get("check"):
        found = connection.execute(request["check"]).fetchall()
    names = [column[0] for column in connection.description]
    row = {name: int(value or 0) for name, value in zip(names, found[0], strict=True)}
    return {"seconds": seconds, "rows": row.pop("n"), "checksums": row}
