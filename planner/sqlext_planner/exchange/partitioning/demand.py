"""What a query allows a partitioner to do with the rows of a key, and what its work is."""

from __future__ import annotations

from dataclasses import dataclass

#: What a joined row costs that is handed to Spark, relative to a row that the exchange moves and codes
#: (umjoin/choose/costs.py).
PAIR_COST = 0.1


@dataclass(frozen=True)
class Demand:
    """What owned rows (those of input 0: FROM of a window, left side of a join) need, and what they cost.

    `reach` is (back, ahead): an owned row of time o can need another input's rows of times in [o - back, o + ahead],
    both ends closed; one of the two may be negative. None: rows of any time, and `unbounded` says why.
    `owned_copies`: owned rows are needed by others of their key too, as candidates that are not output.
    The work of a partition is `row_cost` times the rows that it gets, copies too, plus `pair_cost` times its pairs: the
    combinations of an owned row with one row of each other input in its reach. The default counts rows.
    `whole` says why the rows of a key must stay together, if they must.

    Raises ValueError for a reach that holds nothing or is not int64, and for negative costs.
    """

    reach: tuple[int, int] | None = None
    owned_copies: bool = False
    row_cost: float = 1.0
    pair_cost: float = 0.0
    unbounded: str = "a row can need rows of any time"
    whole: str | None = None

    def __post_init__(self) -> None:
        if self.reach is not None and not -(1 << 63) < min(self.reach) <= max(self.reach) < 1 << 63:
            raise ValueError("the ends of a reach are int64")
        if self.reach is not None and sum(self.reach) < 0:
            raise ValueError(f"a reach of {self.reach[0]} back and {self.reach[1]} ahead holds nothing")
        if min(self.row_cost, self.pair_cost) < 0:
            raise ValueError("costs are not negative")
