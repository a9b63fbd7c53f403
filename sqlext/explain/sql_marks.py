"""The user's text with the parts marked that became nodes of the extension, each a link to its node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from sqlext_planner.errors import Span
from sqlext_planner.expressions.nodes import conjuncts
from sqlext_planner.plan_format.markup import Markup, tag
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.physical_plan import place_of

#: Between two lines of a mark: line breaks and indentation, which are not underlined.
_INDENT = re.compile(r"(\s*\n\s*)")


def places_of(node: LogicalPlan) -> tuple[Span, ...]:
    """Where a node stands in the text: its own place, and those of its calls, terms and tables that are outside of
    it."""
    found = [node.span, *(place_of(term) for item in node.expressions() for term in conjuncts(item))]
    found += [_table(child) for child in node.children]
    return outermost(span for span in found if span is not None)


def outermost(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The places that are not inside another one, in order."""
    kept: list[Span] = []
    for span in sorted(set(spans), key=lambda span: (span.start, -span.end)):
        if not kept or span.end > kept[-1].end:
            kept.append(span)
    return tuple(kept)


def _table(plan: LogicalPlan) -> Span | None:
    """The place of the table that an input reads, None for an input that an operator or several tables make."""
    while len(plan.children) == 1 and plan.operator_name is None:
        plan = plan.children[0]
    return None if plan.children else plan.span


def marked_sql(sql: str, marks: Sequence[Sequence[Span]], prefix: str) -> Markup:
    """The text; the places of mark n link to `{prefix}-op-{n + 1}`, and the first of them is `{prefix}-sql-{n + 1}`.
    Of marks that overlap the shorter one is on top."""
    owner: list[int | None] = [None] * len(sql)
    spans = [(span, number) for number, found in enumerate(marks, 1) for span in found]
    for span, number in sorted(spans, key=lambda item: item[0].start - item[0].end):
        places = range(max(span.start, 0), min(span.end, len(sql)))
        owner[places.start : places.stop] = [number] * len(places)
    return tag("pre", list(_pieces(sql, owner, prefix)), class_="sql")


def _pieces(sql: str, owner: Sequence[int | None], prefix: str) -> Iterator[str]:
    place = 0
    seen: set[int] = set()
    for number, letters in groupby(owner):
        whole = sql[place : (place := place + len(list(letters)))]
        piece = whole.strip(" \t\r\n,")
        if number is None or not piece:
            yield whole
            continue
        before, after = whole.split(piece, 1)
        first = number not in seen
        seen.add(number)
        badge = tag("sup", str(number), class_="no") if first else None
        ident = f"{prefix}-sql-{number}" if first else None
        yield before
        colour = f"hit c{(number - 1) % 6}"
        lines = [tag("span", part, class_=colour) if part.strip() else part for part in _INDENT.split(piece)]
        yield tag("a", lines, badge, href=f"#{prefix}-op-{number}", id=ident, class_="mark")
        yield after
