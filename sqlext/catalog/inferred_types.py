"""Types of columns of text, from looking at every value: those that Spark infers, or wider ones. First without Spark,
then of what Spark has inferred.

Spark's `inferSchema` makes doubles of all numbers with a fraction, and of whole numbers with more than 38 digits, also
where that makes one value of two. Here a column is double only if no two of its numbers become the same one; otherwise
it is decimal, or string where 38 digits are not enough. `tests/catalog/test_csv_types.py` compares with Spark itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlext_planner.relational.physical_plan import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

    Path = tuple[str | None, ...]

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
    """The digits of numbers, without zeros at both ends: of numbers of about one size, equal ones have equal digits."""
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


_DIGITS = "trim(BOTH '0' FROM regexp_replace(regexp_replace({}, '[eE].*$', ''), '[^0-9]', ''))"


def exact_types(schema: StructType, read: Callable[[StructType], DataFrame]) -> StructType:
    """A schema that Spark has inferred, with strings in place of the doubles that are not exact. `read` reads the files
    with another schema; they are read once more if there is a double, and twice if one has numbers of many digits."""
    from pyspark.sql.types import DoubleType, StringType

    leaves = [path for path, dtype in _leaves(schema) if isinstance(dtype, DoubleType)]
    if not leaves:
        return schema
    texts = _texts(read(_with(schema, leaves, StringType())), leaves)
    long = texts.where(f"length(text) > {_APART} OR text RLIKE '[eE]'")
    found = long.groupBy("leaf").agg(_expr(f"max(length(digits)) > {_APART}"), _expr(f"bool_or({_LOST})")).collect()
    lost = {row[0] for row in found if row[2]}
    close = [row[0] for row in found if row[1] and not row[2]]
    if close:
        counted = texts.where(texts["leaf"].isin(close)).groupBy("leaf")
        counts = counted.agg(_expr("count(DISTINCT number)"), _expr("count(DISTINCT number, digits)")).collect()
        lost |= {row[0] for row in counts if row[1] < row[2]}
    return _with(schema, [leaf for place, leaf in enumerate(leaves) if place in lost], StringType())


#: A number of more digits than a double is printed with, and one beyond the range of doubles.
_LOST = (
    f"(length(digits) > {_READ_BACK} AND digits <> {_DIGITS.format('string(number)')}) "
    "OR number IN (double('Infinity'), double('-Infinity')) OR (number = 0 AND digits <> '')"
)


def _texts(frame: DataFrame, leaves: list[Path]) -> DataFrame:
    """One row for each number: the position of its leaf, its text, its digits, and the double that it is read as."""
    from pyspark.sql import functions as spark

    parts = []
    for place, path in enumerate(leaves):
        values = _values(frame[quoted(str(path[0]))], path[1:])
        numbered = spark.transform(values, partial(_numbered, place))
        parts.append(spark.coalesce(numbered, spark.array()))
    rows = frame.select(spark.explode(spark.concat(*parts)).alias("r"))
    rows = rows.selectExpr("r.leaf", "r.text").where("text RLIKE '^[+-]?[0-9.]'")
    return rows.selectExpr("*", f"{_DIGITS.format('text')} AS digits", "double(text) AS number")


def _numbered(place: int, text: Column) -> Column:
    from pyspark.sql import functions as spark

    return spark.struct(spark.lit(place).alias("leaf"), text.alias("text"))


def _values(column: Column, path: Path) -> Column:
    """All values of a leaf in a row, as an array."""
    from pyspark.sql import functions as spark

    if not path:
        return spark.array(column)
    name, rest = path[0], path[1:]
    if name is None:
        return spark.flatten(spark.transform(column, lambda element: _values(element, rest)))
    return _values(column.getField(name), rest)


def _leaves(dtype: DataType, path: Path = ()) -> Iterator[tuple[Path, DataType]]:
    from pyspark.sql.types import ArrayType, StructType

    match dtype:
        case StructType():
            for field in dtype.fields:
                yield from _leaves(field.dataType, (*path, field.name))
        case ArrayType():
            yield from _leaves(dtype.elementType, (*path, None))
        case _:
            yield path, dtype


def _with(schema: StructType, leaves: list[Path], new: DataType) -> StructType:
    """The schema with another type in some places."""
    changed: Any = schema
    for path in leaves:
        changed = _changed(changed, path, new)
    found: StructType = changed
    return found


def _changed(dtype: DataType, path: Path, new: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, StructField, StructType

    match dtype:
        case StructType():
            return StructType(
                [
                    StructField(field.name, _changed(field.dataType, path[1:], new), field.nullable, field.metadata)
                    if field.name == path[0]
                    else field
                    for field in dtype.fields
                ]
            )
        case ArrayType():
            return ArrayType(_changed(dtype.elementType, path[1:], new), dtype.containsNull)
        case _:
            return new


def _expr(text: str) -> Column:
    from pyspark.sql import functions as spark

    return spark.expr(text)
