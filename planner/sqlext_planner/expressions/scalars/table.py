"""The table of scalar functions that are computed without Spark: name, arguments, result, and how.

A parameter is a type, or "whole", "float", "decimal", "number" (of any of these), "time" (a timestamp with or without
zone), "any", or "text", a constant string. ``?`` behind it: it may be left out; ``*``: any number of such. What Spark
converts without a cast is converted (`coercion.argument`). Of several rows of a name the first that fits counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlext_planner.expressions.scalars import rules
from sqlext_planner.expressions.scalars.settings import ScalarSettings
from sqlext_planner.expressions.scalars.values import Typed

Rule = Callable[[Sequence[Typed], ScalarSettings], "Typed | None"]

#: In place of an option: the session's time zone, or UTC if the first argument is a time without zone; ANSI mode.
ZONE, ANSI = "<zone>", "<ansi>"


@dataclass(frozen=True)
class ScalarFunction:
    """One row. `kernel` is the operators' function with its `options`, or there is a `rule` that makes the expression.

    `total`: it raises no error for any values. `columnar`: its cost for many rows is that of array kernels. `result` is
    its type, or says it where there is a rule.
    """

    names: str
    parameters: str
    result: str
    kernel: str = ""
    options: tuple[Any, ...] = ()
    rule: Rule | None = None
    total: bool = True
    columnar: bool = False

    @property
    def zoned(self) -> bool:
        """Whether the result depends on the session's time zone."""
        return ZONE in self.options or (self.rule in rules.ZONED)


def _fields(kernel: str, parameter: str, names: str, *more: Any) -> tuple[ScalarFunction, ...]:
    """Fields of times: the first of their names says which."""
    return tuple(
        ScalarFunction(group.replace("=", " "), parameter, "int", kernel, (group.split("=")[0], *more), total=False)
        for group in names.split()
    )


_F = ScalarFunction

TABLE: tuple[ScalarFunction, ...] = (
    # conditions
    _F("coalesce ifnull nvl", "any any*", "the common type", rule=rules.coalesce, columnar=True),
    _F("if", "boolean any any", "the common type", rule=rules.if_then, columnar=True),
    _F("nvl2", "any any any", "the common type", rule=rules.if_known, columnar=True),
    _F("nullif", "any any", "the first one's", rule=rules.null_if, columnar=True),
    _F("isnull", "any", "boolean", rule=rules.is_null, columnar=True),
    _F("isnotnull", "any", "boolean", rule=rules.is_not_null, columnar=True),
    _F("greatest", "any any any*", "the common type", rule=rules.greatest, columnar=True),
    _F("least", "any any any*", "the common type", rule=rules.least, columnar=True),
    # numbers
    _F("abs", "number", "its own", rule=rules.absolute, columnar=True),
    _F("negative", "number", "its own", rule=rules.negative, columnar=True),
    _F("positive", "number", "its own", rule=rules.itself, columnar=True),
    _F("floor", "number", "bigint, or a decimal", rule=rules.floor, columnar=True),
    _F("ceil ceiling", "number", "bigint, or a decimal", rule=rules.ceil, columnar=True),
    _F("round", "number whole?", "its own", rule=rules.rounded),
    _F("sqrt", "double", "double", "sqrt", columnar=True),
    _F("exp", "double", "double", "exp"),
    _F("ln", "double", "double", "log", ("e",)),
    _F("log", "double", "double", "log", ("e",)),
    _F("log", "double double", "double", "log_to"),
    _F("log2", "double", "double", "log", ("2",)),
    _F("log10", "double", "double", "log", ("10",)),
    _F("pow power", "double double", "double", "pow"),
    # strings
    _F("concat", "string string*", "string", "concat"),
    _F("concat_ws", "string string*", "string", "concat_ws"),
    _F("length char_length character_length len", "string", "int", "length"),
    _F("upper ucase", "string", "string", "upper", total=False),
    _F("lower lcase", "string", "string", "lower", total=False),
    _F("substring substr", "string int int?", "string", "substring"),
    _F("left", "string int", "string", "ends", ("left",)),
    _F("right", "string int", "string", "ends", ("right",)),
    _F("trim btrim", "string", "string", "trim", ("both",)),
    _F("btrim", "string string", "string", "trim", ("both",)),
    _F("ltrim", "string", "string", "trim", ("left",)),
    _F("rtrim", "string", "string", "trim", ("right",)),
    _F("replace", "string string string?", "string", "replace"),
    _F("startswith", "string string", "boolean", "startswith"),
    _F("endswith", "string string", "boolean", "endswith"),
    _F("contains", "string string", "boolean", "contains"),
    _F("like", "string string", "boolean", "like", (False,), total=False),
    _F("rlike regexp regexp_like", "string text", "boolean", rule=rules.rlike),
    _F("split", "string text", "array<string>", rule=rules.split),
    _F("instr", "string string", "int", "position"),
    _F("repeat", "string int", "string", "repeat"),
    _F("lpad", "string int string", "string", "pad", ("left",)),
    _F("rpad", "string int string", "string", "pad", ("right",)),
    _F("reverse", "string", "string", "reverse"),
    _F("ascii", "string", "int", "ascii"),
    # dates and times
    *_fields("date field", "date", "year quarter month day=dayofmonth dayofyear dayofweek weekday weekofyear"),
    *_fields("time field", "time", "hour minute second", ZONE),
    _F("date_add dateadd", "date int", "date", "plus days", (1,), columnar=True),
    _F("date_sub", "date int", "date", "plus days", (-1,), columnar=True),
    _F("datediff date_diff", "date date", "int", "date difference", columnar=True),
    _F("add_months", "date int", "date", "plus months"),
    _F("last_day", "date", "date", "last day", columnar=True),
    _F("trunc", "date text", "date", rule=rules.date_start),
    _F("date_trunc", "text timestamp", "timestamp", rule=rules.time_start),
    _F("date_format", "timestamp text", "string", rule=rules.date_format),
    _F("to_date", "any", "date", rule=rules.to_date),
    _F("to_date", "string text", "date", rule=rules.to_date_by),
    _F("to_timestamp", "any", "timestamp", rule=rules.to_timestamp),
    _F("to_timestamp", "string text", "timestamp", rule=rules.to_timestamp_by),
    _F("unix_timestamp to_unix_timestamp", "any", "bigint", rule=rules.unix_timestamp),
    _F("unix_timestamp to_unix_timestamp", "string text?", "bigint", rule=rules.unix_timestamp_by),
    _F("from_unixtime", "bigint text?", "string", rule=rules.from_unixtime),
    _F("unix_seconds", "timestamp", "bigint", "units since", (1_000_000,)),
    _F("unix_millis", "timestamp", "bigint", "units since", (1_000,)),
    _F("unix_micros", "timestamp", "bigint", "units since", (1,)),
    _F("unix_date", "date", "int", "days since"),
    _F("timestamp_seconds", "bigint", "timestamp", "from units", (1_000_000,), total=False),
    _F("timestamp_millis", "bigint", "timestamp", "from units", (1_000,), total=False),
    _F("timestamp_micros", "bigint", "timestamp", "from units", (1,), total=False),
)

#: The rows of each name, in order.
FUNCTIONS: dict[str, tuple[ScalarFunction, ...]] = {}
for _row in TABLE:
    for _name in _row.names.split():
        FUNCTIONS[_name] = (*FUNCTIONS.get(_name, ()), _row)
