"""Generated tables with the schemas of FEBench's Q5: offers of a bank's products, and what it knows of customers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from sqlext_operators.arrays import Int64s

from benchmarks.features_values import by_time, filled, numbered, random_times, schemas, timestamps

#: Tables with several versions of a customer.
VERSIONED = ("LINK2_f6", "LINK1_f5", "AUM_f4", "debit3_f3", "debit2_f2", "debit1_f1")
PRODUCTS = "sag_efs_tbproduct_F_b"


@dataclass(frozen=True)
class BankTables:
    """Q5's ten tables for `rows` offers over 180 days.

    A customer has ten offers on average, a product 500. An offer's id is there once, and so is a customer in CUST_f7.
    Of a customer each of six wide tables has up to four versions, of a product there are eight, within 200 days and at
    distinct times, so that every LAST JOIN has one answer.
    """

    rows: int
    seed: int = 1
    columns: dict[str, dict[str, str]] = field(default_factory=lambda: schemas("Q5"), repr=False)

    DAYS = 180
    VERSION_DAYS = 200
    OFFERS_OF_A_CUSTOMER = 10
    OFFERS_OF_A_PRODUCT = 500
    VERSIONS_OF_A_PRODUCT = 8
    #: 2019-01-01
    START = 1_546_300_800_000

    NAMES = ("train", "feedback", "CUST_f7", PRODUCTS, *VERSIONED)

    def tables(self) -> dict[str, pa.Table]:
        """The tables by their names in the script."""
        random = np.random.default_rng([self.seed, 5])
        customers = self.rows // self.OFFERS_OF_A_CUSTOMER + 2
        products = self.rows // self.OFFERS_OF_A_PRODUCT + 2
        tables = {
            "train": self._train(random, customers, products),
            "feedback": self._feedback(random),
            "CUST_f7": self._customers(random, customers),
            PRODUCTS: self._versions(
                random, PRODUCTS, "Q5_Col102", "product-", np.full(products, self.VERSIONS_OF_A_PRODUCT)
            ),
        }
        for name in VERSIONED:
            tables[name] = self._versions(random, name, "Q5_Col0", "customer-", random.integers(0, 5, customers))
        return tables

    def _train(self, random: np.random.Generator, customers: int, products: int) -> pa.Table:
        columns = {
            "Q5_Col100": numbered("offer-", np.arange(self.rows)),
            "Q5_Col101": timestamps(np.sort(self._days(random, self.rows))),
            "Q5_Col0": numbered("customer-", random.integers(0, customers, self.rows)),
            "Q5_Col102": numbered("product-", random.integers(0, products, self.rows)),
        }
        return pa.table(columns)

    def _feedback(self, random: np.random.Generator) -> pa.Table:
        answered = np.flatnonzero(random.random(self.rows) < 0.95)
        random.shuffle(answered)
        known = {"Q5_Col100": numbered("offer-", answered)}
        return filled(random, self.columns["feedback"], len(answered), known)

    def _customers(self, random: np.random.Generator, customers: int) -> pa.Table:
        known = {"Q5_Col0": numbered("customer-", random.permutation(customers)[: -(-customers * 29 // 30)])}
        return filled(random, self.columns["CUST_f7"], len(known["Q5_Col0"]), known)

    def _versions(self, random: np.random.Generator, name: str, key: str, prefix: str, counts: Int64s) -> pa.Table:
        owner, elapsed = random_times(random, counts, self.VERSION_DAYS)
        known = {key: numbered(prefix, owner), "Q5_Col1": timestamps(self.START + elapsed)}
        return by_time(filled(random, self.columns[name], len(owner), known), elapsed)

    def _days(self, random: np.random.Generator, count: int) -> Int64s:
        return self.START + random.integers(0, self.DAYS * 86_400, count) * 1_000
