"""What EXPLAIN ANALYZE measured, as lines of text: a table with a row for each node of the plan, then its parts. And
such tables in general."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sqlext_planner.errors import InternalError
from sqlext_planner.exchange.figures import PARTS, NodeFigures, skew
from sqlext_planner.plan_format.markup import bytes_text, rows_text

if TYPE_CHECKING:
    from sqlext_planner.exchange.measures import StageFigures
    from sqlext_planner.relational.physical_plan import PhysicalPlan
    from sqlext_planner.spark.plans import SparkOperator

    from sqlext.run.pipeline import StagedPlan

#: So many calls are named, the heaviest.
_MOST_CALLS = 10
#: Of the table of nodes.
HEADS = ("node", "rows in", "moved", "rows out", "bytes", "spilled", "seconds", "skew", "by")
#: Nothing has measured it.
_UNKNOWN = "-"


def measured_lines(plan: StagedPlan) -> list[str]:
    """What was measured of a statement. Raises InternalError if it was not measured."""
    run = plan.measured
    if plan.physical is None or run is None:
        raise InternalError("a statement was not measured")
    lines = [run.summary]
    if run.stages is None:
        lines.append("Spark Connect has no accumulators: where the time went is not measured")
    else:
        lines += ["", *node_lines(plan.physical, run.nodes), ""]
        lines.append(stages_text(run.stages))
    if run.stream is not None:
        lines += ["", *run.stream.lines()]
    return [*lines, *run.periods]


def node_lines(plan: PhysicalPlan, nodes: Sequence[NodeFigures]) -> list[str]:
    """The table, and for each node that our tasks or Spark's operators worked for its parts."""
    below = depths(plan)
    names = node_names([figures.node for figures in nodes])
    rows: list[tuple[str, ...]] = [HEADS]
    for figures, name in zip(nodes, names, strict=True):
        depth = 0 if figures.node is None else below[id(figures.node)]
        rows.append((f"{'  ' * depth}{name}", *node_cells(figures)))
    lines = list(aligned(rows))
    for figures, name in zip(nodes, names, strict=True):
        told = list(node_parts(figures))
        if told:
            lines += [f"{name}: {told[0]}", *(f"  {line}" for line in told[1:])]
    return lines


def node_cells(figures: NodeFigures) -> Iterator[str]:
    """The cells of a node's row behind its name."""
    moved, size, spilled = figures.all_moved_rows, figures.all_moved_bytes, figures.all_spilled_bytes
    is_read = figures.node is not None and not figures.node.children
    yield _UNKNOWN if is_read or not figures.rows_in else " + ".join(f"{count:,}" for count in figures.all_rows_in)
    yield f"{moved:,}" if figures.scattering or moved else _UNKNOWN
    yield _UNKNOWN if figures.rows is None else f"{figures.rows:,}"
    yield bytes_text(size) if size else _UNKNOWN
    yield _UNKNOWN if spilled is None or is_read else bytes_text(spilled) if spilled else "0"
    yield _UNKNOWN if figures.seconds is None else f"{figures.seconds:.2f}"
    yield _UNKNOWN if figures.skew is None else f"{figures.skew:.2f}x"
    yield "sqlext" if figures.by_tasks else "Spark" if figures.spark else ""


def node_parts(figures: NodeFigures) -> Iterator[str]:
    """Where the time of a node went; nothing for one that only passes rows on."""
    if figures.by_tasks:
        yield ", ".join(_tasks(figures))
        parts = [f"{name} {figures.parts[name]:.2f} s" for name in PARTS if figures.parts[name]]
        yield f"{', '.join(parts)}; elsewhere {figures.elsewhere:.2f} s"
    if len(figures.rows_out) > 1:
        yield f"{len(figures.rows_out)} runs gave {' + '.join(f'{count:,}' for count in figures.rows_out)} rows"
    if figures.calls:
        yield f"evaluate: {', '.join(_calls(figures))}"
    if len(figures.spark) > 1 or any(item.moved_rows for item in figures.spark):
        yield f"Spark: {', '.join(_operator(item) for item in figures.spark)}"


def _tasks(figures: NodeFigures) -> Iterator[str]:
    """Their number, and the busy seconds of the busiest one compared with the average; the same of rows."""
    for tasks, what in ((figures.scattering, "scattered"), (figures.running, "computed")):
        if tasks:
            most = skew(tasks)
            count = f"{len(tasks)} task{'s' if len(tasks) > 1 else ''} {what} for {sum(tasks):.2f} s"
            yield count + ("" if most is None else f" (the busiest {most:.2f}x the average)")
    if figures.row_skew is not None:
        yield f"the one with most rows had {figures.row_skew:.2f}x the average"
    if figures.held:
        yield f"{figures.held:,} rows held by each"


def _operator(operator: SparkOperator) -> str:
    facts = [] if operator.rows is None else [rows_text(operator.rows)]
    if operator.moved_rows:
        size = f" ({bytes_text(operator.moved_bytes)})" if operator.moved_bytes else ""
        facts = [f"{operator.moved_rows:,} moved{size}"]
    if operator.spilled_bytes:
        facts.append(f"{bytes_text(operator.spilled_bytes)} spilled")
    if operator.seconds is not None:
        facts.append(f"{operator.seconds:.2f} s")
    return " ".join([operator.name, *facts])


def _calls(figures: NodeFigures) -> Iterator[str]:
    """The seconds of each call with its evaluator, the heaviest first."""
    shown = {} if figures.node is None else {call.column.spark_name: call.text for call in figures.node.shown_calls()}
    calls = sorted(figures.calls.items(), key=lambda item: -item[1])
    for (result, evaluator), seconds in calls[:_MOST_CALLS]:
        yield f"{shown.get(result, result)} {seconds:.2f} s ({evaluator})"
    if len(calls) > _MOST_CALLS:
        yield f"{len(calls) - _MOST_CALLS} other calls {sum(seconds for _, seconds in calls[_MOST_CALLS:]):.2f} s"
    yield f"frames and the rest {figures.parts['evaluate'] - sum(figures.calls.values()):.2f} s"


def stages_text(stages: StageFigures) -> str:
    """What Spark measured of all stages."""
    if not stages.stages:
        return "what Spark measured of its stages is not known"
    shuffled = f"{bytes_text(stages.written_bytes)} written in {stages.write_seconds:.2f} s, fetched in"
    longest = (
        "" if stages.skew is None else f"; in the longest stage the longest task ran {stages.skew:.2f}x the average"
    )
    spilled = f"; {bytes_text(stages.spilled_bytes)} spilled to disk" if stages.spilled_bytes else ""
    return (
        f"Spark: {stages.tasks:,} tasks in {stages.stages:,} stages ran {stages.run_seconds:.2f} s, of which the JVM "
        f"computed {stages.cpu_seconds:.2f} s and collected garbage {stages.collect_seconds:.2f} s; "
        f"shuffle of {shuffled} {stages.fetch_seconds:.2f} s{spilled}{longest}"
    )


def depths(plan: PhysicalPlan) -> dict[int, int]:
    """How deep each node of a plan is, by its id; one with two parents as deep as below the first."""
    depth_of: dict[int, int] = {}

    def visit(node: PhysicalPlan, depth: int) -> None:
        if id(node) not in depth_of:
            depth_of[id(node)] = depth
            for child in node.children:
                visit(child, depth + 1)

    visit(plan, 0)
    return depth_of


def node_names(nodes: Sequence[PhysicalPlan | None]) -> list[str]:
    """Names that tell nodes apart: what a scan reads, else a number where there are several of a kind."""
    kinds = [_kind(node) for node in nodes]
    several = {kind for kind, count in Counter(kinds).items() if count > 1}
    seen: Counter[str] = Counter()
    found = []
    for kind in kinds:
        seen[kind] += 1
        found.append(f"{kind} {seen[kind]}" if kind in several else kind)
    return found


def _kind(node: PhysicalPlan | None) -> str:
    if node is None:
        return "other work"
    relation = node.shown_relation()
    return node.node_name() + ("" if relation is None else f" {relation[0]}")


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines whose columns are as wide as they need to be: the first from the left, all others from the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [first.ljust(widths[0]), *(text.rjust(n) for text, n in zip(others, widths[1:], strict=True))]
        yield "  ".join(cells).rstrip()
