"""A plan as nested lists: a chain of nodes runs straight down, and only a node with several inputs indents them.

The browser lays them out, so that a plan is readable at any width and without scripts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from sqlext_planner.markup import Content, Markup, tag
from sqlext_planner.plan_format.matching import State
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.tree import TreeNode

#: Letters of a label that are shown at once; the whole of it is in the details.
_LETTERS = 200
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_NO_FOLDS: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Link:
    """A link to another part of the page; `told` says where it leads for those who do not see the page."""

    shown: str
    told: str
    target: str


@dataclass(frozen=True)
class Shown:
    """How a node is shown: its id in the page, what happened to it, what its label was (or will be) in the other plan,
    whether it is an operator of ours, links, and facts such as numbers of rows."""

    ident: str | None = None
    state: State = "same"
    other: str | None = None
    ours: bool = False
    links: tuple[Link, ...] = ()
    facts: tuple[str, ...] = ()


def tree_html(plan: TreeNode, shown: Callable[[TreeNode], Shown], folded: Collection[int] = _NO_FOLDS) -> Markup:
    """The plan; a node with two parents is shown in full under the first and named under the second. Nodes whose id is
    `folded` are one line, with the number of nodes below."""
    return tag("ul", _Tree(shown, folded, set()).item(plan), class_="tree")


@dataclass(frozen=True)
class _Tree:
    shown: Callable[[TreeNode], Shown]
    folded: Collection[int]
    seen: set[int]

    def item(self, node: TreeNode) -> Markup:
        """A node with all below it."""
        look = self.shown(node)
        classes = " ".join(["ours"] if look.ours else []) + f" {look.state}"
        if id(node) in self.folded:
            return tag("li", tag("div", _folded(node), class_="box folded"), class_=classes.strip())
        if id(node) in self.seen:
            again = tag("span", f"{node.node_name()}, as above", class_="again")
            link = None if look.ident is None else tag("a", "show", href=f"#{look.ident}")
            return tag("li", tag("div", again, " ", link, class_="box folded"))
        self.seen.add(id(node))
        below = [self.item(child) for child in node.children]
        several = "many" if len(below) > 1 else "one"
        return tag(
            "li",
            tag("div", *_box(node, look), class_="box", id=look.ident),
            tag("ul", below, class_=several) if below else None,
            class_=classes.strip(),
        )


def _folded(node: TreeNode) -> Content:
    count = sum(1 for _ in node.walk()) - 1
    below = f" and {count} node{'s' if count > 1 else ''} below" if count else ""
    return [tag("b", node.node_name()), f" {_cut(_arguments(node))[0]}", tag("i", f"{below} (unchanged)")]


def _box(node: TreeNode, look: Shown) -> Iterator[Content]:
    marks = [tag("span", look.state, class_=f"state {look.state}")] if look.state != "same" else []
    marks += [tag("span", "sqlext", class_="state ours", title="an operator of sqlext")] if look.ours else []
    links = [
        tag("a", link.shown, tag("span", f" {link.told}", class_="vh"), href=f"#{link.target}") for link in look.links
    ]
    yield tag("div", tag("b", node.node_name()), *marks, tag("span", links, class_="go"), class_="head")
    arguments = _arguments(node)
    start, is_cut = _cut(arguments)
    if start:
        yield tag("div", _marked(start, look), class_="args")
    if look.facts:
        yield tag("div", [tag("span", fact) for fact in look.facts], class_="facts")
    more = [("whole", arguments)] if is_cut else []
    if isinstance(node, PhysicalPlan):
        more += [(name, _plain(value)) for name, value in node.details().items()]
    if more:
        rows = [tag("div", tag("dt", name), tag("dd", value)) for name, value in more]
        yield tag(
            "details", tag("summary", "more", tag("span", f" about {node.node_name()}", class_="vh")), tag("dl", rows)
        )


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _arguments(node: TreeNode) -> str:
    return node.label().removeprefix(node.node_name()).removeprefix(":").strip()


def _cut(content: str) -> tuple[str, bool]:
    if len(content) <= _LETTERS:
        return content, False
    return content[: _LETTERS - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}", True


def _marked(content: str, look: Shown) -> Content:
    """The label with the words marked that the other plan does not have."""
    if look.state != "changed" or look.other is None:
        return content
    words, others = _WORD.findall(content), _WORD.findall(look.other)
    parts: list[Content] = []
    for kind, start, end, _, _ in SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        piece = "".join(words[start:end])
        parts.append(tag("mark", piece) if kind != "equal" and piece.strip() else piece)
    return parts
