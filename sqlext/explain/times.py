"""The lines of EXPLAIN ANALYZE that say where the time of a statement went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sqlext_planner.exchange.figures import PARTS, NodeFigures

if TYPE_CHECKING:
    from sqlext_planner.relational.physical_plan import PhysicalPlan
    from sqlext_planner.spark.measures import StageFigures

#: So many calls are named, the heaviest.
_MOST_CALLS = 10
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
    yield f"{_sum(figures.rows_in)} in"
    if figures.held:
        yield f"{figures.held:,} held by each task"
    if figures.scattering:
        yield f"{figures.moved_rows:,} moved ({_size(figures.moved_bytes)})"
    yield f"{_sum(figures.rows_out)} out"
    if figures.spilled_bytes:
        yield f"{_size(figures.spilled_bytes)} to disk"


def _sum(counts: Sequence[int]) -> str:
    """`90 + 1 rows`: of each input or run by itself."""
    return " + ".join(f"{count:,}" for count in counts or (0,)) + (" row" if counts == (1,) else " rows")


def _tasks(tasks: Sequence[float], what: str) -> str:
    """Their number, and the busy seconds of the busiest one compared with the average."""
    count = f"{len(tasks)} task{'s' if len(tasks) > 1 else ''} {what} for {sum(tasks):.2f} s"
    average = sum(tasks) / len(tasks)
    return count + (f", the busiest {max(tasks) / average:.2f}x the average" if len(tasks) > 1 and average else "")


def _times(figures: NodeFigures) -> Iterator[str]:
    kinds = ((figures.scattering, "scattered"), (figures.running, "computed"))
    yield "; ".join(_tasks(tasks, what) for tasks, what in kinds if tasks) or "no task ran"
    parts = [f"{name} {figures.parts[name]:.2f} s" for name in PARTS if figures.parts[name]]
    yield f"{', '.join(parts)}; elsewhere {figures.elsewhere:.2f} s"
    if figures.calls:
        yield f"evaluate: {', '.join(_calls(figures))}"


def _calls(figures: NodeFigures) -> Iterator[str]:
    """The seconds of each call with its evaluator, the heaviest first."""
    shown = {} if figures.node is None else {call.column.spark_name: call.text for call in figures.node.shown_calls()}
    calls = sorted(figures.calls.items(), key=lambda item: -item[1])
    for (result, evaluator), seconds in calls[:_MOST_CALLS]:
        yield f"{shown.get(result, result)} {seconds:.2f} s ({evaluator})"
    if len(calls) > _MOST_CALLS:
        yield f"{len(calls) - _MOST_CALLS} other calls {sum(seconds for _, seconds in calls[_MOST_CALLS:]):.2f} s"
    yield f"frames and the rest {figures.parts['evaluate'] - sum(figures.calls.values()):.2f} s"


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
