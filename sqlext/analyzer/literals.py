"""Whole numbers in the statement's text that we read ourselves: none is larger than Spark's bigint."""

from __future__ import annotations

from sqlext_planner.errors import AnalysisError, Span

LARGEST = 2**63 - 1
_MOST_DIGITS = 19


def whole_number(text: str, span: Span, what: str, *, most: int = LARGEST, help: str | None = None) -> int:
    """The value of a number's digits. Raises AnalysisError, at its place, for one above `most`.

    The digits are counted first: Python is slow to read thousands of them, and refuses more than 4,300.
    """
    digits = text.lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS or int(digits) > most:
        shown = text if len(text) <= 40 else f"{text[:20]}... ({len(text)} digits)"
        help = help or f"the largest is {most}"
        raise AnalysisError(f"{what} {shown} is too large", condition="number-out-of-range", span=span, help=help)
    return int(digits)
