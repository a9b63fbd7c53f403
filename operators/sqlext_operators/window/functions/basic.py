"""The rows of counts, sums, means, extremes and positions; Spark's try_sum and try_avg, and product; conditions and
bits: count_if, bool_and, bool_or, bit_and, bit_or, bit_xor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from sqlext_operators.window.functions import types
from sqlext_operators.window.functions.definition import Evaluation, Parameter, WindowFunction

_VALUE = Parameter("x")
_CONDITION = Parameter("condition", "condition")
_TRUTH = Parameter("b")
_IGNORE_NULL = Parameter("ignore_null", "boolean", optional=True, default=False)

_PLACES = Parameter("n", "integer", optional=True, minimum=0, default=1)
_DEFAULT = Parameter("default", optional=True)

_NEIGHBOUR_DOC = (
    "It counts rows of the partition, not of the frame (but EXCLUDE CURRENT_TIME and INSTANCE_NOT_IN_WINDOW still "
    "leave rows out), with IGNORE NULLS only those whose value is not NULL. n = 0 is the current row. If there is no "
    "such row, it is the default, computed on the current row, or NULL."
)

_SUM_DOC = (
    "The type is that of Spark's sum: integers give a bigint, float and double a double. A bigint that overflows is an "
    "error under ANSI, and wraps around without it; a decimal that overflows is NULL there. NULL if no value is left. "
    'With compat="openmldb" integers, floats and timestamps keep their type.'
)
_AVG_DOC = (
    "The result is a double: integers are summed exactly, and the mean of floats is computed in double. For decimals "
    "it is decimal(p+4, s+4), for day-time intervals an interval, both rounded half up. NULL if no value is left."
)
_EXTREME_DOC = (
    "NULL if no value is left. As in Spark, NaN is the largest number, -0.0 equals 0.0, false is less than true, and "
    "strings compare by their UTF-8 bytes."
)

_COUNT = WindowFunction(
    "count",
    (_VALUE,),
    types.bigint,
    Evaluation("sums", "Count"),
    "Number of non-NULL values, or of rows for count(*); 0 for an empty window.",
    accepts_star=True,
    distinct_form="distinct_count",
)
_SUM = WindowFunction(
    "sum",
    (_VALUE,),
    types.summed,
    Evaluation("sums", "total"),
    f"Sum of the values. {_SUM_DOC}",
    openmldb_rule=types.summed_in_openmldb,
    distinct_form="distinct_sum",
)
_AVG = WindowFunction(
    "avg",
    (_VALUE,),
    types.averaged,
    Evaluation("sums", "average"),
    f"Mean of the values. {_AVG_DOC}",
    openmldb_rule=types.averaged_in_openmldb,
    spark_names=("mean",),
    distinct_form="distinct_avg",
)
_MIN, _MAX = (
    WindowFunction(
        name,
        (_VALUE,),
        types.ordered,
        Evaluation("extremes", "Extreme", {"largest": name == "max"}),
        f"{what} value. {_EXTREME_DOC}",
        openmldb_refuses=types.UNORDERED_IN_OPENMLDB,
        distinct_form=name,
    )
    for name, what in (("min", "Smallest"), ("max", "Largest"))
)


def _where(function: WindowFunction, doc: str) -> WindowFunction:
    """The function over the rows for which a condition is true."""
    name, parameters = f"{function.name}_where", (_VALUE, _CONDITION)
    return replace(function, name=name, parameters=parameters, doc=doc, spark_names=(), distinct_form=None)


def _distinct(function: WindowFunction, what: str) -> WindowFunction:
    """The function over distinct values."""
    return WindowFunction(
        f"distinct_{function.name}",
        (_VALUE,),
        function.type_rule,
        Evaluation("distinct", "DistinctTotals", {"average": function is _AVG}),
        f"{function.name}(DISTINCT x): the {what} of the distinct values.",
        internal=True,
        openmldb_rule=function.openmldb_rule,
    )


def _edge(name: str, age: str, spark_names: tuple[str, ...]) -> WindowFunction:
    return WindowFunction(
        name,
        (_VALUE, _IGNORE_NULL),
        types.first_argument,
        Evaluation("positions", "EdgeValue", {"oldest": age == "oldest"}),
        f"Value of the {age} row of the window; with ignore_null or IGNORE NULLS, of the {age} row whose value is not "
        "NULL. NULL if there is no such row.",
        needs_order=True,
        spark_names=spark_names,
        null_treatment=True,
    )


def _neighbour(name: str, factory: str, doc: str, *aliases: str) -> WindowFunction:
    return WindowFunction(
        name,
        (_VALUE, _PLACES, _DEFAULT),
        types.neighbour,
        Evaluation("positions", factory),
        doc,
        aliases=aliases,
        positional=True,
        needs_order=True,
        null_treatment=True,
    )


BASIC: tuple[WindowFunction, ...] = (
    _COUNT,
    _SUM,
    _AVG,
    _MIN,
    _MAX,
    WindowFunction(
        "distinct_count",
        (_VALUE,),
        types.countable,
        Evaluation("distinct", "DistinctCount"),
        "Number of distinct values; 0 for an empty window. As in OpenMLDB, a NULL counts as the zero value of its "
        "type: 0, false, '', the epoch for a timestamp, midnight for a time. A NULL date counts as a value of its own "
        "(OpenMLDB's zero date is not a day in the calendar). All NaNs count as one value, and so do -0.0 and 0.0.",
    ),
    _edge("first_value", "oldest", ("first", "any_value")),
    _edge("last_value", "newest", ("last",)),
    _neighbour("lag", "Lag", f"Value of the row n places before the current row. {_NEIGHBOUR_DOC}", "at"),
    _neighbour(
        "lead",
        "Lead",
        f"Value of the row n places after the current row. {_NEIGHBOUR_DOC} Not on streams, and not in OpenMLDB.",
    ),
    _where(
        _COUNT,
        "Number of non-NULL values, or of rows for *, where the condition is true. A NULL condition counts as false.",
    ),
    _where(
        _SUM,
        "Sum of the values where the condition is true (NULL counts as false). OpenMLDB skips x = 0 by mistake, so a "
        f"sum of zeros is NULL there; here it is 0. {_SUM_DOC}",
    ),
    _where(
        _AVG,
        "Mean of the values where the condition is true (NULL counts as false). OpenMLDB skips x = 0 by mistake; here "
        f"zeros count. {_AVG_DOC}",
    ),
    _where(_MIN, f"Smallest value where the condition is true (NULL counts as false). {_EXTREME_DOC}"),
    _where(_MAX, f"Largest value where the condition is true (NULL counts as false). {_EXTREME_DOC}"),
    _distinct(_SUM, "sum"),
    _distinct(_AVG, "mean"),
    WindowFunction(
        "frame_at",
        (_VALUE, Parameter("n", "integer", minimum=0)),
        types.first_argument,
        Evaluation("positions", "FrameAt"),
        "Value of the n-th newest row of the frame, 0 for the newest: what OpenMLDB's lag means inside a larger "
        "expression. NULL if the frame has no such row.",
        internal=True,
    ),
    WindowFunction(
        "count_where_at",
        (
            _VALUE,
            Parameter("left"),
            Parameter("right"),
            Parameter("n", "integer", minimum=0),
            Parameter("null_safe", "boolean"),
        ),
        types.matched,
        Evaluation("positions", "CountWhereAt"),
        "count_where(x, left = at(right, n)): number of non-NULL values (of rows for *) where left equals the right of "
        "the frame's n-th newest row; NULL equals nothing, or (null_safe, for <=>) NULL.",
        accepts_star=True,
        internal=True,
    ),
    WindowFunction(
        "frame_rows",
        (Parameter("x", variadic=True),),
        types.rows,
        Evaluation("lists", "FrameRows"),
        "The frame's rows, oldest to newest, as a list of structs x1 ... xn. Costs time and memory in the frame's "
        "size: for aggregates that have no incremental form.",
        internal=True,
    ),
)

SUMS: tuple[WindowFunction, ...] = (
    WindowFunction(
        "try_sum",
        (_VALUE,),
        types.summed,
        Evaluation("sums", "tried_sum"),
        "Sum of the values, of the type of sum, NULL where it does not fit (never an error). NULL if no value is left.",
        of_spark=True,
    ),
    WindowFunction(
        "try_avg",
        (_VALUE,),
        types.averaged,
        Evaluation("sums", "tried_average"),
        "Mean of the values like avg, NULL where a decimal does not fit its type (never an error). NULL if no value is "
        "left.",
        of_spark=True,
    ),
    WindowFunction(
        "product",
        (_VALUE,),
        types.measured,
        Evaluation("moments", "Product"),
        "Product of the values as a double. Only the result can overflow, no product of a part of the values can. NULL "
        "if no value is left.",
    ),
)


def _truth(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """boolean for booleans."""
    if not pa.types.is_boolean(dtypes[0]):
        raise types.refused(name, dtypes[0], "write a comparison, for example x > 0")
    return pa.bool_()


def _integer(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """The input's type, an integer."""
    if not pa.types.is_signed_integer(dtypes[0]):
        raise types.refused(name, dtypes[0], "it takes integers; cast the argument, for example to bigint")
    return dtypes[0]


def _bits(name: str, what: str, operation: str) -> WindowFunction:
    doc = f"{what} of all values, bit by bit. NULL if no value is left."
    return WindowFunction(
        name, (_VALUE,), _integer, Evaluation("bits", "Bits", {"operation": operation}), doc, of_spark=True
    )


def _truths(name: str, what: str, spark_name: str) -> WindowFunction:
    return WindowFunction(
        name,
        (_TRUTH,),
        _truth,
        Evaluation("bits", "Truths", {"every": name == "bool_and"}),
        f"Whether {what}. NULL if no value is left.",
        spark_names=(spark_name,),
        of_spark=True,
    )


BITS: tuple[WindowFunction, ...] = (
    WindowFunction(
        "count_if",
        (Parameter("condition", "condition"),),
        types.bigint,
        Evaluation("sums", "Count"),
        "Number of rows where the condition is true (NULL counts as false); 0 for an empty window.",
        of_spark=True,
    ),
    _truths("bool_or", "one of the values is true", "some"),
    _truths("bool_and", "all values are true", "every"),
    _bits("bit_and", "AND", "and"),
    _bits("bit_or", "OR", "or"),
    _bits("bit_xor", "XOR (exclusive or)", "xor"),
)
