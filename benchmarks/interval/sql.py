"""The statements of the suite `interval`, all derived from the table of relations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlext_operators.interval_join.conditions import Condition
from sqlext_operators.interval_join.passes import Pass
from sqlext_operators.interval_join.relations import LEFT_PERIOD, RELATIONS, RIGHT_PERIOD, PeriodRelation

#: pairs: both ids of every pair; sums: all pairs, summed up (as in Piatov et al. 2021); count: COUNT(*).
Query = Literal["pairs", "sums", "count", "semi", "anti"]

#: What is written for the left and the right table in a FROM clause.
Tables = tuple[str, str]

#: Queries whose result is one row.
ONE_ROW = ("sums", "count")

_SUMS = "count(*) AS n, sum({l}) AS l, sum({r}) AS r, sum({l} * ({r} % 1009)) AS mix"

#: The relations of the suite by their short names; any other name of the table of relations is accepted too.
SHORT_NAMES = {
    "overlap": "period_overlaps",
    "during": "iseql_during",
    "start-preceding": "iseql_start_preceding",
    "before": "iseql_before",
}

_COLUMNS = dict(zip(LEFT_PERIOD + RIGHT_PERIOD, ("ts", "te", "ts", "te"), strict=True))


@dataclass(frozen=True)
class JoinText:
    """What one case joins, as SQL: two tables with id, ts, te (and k if `keyed`).

    `delta` is the relation's first parameter. In `dirty` tables some periods are NULL, empty or reversed: contestants
    that do not know periods have to exclude these explicitly.
    """

    relation: str
    query: Query
    delta: int | None = None
    keyed: bool = False
    dirty: bool = False

    @property
    def row(self) -> PeriodRelation:
        """The relation's row of the table."""
        return RELATIONS[SHORT_NAMES.get(self.relation, self.relation)]

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The formula with values for its parameters."""
        return self.row.conditions(**self.parameters)

    @property
    def passes(self) -> tuple[Pass, ...]:
        """How its pairs are found."""
        return self.row.passes(**self.parameters)

    @property
    def parameters(self) -> dict[str, float]:
        """The relation's parameters by name."""
        return {self.row.parameters[0]: self.delta} if self.delta is not None else {}

    def ours(self, tables: Tables) -> str:
        """The statement with the period predicate."""
        within = f" WITHIN {self.delta}" if self.delta is not None else ""
        predicate = f"PERIOD(l.ts, l.te) {self.row.words[0]} PERIOD(r.ts, r.te){within}"
        return self._select(tables, [*self._key, predicate])

    def plain(self, tables: Tables, dialect: Literal["spark", "duckdb"] = "spark") -> str:
        """The statement with inequalities."""
        return self._select(tables, self._plain_terms, "" if dialect == "duckdb" else "LEFT ")

    @property
    def sums(self) -> dict[str, str]:
        """What is compared of a statement that returns rows."""
        return {**self.least, "mix": "sum(l * (r % 1009))"} if self.query == "pairs" else self.least

    @property
    def least(self) -> dict[str, str]:
        """The fewest sums that consume all of these rows."""
        return {"n": "count(*)", "l": "sum(l)", **({"r": "sum(r)"} if self.query == "pairs" else {})}

    @property
    def bins_apply(self) -> bool:
        """Whether there is a statement with bins: for pairs, and windows with two ends."""
        bounded = all(one.lowers and one.uppers for one in self.passes)
        return self.query in ("pairs", *ONE_ROW) and bounded

    @property
    def window_bins(self) -> bool:
        """Whether the bins of one side's windows meet the bin of one value of the other (else both sides have many)."""
        return len(self.passes) == 1

    def bins(self, tables: Tables, width: int) -> str:
        """The usual trick: rows exploded into bins of `width`, an equality join on the bin, and the condition again.

        If a value of one side lies in a window of the other, that value has one bin, so no pair comes twice.
        Overlap explodes both sides and keeps a pair in the first bin that both have.
        """
        if not self.window_bins:
            exploded = f"explode(sequence(ts div {width}, (te - 1) div {width})) AS bin"
            left, right = (f"(SELECT *, {exploded} FROM {table} WHERE ts < te)" for table in tables)
            first = f"l.bin = greatest(l.ts div {width}, r.ts div {width})"
            return self._select((left, right), ["l.bin = r.bin", *self._plain_terms, first])
        (one,) = self.passes
        low = _extreme("greatest", [_bound(item, one) for item in one.lowers])
        high = _extreme("least", [_bound(item, one) for item in one.uppers])
        window, probe = tables if one.window == "left" else tables[::-1]
        ends = f"explode(sequence(({low}) div {width}, ({high}) div {width})) AS bin"
        windows = f"(SELECT *, {ends} FROM {window} WHERE {low} <= {high})"
        points = f"(SELECT *, {_COLUMNS[one.probe]} div {width} AS bin FROM {probe})"
        sides = (windows, points) if one.window == "left" else (points, windows)
        return self._select(sides, ["l.bin = r.bin", *self._plain_terms])

    @property
    def _key(self) -> list[str]:
        return ["l.k = r.k"] if self.keyed else []

    @property
    def _plain_terms(self) -> list[str]:
        terms = [
            f"l.{_shifted(_COLUMNS[item.left], item.shift)} {item.operator} r.{_COLUMNS[item.right]}"
            for item in self.conditions
        ]
        return self._key + terms + (["l.ts < l.te", "r.ts < r.te"] if self.dirty else [])

    def _select(self, tables: Tables, terms: list[str], semi: str = "LEFT ") -> str:
        left, right = tables
        condition = " AND ".join(terms)
        match self.query:
            case "pairs":
                return f"SELECT l.id AS l, r.id AS r FROM {left} l JOIN {right} r ON {condition}"
            case "sums":
                return f"SELECT {_SUMS.format(l='l.id', r='r.id')} FROM {left} l JOIN {right} r ON {condition}"
            case "count":
                return f"SELECT count(*) AS n FROM {left} l JOIN {right} r ON {condition}"
            case "semi" | "anti":
                return f"SELECT l.id AS l FROM {left} l {semi}{self.query.upper()} JOIN {right} r ON {condition}"


def _shifted(column: str, shift: object) -> str:
    """ts + 5, ts - 5, ts."""
    amount = int(str(shift))
    return f"{column} {'-' if amount < 0 else '+'} {abs(amount)}" if amount else column


def _bound(item: Condition, one: Pass) -> str:
    """The bound that a condition puts on the probe value, from the window side's columns."""
    if one.window == "left":
        return _shifted(_COLUMNS[item.left], item.shift)
    return _shifted(_COLUMNS[item.right], -int(str(item.shift)))


def _extreme(function: str, terms: list[str]) -> str:
    return terms[0] if len(terms) == 1 else f"{function}({', '.join(terms)})"
