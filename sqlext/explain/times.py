"""The lines of EXPLAIN ANALYZE that say where the time of a statement went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sqlext_planner.exchange.figures import PARTS, NodeFigures

if TYPE_CHECKING:
    from sqlext_planner.relational.physical_plan import PhysicalPlan
    from sqlext_planner.spark.measures import StageFigures

#: Calls that took less than this are not worth a place in a line.
_LEAST_SECONDS = 0.005
_UNITS = ("B", "kB", "MB", "GB", "TB")


def time_lines(plan: PhysicalPlan, nodes: Sequence[NodeFigures], stages: StageFigures) -> list[str]:
    """Some lines for each operator that our tasks ran, in the order of the plan, and one for Spark."""
    places = {id(node): place for place, node in enumerate(plan.walk())}
    ordered = sorted(nodes, key=lambda figures: places.get(id(figures.node), len(places)))
    kinds = Counter(_kind(figures) for figures in ordered)
    seen: Counter[str] = Counter()
    lines: list[str] = []
    for figures in ordered:
        kind = _kind(figures)
        seen[kind] += 1
        name = kind if kinds[kind] == 1 else f"{kind} {seen[kind]}"
        lines += [f"{name}: {', '.join(_rows(figures))}", *(f"  {line}" for line in _times(figures))]
    return [*lines, _spark(stages)]


def _kind(figures: NodeFigures) -> str:
    return "other work" if figures.node is None else figures.node.node_name()


def _rows(figures: NodeFigures) -> Iterator[str]:
    yield f"{_sum(figures.rows_in)} rows in"
    if figures.held:
        yield f"{figures.held:,} held by each task"
    if figures.scattering:
        yield f"{figures.moved_rows:,} moved ({_size(figures.moved_bytes)})"
    if figures.running:
        yield f"{_sum(figures.rows_out)} rows out"
    if figures.spilled_bytes:
        yield f"{_size(figures.spilled_bytes)} to disk"
    for tasks, what in ((figures.scattering, "scatter"), (figures.running, "compute")):
        if tasks:
            yield f"{len(tasks)} task{'s' if len(tasks) > 1 else ''} {what}{_busiest(tasks)}"


def _sum(counts: Sequence[int]) -> str:
    return " + ".join(f"{count:,}" for count in counts) or "0"


def _busiest(tasks: Sequence[float]) -> str:
    average = sum(tasks) / len(tasks)
    return f" (busiest {max(tasks) / average:.2f}x the average)" if len(tasks) > 1 and average else ""


def _times(figures: NodeFigures) -> Iterator[str]:
    parts = [f"{name} {figures.parts[name]:.2f} s" for name in PARTS if figures.parts[name]]
    yield f"{', '.join(parts)}; elsewhere {figures.elsewhere:.2f} s"
    shown = {} if figures.node is None else {call.column.spark_name: call.text for call in figures.node.shown_calls()}
    calls = sorted(figures.calls.items(), key=lambda item: -item[1])
    heavy = [
        f"{shown.get(result, result)} {seconds:.2f} s ({evaluator})"
        for (result, evaluator), seconds in calls
        if seconds >= _LEAST_SECONDS
    ]
    rest = figures.parts["evaluate"] - sum(figures.calls.values())
    if calls:
        yield f"evaluate: {', '.join([*heavy, f'frames and the rest {rest:.2f} s'])}"


def _spark(stages: StageFigures) -> str:
    shuffled = f"{_size(stages.written_bytes)} written in {stages.write_seconds:.2f} s, fetched in"
    return (
        f"Spark: {stages.tasks:,} tasks in {stages.stages:,} stages ran {stages.run_seconds:.2f} s, of which the JVM "
        f"computed {stages.cpu_seconds:.2f} s and collected garbage {stages.collect_seconds:.2f} s; "
        f"shuffle of {shuffled} {stages.fetch_seconds:.2f} s"
    )


def _size(size: float) -> str:
    unit = 0
    while size >= 999.95 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size:.0f} B"
