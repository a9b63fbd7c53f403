"""Generated tables with the schemas of FEBench's Q3: requests for a product and six tables of a shop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlext_operators.arrays import Float64s, Int64s

from benchmarks.features_values import DAY, by_time, category, numbered, spread_times, timestamps

#: String columns of order_sales and the number of values that each has.
SALES_CATEGORIES = {
    "Q3_Col35": 40, "Q3_Col36": 300, "Q3_Col37": 12, "Q3_Col38": 8, "Q3_Col39": 25, "Q3_Col40": 60,
    "Q3_Col41": 15, "Q3_Col42": 5, "Q3_Col2": 100_000, "Q3_Col43": 30, "Q3_Col44": 6, "Q3_Col45": 20,
    "Q3_Col49": 10, "Q3_Col50": 4, "Q3_Col6": 3, "Q3_Col51": 10, "Q3_Col52": 50, "Q3_Col57": 7,
}  # fmt: skip
ITEM_CATEGORIES = {f"Q3_Col{number}": 5 + 7 * (number % 6) for number in range(7, 28)}
SKU_CATEGORIES = {f"Q3_Col{number}": 4 + 9 * (number % 5) for number in range(59, 66)}


@dataclass(frozen=True)
class ShopTables:
    """Q3's seven tables for `rows` requests over 180 days.

    A product (Q3_Col3) has 93 requests and 140 sales on average, between a quarter and 1.6 times that; sales of 64 days
    stay below MAXSIZE 100 (50 on average; 5 days hold 4, ten hours 0.3). Times are whole seconds, and unique for
    a product or item in each table except sales. Feedback and product_sku have one row for a key, and the time of an
    item or of a shipment is unique for its key, so that every LAST JOIN has one answer. A fiftieth of the strings and
    numbers of sales are NULL.
    """

    rows: int
    seed: int = 1

    DAYS = 180
    REQUESTS = 93
    SALES = 140
    RETURNS = 14
    SHIPMENTS = 60
    ITEM_CHANGES = 120
    SKUS_OF_AN_ITEM = 5
    #: 2019-01-01
    START = 1_546_300_800_000

    NAMES = ("train", "feedback", "order_cancel_return", "order_sales", "product_item", "product_sku", "shipping_sku")

    def tables(self) -> dict[str, pa.Table]:
        """The tables by their names in the script."""
        random = np.random.default_rng([self.seed, 3])
        skus = max(2, self.rows // self.REQUESTS)
        popularity = random.uniform(0.25, 1.6, skus)
        popularity /= popularity.mean()
        train = self._train(random, popularity)
        items = skus // self.SKUS_OF_AN_ITEM + 1
        return {
            "train": train,
            "feedback": self._feedback(random, train["Q3_Col31"]),
            "order_cancel_return": self._returns(random, popularity),
            "order_sales": self._sales(random, popularity),
            "product_item": self._items(random, items),
            "product_sku": self._skus(random, skus),
            "shipping_sku": self._shipments(random, skus),
        }

    def _train(self, random: np.random.Generator, popularity: Float64s) -> pa.Table:
        share = popularity / popularity.sum()
        sku = np.sort(random.choice(len(popularity), self.rows, p=share))
        sku, time = self._times(random, np.bincount(sku, minlength=len(popularity)))
        order = np.lexsort((sku, time))
        sku, time = sku[order], time[order]
        columns = {
            "Q3_Col31": numbered("request-", np.arange(self.rows)),
            "Q3_Col3": numbered("sku-", sku),
            "Q3_Col32": timestamps(time),
            "Q3_Col33": timestamps(time + random.integers(1, 30, self.rows) * DAY),
            "Q3_Col6": numbered("item-", sku // self.SKUS_OF_AN_ITEM),
            "Q3_Col34": category(random, 6, self.rows),
        }
        return pa.table(columns)

    def _feedback(self, random: np.random.Generator, requests: pa.ChunkedArray) -> pa.Table:
        answered = np.flatnonzero(random.random(self.rows) < 0.95)
        random.shuffle(answered)
        time = timestamps(self.START + random.integers(0, self.DAYS * 86_400, len(answered)) * 1_000)
        label = pa.array(random.integers(0, 50, len(answered)) / 2)
        taken = requests.take(pa.array(answered))
        return pa.table({"Q3_Col31": taken, "Q3_Col32": time, "Q3_Col0": time, "Q3_Col58": label})

    def _returns(self, random: np.random.Generator, popularity: Float64s) -> pa.Table:
        sku, time = self._times(random, np.rint(popularity * self.RETURNS).astype(np.int64))
        count = len(sku)
        columns = {
            "Q3_Col0": timestamps(time),
            "Q3_Col1": timestamps(time - DAY),
            "Q3_Col2": category(random, 100_000, count),
            "Q3_Col3": numbered("sku-", sku),
            "Q3_Col4": pa.array(random.integers(1, 5, count).astype(np.int32), mask=random.random(count) < 0.02),
            "Q3_Col5": category(random, 9, count),
        }
        return by_time(pa.table(columns), time)

    def _sales(self, random: np.random.Generator, popularity: Float64s) -> pa.Table:
        # The most popular product sells 1.6 / 0.925 times the mean: 64 days of it are 87 rows.
        sku, time = self._times(random, np.rint(popularity * self.SALES).astype(np.int64))
        count = len(sku)
        columns = {name: category(random, size, count, 0.02) for name, size in SALES_CATEGORIES.items()}
        columns |= {
            "Q3_Col0": timestamps(time),
            "Q3_Col46": timestamps(time + DAY),
            "Q3_Col3": numbered("sku-", sku),
            "Q3_Col4": pa.array(random.integers(1, 10, count), mask=random.random(count) < 0.02),
        }
        for name in ("Q3_Col47", "Q3_Col48", "Q3_Col53", "Q3_Col54", "Q3_Col55", "Q3_Col56"):
            columns[name] = pa.array(np.round(random.gamma(2, 20, count), 2), mask=random.random(count) < 0.02)
        middle = [f"Q3_Col{number}" for number in (35, 36, 37, 38, 39, 40, 41, 42, 2, 43, 44, 45, 46, 4, 47, 48, 3)]
        rest = [f"Q3_Col{number}" for number in (49, 50, 6, 51, 52, 53, 54, 55, 56, 57)]
        return by_time(pa.table(columns).select(["Q3_Col0", *middle, *rest]), time)

    def _items(self, random: np.random.Generator, items: int) -> pa.Table:
        item, time = self._times(random, np.full(items, self.ITEM_CHANGES))
        count = len(item)
        columns = {"Q3_Col0": timestamps(time), "Q3_Col6": numbered("item-", item)}
        columns |= {name: category(random, size, count, 0.02) for name, size in ITEM_CATEGORIES.items()}
        columns |= {f"Q3_Col{number}": timestamps(time - number * DAY) for number in (28, 29, 30)}
        return by_time(pa.table(columns), time)

    def _skus(self, random: np.random.Generator, skus: int) -> pa.Table:
        time = timestamps(self.START - random.integers(0, 86_400, skus) * 1_000)
        columns = {"Q3_Col0": time, "Q3_Col3": numbered("sku-", random.permutation(skus))}
        return pa.table(columns | {name: category(random, size, skus) for name, size in SKU_CATEGORIES.items()})

    def _shipments(self, random: np.random.Generator, skus: int) -> pa.Table:
        sku, time = self._times(random, np.full(skus, self.SHIPMENTS))
        columns = {
            "Q3_Col0": timestamps(time),
            "Q3_Col3": numbered("sku-", sku),
            "Q3_Col54": pa.array(np.round(random.gamma(2, 3, len(sku)), 2), mask=random.random(len(sku)) < 0.02),
        }
        columns |= {f"Q3_Col{66 + number}": timestamps(time + number * DAY) for number in range(3)}
        return by_time(pa.table(columns), time)

    def _times(self, random: np.random.Generator, counts: Int64s) -> tuple[Int64s, Int64s]:
        key, elapsed = spread_times(random, counts, self.DAYS)
        return key, elapsed + self.START
