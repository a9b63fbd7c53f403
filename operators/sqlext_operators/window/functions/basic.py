"""The rows of counts, sums, means, extremes and positions."""

from __future__ import annotations

from sqlext_operators.window.functions import types
from sqlext_operators.window.functions.definition import Evaluation, Parameter, WindowFunction

_VALUE = Parameter("x")
_CONDITION = Parameter("condition", "condition")
_IGNORE_NULL = Parameter("ignore_null", "boolean", optional=True, default=False)

_SUM_DOC = (
    "Integers keep their type and wrap around at its width (under ANSI an overflow is an error); float stays float "
    "(added up in double), a sum of timestamps is a timestamp; decimals are exact, an overflow is NULL (ANSI: an "
    "error). NULL when no value is left."
)
_AVG_DOC = (
    "double, from exact sums for integers; the mean of floats is the double mean of their values; decimals give "
    "decimal(p+4, s+4) rounded half up. NULL when no value is left."
)
_EXTREME_DOC = (
    "NULL when no value is left. NaN is the largest number, -0.0 equals 0.0, false is below true, strings compare by "
    "their UTF-8 bytes, as in Spark."
)

ROWS = (
    WindowFunction(
        "count",
        (_VALUE,),
        types.bigint,
        Evaluation("sums", "count"),
        "Number of non-NULL values, or of rows for count(*); 0 for an empty window.",
        accepts_star=True,
    ),
    WindowFunction("sum", (_VALUE,), types.summed, Evaluation("sums", "total"), f"Sum of the values. {_SUM_DOC}"),
    WindowFunction("avg", (_VALUE,), types.averaged, Evaluation("sums", "average"), f"Mean value: {_AVG_DOC}"),
    WindowFunction(
        "min",
        (_VALUE,),
        types.ordered,
        Evaluation("extremes", "smallest"),
        f"Smallest value. {_EXTREME_DOC}",
        openmldb_refuses=types.UNORDERED_IN_OPENMLDB,
    ),
    WindowFunction(
        "max",
        (_VALUE,),
        types.ordered,
        Evaluation("extremes", "largest"),
        f"Largest value. {_EXTREME_DOC}",
        openmldb_refuses=types.UNORDERED_IN_OPENMLDB,
    ),
    WindowFunction(
        "distinct_count",
        (_VALUE,),
        types.countable,
        Evaluation("distinct", "distinct_count"),
        "Number of distinct values; 0 for an empty window. A NULL counts as the type's zero value, as in OpenMLDB: "
        "0, false, '', the epoch for a timestamp, midnight for a time. A NULL date counts as a value of its own "
        "(OpenMLDB's zero date is no day of the calendar). NaNs are one value, -0.0 and 0.0 are one value.",
    ),
    WindowFunction(
        "first_value",
        (_VALUE, _IGNORE_NULL),
        types.first_argument,
        Evaluation("positions", "first_value"),
        "Value of the oldest row of the window; with ignore_null, of the oldest row that has one. NULL when there is "
        "no such row.",
        needs_order=True,
    ),
    WindowFunction(
        "last_value",
        (_VALUE, _IGNORE_NULL),
        types.first_argument,
        Evaluation("positions", "last_value"),
        "Value of the newest row of the window; with ignore_null, of the newest row that has one. NULL when there is "
        "no such row.",
        needs_order=True,
    ),
    WindowFunction(
        "lag",
        (_VALUE, Parameter("n", "integer", optional=True, minimum=0, default=1)),
        types.first_argument,
        Evaluation("positions", "lag"),
        "Value of the row n places before the current row in the partition's sequence, not in the frame (EXCLUDE "
        "CURRENT_TIME and INSTANCE_NOT_IN_WINDOW still leave rows out); n = 0 is the current row. NULL when there "
        "is no such row.",
        aliases=("at",),
        positional=True,
        needs_order=True,
    ),
    WindowFunction(
        "count_where",
        (_VALUE, _CONDITION),
        types.bigint,
        Evaluation("sums", "count"),
        "Number of non-NULL values, or of rows for *, where the condition is true; a NULL condition is false.",
        accepts_star=True,
    ),
    WindowFunction(
        "sum_where",
        (_VALUE, _CONDITION),
        types.summed,
        Evaluation("sums", "total"),
        "Sum of the values where the condition is true (NULL is false). OpenMLDB leaves out x = 0 by mistake, so "
        f"that a sum of zeros is NULL there; here it is 0. {_SUM_DOC}",
    ),
    WindowFunction(
        "avg_where",
        (_VALUE, _CONDITION),
        types.averaged,
        Evaluation("sums", "average"),
        "Mean of the values where the condition is true (NULL is false). OpenMLDB leaves out x = 0 by mistake; here "
        f"zeros count. {_AVG_DOC}",
    ),
    WindowFunction(
        "min_where",
        (_VALUE, _CONDITION),
        types.ordered,
        Evaluation("extremes", "smallest"),
        f"Smallest value where the condition is true (NULL is false). {_EXTREME_DOC}",
        openmldb_refuses=types.UNORDERED_IN_OPENMLDB,
    ),
    WindowFunction(
        "max_where",
        (_VALUE, _CONDITION),
        types.ordered,
        Evaluation("extremes", "largest"),
        f"Largest value where the condition is true (NULL is false). {_EXTREME_DOC}",
        openmldb_refuses=types.UNORDERED_IN_OPENMLDB,
    ),
    WindowFunction(
        "frame_at",
        (_VALUE, Parameter("n", "integer", minimum=0)),
        types.first_argument,
        Evaluation("positions", "frame_at"),
        "Value of the n-th newest row of the frame, 0 for the newest: what OpenMLDB's lag means inside a larger "
        "expression. NULL when the frame has no such row.",
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
        Evaluation("matches", "count_where_at"),
        "count_where(x, left = at(right, n)): number of non-NULL values (of rows for *) where left equals the right of "
        "the frame's n-th newest row; NULL equals nothing, or (null_safe, for <=>) NULL.",
        accepts_star=True,
        internal=True,
    ),
    WindowFunction(
        "frame_rows",
        (Parameter("x", variadic=True),),
        types.rows,
        Evaluation("frame_rows", "frame_rows"),
        "The frame's rows, oldest to newest, as a list of structs x1 ... xn. Costs time and memory in the frame's "
        "size: for aggregates that have no incremental form.",
        internal=True,
    ),
)
