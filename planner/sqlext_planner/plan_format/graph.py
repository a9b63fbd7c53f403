"""Plans as graphs. A node with two parents is drawn once, with two arrows."""

from __future__ import annotations

import re
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
        text = "\\l".join(_dot_text(line) for line in _wrapped(label))
        lines.append(f'  {name} [label="{text}\\l"];')
    lines += [f"  {child} -> {parent};" for parent, child in _edges(plan)]
    return "\n".join([*lines, "}"])


def _nodes(plan: TreeNode) -> list[tuple[str, str]]:
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
_MERMAID_PLAIN = re.compile(r"[^\w ,.:=+/()'!?@~^-]|[^\x20-\x7e]")


def _mermaid_text(line: str) -> str:
    """The line with every character that Mermaid could interpret replaced by its code."""
    return _MERMAID_PLAIN.sub(lambda found: _mermaid_code(found[0]), line)


def _mermaid_code(character: str) -> str:
    if character.isprintable() and not character.isascii():
        return character
    return _NAMED.get(character, f"#{ord(character)};") if character.isprintable() else "#65533;"


_NAMED = {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;"}
