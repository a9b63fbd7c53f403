"""Writes the tables of the pages from the code, and the charts from the recorded figures: `python docs/tables.py`.
A test checks that they agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import figures
import window_reference
from relation_pictures import picture
from sqlext_operators.interval_join.passes import passes_for
from sqlext_operators.interval_join.relations import LEFT_PERIOD, RELATIONS, RIGHT_PERIOD, PeriodRelation
from sqlext_operators.interval_join.sweep.transforms import ROWS as SWEEPS
from sqlext_operators.interval_join.sweep.transforms import residual_of
from sqlext_planner.config import Config, Setting
from sqlext_planner.early.nodes import default_estimator, estimator_docs, stream_estimators
from sqlext_planner.expressions.scalars.coercion import cast_table as casts
from sqlext_planner.expressions.scalars.table import TABLE
from sqlext_planner.periods.functions import PERIOD_FUNCTIONS

from sqlext.explain.plan_operators import umjoins_json
from sqlext.run.pipeline import stage
from sqlext.syntax.hint_nodes import HINT_DOCS
from sqlext.tpc import BENCHMARKS
from tests.tpc.froms import multiway_froms

DOCS = Path(__file__).resolve().parent


#: Pages with a grammar: the first block of text of each.
GRAMMARS = ("windows.md", "last-join.md", "predicates.md", "period-algebra.md", "early-answers.md#on-streams")


def grammars() -> str:
    """The grammar of each extension, as its page has it."""
    parts = []
    for target in GRAMMARS:
        name, _, place = target.partition("#")
        page = (DOCS / name).read_text(encoding="utf-8")
        title = page.split("\n", 1)[0].removeprefix("# ")
        start = page.index(f"\n## {place.replace('-', ' ').capitalize()}\n") if place else 0
        block = page[start:].split("```text\n", 1)[1].split("```", 1)[0]
        parts.append(f"### {title}\n\n```text\n{block}```\n\nWhat it means: [{name}]({target}).")
    return "\n\n".join(parts)


def hint_table() -> str:
    """One row for each hint."""
    rows = ["| hint | what it asks for |", "|---|---|"]
    return "\n".join([*rows, *(f"| `/*+ {hint} */` | {doc} |" for hint, doc in HINT_DOCS.items())])


def estimator_table() -> str:
    """One row for each estimator of early answers."""
    rows = ["| estimator | what it is | on streams |", "|---|---|---|"]
    for name, doc in estimator_docs().items():
        streams = "the default" if name == default_estimator() else "yes" if name in stream_estimators() else "no"
        rows.append(f"| `{name}` | {doc} | {streams} |")
    return "\n".join(rows)


def settings() -> str:
    """A section for each setting."""
    return "\n\n".join(map(_setting, Config.described()))


def _setting(setting: Setting) -> str:
    """Its meaning, with a list of its words where the text explains them (``word: meaning; word: meaning``)."""
    doc = re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", setting.doc)
    words = "|".join(map(re.escape, setting.words))
    intro, *explained = re.split(rf"(?:; | )({words}): ", doc) if words else [doc]
    pairs = zip(explained[::2], explained[1::2], strict=True)
    items = "".join(f"- `{word}`: {meaning.removesuffix('.')}\n" for word, meaning in pairs)
    values = ", ".join(f"`{word}`" for word in setting.words) or setting.values
    told = "" if len(explained) == 2 * len(setting.words) > 0 else f" Values: {values}."
    return f"## {setting.key}\n\n{intro}\n\n{items}{items and chr(10)}Default: `{setting.default}`.{told}"


def relation_table(family: str) -> str:
    """One row for each relation of a family."""
    rows = ["| function | words | holds if | such as | inverse | meaning |", "|---|---|---|---|---|---|"]
    for row in RELATIONS.values():
        if row.family == family:
            words = ", ".join(f"`{words}`" for words in row.words)
            formula = ", ".join(f"`{term}`" for term in row.formula.split(", "))
            cells = [f"`{row.name}`", words, formula, picture(row), _inverse(row), row.doc]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def period_function_table() -> str:
    """One row for each function that makes a period or a length."""
    rows = ["| function | meaning |", "|---|---|"]
    ends = {1: "start, end", 2: "start, end, start2, end2"}
    return "\n".join(
        [*rows, *(f"| `{row.name}({ends[row.periods]})` | {row.doc} |" for row in PERIOD_FUNCTIONS.values())]
    )


def cast_table() -> str:
    """One row for each family of types that is cast."""
    words = {"whole": "tinyint, smallint, int, bigint", "float": "float, double", "decimal": "decimal"}
    rows = ["| from | to |", "|---|---|"]
    for source, targets in casts().items():
        rows.append(f"| {words.get(source, source)} | {', '.join(words.get(target, target) for target in targets)} |")
    return "\n".join(rows)


def scalar_table() -> str:
    """One row for each scalar function that is computed without Spark."""
    rows = ["| function | arguments | result | |", "|---|---|---|---|"]
    for row in TABLE:
        names = ", ".join(f"`{name}`" for name in row.names.split())
        arguments = ", ".join(row.parameters.split())
        result = f"`{row.result}`" if re.fullmatch(r"[a-z]+(<[a-z]+>)?", row.result) else row.result
        rows.append(f"| {names} | {arguments} | {result} | {'zone' if row.zoned else ''} |")
    return "\n".join(rows)


def window_table() -> str:
    """How a join finds the pairs of each relation, with all of its bounds given."""
    rows = ["| function | windows | residual |", "|---|---|---|"]
    for row in RELATIONS.values():
        for item in passes_for(row.terms, LEFT_PERIOD, RIGHT_PERIOD):
            owner = "r" if item.window == "left" else "s"
            bounds = ", ".join(map(str, item.lowers + item.uppers))
            residual = f"`{', '.join(map(str, item.residual))}`" if item.residual else ""
            rows.append(f"| `{row.name}` | {owner} over `{item.probe}`: `{bounds}` | {residual} |")
    return "\n".join(rows)


def sweep_table() -> str:
    """One row for each sweep of a relation."""
    rows = ["| relation | sweep | active side | its events | residual |", "|---|---|---|---|---|"]
    for name, row in SWEEPS.items():
        choices = [(sweep, "") for sweep in row.sweeps]
        note = " (streams)" if "epsilon" not in RELATIONS[name].parameters else " (streams; only epsilon given)"
        choices += [(row.by_ends, note)] if row.by_ends else []
        choices += [(row.by_starts, " (only delta given)")] if row.by_starts else []
        for sweep, note in choices:
            residual = ", ".join(map(str, residual_of(sweep, RELATIONS[name].terms)))
            rows.append(f"| `{name}` | {sweep.algorithm.name}{note} | {sweep.active} | {sweep.events} | {residual} |")
    return "\n".join(rows)


def _inverse(row: PeriodRelation) -> str:
    if row.inverse is None:
        return ""
    return "itself" if row.inverse == row.name else f"`{row.inverse}`"


def umjoin_table(name: str) -> str:
    """One row for each query of a benchmark: what it joins, and what is made of that."""
    benchmark = BENCHMARKS[name]
    catalog = benchmark.catalog()
    rows = ["| query | FROMs of 3 or more | groups: inputs, strategy |", "|---|---|---|"]
    count = 0
    for number in benchmark.numbers:
        sql = benchmark.query(number)
        froms = len(multiway_froms(sql))
        count += froms
        groups = umjoins_json(stage(sql, catalog, Config()))
        cells = [
            f"{len(group['inputs'])}: {', '.join(map(_input, group['inputs']))}; {group['strategy']}"
            for group in groups
        ]
        rows.append(f"| {number} | {froms} | {'<br>'.join(cells)} |")
    return "\n".join([*rows, "", f"FROMs of three or more joined relations in all: {count}."])


def _input(name: str) -> str:
    return f"`{name}`"


#: The tables of each page, by the names of their places.
PAGES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "windows.md": {"functions": window_reference.index},
    "window-functions.md": {"sample": window_reference.sample, "functions": window_reference.reference},
    "settings.md": {"settings": settings},
    "sql-reference.md": {"grammars": grammars, "hints": hint_table, "estimators": estimator_table},
    "predicates.md": {
        "period": lambda: relation_table("period"),
        "iseql": lambda: relation_table("iseql"),
        "allen": lambda: relation_table("allen"),
        "windows": window_table,
    },
    "serving-functions.md": {"casts": cast_table, "functions": scalar_table},
    "period-algebra.md": {"functions": period_function_table},
    "sweeps.md": {"transforms": sweep_table},
    "performance.md": {
        f"figure-{figure.name}": lambda figure=figure: figures.markdown(figure) for figure in figures.FIGURES
    },
    "tpcds.md": {"groups": lambda: umjoin_table("tpcds")},
}


def with_tables(name: str, page: str) -> str:
    """The text of the page with its tables as the code has them now. Raises ValueError where a place is missing."""
    for place, table in PAGES[name].items():
        pattern = rf"(<!-- {place}: begin [^>]*-->\n).*?(<!-- {place}: end -->)"
        text = table()
        page, found = re.subn(pattern, lambda match, text=text: f"{match[1]}{text}\n{match[2]}", page, flags=re.DOTALL)
        if found != 1:
            raise ValueError(f"{name} has {found} places for the table of {place}")
    return page


if __name__ == "__main__":
    for page in PAGES:
        path = DOCS / page
        path.write_text(with_tables(page, path.read_text(encoding="utf-8")), encoding="utf-8")
    for figure in figures.FIGURES:
        (figures.FOLDER / f"{figure.name}.svg").write_text(figures.svg(figure), encoding="utf-8")
