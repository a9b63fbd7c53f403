"""The cases of the suite `interval`, in sets that can be chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from sqlext_operators.interval_join.passes import Pass

from benchmarks.harness.suite import Case, short
from benchmarks.interval.contestants import JoinCase
from benchmarks.interval.data import PeriodTables
from benchmarks.interval.options import IntervalOptions
from benchmarks.interval.real import REAL_JOINS, write_real
from benchmarks.interval.sql import ONE_ROW, JoinText, Query

#: The domain of the synthetic data of Piatov et al. 2021.
SEED_DOMAIN = 1_000_000

#: Time units for each row of the sets with a constant number of pairs a row: two sides of mean length x then have
#: 2 x / DENSITY pairs a row.
DENSITY = 1_000

#: Only contestants that need not hold the pairs get more than this: Polars and bins would take minutes or the memory.
MATERIALISED_PAIRS = 100_000_000


@dataclass
class CaseList:
    """Cases for `contestants`, what they join, and what was left out."""

    options: IntervalOptions
    root: Path
    contestants: Sequence[str]
    cases: list[Case] = field(default_factory=list)
    joins: dict[str, JoinCase] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def build(self) -> CaseList:
        """All chosen sets, in their fixed order; writes the data."""
        for name, make in SETS.items():
            if name in self.options.sets:
                make(self)
        return self

    def add(
        self,
        name: str,
        tables: tuple[Path, Path],
        text: JoinText,
        contestants: Iterator[str],
        *,
        x: float,
        panel: str | None = None,
        tick: str | None = None,
        kernel: bool = False,
        **parameters: int | str,
    ) -> None:
        """Add one case for those of the contestants that were chosen."""
        able = list(contestants)
        if "ours" in able and not kernel:  # over the same rows in other storages (storage.py)
            able += [one for one in self.contestants if one.startswith("ours-")]
        chosen = tuple(one for one in able if one in self.contestants)
        known: dict[str, int | str] = {"relation": text.relation, "query": text.query, **parameters}
        if text.delta is not None:
            known["delta"] = text.delta
        if chosen:
            self.cases.append(Case(name, x, known, panel, tick, chosen))
            self.joins[name] = JoinCase(*tables, text, kernel)

    def scaled(self, rows: int) -> int:
        """A number of rows, multiplied by the scale of the options."""
        return max(1, round(rows * self.options.scale))


def able(options: IntervalOptions, text: JoinText, rows: int, pairs: int) -> Iterator[str]:
    """The contestants that can answer a case end to end in a reasonable time."""
    yield "ours"
    yield "duckdb"
    few = pairs <= MATERIALISED_PAIRS
    if text.keyed and few:
        yield "duckdb-range"
    yield "duckdb-2"
    if few and text.query in ("pairs", *ONE_ROW):
        yield "polars"
    if few and text.bins_apply:
        yield "spark-bins"
    if text.query == "pairs" and text.relation == "overlap" and not text.dirty and few:
        yield "polars-bio"
    if rows <= options.nested_rows:
        yield "spark"


def pairs_at_most(tables: tuple[Path, Path], text: JoinText) -> int:
    """The number of pairs without key and residual: all windows' slices of the sorted probe values."""
    left, right = (pq.read_table(path, columns=["ts", "te"]) for path in tables)
    values = {"a": left["ts"], "b": left["te"], "c": right["ts"], "d": right["te"]}
    return sum(_slices(one, {name: column.to_numpy() for name, column in values.items()}) for one in text.passes)


def _slices(one: Pass, values: Mapping[str, npt.NDArray[np.int64]]) -> int:
    probe = np.sort(values[one.probe])
    ours = one.window == "left"
    low: npt.NDArray[np.intp] | int = 0
    high: npt.NDArray[np.intp] | int = len(probe)
    for item in one.lowers:
        value = values[item.left if ours else item.right] + int(str(item.shift)) * (1 if ours else -1)
        low = np.maximum(low, np.searchsorted(probe, value, side="right" if item.is_strict else "left"))
    for item in one.uppers:
        value = values[item.left if ours else item.right] + int(str(item.shift)) * (1 if ours else -1)
        high = np.minimum(high, np.searchsorted(probe, value, side="left" if item.is_strict else "right"))
    return int(np.maximum(high - low, 0).sum())


def _synthetic(found: CaseList) -> None:
    """The recipe of Piatov et al. 2021: every relation, length and cardinality; delta is the mean length, as there."""
    options = found.options
    skipped = []
    for relation in options.relations:
        for length in options.lengths:
            for rows in map(found.scaled, options.rows):
                row = JoinText(relation, "sums").row
                text = JoinText(relation, "sums", length if len(row.parameters) == 1 else None)
                tables = PeriodTables(rows, length, SEED_DOMAIN).write(found.root)
                pairs = pairs_at_most(tables, text)
                name = f"{relation}, {short(rows)}, {short(length)}"
                if pairs > options.max_pairs:
                    skipped.append(name)
                    continue
                found.add(
                    name,
                    tables,
                    text,
                    (one for one in able(options, text, rows, pairs) if one != "polars-bio"),
                    x=rows,
                    panel=f"{relation}, length {short(length)}",
                    set="synthetic",
                    rows=rows,
                    length=length,
                )
    if skipped:
        found.left_out.append(f"more than {options.max_pairs:,} pairs: {'; '.join(skipped)}")


def _nested(found: CaseList) -> None:
    """Spark's nested loop at 100,000 x 100,000 rows: it takes one and a half minutes."""
    rows = found.scaled(100_000)
    tables = PeriodTables(rows, 50, SEED_DOMAIN).write(found.root)
    name = f"nested loop: overlap, {short(rows)}"
    found.add(name, tables, JoinText("overlap", "count"), iter(("ours", "spark")), x=rows, set="nested", rows=rows)


def _large(found: CaseList) -> None:
    """1M x 1M rows over 10^9 time units with 5M, 50M and 500M pairs."""
    rows = found.scaled(1_000_000)
    wanted: tuple[tuple[Query, tuple[int, ...]], ...] = (
        ("pairs", (5, 50)),
        ("count", (5, 50, 500)),
        ("semi", (5, 500)),
        ("anti", (5, 500)),
    )
    for query, factors in wanted:
        for factor in factors if query in found.options.queries else ():
            tables = _constant(rows, factor).write(found.root)
            text = JoinText("overlap", query)
            contestants = (one for one in able(found.options, text, rows, factor * rows) if one != "polars-bio")
            name = f"{query}, {short(rows)}, {short(factor * rows)} pairs"
            found.add(name, tables, text, contestants, x=factor, set="large", rows=rows, factor=factor)


def _constant(rows: int, factor: int) -> PeriodTables:
    """Tables whose overlap has `factor` pairs a row."""
    return PeriodTables(rows, factor * DENSITY // 2, rows * DENSITY)


def _real(found: CaseList) -> None:
    """Real data: their overlaps; only the count if the pairs do not fit in memory."""
    options = found.options
    for place, (name, join) in enumerate(REAL_JOINS.items()):
        query: Query = "pairs" if join.pairs <= MATERIALISED_PAIRS else "count"
        text = JoinText("overlap", query, keyed=join.keyed, dirty=join.dirty)
        if options.real is None:
            found.left_out.append(f"{join.title}: no folder of real data (--real)")
            continue
        try:
            tables = write_real(join, options.real, found.root)
        except FileNotFoundError as error:
            found.left_out.append(f"{join.title}: there is no file {error.args[0]}")
            continue
        rows = max(pq.read_metadata(path).num_rows for path in tables)
        contestants = able(options, text, rows, join.pairs)
        title = f"{join.title}, {query}"
        found.add(
            title,
            tables,
            text,
            contestants,
            x=place + 1,
            panel="real data",
            tick=name,
            set="real",
            data=name,
            expected=join.pairs,
        )


def _growth(found: CaseList) -> None:
    """Ours at a million rows and at four times as many, five pairs a row."""
    for query in ("pairs", "count"):
        for rows in map(found.scaled, (1_000_000, 4_000_000)):
            tables = _constant(rows, 5).write(found.root)
            name = f"growth: {query}, {short(rows)}"
            text = JoinText("overlap", query)
            found.add(name, tables, text, iter(("ours",)), x=rows, set="growth", rows=rows)


def _kernel(found: CaseList) -> None:
    """Kernels alone on one thread, Arrow tables in memory: 1M x 1M rows."""
    rows = found.scaled(1_000_000)
    wanted = [("overlap", 5), *((relation, 50) for relation in found.options.relations)]
    for relation, factor in wanted:
        tables = _constant(rows, factor)
        row = JoinText(relation, "pairs").row
        text = JoinText(relation, "pairs", tables.mean if len(row.parameters) == 1 else None)
        contestants = ["ours", *SWEEPS, "duckdb", "duckdb-2"]
        if relation == "overlap":
            contestants += ["polars-bio", "ncls"]
        name = f"kernel: {relation}, {short(rows)}, {short(tables.mean)}"
        paths = tables.write(found.root)
        found.add(name, paths, text, iter(contestants), x=factor, kernel=True, set="kernel", factor=factor)


def _memory(found: CaseList) -> None:
    """10M x 10M short periods, one pair a row: how much memory a Python process takes."""
    rows = found.scaled(10_000_000)
    tables = _constant(rows, 1).write(found.root)
    name = f"memory: pairs, {short(rows)}"
    found.add(name, tables, JoinText("overlap", "pairs"), iter(("ours",)), x=rows, set="memory", rows=rows)


#: The algorithms of Piatov et al. 2021, kernels like ours.
SWEEPS = ("join-by-s", "lazy-join-by-s")

#: The sets in the order in which they run.
SETS: Mapping[str, Callable[[CaseList], None]] = {
    "kernel": _kernel,
    "synthetic": _synthetic,
    "nested": _nested,
    "large": _large,
    "real": _real,
    "growth": _growth,
    "memory": _memory,
}
