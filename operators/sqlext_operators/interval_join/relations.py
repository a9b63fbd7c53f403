"""The interval relations: one table, a row each (docs/reference/periods.md, sections 1 to 3).

r = [a, b) is the left period, s = [c, d) the right one. A row gives the relation its words, its function, its SQL for
scalar use, its join (the windows of `passes.py`) and docs/predicates.md. How the paper's sweep finds its pairs is a row
of the same name and place in `sweep/transforms.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sqlext_operators.interval_join.conditions import Condition, Operator, Shift
from sqlext_operators.interval_join.passes import Pass, passes_for

Family = Literal["allen", "iseql", "period"]

LEFT_PERIOD = ("a", "b")
RIGHT_PERIOD = ("c", "d")

_TERM = re.compile(r"([abcd]) (<=|<|=) ([abcd])")
_DISTANCE = re.compile(r"([abcd]) - ([abcd]) <= (delta|epsilon)")


@dataclass(frozen=True)
class PeriodRelation:
    """A relation of two periods.

    `name` is its function in SQL, `words` its infix spellings. `formula` lists terms with commas; a distance
    ``c - a <= delta`` counts only where the parameter is given. `parameters` are those it takes; a bare WITHIN amount
    means the first. `inverse` is the relation with the sides swapped, if it has a name. With `point`, the right
    side may be a single value t, taken as [t, t]: then ``a <= t < b``. A NULL end makes the relation NULL, so it
    matches nothing; an empty or reversed period matches nothing either.
    """

    name: str
    family: Family
    words: tuple[str, ...]
    formula: str
    inverse: str | None
    doc: str
    parameters: tuple[str, ...] = ()
    point: bool = False

    def conditions(self, **values: float | None) -> tuple[Condition, ...]:
        """The formula's terms with values for parameters; one that is missing, None or infinite bounds nothing.

        Raises ValueError for a parameter that the relation does not take, and for a negative one.
        """
        for name, value in values.items():
            if name not in self.parameters:
                raise ValueError(f"{self.name} takes no {name}")
            if value is not None and not value >= 0:
                raise ValueError(f"{name} is not negative, {value} is")
        return tuple(bound for term in self.terms for bound in [_bound(term, values)] if bound is not None)

    @cached_property
    def terms(self) -> tuple[Condition, ...]:
        """The formula with parameters by name, left values on the left."""
        return tuple(_term(text.strip()) for text in self.formula.split(","))

    def passes(self, **values: float | None) -> tuple[Pass, ...]:
        """How a join finds its pairs among periods that are not empty."""
        return passes_for(self.conditions(**values), LEFT_PERIOD, RIGHT_PERIOD)

    @property
    def strict(self) -> bool:
        """Whether it is one of Allen's, of which exactly one holds for two periods."""
        return self.family == "allen"


def _term(text: str) -> Condition:
    distance = _DISTANCE.fullmatch(text)
    if distance is not None:
        high, low, parameter = distance.groups()
        if low in LEFT_PERIOD:  # c - a <= delta: a + delta >= c
            return Condition(low, ">=", high, (1, parameter))
        return Condition(high, "<=", low, (-1, parameter))  # a - c <= delta: a - delta <= c
    match = _TERM.fullmatch(text)
    if match is None:
        raise ValueError(f"not a term of a relation: {text!r}")
    first, operator, second = match.groups()
    if first in LEFT_PERIOD:
        return Condition(first, _OPERATORS[operator], second)
    return Condition(second, _TURNED[operator], first)


_OPERATORS: dict[str, Operator] = {"<": "<", "<=": "<=", "=": "="}
_TURNED: dict[str, Operator] = {"<": ">", "<=": ">=", "=": "="}


def _bound(term: Condition, values: Mapping[str, float | None]) -> Condition | None:
    if not isinstance(term.shift, tuple):
        return term
    sign, name = term.shift
    value = values.get(name)
    if value is None or value == float("inf"):
        return None
    shift: Shift = sign * value
    return Condition(term.left, term.operator, term.right, shift)


_BOTH = ("delta", "epsilon")


def _allen(name: str, formula: str, inverse: str, doc: str, *bare: str) -> PeriodRelation:
    words = (f"ALLEN {name.replace('_', ' ').upper()}", *bare)
    return PeriodRelation(f"allen_{name}", "allen", words, formula, f"allen_{inverse}", doc)


def _iseql(
    name: str, formula: str, inverse: str, doc: str, parameters: tuple[str, ...], words: tuple[str, ...] | None = None
) -> PeriodRelation:
    spelled = words or (name.replace("_", " ").upper(),)
    return PeriodRelation(f"iseql_{name}", "iseql", spelled, formula, f"iseql_{inverse}", doc, parameters)


def _period(name: str, formula: str, inverse: str | None, doc: str, point: bool = False) -> PeriodRelation:
    words = (name.replace("_", " ").upper(),)
    return PeriodRelation(f"period_{name}", "period", words, formula, inverse and f"period_{inverse}", doc, point=point)


_ROWS = (
    _allen("before", "b < c", "after", "r ends and some time passes before s starts.", "STRICTLY PRECEDES"),
    _allen("after", "d < a", "before", "s ends and some time passes before r starts.", "STRICTLY SUCCEEDS"),
    _allen("meets", "b = c", "met_by", "s starts where r ends (not the other way round).", "MEETS"),
    _allen("met_by", "d = a", "meets", "r starts where s ends.", "MET BY"),
    _allen("overlaps", "a < c, c < b, b < d", "overlapped_by", "r starts first, they share time, s ends last."),
    _allen("overlapped_by", "c < a, a < d, d < b", "overlaps", "s starts first, they share time, r ends last."),
    _allen("starts", "a = c, b < d", "started_by", "Both start together, r ends first.", "STARTS"),
    _allen("started_by", "a = c, d < b", "starts", "Both start together, s ends first.", "STARTED BY"),
    _allen("during", "c < a, b < d", "contains", "r lies inside s and touches neither end."),
    _allen("contains", "a < c, d < b", "during", "s lies inside r and touches neither end.", "STRICTLY CONTAINS"),
    _allen("finishes", "b = d, c < a", "finished_by", "Both end together, r starts last.", "FINISHES"),
    _allen("finished_by", "b = d, a < c", "finishes", "Both end together, s starts last.", "FINISHED BY"),
    _allen("equals", "a = c, b = d", "equals", "Both start together and end together."),
    _iseql("before", "b <= c, c - b <= delta", "after", "r ends, and s starts at most delta later.", ("delta",)),
    _iseql("after", "d <= a, a - d <= delta", "before", "s ends, and r starts at most delta later.", ("delta",)),
    _iseql(
        "start_preceding",
        "a <= c, c < b, c - a <= delta",
        "start_preceded_by",
        "s starts while r lasts, at most delta after r's start.",
        ("delta",),
    ),
    _iseql(
        "start_preceded_by",
        "c <= a, a < d, a - c <= delta",
        "start_preceding",
        "r starts while s lasts, at most delta after s's start.",
        ("delta",),
    ),
    _iseql(
        "end_following",
        "a < d, d <= b, b - d <= epsilon",
        "end_followed_by",
        "s ends while r lasts, at most epsilon before r's end.",
        ("epsilon",),
    ),
    _iseql(
        "end_followed_by",
        "c < b, b <= d, d - b <= epsilon",
        "end_following",
        "r ends while s lasts, at most epsilon before s's end.",
        ("epsilon",),
    ),
    _iseql(
        "left_overlap",
        "a <= c, c < b, b <= d, c - a <= delta, d - b <= epsilon",
        "right_overlap",
        "They share time; r starts first (by at most delta), s ends last (by at most epsilon).",
        _BOTH,
    ),
    _iseql(
        "right_overlap",
        "c <= a, a < d, d <= b, a - c <= delta, b - d <= epsilon",
        "left_overlap",
        "They share time; s starts first (by at most delta), r ends last (by at most epsilon).",
        _BOTH,
    ),
    _iseql(
        "during",
        "c <= a, b <= d, a - c <= delta, d - b <= epsilon",
        "reverse_during",
        "r lies inside s, at most delta after its start and at most epsilon before its end.",
        _BOTH,
    ),
    _iseql(
        "reverse_during",
        "a <= c, d <= b, c - a <= delta, b - d <= epsilon",
        "during",
        "s lies inside r, at most delta after its start and at most epsilon before its end.",
        _BOTH,
    ),
    _period("overlaps", "a < d, c < b", "overlaps", "They share time (SQL:2011; nine of Allen's relations)."),
    _period("contains", "a <= c, d <= b", None, "s lies inside r (SQL:2011); with a point t: a <= t < b.", point=True),
    _period("equals", "a = c, b = d", "equals", "Both start together and end together (SQL:2011)."),
    _period("precedes", "b <= c", "succeeds", "r ends before s starts, or where it starts (SQL:2011)."),
    _period("succeeds", "d <= a", "precedes", "r starts after s ends, or where it ends (SQL:2011)."),
    _period("immediately_precedes", "b = c", "immediately_succeeds", "s starts where r ends (SQL:2011)."),
    _period("immediately_succeeds", "d = a", "immediately_precedes", "r starts where s ends (SQL:2011)."),
)

#: Every relation by the name of its function.
RELATIONS = {row.name: row for row in _ROWS}
