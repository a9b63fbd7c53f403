"""The table of window functions (docs/reference/windows.md, section 5).

A new function is a row in one of the modules below and, if its evaluator is new, a class in `window/evaluators`; the
analyzer, the processor, the documentation and the tests read this table.
"""

from __future__ import annotations

import pyarrow as pa

from sqlext_operators.window.functions.basic import BASIC, BITS, SUMS
from sqlext_operators.window.functions.categories import CATEGORIES
from sqlext_operators.window.functions.collections import COLLECTIONS, FREQUENCIES
from sqlext_operators.window.functions.definition import CallSite, WindowFunction
from sqlext_operators.window.functions.statistics import MOMENTS, QUANTILES, STATISTICS
from sqlext_operators.window.spec import Call

#: Every window function by its name, without aliases.
FUNCTIONS = {
    row.name: row
    for rows in (BASIC, COLLECTIONS, SUMS, BITS, STATISTICS, QUANTILES, MOMENTS, FREQUENCIES, CATEGORIES)
    for row in rows
}


def lookup(name: str) -> WindowFunction | None:
    """The function of this name, alias or other name in Spark, in any case; None if there is none."""
    lower = name.lower()
    return FUNCTIONS.get(lower) or next((row for row in FUNCTIONS.values() if lower in row.names), None)


def call_site(
    call: Call, types: tuple[pa.DataType, ...], *, unbounded: bool, ansi: bool, time_zone: str = "UTC"
) -> CallSite:
    """A call over columns of these types, one for each of `Call.args`. Raises ValueError if there is no such function,
    FunctionTypeError for arguments that it does not take."""
    function = FUNCTIONS.get(call.function)
    if function is None:
        raise ValueError(f"there is no window function {call.function!r}")
    types = types[:-1] if call.filtered else types
    constants = function.complete_constants(call.constants)
    result = function.result_type(types, openmldb=call.openmldb)
    return CallSite(function, types, constants, result, unbounded, ansi, time_zone, call.openmldb)
