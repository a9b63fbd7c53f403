"""The rows of counts, sums, means, extremes and positions."""

from __future__ import annotations

from sqlext_operators.window.functions import types
from sqlext_operators.window.functions.definition import Evaluation, Parameter, WindowFunction

_VALUE = Parameter("x")
_CONDITION = Parameter("condition", "condition")
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

ROWS = (
    WindowFunction(
        "count",
        (_VALUE,),
        types.bigint,
        Evaluation("sums", "Count"),
        "Number of non-NULL values, or of rows for count(*); 0 for an empty window.",
        accepts_star=True,
        distinct_form="distinct_count",
    ),
    WindowFunction(
        "sum",
        (_VALUE,),
        types.summed,
        Evaluation("sums", "total"),
        f"Sum of the values. {_SUM_DOC}",
        openmldb_rule=types.summed_in_openmldb,
        distinct_form="distinct_sum",
    ),
    WindowFunction(
        "avg",
        (_VALUE,),
        types.averaged,
        Evaluation("sums", "average"),
        f"Mean of the values. {_AVG_DOC}",
        openmldb_rule=types.averaged_in_openmldb,
        spark_names=("mean",),
        distinct_form="distinct_avg",
    ),
    WindowFunction(
        "min",
        (_VALUE,),
        types.ordered,
        Evaluation("extremes", "Extreme", {"largest": False}),
        f"Smallest value. {_EXTREME_DOC}",
        openmldb_refuses=types.UNORDERED_IN_OPENMLDB,
        distinct_form="min",
    ),
    WindowFunction(
        "max",
        (_VALUE,),
        types.ordered,
        Evaluation("extremes", "Extreme", {"largest": True}),
        f"Largest value. {_EXTREME_DOC}",
        openmldb_refuses=types.UNORDERED_IN_OPENMLDB,
        distinct_form="max",
    ),
    WindowFunction(
        "distinct_count",
        (_VALUE,),
        types.countable,
        Evaluation("distinct", "DistinctCount"),
        "Number of distinct values; 0 for an empty window. As in OpenMLDB, a NULL counts as the zero value of its "
        "type: 0, false, '', the epoch for a timestamp, midnight for a time. A NULL date counts as a value of its own "
        "(OpenMLDB's zero date is not a day in the calendar). All NaNs count as one value, and so do -0.0 and 0.0.",
    ),
    WindowFunction(
        "first_value",
        (_VALUE, _IGNORE_NULL),
        types.first_argument,
        Evaluation("positions", "EdgeValue", {"oldest": True}),
        "Value of the oldest row of the window; with ignore_null or IGNORE NULLS, of the oldest row whose value is not "
        "NULL. NULL if there is no such row.",
        needs_order=True,
        spark_names=("first", "any_value"),
        null_treatment=True,
    ),
    WindowFunction(
        "last_value",
        (_VALUE, _IGNORE_NULL),
        types.first_argument,
        Evaluation("positions", "EdgeValue", {"oldest": False}),
        "Value of the newest row of the window; with ignore_null or IGNORE NULLS, of the newest row whose value is not "
        "NULL. NULL if there is no such row.",
        needs_order=True,
        spark_names=("last",),
        null_treatment=True,
    ),
    WindowFunction(
        "lag",
        (_VALUE, _PLACES, _DEFAULT),
        types.neighbour,
        Evaluation("positions", "Lag"),
        f"Value of the row n places before the current row. {_NEIGHBOUR_DOC}",
        aliases=("at",),
        positional=True,
        needs_order=True,
        null_treatment=True,
    ),
    WindowFunction(
        "lead",
        (_VALUE, _PLACES, _DEFAULT),
        types.neighbour,
        Evaluation("positions", "Lead"),
        f"Value of the row n places after the current row. {_NEIGHBOUR_DOC} Not on streams, and not in OpenMLDB.",
        positional=True,
        needs_order=True,
        null_treatment=True,
    ),
    WindowFunction(
        "count_where",
        (_VALUE, _CONDITION),
        types.bigint,
        Evaluation("sums", "Count"),
        "Number of non-NULL values, or of rows for *, where the condition is true. A NULL condition counts as false.",
        accepts_star=True,
    ),
    WindowFunction(
        "sum_where",
        (_VALUE, _CONDITION),
        types.summed,
        Evaluation("sums", "total"),
        "Sum of the values where the condition is true (NULL counts as false). OpenMLDB skips x = 0 by mistake, so a "
        f"sum of zeros is NULL there; here it is 0. {_SUM_DOC}",
        openmldb_rule=types.summed_in_openmldb,
    ),
    WindowFunction(
        "avg_where",
        (_VALUE, _CONDITION),
        types.averaged,
        Evaluation("sums", "average"),
        "Mean of the values where the condition is true (NULL counts as false). OpenMLDB skips x = 0 by mistake; here "
        f"zeros count. {_AVG_DOC}",
        openmldb_rule=types.averaged_in_openmldb,
    ),
    WindowFunction(
        "min_where",
        (_VALUE, _CONDITION),
        types.ordered,
        Evaluation("extremes", "Extreme", {"largest": False}),
        f"Smallest value where the condition is true (NULL counts as false). {_EXTREME_DOC}",
        openmldb_refuses=types.UNORDERED_IN_OPENMLDB,
    ),
    WindowFunction(
        "max_where",
        (_VALUE, _CONDITION),
        types.ordered,
        Evaluation("extremes", "Extreme", {"largest": True}),
        f"Largest value where the condition is true (NULL counts as false). {_EXTREME_DOC}",
        openmldb_refuses=types.UNORDERED_IN_OPENMLDB,
    ),
    WindowFunction(
        "distinct_sum",
        (_VALUE,),
        types.summed,
        Evaluation("distinct_sums", "DistinctTotals", {"average": False}),
        "sum(DISTINCT x): the sum of the distinct values.",
        internal=True,
        openmldb_rule=types.summed_in_openmldb,
    ),
    WindowFunction(
        "distinct_avg",
        (_VALUE,),
        types.averaged,
        Evaluation("distinct_sums", "DistinctTotals", {"average": True}),
        "avg(DISTINCT x): the mean of the distinct values.",
        internal=True,
        openmldb_rule=types.averaged_in_openmldb,
    ),
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
        Evaluation("matches", "CountWhereAt"),
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
