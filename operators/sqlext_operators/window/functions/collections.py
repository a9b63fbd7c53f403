"""The rows of functions whose results are values of the rows: lists, texts, the value of one row; the largest and the
most frequent values, and lists of window parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sqlext_operators.window.functions import types
from sqlext_operators.window.functions.definition import Evaluation, Parameter, WindowFunction

_VALUE, _OTHER = Parameter("x"), Parameter("y")
_TEXT = Parameter("s")
_DELIMITER = Parameter("d", "string", optional=True, nullable=True, default="")
_DESCENDING = Parameter("descending", "boolean")

_COST = "Costs time and memory in the frame's size."
#: More values than this are refused (OpenMLDB silently writes only this many).
MOST_FREQUENT = 1024
_STRING = Parameter("s")
_SPLIT_AT = Parameter("d", "string")
_INNER_DELIMITER = Parameter("kv", "string")

_TEXT_DOC = (
    "Floats and doubles are written with six decimals (1.500000, nan, inf), dates as 2020-05-29, and timestamps as "
    "2020-05-29 15:56:29 in the session's time zone."
)
_SPLIT_DOC = (
    "A NULL string or an empty delimiter gives no parts. Delimiters are plain text (in OpenMLDB, delimiters of several "
    "characters are regular expressions). All parts are kept; OpenMLDB silently drops those beyond 4096 bytes in total."
)


def _list_of_any(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """An array of the input's type."""
    return types.listed(dtypes[0])


def _list_of_comparable(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """An array of the input's type, which has an equality."""
    return types.listed(types.ordered(name, dtypes))


def _text(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """string or binary, as the first argument; further ones have an order."""
    if not types.is_text(dtypes[0]):
        raise types.refused(name, dtypes[0], "it takes strings and binary; cast the argument to string")
    types.for_each(types.ordered, name, dtypes, 1)
    return pa.binary() if types.is_bytes(dtypes[0]) else pa.string()


def _by(name: str, dtypes: Sequence[pa.DataType]) -> pa.DataType:
    """The type of the first argument; the second one has an order."""
    types.for_each(types.ordered, name, dtypes, 1)
    return dtypes[0]


def _extreme_by(name: str, what: str, *, largest: bool) -> WindowFunction:
    return WindowFunction(
        name,
        (_VALUE, _OTHER),
        _by,
        Evaluation("extremes", "Extreme", {"largest": largest, "by": True}),
        f"The x of the row with the {what} y that is not NULL; of several such rows, the newest one's. NULL if no "
        "row has a y.",
        needs_order=True,
        of_spark=True,
    )


COLLECTIONS: tuple[WindowFunction, ...] = (
    WindowFunction(
        "nth_value",
        (
            _VALUE,
            Parameter("n", "integer", minimum=1),
            Parameter("ignore_null", "boolean", optional=True, default=False),
        ),
        types.first_argument,
        Evaluation("positions", "NthValue"),
        "Value of the n-th oldest row of the window, 1 for the oldest; with ignore_null or IGNORE NULLS, of the n-th "
        "one whose value is not NULL. NULL if there are fewer rows.",
        needs_order=True,
        null_treatment=True,
        of_spark=True,
    ),
    _extreme_by("max_by", "largest", largest=True),
    _extreme_by("min_by", "smallest", largest=False),
    WindowFunction(
        "mode",
        (_VALUE, Parameter("deterministic", "boolean", optional=True, default=True)),
        types.ordered,
        Evaluation("frequencies", "Mode"),
        "The most frequent value; of equally frequent ones the smallest (Spark promises that only with "
        "deterministic; here it always is). Also mode() WITHIN GROUP (ORDER BY x [DESC]), with DESC the largest of "
        "them. NULL if no value is left.",
        of_spark=True,
    ),
    WindowFunction(
        "approx_count_distinct",
        (_VALUE, Parameter("rsd", "number", optional=True, minimum=0, maximum=1, default=0.05)),
        types.countable,
        Evaluation("distinct", "DistinctCount", {"skip_nulls": True}),
        "Number of distinct values, 0 for an empty window. Spark estimates it (HyperLogLog++, rsd is its error); "
        "this one is exact, so it is never further off, and rsd has no effect. All NaNs count as one value, and so "
        "do -0.0 and 0.0.",
        of_spark=True,
    ),
    WindowFunction(
        "collect_list",
        (_VALUE,),
        _list_of_any,
        Evaluation("lists", "Listed"),
        f"All values as an array, the oldest first; an empty one for an empty window. {_COST}",
        needs_order=True,
        spark_names=("array_agg",),
        of_spark=True,
    ),
    WindowFunction(
        "collect_set",
        (_VALUE,),
        _list_of_comparable,
        Evaluation("lists", "Listed", {"distinct": True}),
        "The distinct values as an array, in the order in which they come first (Spark promises none). All NaNs are "
        f"one value, and so are -0.0 and 0.0. {_COST}",
        of_spark=True,
    ),
    WindowFunction(
        "listagg",
        (_TEXT, _DELIMITER),
        _text,
        Evaluation("lists", "Joined"),
        "All texts as one, the oldest first, with the delimiter d (a literal) between them. With WITHIN GROUP "
        f"(ORDER BY y [DESC] [NULLS FIRST]) they come in the order of y. NULL if no value is left. {_COST}",
        needs_order=True,
        spark_names=("string_agg",),
        of_spark=True,
    ),
    WindowFunction(
        "mode_within_group",
        (_VALUE, _DESCENDING),
        types.ordered,
        Evaluation("frequencies", "Mode", {"directed": True}),
        "mode() WITHIN GROUP (ORDER BY x [DESC]).",
        internal=True,
    ),
    WindowFunction(
        "listagg_within_group",
        (_TEXT, _OTHER, Parameter("d", "string", nullable=True), _DESCENDING, Parameter("nulls_first", "boolean")),
        _text,
        Evaluation("lists", "Joined", {"ordered": True}),
        "listagg(s, d) WITHIN GROUP (ORDER BY y [DESC] [NULLS FIRST | LAST]).",
        internal=True,
    ),
)


def _window_split(name: str, field: int | None, doc: str) -> WindowFunction:
    parameters = (_STRING, _SPLIT_AT) if field is None else (_STRING, _SPLIT_AT, _INNER_DELIMITER)
    evaluation = Evaluation("lists", "WindowSplit", {"field": field})
    return WindowFunction(name, parameters, types.split, evaluation, doc, aliases=(f"fz_{name}",))


FREQUENCIES: tuple[WindowFunction, ...] = (
    WindowFunction(
        "top",
        (_VALUE, Parameter("n", "integer", minimum=0)),
        types.written,
        Evaluation("frequencies", "TopTexts", {"by_value": True}),
        "The n largest values as one text, the largest first; equal values are repeated: '4,4,3'. '' if no value is "
        f"left. {_TEXT_DOC}",
        openmldb_refuses=types.UNORDERED_IN_OPENMLDB,
    ),
    WindowFunction(
        "topn_frequency",
        (_VALUE, Parameter("n", "integer", minimum=0, maximum=MOST_FREQUENT)),
        types.written,
        Evaluation("frequencies", "TopTexts", {"by_value": False}),
        "The n most frequent values as one text, filled up with NULL: '1,NULL,NULL'. Of equally frequent values the "
        "smaller comes first. '' for a window without rows; n is at most 1024. -0.0 and 0.0 count as one value, and "
        f"so do all NaNs, which are the largest. {_TEXT_DOC}",
        aliases=("fz_topn_frequency",),
        openmldb_refuses=types.UNORDERED_IN_OPENMLDB,
    ),
    WindowFunction(
        "top1_ratio",
        (_VALUE,),
        types.spread,
        Evaluation("frequencies", "Top1Ratio"),
        "Share of the most frequent value among all values, a double; 0 if no value is left. -0.0 and 0.0 count as one "
        "value, and so do all NaNs.",
        aliases=("fz_top1_ratio",),
        openmldb_refuses=types.UNORDERED_IN_OPENMLDB,
    ),
    _window_split(
        "window_split",
        None,
        "The parts of all strings, split at d, as array<string>: newest row first, the parts of each row in their "
        f"order. {_SPLIT_DOC}",
    ),
    _window_split(
        "window_split_by_key",
        0,
        "Like window_split, but takes from each part only the text before the first kv: the k of 'k:v'. Parts without "
        f"kv are left out. {_SPLIT_DOC}",
    ),
    _window_split(
        "window_split_by_value",
        1,
        "Like window_split, but takes from each part only the text between the first kv and the second one (or the "
        f"end): the v of 'k:v'. Parts without kv are left out. {_SPLIT_DOC}",
    ),
)
