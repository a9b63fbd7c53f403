"""Types of columns of text, from looking at every value: those that Spark infers, or wider ones.

Spark's `inferSchema` makes doubles of all numbers with a fraction, and of whole numbers with more than 38 digits, also
where that makes one value of two. Here a column is double only if no two of its numbers become the same one; otherwise
it is decimal, or string where 38 digits are not enough. `tests/catalog/test_csv_types.py` compares with Spark itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation

import pyarrow as pa

#: Digits that a double always tells apart; that it needs to be read back; and those of the widest decimal.
_APART, _READ_BACK, _WIDEST = 15, 17, 38
_DATE = r"\d{4}-\d{2}-\d{2}"
_ZONE = r"(Z|[+-]((0\d|1[0-7]):[0-5]\d|18:00))"
#: Spark takes a zone after seconds only.
_CLOCK = rf"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{{1,6}})?{_ZONE}?)?"
#: Kinds from narrow to wide, with a pattern for their values. Integers and days are also checked for their range.
_PATTERNS = {
    "boolean": r"(?i)^(true|false)$",
    "int": r"^[+-]?\d+$",
    "bigint": r"^[+-]?\d+$",
    "number": r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^NaN$|^-?Infinity$",
    "date": f"^{_DATE}$",
    "timestamp": f"^{_DATE}([ T]{_CLOCK})?$",
}
_LIMITS = {"int": pa.int32(), "bigint": pa.int64()}
#: Digits of the decimals that hold every int and every bigint.
_INTEGERS = (10, 20)
#: Values that are looked at before the others.
_FIRST = 64
#: What a double holds beside numbers.
_SPECIAL = ("NaN", "Infinity", "-Infinity")


class ColumnValues:
    """What is known of a column's values, batch after batch."""

    def __init__(self) -> None:
        self._kinds = list(_PATTERNS)
        self._is_filled = False
        self._is_fractional = False

    def add(self, values: pa.Array) -> None:
        """Look at some values, none of which is empty."""
        import pyarrow.compute as pc

        if len(values) == 0:
            return
        self._is_filled = True
        for part in (values.slice(0, _FIRST), values):  # most kinds are out after a few values
            self._kinds = [kind for kind in self._kinds if _fits(kind, part)]
        if self.kind == "number" and not self._is_fractional:
            self._is_fractional = bool(pc.any(pc.match_substring_regex(values, "[.eEN]|I")).as_py())

    @property
    def kind(self) -> str:
        """The narrowest type, or `number` for one wider than bigint."""
        return self._kinds[0] if self._kinds and self._is_filled else "string"

    def spark_type(self, read: Callable[[], Iterable[pa.Array]]) -> str:
        """The type; `read` gives all values anew, where they have to be looked at again."""
        if self.kind != "number":
            return self.kind
        if self._is_fractional and tells_apart(read):
            return "double"
        return _decimal(read)


def _decimal(read: Callable[[], Iterable[pa.Array]]) -> str:
    """The decimal that holds all numbers exactly; string if none does. As Spark, integers have 10 or 20 digits."""
    whole = part = 0
    for values in read():
        for text in values.unique().to_pylist():
            try:
                number = Decimal(text or "0")
            except InvalidOperation:  # an exponent of 20 digits
                return "string"
            if not number.is_finite():
                return "string"
            _, digits, exponent = number.as_tuple()
            whole = max(whole, len(digits) + int(exponent))
            part = max(part, -int(exponent))
        if whole + part > _WIDEST:
            return "string"
    integers = next((wide for wide in _INTEGERS if whole <= wide), whole) if part == 0 else whole
    return f"decimal({integers + part},{part})"


def is_value(text: str) -> bool:
    """Whether a text is a number, a date, a time or nothing: no name for a column."""
    return text.strip() == "" or any(_fits(kind, pa.array([text])) for kind in ("number", "timestamp"))


def tells_apart(read: Callable[[], Iterable[pa.Array]]) -> bool:
    """Whether no two different numbers of a column become the same double, none becomes infinite or 0, and none has
    digits that a double cannot have. `read` gives the values anew, with empty ones.

    A double is printed with at most 17 digits, or with as many as somebody wants of its own: a number that has more
    than 17 others was no double. A number that is the shortest text of its double cannot become one with another such
    number; the few that are not are compared with all others.
    """
    import pyarrow.compute as pc

    tables: list[pa.Table] = []
    for values in read():
        suspects = _suspects(values)
        if suspects is None:
            return False
        if suspects.num_rows:
            tables.append(suspects.group_by(["double", "digits"]).aggregate([]))
    if not tables:
        return True
    pairs = pa.concat_tables(tables).group_by(["double", "digits"]).aggregate([])
    doubles = pc.unique(pairs["double"])
    if len(doubles) < pairs.num_rows:
        return False
    for values in read():
        numbers = _numbers(values)
        read_as = _doubles(numbers)
        same = pc.is_in(read_as, value_set=doubles)
        if pc.any(pc.equal(_digits(numbers).filter(same), _shortest(read_as.filter(same)))).as_py():
            return False
    return True


def _suspects(values: pa.Array) -> pa.Table | None:
    """The numbers that are not the shortest text of their double, as pairs of double and digits; None if one of them
    shows that the column holds no doubles."""
    import pyarrow.compute as pc

    numbers = _numbers(values)
    numbers = numbers.filter(
        pc.or_(pc.greater(pc.utf8_length(numbers), _APART), pc.match_substring_regex(numbers, "[eE]"))
    )
    numbers = numbers.filter(pc.not_equal(numbers, pc.cast(_doubles(numbers), pa.string())))
    read_as, digits = _doubles(numbers), _digits(numbers)
    is_lost = pc.or_(pc.is_inf(read_as), pc.and_(pc.equal(read_as, 0.0), pc.not_equal(digits, "")))
    if pc.any(is_lost).as_py():
        return None
    suspect = pc.not_equal(digits, _shortest(read_as))
    long = numbers.filter(pc.and_(suspect, pc.greater(pc.utf8_length(digits), _READ_BACK)))
    if not all(_is_of_a_double(text) for text in long.to_pylist()):
        return None
    return pa.table({"double": read_as.filter(suspect), "digits": digits.filter(suspect)})


def _is_of_a_double(text: str) -> bool:
    """Whether a number with many digits is a double, rounded to as many."""
    number = Decimal(text)
    digits = len(number.normalize().as_tuple().digits)
    return number == Decimal(f"{float(text):.{digits - 1}e}")


def _numbers(values: pa.Array) -> pa.Array:
    """The values that are finite numbers, without the sign +."""
    import pyarrow.compute as pc

    return pc.utf8_ltrim(values.filter(pc.invert(pc.is_in(values, value_set=pa.array(["", *_SPECIAL])))), "+")


def _doubles(numbers: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    try:
        return pc.cast(numbers, pa.float64())
    except pa.ArrowInvalid:  # 1e999
        return pa.array([float(text) for text in numbers.to_pylist()], pa.float64())


def _digits(numbers: pa.Array) -> pa.Array:
    """The digits of numbers, without zeros at both ends: of two numbers of about the same size, equal ones have equal
    digits."""
    import pyarrow.compute as pc

    return pc.utf8_trim(pc.replace_substring_regex(numbers, r"[eE].*$|[^\deE]", ""), "0")


def _shortest(doubles: pa.Array) -> pa.Array:
    """The digits of the shortest text that is read as each double."""
    import pyarrow.compute as pc

    return _digits(pc.cast(doubles, pa.string()))


def _fits(kind: str, values: pa.Array) -> bool:
    import pyarrow.compute as pc

    if not pc.all(pc.match_substring_regex(values, _PATTERNS[kind])).as_py():
        return False
    try:
        if kind in _LIMITS:
            pc.cast(pc.utf8_ltrim(values, "+"), _LIMITS[kind])
        elif kind in ("date", "timestamp"):
            pc.cast(pc.utf8_slice_codeunits(values, 0, 10), pa.date32())
    except pa.ArrowInvalid:
        return False
    return True
