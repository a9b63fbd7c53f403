"""The amounts of a frame's bounds: literals, read from their text.

A number counts rows or units of the order column; ``10s``, INTERVAL literals of a fixed length, and such a duration as
a string (``'10s'``, which is how a parameter may give it) are times, exact to the microsecond.
"""

from __future__ import annotations

import re
from decimal import Decimal, DecimalException

from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.window.frame import UNITS, Ticks
from sqlglot import exp

from sqlext.analyzer.amounts import in_string, time_of
from sqlext.analyzer.context import Context
from sqlext.analyzer.literals import whole_number
from sqlext.syntax.openmldb_nodes import Duration
from sqlext.syntax.spans import span_of

NO_BOUND = "write UNBOUNDED PRECEDING or UNBOUNDED FOLLOWING; then there is no bound"
_FORMS = "write a number, a number with a unit (10s; units: ms s m h d w), or INTERVAL '10' SECOND"
#: A whole number with or without the suffix of its type.
INTEGER = re.compile(r"(\d+)[LSY]?", re.IGNORECASE | re.ASCII)


def frame_amount(context: Context, value: exp.Expr, span: Span) -> tuple[int, str]:
    """The number and the unit ("" without one) of a bound, which stands at `span`.

    Raises AnalysisError for anything but a literal, for a negative amount, for months and years, and below a
    microsecond.
    """
    while isinstance(value, exp.Paren):
        value = value.this
    if isinstance(value, Duration):
        return _count(value.name, span), str(value.args["unit"].name)
    if isinstance(value, exp.Neg):
        raise _negative(span)
    text = context.slice(span_of(value)).strip()
    whole = INTEGER.fullmatch(text)
    if whole is not None:
        return _count(whole[1], span), ""
    if isinstance(value, exp.Literal) and not value.is_string:
        raise _refused(f"a frame bound is a whole number or a time, not {text}", span)
    time = _time(context, value, text, span)
    if time is None:
        raise _refused(f"a frame bound must be a literal, not {text!r}", span)
    if time < 0:
        raise _negative(span)
    if time != time.to_integral_value():
        raise _refused("a frame bound is finer than a microsecond", span, "give whole microseconds")
    return _in_units(int(time))


def refuse_uneven(ticks: Ticks, amount: int, unit: str, span: Span) -> None:
    """Raises AnalysisError if a time is no whole number of the order column's ticks."""
    if ticks.is_whole(amount, unit):
        return
    if ticks.day == 1:
        message = "the window is ordered by a date, so its bounds are whole days"
        help = "write days or weeks, such as 7d or 1w, or order by a timestamp"
    else:
        message = "the window is ordered by an integer, in which times are milliseconds, so its bounds are whole ones"
        help = "write a number without a unit, or order by a timestamp"
    raise _refused(message, span, help)


def _time(context: Context, value: exp.Expr, text: str, span: Span) -> Decimal | None:
    """The microseconds of an INTERVAL, or of a string that holds a duration; None for anything else."""
    literal = in_string(text, context.settings) if isinstance(value, (exp.Literal, exp.Concat)) else text
    if literal is None or (literal is text and not re.match(r"interval\b", text, re.IGNORECASE)):
        return None
    try:
        return time_of(literal, span, "a frame bound")
    except AnalysisError as error:
        raise _refused(error.message, span, error.help or _FORMS) from None
    except DecimalException:
        raise _refused("the bound is too large", span, NO_BOUND) from None


def _count(digits: str, span: Span) -> int:
    return whole_number(digits, span, "the bound", help=NO_BOUND)


def _in_units(microseconds: int) -> tuple[int, str]:
    """The same time in the largest unit that divides it."""
    for unit, size in sorted(UNITS.items(), key=lambda item: -item[1]):
        if microseconds % size == 0 and microseconds:
            return microseconds // size, unit
    return 0, "ms"


def _negative(span: Span) -> AnalysisError:
    return _refused("a frame bound cannot be negative", span, "use PRECEDING or FOLLOWING to choose the side")


def _refused(message: str, span: Span, help: str = _FORMS) -> AnalysisError:
    return AnalysisError(message, condition="window-frame", span=span, help=help)
