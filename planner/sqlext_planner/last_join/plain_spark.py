"""LAST JOIN in plain Spark: right sides reduced to one row a key, or all pairs and then the winner of each left row.

The winner is the row with row_number() = 1; Catalyst then keeps only one row a group even before the shuffle.
Aggregating a struct with max_by is as fast, but Spark cannot aggregate TIME.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from sqlext_planner.expressions.nodes import Compare
from sqlext_planner.last_join.nodes import LastMatch
from sqlext_planner.relational.physical_plan import quoted, spark_column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from sqlext_planner.last_join.inputs import TypedMatch

_ROW, _PLACE, _ORDER, _RANK = (f"__sqlext_{name}" for name in ("row", "place", "order", "rank"))


def join_reduced(left: DataFrame, right: DataFrame, typed: TypedMatch) -> DataFrame:
    """`left` with the columns of the last row of each key of `right`, which is broadcast.

    For matches without a residual: the winner of a key is then the same for all left rows. Right keys are grouped in
    the type in which they are compared, so that no two groups match one left row.
    """
    from pyspark.sql.functions import broadcast, col

    match = typed.match
    keys = [f"__sqlext_key{place}" for place in range(len(match.right_keys))]
    named = [spark_column(key).alias(name) for key, name in zip(typed.right_keys(), keys, strict=True)]
    rows = right.filter(_all([spark_column(term) for term in typed.terms.right_only]))
    rows = rows.select("*", *named, *_order_columns(match))
    rows = rows.filter(
        _all([col(name).isNotNull() for name, safe in zip(keys, match.null_safe, strict=True) if not safe])
    )
    winners = _last_rows(rows, keys, match)
    winners = winners.drop(_PLACE, *(f"{_ORDER}{place}" for place in range(len(match.order_by))))
    sides = [(spark_column(key), col(name)) for key, name in zip(typed.left_keys(), keys, strict=True)]
    on = [a.eqNullSafe(b) if safe else a == b for (a, b), safe in zip(sides, match.null_safe, strict=True)]
    return left.join(broadcast(winners), _all(on), "left_outer").select(*_columns(left), *_columns(right))


def join_pairs(left: DataFrame, right: DataFrame, match: LastMatch) -> DataFrame:
    """`left` with the columns of the last matching row of `right`, for any condition: every matching pair is made,
    and the last one of each left row is kept."""
    from pyspark.sql.functions import monotonically_increasing_id

    rows = left.select("*", monotonically_increasing_id().alias(_ROW))
    others = right.select("*", *_order_columns(match))
    keys = list(zip(match.left_keys, match.right_keys, strict=True))
    on = [
        spark_column(Compare("<=>" if safe else "=", a, b)) for (a, b), safe in zip(keys, match.null_safe, strict=True)
    ]
    on += [spark_column(match.residual)] if match.residual is not None else []
    pairs = rows.join(others, _all(on), "left_outer")
    return _last_rows(pairs, [_ROW], match).select(*_columns(left), *_columns(right))


def _last_rows(rows: DataFrame, keys: Sequence[str], match: LastMatch) -> DataFrame:
    """The winner of each group of rows that have the columns of `_order_columns`; NULL orders lose."""
    from pyspark.sql import Window
    from pyspark.sql.functions import col, lit, row_number

    columns = [(col(f"{_ORDER}{place}"), descending) for place, descending in enumerate(match.descending)]
    order = [key.asc_nulls_last() if descending else key.desc_nulls_last() for key, descending in columns]
    groups = Window.partitionBy(*keys) if keys else Window.partitionBy(lit(0))
    ranked = rows.withColumn(_RANK, row_number().over(groups.orderBy(*order, col(_PLACE).desc())))
    return ranked.filter(col(_RANK) == 1).drop(_RANK)


def _order_columns(match: LastMatch) -> list[SparkColumn]:
    """The order keys, and the row's place in its input: (partition index, position in it)."""
    from pyspark.sql.functions import monotonically_increasing_id

    keys = [spark_column(key).alias(f"{_ORDER}{place}") for place, key in enumerate(match.order_by)]
    return [*keys, monotonically_increasing_id().alias(_PLACE)]


def _columns(frame: DataFrame) -> list[SparkColumn]:
    from pyspark.sql.functions import col

    return [col(quoted(name)) for name in frame.columns]


def _all(conditions: Sequence[SparkColumn]) -> SparkColumn:
    from pyspark.sql.functions import lit

    return reduce(lambda a, b: a & b, conditions) if conditions else lit(True)
