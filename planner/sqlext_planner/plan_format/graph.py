"""Plans as graphs. A node with two parents is drawn once, with two arrows."""

from __future__ import annotations

import textwrap

from sqlext_planner.tree import TreeNode

_WIDTH = 60


def mermaid(plan: TreeNode) -> str:
    """A Mermaid flowchart; rows flow upwards."""
    lines = ["flowchart BT"]
    for name, label in _nodes(plan):
        text = "<br/>".join(_mermaid_text(line) for line in _wrapped(label))
        lines.append(f'  {name}["{text}"]')
    lines += [f"  {child} --> {parent}" for parent, child in _edges(plan)]
    return "\n".join(lines)


def dot(plan: TreeNode) -> str:
    """A Graphviz digraph; rows flow upwards."""
    lines = ["digraph plan {", "  rankdir=BT;", '  node [shape=box, fontname="monospace"];']
    for name, label in _nodes(plan):
        text = "\\l".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in _wrapped(label))
        lines.append(f'  {name} [label="{text}\\l"];')
    lines += [f"  {child} -> {parent};" for parent, child in _edges(plan)]
    return "\n".join([*lines, "}"])


def _nodes(plan: TreeNode) -> list[tuple[str, str]]:
    return [(f"n{i}", node.label()) for i, node in enumerate(plan.walk())]


def _edges(plan: TreeNode) -> list[tuple[str, str]]:
    names = {id(node): f"n{i}" for i, node in enumerate(plan.walk())}
    return [(names[id(node)], names[id(child)]) for node in plan.walk() for child in node.children]


def _wrapped(label: str) -> list[str]:
    return textwrap.wrap(label, _WIDTH) or [label]


def _mermaid_text(line: str) -> str:
    for character, entity in (("&", "#amp;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("`", "#96;")):
        line = line.replace(character, entity)
    return line
