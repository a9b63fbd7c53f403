"""Suite `serving`: answers of `sqlext serve` under an open loop of requests, beside an echo by the same server and what
people put in its place; windows over many rows, pushes, warm starts, and a soak."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlext_planner.errors import AnalysisError

from benchmarks.features import SCRIPTS
from benchmarks.features_contestants import script
from benchmarks.harness.engines import Engines
from benchmarks.harness.options import Told, Workplace, check, untold
from benchmarks.harness.suite import Answer, Case, Contestant, Suite, short
from benchmarks.serving import checks, started
from benchmarks.serving.contestants import LOOKUP, Echo, Feast, Ours, Service, Works
from benchmarks.serving.data import LOOKUP_SQL, SHOP_SQL
from benchmarks.serving.load import Generator
from benchmarks.serving.measured import FUNCTIONS, PUSH_ROWS, LongWindow, Pushes, WarmStart
from benchmarks.serving.options import CONTESTANTS, SETS, ServingOptions
from benchmarks.serving.servers import Pool
from benchmarks.serving.soak import Soak

#: Who takes part, by the set of cases; in the others ours alone.
_CONTESTANTS = {"scripts": ("ours", "echo"), "rivals": ("ours", "echo", "duckdb", "redis"), "lookup": CONTESTANTS}
#: Seconds of a run of `long`, at most: thousands of requests.
_LONG_SECONDS = 1.0
#: Seconds between samples of memory: reading that of all processes takes a core for milliseconds.
_WATCH_SECONDS = 5.0


def serving_suite(options: ServingOptions, engines: Engines | None = None, report: Told = untold) -> Suite:
    """The suite; data are made when a case needs them.

    Raises AnalysisError for an unknown set, script, function or contestant, ConfigurationError if the packages of
    `sqlext serve` are missing.
    """
    check("set of cases", options.cases, SETS)
    check("script", options.scripts, SCRIPTS)
    check("function", options.functions, ("all", *FUNCTIONS))
    check("contestant", options.contestants, CONTESTANTS)
    started.check_server_packages()
    place = Workplace(options, engines)
    cases = tuple(case for name in options.cases for case in _cases(name, options))
    asked = {name for case in cases for name in case.contestants or ()}
    names = [name for name in CONTESTANTS if name in asked and name in options.contestants]
    if not names:
        raise AnalysisError(
            "none of the contestants takes part in these cases",
            condition="command-line",
            help="ours takes part in all of them",
        )
    left_out = {name: reason for name in names if (reason := _missing(options, name)) is not None}
    pool, generator = Pool(), Generator()
    works = Works(options, place.root)
    contestants = [_contestant(name, options, works, pool, generator) for name in names if name not in left_out]

    def close() -> None:
        generator.stop()
        pool.close()
        place.close()

    return Suite(
        name="serving",
        title="Answers of a server at fixed rates, pushes, warm starts",
        parameters=options.shown("cases", "scripts", "rows", "users", "rates", "seconds", "long_rows", "warm_rows")
        | options.shown("pushers", "push_rate", "minutes", "minute"),
        cases=cases,
        contestants=tuple(contestants),
        ours="ours",
        x_label="requests a second",
        checks=(checks.all_checks,),
        facts={
            **{name: script(name)[-1] for name in options.scripts},
            "lookup": LOOKUP_SQL,
            "warm, soak": SHOP_SQL,
        },
        left_out=tuple(left_out.values()),
        close=close,
        watch_seconds=_WATCH_SECONDS,
    )


def _missing(options: ServingOptions, name: str) -> str | None:
    return None if name in ("ours", "echo") else started.missing(options.peers, name)


def _cases(name: str, options: ServingOptions) -> Iterator[Case]:
    if name in _CONTESTANTS:
        works = options.scripts if name == "scripts" else ("Q1",) if name == "rivals" else (LOOKUP,)
        for work in works:
            words = {"scripts": work, "rivals": "Q1's features", "lookup": "look-up"}[name]
            for rate in options.rates:
                more = {"script": work} if name == "scripts" else {}
                yield Case(
                    f"{words} at {rate}/s",
                    float(rate),
                    {"set": name, "work": work, "rate": rate, **more},
                    panel=words,
                    contestants=_CONTESTANTS[name],
                )
    else:
        yield from _own_cases(name, options)


def _own_cases(name: str, options: ServingOptions) -> Iterator[Case]:
    """Those in which ours alone takes part."""

    def case(title: str, x: float = 1.0, **parameters: int | str) -> Case:
        return Case(title, x, {"set": name, **parameters}, panel=None, contestants=("ours",))

    if name == "long":
        for function in FUNCTIONS if "all" in options.functions else options.functions:
            for rows in sorted(options.long_rows):
                yield case(f"{function}, {short(rows)} rows", float(rows), function=function, rows=rows)
    elif name == "pushes":
        for journal in (1, 0):
            for form in ("JSON", "Arrow"):
                words = f"pushes of {PUSH_ROWS:,} rows, {form}, {'with a' if journal else 'no'} journal"
                yield case(words, format=form, journal=journal)
    elif name == "warm":
        for rows in options.warm_rows:
            yield case(f"warm start, {short(rows)} rows", float(rows), rows=rows)
    else:
        yield case(f"soak, {options.minutes} minutes", minutes=options.minutes)


def _contestant(name: str, options: ServingOptions, works: Works, pool: Pool, generator: Generator) -> Contestant:
    if name == "ours":
        asked = Ours(name, pool, works, generator, options.seconds)
        soak = Soak(name, pool, generator, works.root / "serving-soak", options.minutes, options.minute)
        by_set: dict[str, Contestant] = {
            **dict.fromkeys(_CONTESTANTS, asked),
            "long": LongWindow(name, min(options.seconds, _LONG_SECONDS)),
            "pushes": Pushes(name, pool, works, generator, options),
            "warm": WarmStart(name, pool, works.root),
            "soak": soak,
        }
        return BySet(name, by_set, asked)
    if name == "echo":
        return Echo(name, pool, works, generator, options.seconds)
    if name == "feast":
        return Feast(name, pool, works, generator, options.seconds, peers=options.peers)
    return Service(name, pool, works, generator, options.seconds, peers=options.peers)


@dataclass
class BySet(Contestant):
    """One name in the tables, and another contestant for each set of cases."""

    name: str
    by_set: Mapping[str, Contestant]
    current: Contestant

    def prepare(self, case: Case) -> None:
        self.current = self.by_set[str(case.parameters["set"])]
        self.current.prepare(case)

    def run(self, case: Case) -> float | None:
        return self.current.run(case)

    def answer(self, case: Case) -> Answer | None:
        return self.current.answer(case)

    def details(self) -> Mapping[str, float]:
        return self.current.details()

    def series(self) -> Mapping[str, Sequence[float]]:
        return self.current.series()

    def interrupt(self) -> None:
        self.current.interrupt()
