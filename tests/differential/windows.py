"""Windows over unions, and the same in plain SQL: every pair of a row and a candidate, numbered, then cut to the frame.

A reading of docs/windows.md that shares no code with the product, and only the bounds with the other reading.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.sql.oracle import Bound

from .calls import Call
from .texts import Col


@dataclass(frozen=True)
class Window:
    """A window specification; `order` None has no ORDER BY. `ticks` of the order column are one unit; `ties` are the
    further keys of ORDER BY, each with what stands behind it and where it puts NULLs."""

    keys: tuple[str, ...]
    order: Col | None
    rows: bool
    start: Bound
    end: Bound
    maxsize: int | None
    without_row: bool
    without_time: bool
    without_instances: bool
    ties: tuple[tuple[str, str, str], ...] = ()

    @property
    def ticks(self) -> int:
        return 1000 if not self.rows and self.order is not None and self.order.dtype == "timestamp" else 1

    @property
    def limits(self) -> tuple[float, float]:
        return self.start.distance(is_start=True, ticks=self.ticks), self.end.distance(is_start=False, ticks=self.ticks)

    @property
    def legal(self) -> bool:
        low, high = self.limits
        return low <= high and low != float("inf") and high != float("-inf")

    @property
    def reaches_later(self) -> bool:
        return self.end.following and self.end.amount != 0

    def ours(self, unions: list[str], alias: str) -> str:
        prefix = f"{alias}." if alias else ""
        words = [f"UNION {', '.join(unions)}"] if unions else []
        words += [f"PARTITION BY {', '.join(prefix + k for k in self.keys)}"] if self.keys else []
        if self.order is not None:
            ties = "".join(f", {prefix}{name}{written}" for name, written, _ in self.ties)
            words.append(f"ORDER BY {prefix}{self.order.name}{ties}")
        words.append(f"{'ROWS' if self.rows else 'ROWS_RANGE'} BETWEEN {self.start} AND {self.end}")
        words += [f"MAXSIZE {self.maxsize}"] if self.maxsize is not None else []
        words += ["EXCLUDE CURRENT_TIME"] if self.without_time else []
        words += ["EXCLUDE CURRENT_ROW"] if self.without_row else []
        words += ["INSTANCE_NOT_IN_WINDOW"] if self.without_instances else []
        return "(" + " ".join(words) + ")"


def _bound(rng: random.Random, rows: bool, order: Col | None, start: bool) -> Bound:
    kind = rng.random()
    if kind < 0.15:
        return Bound(None, following=not start)
    if kind < 0.4:
        return Bound(0)
    units = [""] if rows else ["", "", "ms"]
    if not rows and order is not None and order.dtype != "timestamp":
        units.append("s") if rng.random() < 0.1 else None
    return Bound(rng.randint(1, 7), rng.random() < 0.25, rng.random() < 0.25, rng.choice(units))


def _tie(rng: random.Random, col: Col) -> tuple[str, str, str]:
    direction, nulls = rng.choice(["", " ASC", " DESC"]), rng.choice(["", "", " NULLS FIRST", " NULLS LAST"])
    placed = nulls or (" NULLS LAST" if direction == " DESC" else " NULLS FIRST")
    return col.name, direction + nulls, f"{direction}{placed}"


def random_window(
    rng: random.Random, keys: tuple[str, ...], orders: list[Col], ties: list[Col], *, null_times: bool, unions: bool
) -> Window:
    """A legal sqlext window: plain Spark would read it differently. `ties` may be further keys of its order."""
    while True:
        rows = rng.random() < 0.4
        order = rng.choice(orders)
        window = Window(
            keys,
            order,
            rows,
            _bound(rng, rows, order, True),
            _bound(rng, rows, order, False),
            rng.randint(1, 6) if not rows and rng.random() < 0.35 else None,
            rng.random() < 0.2,
            rng.random() < 0.2,
            rng.random() < 0.2,
            tuple(_tie(rng, col) for col in rng.sample(ties, min(len(ties), rng.choice([0, 0, 0, 1, 2])))),
        )
        ours = unions or not rows or window.without_row or window.without_time or window.without_instances
        # what a frame that starts after a NULL time holds is for the documentation to say
        vague = null_times and window.start.following and not rows
        if window.legal and ours and not vague:
            return window


def duck_windows(
    source: str,
    source_place: str,
    unions: dict[int, list[tuple[str, str]]],
    windows: list[Window],
    calls: list[tuple[int, Call, str]],
    keep: list[str],
    ordered: bool,
) -> str:
    """DuckDB's SELECT of `keep` and one column a call (window's number, call, name) for each row of `source`.

    `source_place` orders the rows of FROM; `unions` holds per window the (query, place) of each source, whose columns
    are those of `source`.
    """
    parts = [f"f AS MATERIALIZED (SELECT *, row_number() OVER (ORDER BY {source_place}) AS _rid FROM {source})"]
    items, joins = [], []
    for number, window in enumerate(windows):
        mine = [(call, name) for place, call, name in calls if place == number]
        if not mine:
            continue
        parts += _window(number, window, unions.get(number, []), mine)
        joins.append(f"LEFT JOIN w{number} ON w{number}._c = f._rid LEFT JOIN h{number} ON h{number}._c = f._rid")
        for call, name in mine:
            table = "h" if call.history is not None else "w"
            value = f"{table}{number}.{name}"
            items.append(
                f"CASE WHEN {table}{number}._c IS NULL THEN {call.empty} ELSE {value} END AS {name}"
                if call.empty != "NULL"
                else f"{value} AS {name}"
            )
    columns = [f"f.{name}" for name in keep] + items + (["f._pos"] if ordered else [])
    return f"WITH {', '.join(parts)} SELECT {', '.join(columns)} FROM f {' '.join(joins)}"


def _window(number: int, window: Window, unions: list[tuple[str, str]], mine: list[tuple[Call, str]]) -> list[str]:
    order = window.order.name if window.order is not None else "0"
    rows = ["SELECT *, TRUE AS _from, 0 AS _src FROM f"]
    for place, (query, position) in enumerate(unions):
        # of equal times the first listed source is the newest
        numbered = f"SELECT *, row_number() OVER (ORDER BY {position}) AS _rid FROM {query}"
        rows.append(f"SELECT *, FALSE AS _from, {len(unions) - place} AS _src FROM ({numbered})")
    union = " UNION ALL BY NAME ".join(rows)
    keys = f"PARTITION BY {', '.join(window.keys)} " if window.keys else ""
    ties = "".join(f"{name}{placed}, " for name, _, placed in window.ties)
    sequence = (
        f"s{number} AS MATERIALIZED (SELECT *, row_number() OVER "
        f"({keys}ORDER BY {order} ASC NULLS FIRST, {ties}_from, _src, _rid) AS _i, "
        f"{order} AS _o FROM ({union}))"
    )
    meets = " AND ".join(f"e.{key} IS NOT DISTINCT FROM c.{key}" for key in window.keys) or "TRUE"
    candidate = ["e._i = c._i OR (TRUE"]
    candidate += ["AND NOT e._from"] if window.without_instances else []
    candidate += ["AND e._o IS DISTINCT FROM c._o"] if window.without_time else []
    numbered = "PARTITION BY c._rid, sign(e._i - c._i) ORDER BY abs(e._i - c._i)"
    pairs = (
        f"p{number} AS MATERIALIZED (SELECT c._rid AS _c, c._o AS _co, e.*, "
        f"sign(e._i - c._i) * row_number() OVER ({numbered}) AS _d "
        f"FROM s{number} c JOIN s{number} e ON {meets} AND ({' '.join(candidate)})) WHERE c._from)"
    )
    frame = _frame(window)
    if window.without_row:
        frame = f"({frame}) AND _d <> 0"
    inside = f"SELECT * FROM p{number} WHERE {frame}"
    if window.maxsize is not None:
        inside += f" QUALIFY row_number() OVER (PARTITION BY _c ORDER BY _i DESC) <= {window.maxsize}"
    framed = [f"{call.duck} AS {name}" for call, name in mine if call.history is None]
    walked = [f"{call.duck} AS {name}" for call, name in mine if call.history is not None]
    return [
        sequence,
        pairs,
        f"w{number} AS (SELECT {', '.join(['_c', *framed])} FROM ({inside}) e GROUP BY _c)",
        f"h{number} AS (SELECT {', '.join(['_c', *walked])} FROM p{number} e GROUP BY _c)",
    ]


def _frame(window: Window) -> str:
    """Which pairs are in the frame, from docs/windows.md."""
    low, high = window.limits
    if window.rows:
        terms = [] if low == float("-inf") else [f"_d >= {low:.0f}"]
        terms += [] if high == float("inf") else [f"_d <= {high:.0f}"]
        return " AND ".join(terms) or "TRUE"
    distance = (
        "date_diff('microsecond', _co, _o)"
        if window.order is not None and window.order.dtype == "timestamp"
        else "(CAST(_o AS BIGINT) - CAST(_co AS BIGINT))"
    )
    terms = [] if low == float("-inf") else [f"{distance} >= {low:.0f}"]
    terms += [] if high == float("inf") else [f"{distance} <= {high:.0f}"]
    both = " AND ".join(terms) or "TRUE"
    from_null = "TRUE" if low == float("-inf") else "_co IS NULL"
    to_null = "TRUE" if high == float("inf") else "FALSE"
    near = f"CASE WHEN _o IS NULL THEN {from_null} WHEN _co IS NULL THEN {to_null} ELSE {both} END"
    at_current = high == 0 and not window.reaches_later
    current = low <= 0 and (at_current or window.reaches_later)
    later = near if window.reaches_later else "FALSE"
    return f"CASE WHEN _d = 0 THEN {str(current).upper()} WHEN _d > 0 THEN {later} ELSE {near} END"
