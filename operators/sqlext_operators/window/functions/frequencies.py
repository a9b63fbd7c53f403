"""The rows of the largest and the most frequent values, and of lists of window parts."""

from __future__ import annotations

from sqlext_operators.window.functions import types
from sqlext_operators.window.functions.definition import Evaluation, Parameter, WindowFunction

#: More values than this are refused (OpenMLDB silently writes only this many).
MOST_FREQUENT = 1024

_VALUE = Parameter("x")
_STRING = Parameter("s")
_DELIMITER = Parameter("d", "string")
_INNER_DELIMITER = Parameter("kv", "string")

_TEXT_DOC = (
    "Floats and doubles are written with six decimals (1.500000, nan, inf), dates as 2020-05-29, and timestamps as "
    "2020-05-29 15:56:29 in the session's time zone."
)
_SPLIT_DOC = (
    "A NULL string or an empty delimiter gives no parts. Delimiters are plain text (in OpenMLDB, delimiters of several "
    "characters are regular expressions). All parts are kept; OpenMLDB silently drops those beyond 4096 bytes in total."
)

ROWS = (
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
        types.shared,
        Evaluation("frequencies", "Top1Ratio"),
        "Share of the most frequent value among all values, a double; 0 if no value is left. -0.0 and 0.0 count as one "
        "value, and so do all NaNs.",
        aliases=("fz_top1_ratio",),
        openmldb_refuses=types.UNORDERED_IN_OPENMLDB,
    ),
    WindowFunction(
        "window_split",
        (_STRING, _DELIMITER),
        types.split,
        Evaluation("splits", "WindowSplit", {"field": None}),
        "The parts of all strings, split at d, as array<string>: newest row first, the parts of each row in their "
        f"order. {_SPLIT_DOC}",
        aliases=("fz_window_split",),
    ),
    WindowFunction(
        "window_split_by_key",
        (_STRING, _DELIMITER, _INNER_DELIMITER),
        types.split,
        Evaluation("splits", "WindowSplit", {"field": 0}),
        "Like window_split, but takes from each part only the text before the first kv: the k of 'k:v'. Parts without "
        f"kv are left out. {_SPLIT_DOC}",
        aliases=("fz_window_split_by_key",),
    ),
    WindowFunction(
        "window_split_by_value",
        (_STRING, _DELIMITER, _INNER_DELIMITER),
        types.split,
        Evaluation("splits", "WindowSplit", {"field": 1}),
        "Like window_split, but takes from each part only the text between the first kv and the second one (or the "
        f"end): the v of 'k:v'. Parts without kv are left out. {_SPLIT_DOC}",
        aliases=("fz_window_split_by_value",),
    ),
)
