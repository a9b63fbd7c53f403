"""Period predicates: in words, as a function, and as the formula of docs/predicates.md for DuckDB."""

from __future__ import annotations

import random

from .texts import Text, join

#: function -> (words, formula over the ends a, b, c, d, bounds that it takes)
RELATIONS: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "period_overlaps": (("OVERLAPS",), "a < d AND c < b", ()),
    "period_contains": (("CONTAINS",), "a <= c AND d <= b", ()),
    "period_equals": (("EQUALS",), "a = c AND b = d", ()),
    "period_precedes": (("PRECEDES",), "b <= c", ()),
    "period_succeeds": (("SUCCEEDS",), "d <= a", ()),
    "period_immediately_precedes": (("IMMEDIATELY PRECEDES",), "b = c", ()),
    "period_immediately_succeeds": (("IMMEDIATELY SUCCEEDS",), "d = a", ()),
    "iseql_before": (("BEFORE",), "b <= c AND c - b <= delta", ("delta",)),
    "iseql_after": (("AFTER",), "d <= a AND a - d <= delta", ("delta",)),
    "iseql_start_preceding": (("START PRECEDING",), "a <= c AND c < b AND c - a <= delta", ("delta",)),
    "iseql_start_preceded_by": (("START PRECEDED BY",), "c <= a AND a < d AND a - c <= delta", ("delta",)),
    "iseql_end_following": (("END FOLLOWING",), "a < d AND d <= b AND b - d <= epsilon", ("epsilon",)),
    "iseql_end_followed_by": (("END FOLLOWED BY",), "c < b AND b <= d AND d - b <= epsilon", ("epsilon",)),
    "iseql_left_overlap": (
        ("LEFT OVERLAP",),
        "a <= c AND c < b AND b <= d AND c - a <= delta AND d - b <= epsilon",
        ("delta", "epsilon"),
    ),
    "iseql_right_overlap": (
        ("RIGHT OVERLAP",),
        "c <= a AND a < d AND d <= b AND a - c <= delta AND b - d <= epsilon",
        ("delta", "epsilon"),
    ),
    "iseql_during": (("DURING",), "c <= a AND b <= d AND a - c <= delta AND d - b <= epsilon", ("delta", "epsilon")),
    "iseql_reverse_during": (
        ("REVERSE DURING",),
        "a <= c AND d <= b AND c - a <= delta AND b - d <= epsilon",
        ("delta", "epsilon"),
    ),
    "allen_before": (("ALLEN BEFORE", "STRICTLY PRECEDES"), "b < c", ()),
    "allen_after": (("ALLEN AFTER", "STRICTLY SUCCEEDS"), "d < a", ()),
    "allen_meets": (("ALLEN MEETS", "MEETS"), "b = c", ()),
    "allen_met_by": (("ALLEN MET BY", "MET BY"), "d = a", ()),
    "allen_overlaps": (("ALLEN OVERLAPS",), "a < c AND c < b AND b < d", ()),
    "allen_overlapped_by": (("ALLEN OVERLAPPED BY",), "c < a AND a < d AND d < b", ()),
    "allen_starts": (("ALLEN STARTS", "STARTS"), "a = c AND b < d", ()),
    "allen_started_by": (("ALLEN STARTED BY", "STARTED BY"), "a = c AND d < b", ()),
    "allen_during": (("ALLEN DURING",), "c < a AND b < d", ()),
    "allen_contains": (("ALLEN CONTAINS", "STRICTLY CONTAINS"), "a < c AND d < b", ()),
    "allen_finishes": (("ALLEN FINISHES", "FINISHES"), "b = d AND c < a", ()),
    "allen_finished_by": (("ALLEN FINISHED BY", "FINISHED BY"), "b = d AND a < c", ()),
    "allen_equals": (("ALLEN EQUALS",), "a = c AND b = d", ()),
}
_ALLEN = [name for name in RELATIONS if name.startswith("allen_")]


def _amount(rng: random.Random, dtype: str) -> Text:
    """A distance of 0 to 5 steps of the data."""
    n = rng.choice([0, 1, 2, 3, 5])
    if dtype == "date":
        return Text(rng.choice([str(n), f"INTERVAL {n} DAYS"]), str(n))
    if dtype.startswith("timestamp"):
        n *= 20
        return Text(rng.choice([f"INTERVAL {n} MINUTES", f"INTERVAL '{n}' MINUTE"]), f"INTERVAL '{n} minutes'")
    if dtype == "double":
        return Text(f"{n / 4}D", f"{n / 4}")
    if dtype.startswith("decimal"):
        return Text(f"{n / 4:.2f}", f"{n / 4:.2f}")
    return Text(str(n), str(n))


def _next(end: str, dtype: str) -> str:
    """The value after `end`."""
    if dtype.startswith("timestamp"):
        return f"({end} + INTERVAL '1 microsecond')"
    return f"({end} + 0.01)" if dtype.startswith("decimal") else f"CAST({end} + 1 AS {dtype})"


_LARGEST = {"bigint": "9223372036854775807", "int": "2147483647"}


def period(rng: random.Random, dtype: str, start: str, end: str, *, empty: str) -> tuple[str, str, str]:
    """A period as ours writes it, and DuckDB's start and end; sometimes CLOSED or OPEN. `empty` is the setting."""
    kind = rng.random()
    if kind < 0.08 and dtype in ("int", "bigint", "date") and empty == "drop":
        return f"PERIOD CLOSED ({start}, {end})", start, _next(end, dtype)
    last = end
    ours = f"PERIOD({start}, {end})"
    if kind < 0.16 and dtype in _LARGEST and empty == "drop":
        ours, last = f"PERIOD({start}, {end} OPEN)", f"coalesce({end}, {_LARGEST[dtype]})"
    elif kind < 0.3:
        ours = f"({start}, {end})"
    if empty == "point" and dtype != "double":
        last = f"CASE WHEN {start} = {end} THEN {_next(end, dtype)} ELSE {end} END"
    return ours, start, last


def predicate(rng: random.Random, dtype: str, left: tuple[str, str], right: tuple[str, str], *, empty: str) -> Text:
    """A relation of two periods of columns of one type, in any spelling."""
    kind = rng.random()
    if kind < 0.1:
        return _point(rng, dtype, left, right, empty=empty)
    if kind < 0.17:
        return _relation_names(rng, dtype, left, right, empty=empty)
    if kind < 0.3:
        return _combined(rng, dtype, left, right, empty=empty)
    name = rng.choice(list(RELATIONS))
    words, formula, takes = RELATIONS[name]
    bounds = {word: _amount(rng, dtype) for word in takes if rng.random() < 0.6}
    if rng.random() < 0.45:
        ends = {"a": left[0], "b": left[1], "c": right[0], "d": right[1]}
        ours = f"{name}({', '.join(ends.values())}" + "".join(f", {w} => {v.ours}" for w, v in bounds.items()) + ")"
        if empty == "point" and dtype != "double":
            for start, end in ("ab", "cd"):
                old = ends[end]
                ends[end] = f"CASE WHEN {ends[start]} = {old} THEN {_next(old, dtype)} ELSE {old} END"
    else:
        first, a, b = period(rng, dtype, *left, empty=empty)
        second, c, d = period(rng, dtype, *right, empty=empty)
        ends = {"a": a, "b": b, "c": c, "d": d}
        shown = [f"{'START' if w == 'delta' else 'END'} {v.ours}" for w, v in bounds.items()]
        within = f" WITHIN {shown[0]}" if len(shown) == 1 else f" WITHIN ({', '.join(shown)})" if shown else ""
        ours = f"{first} {rng.choice(words)} {second}{within}"
    return Text(ours, formula_text(formula, ends, {w: v.duck for w, v in bounds.items()}, dtype))


def formula_text(formula: str, ends: dict[str, str], bounds: dict[str, str], dtype: str) -> str:
    """NULL for a NULL end, false for an empty or reversed period, else the formula."""
    terms = []
    for term in formula.split(" AND "):
        words = term.split()
        if words[-1] not in ("delta", "epsilon"):
            terms.append(" ".join(f"({ends[w]})" if w in ends else w for w in words))
        elif words[-1] in bounds:
            amount = bounds[words[-1]]
            if dtype in ("int", "bigint"):
                amount = f"CAST({amount} AS HUGEINT)"
            terms.append(f"({ends[words[0]]}) <= ({ends[words[2]]}) + {amount}")
    nulls = " OR ".join(f"({end}) IS NULL" for end in ends.values())
    proper = f"({ends['a']}) < ({ends['b']}) AND ({ends['c']}) < ({ends['d']})"
    if dtype == "double":
        proper += "".join(f" AND NOT isnan({ends[e]})" for e in "bd")
    return f"CASE WHEN {nulls} THEN NULL ELSE ({' AND '.join([proper, *terms])}) END"


def _point(rng: random.Random, dtype: str, left: tuple[str, str], right: tuple[str, str], *, empty: str) -> Text:
    ours, start, end = period(rng, dtype, *left, empty=empty)
    point = right[0]
    nan = f" AND NOT isnan({end})" if dtype == "double" else ""
    inside = f"({start}) < ({end}){nan} AND ({start}) <= {point} AND {point} < ({end})"
    duck = f"CASE WHEN ({start}) IS NULL OR ({end}) IS NULL OR {point} IS NULL THEN NULL ELSE {inside} END"
    return Text(f"{ours} CONTAINS {point}", duck)


def _relation_names(
    rng: random.Random, dtype: str, left: tuple[str, str], right: tuple[str, str], *, empty: str
) -> Text:
    """``allen_relation(...) IN (...)``."""
    names = rng.sample(_ALLEN, rng.randint(1, 4))
    ends = dict(zip("abcd", (*left, *right), strict=True))
    shown = ", ".join(f"'{name.removeprefix('allen_')}'" for name in names)
    ours = f"allen_relation({', '.join(ends.values())}) IN ({shown})"
    if empty == "point" and dtype != "double":
        for start, end in ("ab", "cd"):
            old = ends[end]
            ends[end] = f"CASE WHEN {ends[start]} = {old} THEN {_next(old, dtype)} ELSE {old} END"
    parts = [formula_text(RELATIONS[name][1], ends, {}, dtype) for name in names]
    return Text(ours, "(" + " OR ".join(parts) + ")")


def _combined(rng: random.Random, dtype: str, left: tuple[str, str], right: tuple[str, str], *, empty: str) -> Text:
    """Several relations of the same periods, or a test of what one says."""
    if rng.random() < 0.4:
        one = predicate(rng, dtype, left, right, empty=empty)
        form = rng.choice(["({}) IS TRUE", "({}) = TRUE", "coalesce({}, FALSE)", "NOT coalesce({}, TRUE)", "NOT ({})"])
        return one.both(form)
    parts = [predicate(rng, dtype, left, right, empty=empty) for _ in range(rng.choice([2, 2, 3]))]
    return join([part.both("({})") for part in parts], rng.choice([" OR ", " OR ", " AND "])).both(
        rng.choice(["({})", "NOT ({})"])
    )


def inequalities(rng: random.Random, left: tuple[str, str], right: tuple[str, str]) -> Text:
    """Plain comparisons that an interval join is found in; they mean what they say, for every row."""
    (a, b), (c, d) = left, right
    text = rng.choice(
        [
            f"{a} < {d} AND {c} < {b}",
            f"{c} <= {b} AND {d} >= {a}",
            f"{a} <= {c} AND {d} <= {b}",
            f"{c} BETWEEN {a} AND {b}",
            f"{a} <= {c} AND {c} < {b}",
            f"{b} > {c} AND {a} < {c} AND {d} > {b}",
            f"{d} < {a}",
            f"{b} <= {c}",
            f"NOT ({a} >= {d} OR {b} <= {c})",
            f"greatest({a}, {c}) < least({b}, {d})",
            f"{a} >= {c} AND ({a} < {d} OR {d} IS NULL)",
            f"({a} BETWEEN {c} AND {d} OR {c} BETWEEN {a} AND {b})",
            f"NOT ({b} < {c}) AND NOT ({d} < {a})",
        ]
    )
    return Text(text, text)
