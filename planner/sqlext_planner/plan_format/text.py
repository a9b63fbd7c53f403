"""Plans as indented text: one node a line, two spaces for each level, no ids."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from sqlext_planner.optimizer.executor import PlanTrace
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.tree import TreeNode


def tree_text(plan: TreeNode, *, details: bool = True) -> str:
    """The plan's tree; with `details`, a physical node is followed by its reasons and numbers in parentheses."""
    return "\n".join(_lines(plan, 0, details))


def _lines(node: TreeNode, depth: int, details: bool) -> Iterator[str]:
    yield "  " * depth + node.label()
    if details and isinstance(node, PhysicalPlan):
        for name, value in node.details().items():
            yield "  " * depth + f"    ({name}: {value})"
    for child in node.children:
        yield from _lines(child, depth + 1, details)


def side_by_side(before: str, after: str, *, titles: tuple[str, str] = ("before", "after"), width: int = 160) -> str:
    """Two texts in columns, changed lines marked with ``!``; one below the other where they do not fit in `width`."""
    left, right = before.splitlines(), after.splitlines()
    column = max([len(titles[0]), *map(len, left)])
    if column + 3 + max([len(titles[1]), *map(len, right)]) > width:
        return f"-- {titles[0]}\n{before}\n-- {titles[1]}\n{after}"
    lines = [f"{titles[0]:<{column}}   {titles[1]}".rstrip()]
    for a, b in zip_longest(left, right, fillvalue=""):
        lines.append(f"{a:<{column}} {' ' if a == b else '!'} {b}".rstrip())
    return "\n".join(lines)


def trace_text(trace: PlanTrace) -> str:
    """The initial plan, then the plan after each rule that changed it (in the style of toydb's goldenscripts)."""
    parts = ["Initial:", *_indented(trace.initial)]
    for step in trace.steps:
        parts += [f"{step.rule} ({step.batch}):", *_indented(step.after)]
    return "\n".join(parts)


def _indented(plan: TreeNode) -> list[str]:
    return ["  " + line for line in tree_text(plan).splitlines()]
