"""Operations over periods, and the same over the starts and ends of periods for DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

#: operation -> whether a stretch between two times belongs to the result, by the numbers of periods in it
STRETCHES = {
    "NORMALIZE": "_left > 0",
    "GAPS": "_left = 0",
    "CONCURRENT": "_left > 0",
    "EXCEPT": "_left > 0 AND _right = 0",
}


def periods_between(operation: str, keys: Sequence[str], left: str, right: str | None) -> str:
    """DuckDB's query for an operation: the keys, _s, _e, _n. The inputs are queries of the keys and the ends _s, _e.

    Time is cut where a period starts or ends, what is between is kept by its numbers of periods, and stretches that
    touch become one if nothing changes between them.
    """
    names = ", ".join(keys)
    changes = _changes(names, left, "{}, 0") + (
        "" if right is None else f" UNION ALL {_changes(names, right, '0, {}')}"
    )
    times = f"SELECT {names}, _t, sum(_l) AS _l, sum(_r) AS _r FROM ({changes}) GROUP BY ALL"
    by_time = f"(PARTITION BY {names} ORDER BY _t)"
    numbers = (
        f"SELECT {names}, _t AS _s, lead(_t) OVER {by_time} AS _e, sum(_l) OVER {by_time} AS _left, "
        f"sum(_r) OVER {by_time} AS _right FROM ({times})"
    )
    count = "CAST(_left AS BIGINT)" if operation == "CONCURRENT" else "0"
    kept = f"SELECT {names}, _s, _e, {count} AS _n FROM ({numbers}) WHERE _e IS NOT NULL AND {STRETCHES[operation]}"
    by_start = f"(PARTITION BY {names} ORDER BY _s)"
    same = f"lag(_e) OVER {by_start} = _s AND lag(_n) OVER {by_start} = _n"
    marked = f"SELECT *, CASE WHEN {same} THEN 0 ELSE 1 END AS _new FROM ({kept})"
    grouped = f"SELECT *, sum(_new) OVER {by_start} AS _run FROM ({marked})"
    return f"SELECT {names}, min(_s) AS _s, max(_e) AS _e, min(_n) AS _n FROM ({grouped}) GROUP BY {names}, _run"


def _changes(names: str, source: str, numbers: str) -> str:
    """By how much the numbers of periods of both inputs change at each end of one of them."""
    ends = (("_s", numbers.format(1)), ("_e", numbers.format(-1)))
    return " UNION ALL ".join(
        f"SELECT {names}, {time} AS _t, {change.split(', ')[0]} AS _l, {change.split(', ')[1]} AS _r "
        f"FROM ({source}) WHERE _s < _e"
        for time, change in ends
    )
