"""The formulas that docs/reference prints are those of the tests, and its sweeps find the pairs of these formulas."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.analyzer.period_formulas import BOUNDED, FORMULAS

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
FAMILIES = {"Allen": "allen", "ISEQL": "iseql", "SQL": "period"}

#: What the line below a table's head is made of.
_RULE = set("-| ")

#: Values of a, b, c, d, delta and epsilon by name.
Values = Mapping[str, float]

#: Where the probe x lies, of a window from f to t.
SWEEPS: dict[str, Callable[[float, float, float], bool]] = {
    "StartPreceding": lambda f, x, t: f <= x < t,
    "StartPrecedingStrict": lambda f, x, t: f < x < t,
    "EndFollowing": lambda f, x, t: f < x <= t,
    "EndFollowingStrict": lambda f, x, t: f < x < t,
}


def values() -> Iterator[Values]:
    """Pairs of small periods with distances."""
    periods = [(start, end) for start in range(5) for end in range(start + 1, 6)]
    for (a, b), (c, d) in itertools.product(periods, repeat=2):
        for delta, epsilon in ((math.inf, math.inf), (0, 2), (1, 0), (2, math.inf)):
            yield {"a": a, "b": b, "c": c, "d": d, "delta": delta, "epsilon": epsilon}


VALUES = tuple(values())


def section(page: str, number: int) -> str:
    """The text of a section."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    return re.split(r"^## ", text, flags=re.MULTILINE)[number]


def rows(text: str) -> list[list[str]]:
    """The rows of a section's tables, without heads."""
    lines = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    return [
        [cell.strip() for cell in line.split("|")]
        for line, below in zip(lines, [*lines[1:], ""], strict=True)
        if not set(line) <= _RULE and (not below or not set(below) <= _RULE)
    ]


def known(name: str, at: Values) -> bool:
    """Whether the function's relation holds, by the formulas of the tests."""
    ends = (at["a"], at["b"], at["c"], at["d"])
    if name in FORMULAS:
        return FORMULAS[name](*ends)
    return BOUNDED[name][2](*ends, at["delta"], at["epsilon"])


def number(text: str, at: Values) -> float:
    """A sum, `min(...)` or `max(...)` of names and digits."""
    return float(eval(text.replace("never", "inf"), {"inf": math.inf, "min": min, "max": max}, dict(at)))


def holds(terms: str, at: Values) -> bool:
    """Whether comparisons with commas between them are all true."""
    return all(eval(term.replace(" = ", " == "), {}, dict(at)) for term in terms.split(", ") if term)


def printed() -> Iterator[tuple[str, str]]:
    """(function, formula) of docs/reference/periods.md."""
    for place, family in enumerate(FAMILIES.values(), 1):
        for cells in rows(section("periods.md", place)):
            for name, formula in zip(cells[::2], cells[1::2], strict=False):
                if re.search(r"[<=]", formula) and not name.endswith("point t"):
                    yield f"{family}_{name.replace(' ', '_')}", formula


def sweeps() -> Iterator[tuple[str, list[list[str]]]]:
    """(function, its sweeps) of docs/reference/sweeps.md, section 4; `and another one` adds its pairs to a row's."""
    name, found = "", []
    for relation, *cells in rows(section("sweeps.md", 4)):
        if relation.startswith("and "):
            found.append(cells)
            continue
        if found:
            yield name, found
        if not relation.startswith("the same"):
            family, _, words = relation.partition(",")[0].partition(" ")
            name = f"{FAMILIES[family]}_{words.replace(' ', '_')}"
        found = [cells]
    yield name, found


def in_sweep(cells: list[str], at: Values) -> bool:
    """Whether a sweep finds the pair and keeps it."""
    sweep, active, start, end, residual = cells
    probe = {"r": "cd", "s": "ab"}[active]["Start" not in sweep]
    return SWEEPS[sweep](number(start, at), at[probe], number(end, at)) and holds(residual, at)


def test_every_relation_is_printed() -> None:
    every = {*FORMULAS, *BOUNDED}
    assert {name for name, _ in printed()} == every
    assert {name for name, _ in sweeps()} == every


@pytest.mark.parametrize(("name", "formula"), list(dict.fromkeys(printed())))
def test_formula(name: str, formula: str) -> None:
    assert [at for at in VALUES if holds(formula, at) != known(name, at)] == []


@pytest.mark.parametrize(("name", "found"), list(sweeps()))
def test_sweep(name: str, found: list[list[str]]) -> None:
    """Each pair is found by exactly one of the sweeps."""
    assert [at for at in VALUES if sum(in_sweep(cells, at) for cells in found) != known(name, at)] == []


def test_vectors() -> None:
    block = section("periods.md", 2).partition("```text\n")[2].partition("```")[0]
    head, *lines = [line for line in block.splitlines() if line]
    left, right = (
        [eval(pair) for pair in re.findall(r"\(.*?\)", side)] for side in head.replace("[", "(").split("S =")
    )
    assert len(lines) > 10
    for line in lines:
        relation, pairs = re.split(r" {2,}", line)
        name, _, amounts = relation.partition(", ")
        parameters = BOUNDED[f"iseql_{name.replace(' ', '_')}"]
        given = [float(amount) for amount in re.findall(r"\d+", amounts)] + [math.inf, math.inf]
        delta, epsilon = (given[0], given[1]) if parameters[0] else (math.inf, given[0])
        found = [
            f"{i}{j}"
            for i, r in enumerate(left, 1)
            for j, s in enumerate(right, 1)
            if parameters[2](*r, *s, delta, epsilon)
        ]
        assert found == pairs.split(), line
