"""Amounts and whole numbers in the statement's text: literals that we read ourselves, none above Spark's bigint.

In a frame's bounds a number counts rows or units of the order column; ``10s``, INTERVAL literals of a fixed length, and
such a duration as a string (``'10s'``, which is how a parameter may give it) are times, exact to the microsecond.
"""

from __future__ import annotations

import re
from decimal import Decimal, DecimalException, localcontext
from functools import partial

from sqlext_planner.errors import AnalysisError, Span
from sqlext_planner.periods.predicates import UNITS, Amount
from sqlext_planner.window.nodes import UNITS as FRAME_UNITS
from sqlext_planner.window.nodes import Ticks
from sqlglot import exp

from sqlext.analyzer.context import Context
from sqlext.analyzer.items import unwrapped
from sqlext.syntax.nodes import Duration
from sqlext.syntax.spans import mistake, span_of
from sqlext.syntax.sql_settings import SqlSettings, is_string, string_value

_wrong_distance = partial(mistake, "period-distance")

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
        raise mistake("number-out-of-range", span, f"{what} {shown} is too large", help)
    return int(digits)


_SHORT = {"ms": "millisecond", "s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}
_CALENDAR = ("month", "quarter", "year")
_FIELDS = ("day", "hour", "minute", "second")

_NUMBER = r"(?:\d+\.?\d*|\.\d+)"
_PLAIN = re.compile(rf"({_NUMBER}(?:e[+-]?\d+)?)(?:l|d|f|bd)?", re.IGNORECASE)
_DURATION = re.compile(r"(\d+)(ms|s|m|h|d|w)", re.IGNORECASE)
_CAST = re.compile(r"(?:cast\s*\(\s*'([^']*)'\s*as\b.*\)|(?:double|float|decimal)\s*\(\s*'([^']*)'\s*\))", re.I | re.S)
_PART = re.compile(rf"\s*([+-]?)\s*('?)\s*({_NUMBER})\s*\2\s*([a-z]+)\s*", re.IGNORECASE)
_QUOTED = re.compile(r"""([+-]?)\s*(['"])(.*)\2\s*([a-z]*)(?:\s+to\s+([a-z]+))?""", re.IGNORECASE | re.DOTALL)

#: Digits: no amount is rounded that a statement may hold.
_EXACT = 1_000


def amount(context: Context, node: exp.Expr, name: str) -> Amount | None:
    """The bound given by an argument or by WITHIN; None for infinity, which bounds nothing.

    `name` is delta or epsilon. Raises AnalysisError if it is not a literal, is negative or NaN, or has no fixed length.
    """
    span = span_of(node)
    try:
        return _amount(context, span, name)
    except DecimalException:  # an exponent beyond what can be computed with
        raise _wrong_distance(span, f"{name} is out of range", "leave it out; then there is no bound") from None


def _amount(context: Context, span: Span, name: str) -> Amount | None:
    text = context.slice(span).strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    text = in_string(text, context.settings) or text
    negative = text.startswith("-")
    body = text.lstrip("+-").strip()
    value = time_of(body, span, name)
    interval = value is not None
    if value is None:
        value = _number(body, span, name)
    if value is None:
        raise _wrong_distance(
            span,
            f"{name} must be a literal number or INTERVAL, not {context.slice(span)!r}",
            "write a distance that differs from row to row as an ordinary comparison: s.ts - r.te <= r.x",
        )
    if not value.is_finite() and not negative:
        return None
    return _checked(-value if negative else value, span, name, interval=interval)


def _checked(value: Decimal, span: Span, name: str, *, interval: bool) -> Amount:
    if value < 0:
        raise _wrong_distance(span, f"{name} cannot be negative", "swap the periods, or use the inverse relation")
    if interval and value != value.to_integral_value():
        raise _wrong_distance(span, f"{name} is finer than a microsecond", "give whole microseconds")
    if interval and value > LARGEST:
        raise _wrong_distance(
            span, f"{name} is longer than any distance between two times", "leave it out; then there is no bound"
        )
    if value == value.to_integral_value() and value <= LARGEST:
        return Amount(int(value), interval, span=span)
    if Decimal(repr(float(value))) != value:
        raise _wrong_distance(span, f"{name} has more digits than a double can hold", "give at most 15 digits")
    return Amount(float(value), interval, span=span)


def _number(text: str, span: Span, name: str) -> Decimal | None:
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        return Decimal(plain[1])
    cast = _CAST.fullmatch(text)
    if cast is None:
        return None
    word = (cast[1] if cast[1] is not None else cast[2]).strip().lower()
    if word == "nan":
        raise _wrong_distance(span, f"{name} cannot be NaN", "leave it out if there is no bound")
    if word.lstrip("+") in ("inf", "infinity"):
        return Decimal("Infinity")
    found = re.fullmatch(rf"([+-]?){_NUMBER}(e[+-]?\d+)?", word)
    return Decimal(word) if found is not None else None


def in_string(text: str, settings: SqlSettings) -> str | None:
    """The duration that a string literal holds, as a literal of its own. ``'15s'`` and ``'5 minutes'`` may be the
    values of parameters. None for other text."""
    if not is_string(text):
        return None
    held = string_value(text, settings).strip()
    bare = _DURATION.fullmatch(held) or re.match(r"interval\b", held, re.IGNORECASE)
    return held if bare else f"INTERVAL {held}"


def time_of(text: str, span: Span | None, name: str) -> Decimal | None:
    """Microseconds of an INTERVAL literal or a number with a unit; None for anything else.

    Raises AnalysisError, at `span` and about `name`, for units without a fixed length.
    """
    with localcontext(prec=_EXACT):
        return _time_of(text, span, name)


def _time_of(text: str, span: Span | None, name: str) -> Decimal | None:
    short = _DURATION.fullmatch(text)
    if short is not None:
        return Decimal(short[1]) * UNITS[_SHORT[short[2].lower()]]
    word = re.match(r"interval\b", text, re.IGNORECASE)
    body = text[word.end() :].strip() if word else text
    parts = _parts(body, span, name)
    if parts is not None:
        return parts
    quoted = _QUOTED.fullmatch(body) if word else None
    if quoted is None:
        return None
    sign = -1 if quoted[1] == "-" else 1
    if quoted[5]:
        found = _fields(quoted[3], quoted[4].lower(), quoted[5].lower(), span, name)
    else:
        inside = re.sub(r"^\s*interval\b", "", quoted[3], flags=re.IGNORECASE)
        found = _parts(f"{inside} {quoted[4]}", span, name)
    return None if found is None else sign * found


def _parts(text: str, span: Span | None, name: str) -> Decimal | None:
    """The sum of ``1 day 2 hours``, ``'5' MINUTE``; None for text of another form."""
    total, at = Decimal(0), 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None
        unit = _unit(part[4], span, name)
        if unit is None:
            return None
        total += (-1 if part[1] == "-" else 1) * Decimal(part[3]) * unit
        at = part.end()
    return total if text.strip() else None


def _unit(word: str, span: Span | None, name: str) -> int | None:
    unit = word.lower().removesuffix("s")
    if unit in _CALENDAR:
        raise _no_fixed_length(unit, span, name)
    return UNITS.get(unit)


def _no_fixed_length(unit: str, span: Span | None, name: str) -> AnalysisError:
    return _wrong_distance(span, f"{name} cannot be in {unit}s, which differ in length", "write days, such as 30 DAYS")


def _fields(text: str, first: str, last: str, span: Span | None, name: str) -> Decimal | None:
    """``'1 02:03:04.5' DAY TO SECOND``."""
    for unit in (first, last):
        if unit in _CALENDAR:
            raise _no_fixed_length(unit, span, name)
    if first not in _FIELDS or last not in _FIELDS:
        return None
    units = _FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1]
    sign = -1 if text.strip().startswith("-") else 1
    numbers = re.split(r"[ :]+", text.strip().lstrip("+-"))
    if len(numbers) != len(units) or not all(re.fullmatch(_NUMBER, number) for number in numbers):
        return None
    return sign * sum((Decimal(n) * UNITS[unit] for n, unit in zip(numbers, units, strict=True)), Decimal(0))


NO_BOUND = "write UNBOUNDED PRECEDING or UNBOUNDED FOLLOWING; then there is no bound"
_FORMS = "write a number, a number with a unit (10s; units: ms s m h d w), or INTERVAL '10' SECOND"
#: A whole number with or without the suffix of its type.
INTEGER = re.compile(r"(\d+)[LSY]?", re.IGNORECASE | re.ASCII)


def frame_amount(context: Context, value: exp.Expr, span: Span) -> tuple[int, str]:
    """The number and the unit ("" without one) of a bound, which stands at `span`.

    Raises AnalysisError for anything but a literal, for a negative amount, for months and years, and below a
    microsecond.
    """
    value = unwrapped(value)
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
    for unit, size in sorted(FRAME_UNITS.items(), key=lambda item: -item[1]):
        if microseconds % size == 0 and microseconds:
            return microseconds // size, unit
    return 0, "ms"


def _negative(span: Span) -> AnalysisError:
    return _refused("a frame bound cannot be negative", span, "use PRECEDING or FOLLOWING to choose the side")


def _refused(message: str, span: Span, help: str = _FORMS) -> AnalysisError:
    return mistake("window-frame", span, message, help)
