"""The oracle itself, against window queries in DuckDB where both can say the same thing."""

from __future__ import annotations

import random

import duckdb
import pytest

from .data import random_rows, to_arrow
from .functions import over_frame, total
from .oracle import Bound, WindowDef, evaluate

#: ROWS frames over (ts, union before FROM, input order) are ordinary SQL; so are ROWS_RANGE frames with a self join.
ROWS_SQL = """
SELECT sum(v) OVER (PARTITION BY k ORDER BY ts, side, place ROWS BETWEEN {start} AND {end}) AS s, place, side
FROM (SELECT *, 1 AS side, row_number() OVER () AS place FROM base
      UNION ALL SELECT *, 0, row_number() OVER () FROM u)
QUALIFY side = 1 ORDER BY place
"""
RANGE_SQL = """
WITH r AS (SELECT *, 1 AS side, row_number() OVER () AS place FROM base
           UNION ALL SELECT *, 0, row_number() OVER () FROM u)
SELECT sum(b.v) AS s, a.place
FROM r a LEFT JOIN r b ON a.k IS NOT DISTINCT FROM b.k AND b.ts BETWEEN a.ts - {back} AND a.ts
     AND (b.side = 0 OR b.ts < a.ts OR b.place <= a.place)
WHERE a.side = 1 GROUP BY a.place ORDER BY a.place
"""


def tables(seed: int) -> tuple[duckdb.DuckDBPyConnection, list[dict[str, object]], list[dict[str, object]]]:
    rng = random.Random(seed)
    base, union = random_rows(rng, 60), random_rows(rng, 40)
    duck = duckdb.connect(config={"threads": 1})
    duck.register("base", to_arrow(base).select(["k", "ts", "v"]))
    duck.register("u", to_arrow(union).select(["k", "ts", "v"]))
    return duck, base, union


SUM = over_frame("sum(v)", total, lambda row: row["v"]).value


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("start", "end"),
    [
        (Bound(2), Bound(0)),
        (Bound(5), Bound(2)),
        (Bound(None), Bound(0)),
        (Bound(1), Bound(2, following=True)),
        (Bound(1, following=True), Bound(None, following=True)),
    ],
)
def test_rows_frames(seed: int, start: Bound, end: Bound) -> None:
    duck, base, union = tables(seed)
    expected = [row[0] for row in duck.execute(ROWS_SQL.format(start=start, end=end)).fetchall()]
    assert evaluate(base, [union], WindowDef("ROWS", start, end), SUM) == expected


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("back", [0, 1, 4])
def test_range_frames(seed: int, back: int) -> None:
    duck, base, union = tables(seed)
    expected = [row[0] for row in duck.execute(RANGE_SQL.format(back=back)).fetchall()]
    assert evaluate(base, [union], WindowDef("ROWS_RANGE", Bound(back), Bound(0)), SUM) == expected
