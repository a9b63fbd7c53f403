"""What a deployment keeps and computes, as text: `EXPLAIN DEPLOYMENT query`, `deployment.explain()`, and `plan.txt`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlext_operators.serving.steps import BranchStep, InputSpec, LastJoinStep, ServedRight, Step, WindowStep
from sqlext_operators.serving.store import CONDENSED_FROM

if TYPE_CHECKING:
    from sqlext.serving.deployment import Deployment

#: What a column is called that is no column of its table.
_COMPUTED = "a computed column"
_UNITS = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000}


def explained(deployment: Deployment, seconds: Sequence[float] = ()) -> str:
    """What is kept of each table and why, and what an answer reads and computes; `seconds`: the time of each step."""
    spec = deployment.spec
    lines = [f"Deployment {deployment.name}: a row of {deployment.request}"]
    for place, item in enumerate(spec.inputs):
        lines += _input(deployment, place, item)
    times = iter([f", {1000 * each:.2f} ms" for each in seconds])
    for place, step in enumerate(spec.steps[:-1], 1):
        lines += _step(f"  step {place}{next(times, '')}: ", step)
    return "\n".join([*lines, f"  result{next(times, '')}: {', '.join(spec.names)}"])


def _input(deployment: Deployment, place: int, item: InputSpec) -> list[str]:
    spec = item.kept
    names = {name: item.source_of(name) or _COMPUTED for name in spec.schema.names}
    columns = [name for name in names.values() if name != _COMPUTED]
    if len(columns) < len(names):
        columns.append(f"{len(names) - len(columns)} computed")
    keys = f" by {', '.join(names[key] for key in spec.keys)}" if spec.keys else ""
    order = f" in order of {names[spec.order]}" if spec.order is not None else ""
    rows, size = deployment.kept_of(place)
    width = f"{size / rows:.0f} bytes a row" if rows else _width(spec.schema, names)
    return [
        f"  input {place}: {item.table} [{', '.join(columns)}]{keys}{order}",
        f"      (kept: {_stay(item, deployment.lateness)})",
        f"      (now: {rows:,} row{'' if rows == 1 else 's'}, {width})",
    ]


def _stay(item: InputSpec, lateness: int | None) -> str:
    """How long rows of an input are kept."""
    order, newest = item.kept.order, item.kept.newest
    if item.back is None or lateness is None or order is None:
        return "all rows"
    of_key = f"the last {newest} of each key" if newest > 1 else "the last row of each key" if newest else ""
    age = lateness + item.back
    if age < 0:
        return of_key or "no row"
    size = length(age, item.kept.schema.field(order).type)
    return f"rows up to {size} before the newest{of_key and f', and {of_key} before that'}"


def _width(schema: pa.Schema, names: Mapping[str, str]) -> str:
    """The bytes of a row by its types."""
    known = sum(_bits(item.type) for item in schema) / 8
    others = ", ".join(names[item.name] for item in schema if not _bits(item.type))
    return f"{known:.0f} bytes a row{others and f' and the values of {others}'}"


def _bits(kind: pa.DataType) -> int:
    try:
        return int(kind.bit_width)
    except ValueError:
        return 0


def _step(head: str, step: Step) -> list[str]:
    inner = " " * 6
    match step:
        case BranchStep():
            parts = [line for number, one in enumerate(step.steps, 1) for line in _step(f"{inner}{number}: ", one)]
            return [f"{head}columns of the request row by steps of their own", *parts]
        case LastJoinStep():
            return [f"{head}LAST JOIN: {'; '.join(map(_right, step.rights))}"]
        case WindowStep():
            return _windows(head, inner, step)
    return [f"{head}columns: {', '.join(name for name, _ in step.columns)}"]


def _right(right: ServedRight) -> str:
    if not right.is_last:
        return f"reads all rows of its key in input {right.source}"
    return f"reads the last row of its key in input {right.source}{'' if right.until is None else ' up to its time'}"


def _windows(head: str, inner: str, step: WindowStep) -> list[str]:
    calls = [f"{call.function} AS {call.output}" for window in step.window.windows for call in window.calls]
    inputs = [*step.unions, *(() if step.own is None else (step.own,))]
    over = f"input{'s' if len(inputs) > 1 else ''} {', '.join(map(str, inputs))}" if inputs else "the row alone"
    lines = [f"{head}windows over {over}: {', '.join(calls)}"]
    reads = _reads(step)
    if inputs and reads:
        lines.append(f"{inner}(reads of its key: {', '.join(reads)})")
    condensed = [call.name for calls_ in step.long.calls for call in calls_.calls]
    if condensed:
        lines.append(
            f"{inner}(where a key has {CONDENSED_FROM:,} rows or more, from condensed rows: {', '.join(condensed)})"
        )
    return lines


def _reads(step: WindowStep) -> list[str]:
    """Which rows of a key the windows read for one row."""
    reach, order = step.request_reach, step.window.order
    reads = []
    if order is not None:
        kind = step.types.field(order).type
        if reach.back is not None:
            reads.append(f"the rows of the {length(reach.back, kind)} before it")
        if reach.most:
            reads.append(f"at most {reach.most:,} rows of the {length(reach.capped, kind)} before it")
        if reach.ahead:
            reads.append(f"those of the {length(reach.ahead, kind)} after it")
    if reach.rows:
        reads.append("the last row" if reach.rows == 1 else f"the last {reach.rows:,} rows")
    return reads


def length(size: int, kind: pa.DataType) -> str:
    """A length of the order column; microseconds of timestamps as a dialect writes them: 3d 12h."""
    if not pa.types.is_timestamp(kind):
        return f"{size:,}"
    parts = []
    for unit, micros in _UNITS.items():
        if count := size // micros:
            parts.append(f"{count}{unit}")
        size %= micros
    return " ".join([*parts, *([f"{size}us"] if size else [])]) or "0s"
