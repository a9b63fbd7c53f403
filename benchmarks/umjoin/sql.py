"""The statements of the suite `umjoin`: the same text for all contestants."""

from __future__ import annotations

from collections.abc import Mapping

#: The query of Hu and Qiu 2024 (section 4.1) with its select list left open.
SEED_JOIN = """SELECT {items}
FROM store_returns sr, customer cu, web_returns wr, catalog_returns cr
WHERE cu.c_current_addr_sk = cr.cr_refunded_addr_sk
  AND cu.c_current_addr_sk = sr.sr_addr_sk
  AND cu.c_current_addr_sk = wr.wr_refunded_addr_sk"""
SEED_TABLES = ("store_returns", "customer", "web_returns", "catalog_returns")

#: Both shapes over the tables of data.FanOutTables.
FAN_OUT = {
    "star": "SELECT {items} FROM a JOIN b ON a.x = b.x JOIN c ON a.x = c.y JOIN d ON a.x = d.z",
    "chain": "SELECT {items} FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y JOIN d ON c.z = d.z",
}

#: Select lists. A column `n` is the number of rows that the join has.
COUNT = "COUNT(*) AS n"
SEED_SUM = "SUM(sr.sr_return_quantity) AS s"
FAN_OUT_SUM = "SUM(c.v) AS s"


def cycle(length: int, items: str) -> str:
    """The directed cycles of a graph: edges e1, e2, ..., each starting where the last one ends, and closing at e1."""
    joins = [f"JOIN edges e{place} ON e{place - 1}.dst = e{place}.src" for place in range(2, length + 1)]
    return f"SELECT {items} FROM edges e1 {' '.join(joins)} AND e{length}.dst = e1.src"


def vertices(length: int) -> str:
    """The select list with the vertices of a cycle, as columns a, b, c, ..."""
    return ", ".join(f"e{place}.src AS {name}" for place, name in enumerate("abcdefgh"[:length], 1))


def vertex_checks(length: int) -> dict[str, str]:
    """Aggregates over those columns: each vertex with the next one, so that wrongly combined cycles are detected."""
    names = "abcdefgh"[:length]
    pairs = zip(names, names[1:] + names[0], strict=True)
    return {"n": "COUNT(*)", **{one + other: f"SUM({one} * ({other} % 1009))" for one, other in pairs}}


def table_checks(tables: Mapping[str, Mapping[str, str]], key: str) -> dict[str, str]:
    """Aggregates over all columns of a join of tables, given by their types: one sum for each table.

    Each column is weighted by its position, so that swapped columns are detected, and each row by its integer column
    `key`, so that wrongly combined rows are detected. Strings count by their length.
    """
    sums = {"n": "COUNT(*)"}
    for table, columns in tables.items():
        values = (f"{place} * {_whole(name, kind)}" for place, (name, kind) in enumerate(columns.items(), 1))
        sums[table] = f"SUM(({' + '.join(values)}) * (1 + COALESCE({key}, 0) % 97))"
    return sums


def _whole(name: str, kind: str) -> str:
    """A column as a whole number: NULL is -1, a decimal is counted in its last digits."""
    lowered = kind.lower()
    if lowered == "string":
        value = f"LENGTH({name})"
    elif lowered.startswith("decimal"):
        value = f"{name} * 1{'0' * int(lowered.rstrip(')').rpartition(',')[2])}"
    elif lowered == "date":
        value = f"YEAR({name}) * 10000 + MONTH({name}) * 100 + DAY({name})"
    else:
        value = name
    return f"COALESCE(CAST({value} AS BIGINT), -1)"
