"""Types that Spark has inferred: doubles only where no two numbers become the same one (as csv_types.py, by Spark)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

    #: Names of fields, and None for the elements of an array.
    Path = tuple[str | None, ...]

#: Digits that a double always tells apart, and those that it is printed with at most.
_APART, _READ_BACK = 15, 17
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
        values = _values(frame[_quoted(path[0])], path[1:])
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


def _quoted(name: str | None) -> str:
    return "`" + str(name).replace("`", "``") + "`"
