"""The cases of the suite `umjoin`, in sets that can be chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlext_planner.catalog import Catalog
from sqlext_planner.errors import ConfigurationError

from benchmarks.harness.options import Told
from benchmarks.harness.statements import Consumed, Statement
from benchmarks.harness.suite import Case, short
from benchmarks.umjoin.contestants import answer_of_table
from benchmarks.umjoin.data import FanOutTables, SkewedGraph
from benchmarks.umjoin.options import UMJoinOptions
from benchmarks.umjoin.sql import (
    COUNT,
    FAN_OUT,
    FAN_OUT_SUM,
    SEED_JOIN,
    SEED_SUM,
    SEED_TABLES,
    cycle,
    table_checks,
    vertex_checks,
    vertices,
)
from sqlext.tpc import BENCHMARKS

#: Result rows of star and chain: as many as an engine can enumerate. With FACTOR times as many rows for each key there
#: are FACTOR^3 times as many, which no engine can enumerate.
FEW = 10**9
FACTOR = 10
#: Spark's tasks check once a batch of input rows whether they must end. A row there has 8 million result rows, and
#: with batches of 4,096 rows cancelled tasks kept both cores busy for minutes.
SMALL_BATCHES = {"spark.sql.parquet.columnarReaderBatchSize": "16"}

#: Warm-ups and timed runs: of statements that both contestants on Spark run as the same plan (there a 5 % target is
#: checked), of those among them that return rows (they take longer), of all of TPC-H (there the total is checked), and
#: of those that take less than a second if they are factorised.
CLOSE = (25, 25)
CLOSE_AND_LONG = (5, 9)
CLOSE_IN_TOTAL = (2, 3)
FACTORISED = (40, 9)
SESSION = (2, 7)

#: Edges for each vertex of the graphs.
DEGREE = 6
#: Exponents of Zipf's law. Binary joins of three and four edges make the number of paths of two and three edges: 3.6M,
#: 11M, 230M and 909M for the triangle; 22M, 32M, 191M and 1004M for the 4-cycle. More would take many minutes.
EXPONENTS: Mapping[str, tuple[float, ...]] = {"triangle": (0, 0.5, 0.8, 1.0), "cycle4": (0, 0.3, 0.5, 0.6)}


@dataclass
class CaseList:
    """The chosen cases, what they run, the catalogs of those that only plan, the tables of those that measure sessions,
    and what was left out.

    `report` is called with what is being generated.
    """

    options: UMJoinOptions
    root: Path
    report: Told
    cases: list[Case] = field(default_factory=list)
    queries: dict[str, Statement] = field(default_factory=dict)
    catalogs: dict[str, Callable[[], Catalog]] = field(default_factory=dict)
    session_tables: Mapping[str, Path] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def build(self) -> CaseList:
        """All chosen sets, in their fixed order; writes the data."""
        for name, make in SETS.items():
            if name in self.options.cases:
                make(self, name)
        return self

    def add(
        self,
        case: Case,
        sql: str,
        tables: Mapping[str, Path],
        checks: Mapping[str, str] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Add one case for all contestants. A result of few rows is fetched; one of many rows is dropped, and `checks`
        are the aggregates over it that are compared. `settings` are Spark's."""
        self.cases.append(case)
        rows: Consumed = "fetch" if checks is None else "drop"
        self.queries[case.name] = Statement(
            sql, checks or {}, rows, tables=tables, settings=settings or {}, answer=answer_of_table
        )

    def tpc(self, name: str) -> dict[str, Path] | None:
        """The tables of a benchmark at the scale of the options, generated if they are missing; None, and a line in
        `left_out`, if the generator is not installed."""
        from sqlext.tpc.benchmark import generate

        benchmark, options = BENCHMARKS[name], self.options
        folder = options.data / f"{name}-{options.scale:g}" if options.data else benchmark.cache(options.scale)

        def told(step: str, rows: int | None) -> None:
            self.report(f"{benchmark.title}: {step}" + ("" if rows is None else f", {rows:,} rows"))

        try:
            done = generate(benchmark, options.scale, folder, told)
        except ConfigurationError as error:
            reason = f"{benchmark.title}: {error.message} ({error.help})"
            if reason not in self.left_out:
                self.left_out.append(reason)
            return None
        return {table: folder / f"{table}.parquet" for table in done.rows}


def _seed(found: CaseList, name: str) -> None:
    """The four tables of Hu and Qiu 2024 on one key, at the scale of the options."""
    tables = found.tpc("tpcds")
    if tables is None:
        return
    used = {table: tables[table] for table in SEED_TABLES}
    types = {table: BENCHMARKS["tpcds"].tables[table] for table in SEED_TABLES}
    checks = table_checks(types, "sr_ticket_number")
    wanted = (("count", COUNT, None), ("sum", SEED_SUM, None), ("rows", "*", checks))
    for place, (query, items, check) in enumerate(wanted, 1):
        known: dict[str, int | str] = {"set": name, "query": query}
        warm_ups, runs = CLOSE if check is None else CLOSE_AND_LONG
        title, tick = f"{name}: {query}", f"seed\n{query}"
        case = Case(title, place, known, panel="TPC-DS", tick=tick, warm_ups=warm_ups, least_runs=runs)
        found.add(case, SEED_JOIN.format(items=items), used, check)


def _fan_out(found: CaseList, name: str) -> None:
    """Four inputs, 10^9 and 10^12 result rows at the default size; the number of input rows stays the same."""
    least = max(1, round((FEW / found.options.rows) ** (1 / 3)))
    most = FACTOR * least
    rows = max(1, round(found.options.rows * found.options.scale / most)) * most
    for fan in (least, most):
        found.report(f"{rows:,} rows with {fan} of each key")
        data = FanOutTables(rows, fan)
        for query, items, expected in (("count", COUNT, data.results), ("sum", FAN_OUT_SUM, data.sum_of_c())):
            size = f"{data.results:.0e}".replace("e+0", "e").replace("e+", "e")
            known: dict[str, int | str] = {"set": name, "query": query, "rows": rows, "expected": expected}
            known["results"] = "few" if fan == least else "many"
            case = Case(
                f"{name}: {query}, {size} rows",
                float(data.results),
                known,
                panel=f"{name}, four inputs of {short(rows)} rows",
                tick=f"{query}\n{size}",
                limit_seconds=found.options.many_seconds if fan == most else None,
                warm_ups=FACTORISED[0],
                least_runs=FACTORISED[1],
            )
            settings = SMALL_BATCHES if fan == most else {}
            found.add(case, FAN_OUT[name].format(items=items), data.write(found.root), settings=settings)


def _cycles(found: CaseList, name: str) -> None:
    """Cycles of a graph, over the skew of its degrees."""
    length = {"triangle": 3, "cycle4": 4}[name]
    edges = max(1, round(found.options.edges * found.options.scale))
    wanted = (("count", COUNT, None), ("vertices", vertices(length), vertex_checks(length)))
    graphs = {}
    for exponent in EXPONENTS[name]:
        found.report(f"{edges:,} edges, Zipf exponent {exponent:g}")
        graphs[exponent] = SkewedGraph(edges, max(10, edges // DEGREE), exponent).write(found.root)
    for query, items, checks in wanted:
        for exponent, path in graphs.items():
            known: dict[str, int | float | str] = {"set": name, "query": query, "edges": edges}
            known["exponent"] = exponent
            case = Case(
                f"{name}: {query}, skew {exponent:g}",
                exponent,
                known,
                panel=f"{name}, {query}",
            )
            found.add(case, cycle(length, items), {"edges": path}, checks)


def _tpch(found: CaseList, name: str) -> None:
    """All queries of TPC-H."""
    tables = found.tpc(name)
    for number in BENCHMARKS[name].numbers if tables is not None else ():
        known: dict[str, int | str] = {"set": name, "query": number}
        warm_ups, runs = CLOSE_IN_TOTAL
        title, tick = f"TPC-H Q{number}", str(number)
        case = Case(title, float(number), known, panel="TPC-H", tick=tick, warm_ups=warm_ups, least_runs=runs)
        found.add(case, BENCHMARKS[name].query(number), tables or {})


def _planning(found: CaseList, name: str) -> None:
    """Planning the queries of TPC-DS: with only the types of the tables, and with the tables' files."""
    benchmark = BENCHMARKS["tpcds"]
    if "ours" not in found.options.contestants:
        return
    found.catalogs["planning: by types"] = benchmark.catalog
    tables = found.tpc("tpcds")
    if tables is not None:
        from sqlext.catalog import FileCatalog

        folder = next(iter(tables.values())).parent
        found.catalogs["planning: by files"] = lambda: FileCatalog(folder)
    for title in found.catalogs:
        known: dict[str, int | str] = {"set": name, "queries": benchmark.size}
        found.cases.append(Case(title, 1, known, panel=None, contestants=("ours",)))


def _session(found: CaseList, name: str) -> None:
    """What `Session.sql` adds to `spark.sql`: for texts that it meets for the first time, and for those it knows."""
    if "ours" not in found.options.contestants:
        return
    found.session_tables = found.tpc("tpcds") or {}
    for x, (met, title) in enumerate((("first", "first time"), ("again", "again"))):
        if found.session_tables:
            known: dict[str, int | str] = {"set": name, "met": met}
            warm_ups, runs = SESSION
            case = Case(f"session: {title}", x, known, panel=None, warm_ups=warm_ups, least_runs=runs)
            found.cases.append(replace(case, contestants=("ours",)))


#: The sets in the order in which they run.
SETS: Mapping[str, Callable[[CaseList, str], None]] = {
    "seed": _seed,
    "star": _fan_out,
    "chain": _fan_out,
    "triangle": _cycles,
    "cycle4": _cycles,
    "tpch": _tpch,
    "planning": _planning,
    "session": _session,
}
