"""What the rules did: a step for each that changed the plan, with the part that it changed before and after."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlext_planner.markup import Content, Markup, tag
from sqlext_planner.optimizer.executor import PlanTrace, Step
from sqlext_planner.plan_format.amounts import seconds_text
from sqlext_planner.plan_format.matching import Matching, changed_part, match_logical
from sqlext_planner.plan_format.tree_html import Shown, tree_html
from sqlext_planner.tree import TreeNode

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
