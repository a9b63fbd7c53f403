"""A plan as nested lists, and what the rules did: a step for each that changed it, with the part that it changed before
and after.

In the lists a chain of nodes runs straight down, and only a node with several inputs indents them. The browser lays
them out, so that a plan is readable at any width and without scripts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from sqlext_planner.optimizer.executor import PlanTrace, Step
from sqlext_planner.plan_format.markup import Content, Markup, seconds_text, tag
from sqlext_planner.plan_format.matching import Matching, State, changed_part, match_logical
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


def scrolling(label: str, *content: Content) -> Markup:
    """Content that scrolls by itself where it is too wide, also by keyboard."""
    return tag("div", *content, class_="scroll", tabindex=0, role="group", aria_label=label)


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


_REFERENCE = re.compile(r"\s*\(docs/[^)]*\)")
_CODE = re.compile(r"``(.+?)``|`(.+?)`", re.DOTALL)


def steps_html(trace: PlanTrace) -> Markup:
    """All steps, in their order; each opens to the plan's changed part, and those that made an operator are open. A
    paragraph if no rule changed anything."""
    if not trace.steps:
        return tag("p", "No rule changed the plan.")
    return tag("ol", [tag("li", _step(step)) for step in trace.steps], class_="steps")


def doc_html(doc: str) -> Content:
    """The first paragraph of a docstring, with its code as code."""
    first = " ".join(doc.strip().split("\n\n")[0].split())
    first = _REFERENCE.sub("", first).replace("->", "\N{RIGHTWARDS ARROW}")
    parts: list[Content] = []
    place = 0
    for found in _CODE.finditer(first):
        parts += [first[place : found.start()], tag("code", found[1] or found[2])]
        place = found.end()
    return [*parts, first[place:]]


def _step(step: Step) -> Iterator[Markup]:
    whole = match_logical(step.before, step.after)
    before, after = changed_part(step.before, step.after)
    when = tag("span", f"{step.batch} \N{MIDDLE DOT} {seconds_text(step.seconds)}", class_="muted")
    yield tag(
        "details",
        tag("summary", tag("b", step.rule), when, tag("span", _counted(whole, before, after), class_="counts")),
        tag("p", doc_html(step.doc), class_="doc"),
        tag(
            "div",
            _side(f"before {step.rule}", before, whole, is_before=True, other=after),
            _side(f"after {step.rule}", after, whole, is_before=False, other=before),
            class_="pair",
        ),
        open=any(whole.state_after(node) == "new" and node.operator_name for node in step.after.walk()),
    )


def _side(title: str, plan: TreeNode, matching: Matching, *, is_before: bool, other: TreeNode) -> Markup:
    shared = {id(node) for node in other.walk()}
    folded = {id(node) for node in plan.walk() if id(node) in shared}

    def shown(node: TreeNode) -> Shown:
        state = matching.state_before(node) if is_before else matching.state_after(node)
        found = (matching.after if is_before else matching.before).get(id(node))
        return Shown(state=state, other=None if found is None else found.label())

    tree = tree_html(plan, shown, folded)
    return tag("div", tag("p", title, class_="side"), tree, tabindex=0, role="group", aria_label=f"The plan {title}")


def _counted(matching: Matching, before: TreeNode, after: TreeNode) -> str:
    """`1 gone, 2 changed, 1 new`."""
    gone = sum(matching.state_before(node) == "gone" for node in before.walk())
    states = [matching.state_after(node) for node in after.walk()]
    counts = {"gone": gone, **{state: states.count(state) for state in ("moved", "changed", "new")}}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)
