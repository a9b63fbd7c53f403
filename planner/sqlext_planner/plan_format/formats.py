"""Plans as indented text, as plain data for JSON, and as graphs in Mermaid and DOT.

In text a node is a line, with two spaces for each level and no ids. In a graph a node with two parents is drawn once,
with two arrows.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import zip_longest
from typing import Any

from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.optimizer.executor import PlanTrace
from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.physical_plan import NodeExec, PhysicalPlan
from sqlext_planner.tree import Clause, TreeNode


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


def tree_json(plan: TreeNode) -> dict[str, Any]:
    """``{"node": NAME, "args": {...}, "children": [...]}``; a node with two parents appears under both."""
    return {
        "node": plan.node_name(),
        "args": node_args(plan),
        "children": [tree_json(child) for child in plan.children],
    }


def node_args(node: TreeNode) -> dict[str, Any]:
    """The node's own fields as JSON values: expressions and frames as text, output fields as "column type" pairs.

    Fields that are None are left out; a physical node has those of its
    logical node, and adds its choices and details (why it was chosen, its numbers).
    """
    children = {id(child) for child in node.children}
    args = node_args(node.node) if isinstance(node, NodeExec) else {}
    shown_by_node = ("node", "inputs") if isinstance(node, NodeExec) else ()
    for item in fields(node):  # type: ignore[arg-type]
        value = getattr(node, item.name)
        if not item.compare or value is None or id(value) in children or item.name in shown_by_node:
            continue
        if isinstance(value, tuple) and any(id(entry) in children for entry in value):
            continue
        args[item.name] = json_value(value)
    if isinstance(node, PhysicalPlan):
        args.update({name: json_value(value) for name, value in node.details().items()})
    return args


def json_value(value: Any) -> Any:
    """A field's value as JSON."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Field):
        return f"{value.column} {value.dtype or '?'}"
    if isinstance(value, Expression | Clause):
        return str(value)
    if isinstance(value, TreeNode):
        return node_args(value)
    if isinstance(value, tuple | list):
        return [json_value(entry) for entry in value]
    if isinstance(value, dict):
        return {str(name): json_value(entry) for name, entry in value.items()}
    if is_dataclass(value):
        return {item.name: json_value(getattr(value, item.name)) for item in fields(value) if item.compare}
    return str(value)


_WIDTH = 60


def mermaid(plan: TreeNode) -> str:
    """A Mermaid flowchart; rows flow upwards."""
    lines = ["flowchart BT"]
    for name, label in _graph_nodes(plan):
        text = "<br/>".join(_MERMAID_SPECIAL.sub(_mermaid_code, line) for line in _wrapped(label))
        lines.append(f'  {name}["{text}"]')
    lines += [f"  {child} --> {parent}" for parent, child in _edges(plan)]
    return "\n".join(lines)


def dot(plan: TreeNode) -> str:
    """A Graphviz digraph; rows flow upwards."""
    lines = ["digraph plan {", "  rankdir=BT;", '  node [shape=box, fontname="monospace"];']
    for name, label in _graph_nodes(plan):
        text = "\\l".join(_dot_text(line) for line in _wrapped(label))
        lines.append(f'  {name} [label="{text}\\l"];')
    lines += [f"  {child} -> {parent};" for parent, child in _edges(plan)]
    return "\n".join([*lines, "}"])


def _graph_nodes(plan: TreeNode) -> list[tuple[str, str]]:
    return [(f"n{i}", node.label()) for i, node in enumerate(plan.walk())]


def _edges(plan: TreeNode) -> list[tuple[str, str]]:
    names = {id(node): f"n{i}" for i, node in enumerate(plan.walk())}
    return [(names[id(node)], names[id(child)]) for node in plan.walk() for child in node.children]


def _dot_text(line: str) -> str:
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    return shown.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")  # Graphviz reads entities


def _wrapped(label: str) -> list[str]:
    return textwrap.wrap(" ".join(label.split()), _WIDTH) or [label]


#: Every character but those that Mermaid takes literally inside a quoted label; its own words are just text there.
#: (``$$x$$`` is a formula, ``*x*`` is Markdown, ``%%{init}%%`` a directive.)
_MERMAID_SPECIAL = re.compile(r"[^\w ,.:=+/()'!?@~^-]|[^\x20-\x7e]")


def _mermaid_code(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable() and not character.isascii():
        return character
    return _NAMED.get(character, f"#{ord(character)};") if character.isprintable() else "#65533;"


_NAMED = {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;"}
