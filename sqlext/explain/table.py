"""Tables of figures by the nodes of a plan, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlext_planner.relational.physical_plan import PhysicalPlan


def depths(plan: PhysicalPlan) -> dict[int, int]:
    """How deep each node of a plan is, by its id; one with two parents as deep as below the first."""
    found: dict[int, int] = {}

    def visit(node: PhysicalPlan, depth: int) -> None:
        if id(node) not in found:
            found[id(node)] = depth
            for child in node.children:
                visit(child, depth + 1)

    visit(plan, 0)
    return found


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
