"""The reference of window functions, from their table: what each takes and gives, and one executed example.

`docs/window_examples.json` holds the results of the examples. `python docs/window_reference.py` runs them on a local
Spark and writes it; a test runs them again and compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlext_operators.window.functions import FUNCTIONS, WindowFunction
from sqlext_operators.window.functions.types import FunctionTypeError, sql_name

RESULTS = Path(__file__).resolve().parent / "window_examples.json"

#: The example's table (ts, x, cate, s): the window of its last row holds all rows.
SAMPLE = (
    (1, 4, "a", "k1:1,k2:2"),
    (2, None, "b", None),
    (3, 7, "b", "k1:3"),
    (4, 4, "a", "k2:4,k3:5"),
    (5, 2, "c", "k3:6"),
)
#: What an example passes for a parameter, by its name.
_ARGUMENTS = {
    "x": "x",
    "y": "ts",
    "b": "x > 2",
    "p": "0.5",
    "cate": "cate",
    "condition": "x > 2",
    "n": "2",
    "alpha": "0.5",
    "s": "s",
    "d": "','",
    "kv": "':'",
}

#: What an argument may be. A family is named if a function takes all of its types.
_FAMILIES: Mapping[str, tuple[pa.DataType, ...]] = {
    "integer": (pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    "float, double": (pa.float32(), pa.float64()),
    "decimal": (pa.decimal128(10, 2),),
    "string": (pa.string(),),
    "binary": (pa.binary(),),
    "boolean": (pa.bool_(),),
    "date": (pa.date32(),),
    "timestamp": (pa.timestamp("us", "UTC"),),
    "interval": (pa.duration("us"),),
    "array, map, struct": (pa.list_(pa.int32()),),
}


def functions() -> list[WindowFunction]:
    """Those that SQL can call, in the order of the table."""
    return [function for function in FUNCTIONS.values() if not function.internal]


def example(function: WindowFunction) -> str:
    """A call of the function over the example's table. Raises KeyError for a parameter that `_ARGUMENTS` lacks."""
    given = [_ARGUMENTS[parameter.name] for parameter in function.parameters if not parameter.optional]
    return f"{function.name}({', '.join(given)})"


def sample() -> str:
    """The example's table as Markdown."""
    rows = ["| ts | x | cate | s |", "|---|---|---|---|"]
    return "\n".join([*rows, *(f"| {' | '.join('NULL' if v is None else str(v) for v in row)} |" for row in SAMPLE)])


def statement() -> str:
    """One statement with all examples, for the row whose window holds all rows."""
    calls = ", ".join(f"{example(function)} OVER w AS {function.name}" for function in functions())
    values = ", ".join(f"({', '.join('NULL' if v is None else repr(v) for v in row)})" for row in SAMPLE)
    return f"""
SELECT * FROM (
  SELECT ts AS _ts, {calls}
  FROM (SELECT * FROM VALUES {values} AS t(ts, x, cate, s))
  WINDOW w AS (PARTITION BY 1 ORDER BY ts ROWS_RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
) WHERE _ts = 5
"""


def run_examples(session: Any) -> dict[str, list[str]]:
    """For each example its result as text, and its type; `session` is a `sqlext.Session`."""
    frame = session.sql(statement())
    row = frame.drop("_ts").first()
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    return {example(function): [_text(row[function.name]), types[function.name]] for function in functions()}


def results() -> Mapping[str, list[str]]:
    """What `run_examples` gave when it was last written down."""
    found: dict[str, list[str]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def reference() -> str:
    """A section for each function."""
    recorded = results()
    return "\n\n".join("\n".join(_section(function, recorded)) for function in functions())


def index() -> str:
    """All names with links to their sections."""
    return ",\n".join(f"[`{function.name}`](window-functions.md#{function.name})" for function in functions())


def _section(function: WindowFunction, recorded: Mapping[str, list[str]]) -> Iterator[str]:
    call = example(function)
    result, dtype = recorded[call]
    yield f"### {function.name}\n"
    yield f"`{function.signature}`" + "".join(f", also `{alias}`" for alias in function.names[1:]) + "\n"
    yield re.sub(r"\b\w+<\w+>", r"`\g<0>`", function.doc) + "\n"
    yield f"- **Takes and gives:** {'; '.join(_types(function))}"
    yield f"- **Example:** `{call}` is `{result}`, of type `{dtype}`"
    if function.of_spark:
        yield "- With GROUP BY, and over windows that are Spark's own, it is Spark's"
    elif function.needs_order or function.positional:
        yield "- Not with GROUP BY: it depends on the order of the rows"


def _types(function: WindowFunction) -> Iterator[str]:
    """What the first argument may be, with the type of the result: families with equal results in one phrase."""
    given = {family: [_result(function, member) for member in members] for family, members in _FAMILIES.items()}
    taken = {family: results for family, results in given.items() if None not in results}
    only = len({result for results in taken.values() for result in results}) == 1
    phrases: dict[str, list[str]] = {}
    for family, results in taken.items():
        own = not only and [sql_name(member) for member in _FAMILIES[family]] == results
        phrase = "its own type" if own else " or ".join(f"`{result}`" for result in dict.fromkeys(results))
        phrases.setdefault(phrase, []).append("decimal(10,2)" if "decimal(" in phrase else family)
    for phrase, families in phrases.items():
        yield f"{', '.join(families)} → {phrase}"


def _result(function: WindowFunction, dtype: pa.DataType) -> str | None:
    """The type of the result for a first argument of this type; None if the function refuses it."""
    first, *others = function.column_parameters
    if first.kind == "condition" and dtype != pa.bool_():
        return None
    for value in (pa.string(), pa.int64()):
        needed = [other for other in others if not other.optional]
        given = [dtype, *(pa.bool_() if other.kind == "condition" else value for other in needed)]
        try:
            found = function.result_type(given)
        except FunctionTypeError:
            continue
        is_made = pa.types.is_list(found) and found != dtype
        return f"array<{sql_name(found.value_type)}>" if is_made else sql_name(found)
    return None


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return repr(round(value, 6))
    return json.dumps(value) if isinstance(value, list) else str(value) if not isinstance(value, str) else f"'{value}'"


if __name__ == "__main__":
    from sqlext import Session

    RESULTS.write_text(json.dumps(run_examples(Session()), indent=1) + "\n", encoding="utf-8")
