"""LAST JOIN in plain Spark: right sides reduced to one row a key, or all pairs and then the winner of each left row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from sqlext_planner.expressions import Compare, Literal
from sqlext_planner.logical import LastMatch
from sqlext_planner.physical.base import quoted
from sqlext_planner.physical.relational import spark_column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from sqlext_planner.physical.last_join_inputs import TypedMatch

_ROW, _PLACE, _ORDER, _LEFT, _MATCH = (f"__sqlext_{name}" for name in ("row", "place", "order", "left", "match"))


def join_reduced(left: DataFrame, right: DataFrame, typed: TypedMatch) -> DataFrame:
    """`left` with the columns of the last row of each key of `right`, which is broadcast.

    For matches without a residual: the winner of a key is then the same for all left rows. Right keys are grouped in
    the type in which they are compared, so that no two groups match one left row.
    """
    from pyspark.sql.functions import broadcast, col

    match, names = typed.match, right.columns
    keys = [f"__sqlext_key{place}" for place in range(len(match.right_keys))]
    rows = right.filter(_all([spark_column(term) for term in typed.terms.right_only])).select(
        *(spark_column(key).alias(name) for key, name in zip(typed.right_keys(), keys, strict=True)),
        *_order_columns(match),
        _packed(names).alias(_MATCH),
    )
    for name, safe in zip(keys, match.null_safe, strict=True):
        rows = rows if safe else rows.filter(col(name).isNotNull())
    winners = rows.groupBy(*keys).agg(_last(match).alias(_MATCH))
    pairs = [(spark_column(key), col(name)) for key, name in zip(typed.left_keys(), keys, strict=True)]
    on = [a.eqNullSafe(b) if safe else a == b for (a, b), safe in zip(pairs, match.null_safe, strict=True)]
    joined = left.join(broadcast(winners), _all(on), "left_outer")
    return joined.select(*(col(quoted(name)) for name in left.columns), *_unpacked(_MATCH, names))


def join_pairs(left: DataFrame, right: DataFrame, match: LastMatch) -> DataFrame:
    """`left` with the columns of the last matching row of `right`, for any condition: every matching pair is made,
    and the last one of each left row is kept."""
    from pyspark.sql.functions import col, first, monotonically_increasing_id

    kept, names = left.columns, right.columns
    rows = left.select(_packed(kept).alias(_LEFT), *(col(quoted(name)) for name in kept))
    numbered = rows.select("*", monotonically_increasing_id().alias(_ROW))
    others = right.select("*", *_order_columns(match))
    sides = zip(match.left_keys, match.right_keys, match.null_safe, strict=True)
    on = [spark_column(Compare("<=>" if safe else "=", a, b)) for a, b, safe in sides]
    on += [spark_column(match.residual)] if match.residual is not None else []
    pairs = numbered.join(others, _all(on), "left_outer").withColumn(_MATCH, _packed(names))
    winners = pairs.groupBy(_ROW).agg(first(_LEFT).alias(_LEFT), _last(match).alias(_MATCH))
    return winners.select(*_unpacked(_LEFT, kept), *_unpacked(_MATCH, names))


def _order_columns(match: LastMatch) -> list[SparkColumn]:
    """The order key, and the row's place in its input: (partition index, position in it)."""
    from pyspark.sql.functions import lit, monotonically_increasing_id

    ordered = match.order_by is not None and not isinstance(match.order_by, Literal)
    order = spark_column(match.order_by) if ordered and match.order_by is not None else lit(0)
    return [order.alias(_ORDER), monotonically_increasing_id().alias(_PLACE)]


def _last(match: LastMatch) -> SparkColumn:
    """The winner among rows with the columns _MATCH, _ORDER and _PLACE; NULL orders lose."""
    from pyspark.sql.functions import col, max_by, min_by, struct

    order, place = col(_ORDER), col(_PLACE)
    if match.descending:
        return min_by(col(_MATCH), struct(order.isNull().alias("n"), order.alias("o"), (-place).alias("p")))
    return max_by(col(_MATCH), struct(order.isNotNull().alias("n"), order.alias("o"), place.alias("p")))


def _packed(names: Sequence[str]) -> SparkColumn:
    """One struct of the columns, under names without dots; of no column, a NULL."""
    from pyspark.sql.functions import col, lit, struct

    return struct(*(col(quoted(name)).alias(f"c{place}") for place, name in enumerate(names))) if names else lit(None)


def _unpacked(packed: str, names: Sequence[str]) -> list[SparkColumn]:
    from pyspark.sql.functions import col

    return [col(f"{packed}.c{place}").alias(name) for place, name in enumerate(names)]


def _all(conditions: Sequence[SparkColumn]) -> SparkColumn:
    from pyspark.sql.functions import lit

    return reduce(lambda a, b: a & b, conditions) if conditions else lit(True)
