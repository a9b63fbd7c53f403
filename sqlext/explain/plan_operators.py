"""The operators of ours in a plan, one after the other: what each does, as pictures; why it runs as it does, beside
what it was compared with; what was measured. And what TSC did to a statement: its groups, and the plan before and
after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlext_planner.batches import BATCHES
from sqlext_planner.exchange.figures import PARTS
from sqlext_planner.optimizer.executor import RuleExecutor
from sqlext_planner.plan_format import side_by_side, tree_text
from sqlext_planner.plan_format.html import doc_html, scrolling
from sqlext_planner.plan_format.markup import Content, Markup, seconds_text, tag
from sqlext_planner.plan_format.pictures.picture import Picture
from sqlext_planner.plan_format.pictures.plan_pictures import pictures_of
from sqlext_planner.relational.logical_plan import LogicalPlan, own_subqueries
from sqlext_planner.relational.physical_plan import PhysicalPlan, Rival
from sqlext_planner.umjoin.nodes import UMJoin, UMJoinGroup

from sqlext.explain.plan_stages import PlanStages, measured_facts

if TYPE_CHECKING:
    from sqlext.run.pipeline import StagedPlan

#: Width, in characters, of two plans side by side.
_WIDTH = 220


def umjoins_json(plan: StagedPlan) -> list[dict[str, Any]]:
    """``[{"inputs": [alias...], "kinds": [...], "key_classes": [["alias.column", ...], ...], "strategy": ...,
    "why": ...}]``, and a "warning" if there is one.

    Every group that TSC made, outer queries first, whatever strategy was chosen for it.
    """
    if plan.optimized is None or plan.physical is None:
        return []
    groups = [UMJoinGroup.of(node) for part in with_subqueries(plan.optimized) for node in part.collect(UMJoin)]
    grouped = [(getattr(node, "group", None), node) for node in plan.physical.walk()]
    chosen = {group: node for group, node in grouped if isinstance(group, UMJoinGroup)}
    return [_entry(group, chosen.get(group)) for group in groups]


def with_subqueries(plan: LogicalPlan) -> Iterator[LogicalPlan]:
    """An optimized plan, and those of the subqueries that are left in its expressions, outer ones first."""
    yield plan
    for item in own_subqueries(plan):
        yield from with_subqueries(RuleExecutor(BATCHES).optimize(item.plan, item.plan.free_columns).final)


def _entry(group: UMJoinGroup, physical: Any) -> dict[str, Any]:
    details = {} if physical is None else physical.details()
    return {
        "inputs": list(group.inputs),
        "kinds": list(group.kinds),
        "key_classes": [list(found) for found in group.key_classes],
        "strategy": details.get("strategy", "cascade"),
        "why": details.get("why", "part of a text that goes to Spark"),
        **group.notes,
    }


def tsc_text(plan: StagedPlan) -> str:
    """The optimized plan without TSC and with it, side by side; '' if TSC found nothing."""
    if plan.analyzed is None or plan.optimized is None or not plan.optimized.collect(UMJoin):
        return ""
    return side_by_side(
        tree_text(without_tsc(plan.analyzed)), tree_text(plan.optimized), titles=("binary joins", "TSC"), width=_WIDTH
    )


def without_tsc(analyzed: LogicalPlan) -> LogicalPlan:
    """The plan that all other rules make."""
    return RuleExecutor([batch for batch in BATCHES if batch.name != "TSC"]).optimize(analyzed).final


@dataclass(frozen=True)
class NumberedOperator:
    """An operator of the optimized plan with its number, and the physical nodes that compute it."""

    number: int
    node: LogicalPlan
    physical: tuple[PhysicalPlan, ...]
    #: The node above it with which it is computed, if it has no physical node of its own.
    within: LogicalPlan | None = None

    @property
    def badge(self) -> Markup:
        """Its number in its colour."""
        return tag("span", str(self.number), class_=f"no c{(self.number - 1) % 6}")

    @property
    def runs(self) -> PhysicalPlan | None:
        """The physical node that tells most: one of ours, or one with a reason."""
        telling = [node for node in self.physical if node.is_extension or node.why]
        return next(iter([*telling, *self.physical]), None)


def operators_of(optimized: LogicalPlan, physical: PhysicalPlan | None) -> list[NumberedOperator]:
    """The nodes that are computed by operators of ours, or might have been; those of subqueries, which Spark computes,
    come last."""
    nodes = [node for plan in with_subqueries(optimized) for node in plan.walk() if node.operator_name is not None]
    if physical is None:
        return [NumberedOperator(number, node, ()) for number, node in enumerate(nodes, 1)]
    roots = {id(source): node for node in physical.walk() if (source := node.source()) is not None}
    operators = []
    for number, node in enumerate(nodes, 1):
        above = [item for item in optimized.walk() if id(item) in roots and any(part is node for part in item.walk())]
        owner = node if id(node) in roots else above[-1] if above else None
        parts = () if owner is None else tuple(_parts(roots[id(owner)], optimized))
        operators.append(NumberedOperator(number, node, parts, None if owner is node else owner))
    return operators


def operator_html(operator: NumberedOperator, stages: PlanStages, level: int) -> Markup:
    """A section about an operator."""
    node, runs = operator.node, operator.runs
    ident = f"{stages.prefix}-op-{operator.number}"
    head = tag(f"h{level}", operator.badge, " ", node.node_name(), id=f"{ident}-name")
    pictures = list(dict.fromkeys(pictures_of(node)))
    body = [
        head,
        tag("p", doc_html(type(node).__doc__ or ""), class_="doc"),
        _where(operator, stages),
        _runs(operator, runs),
        [_choice(name, rivals) for part in operator.physical for name, rivals in part.choices().items()],
        _measured(operator, stages),
    ]
    drawn = tag("div", [figure(picture) for picture in pictures], class_="figures") if pictures else None
    kind = "op pictured" if pictures else "op"
    return tag("article", tag("div", body), drawn, id=ident, class_=kind, aria_labelledby=f"{ident}-name")


def figure(picture: Picture) -> Markup:
    """A picture with its title and caption."""
    return tag("figure", picture.svg(), tag("figcaption", tag("b", picture.title), " ", picture.caption))


def _parts(root: PhysicalPlan, optimized: LogicalPlan) -> Iterator[PhysicalPlan]:
    """The physical nodes from one that computes a logical node down to those that compute others."""
    others = {id(node) for node in optimized.walk()}
    stack, seen = [root], {id(root)}
    while stack:
        node = stack.pop()
        yield node
        for child in reversed(node.children):
            if id(child.source()) not in others and id(child) not in seen:
                seen.add(id(child))
                stack.append(child)


def _where(operator: NumberedOperator, stages: PlanStages) -> Markup:
    node = operator.node
    computed = None if stages.computed is None else stages.computed.after.get(id(node))
    links = [
        ("in the statement", f"{stages.prefix}-sql-{operator.number}" if operator.number in stages.in_text else None)
    ]
    links.append(("in the optimized plan", stages.ident("optimized", node)))
    links.append(("in the physical plan", stages.ident("physical", computed)))
    shown = [tag("a", told, href=f"#{target}") for told, target in links if target is not None]
    return tag("p", [part for link in shown for part in (link, " ")], class_="where")


def _runs(operator: NumberedOperator, runs: PhysicalPlan | None) -> Content:
    if runs is None:
        return tag("p", "It is part of a text that goes to Spark as it is.")
    kind = "an operator of sqlext" if runs.is_extension else "Spark's own"
    within = "" if operator.within is None else f", together with the {operator.within.node_name()} above it"
    why = f" Why: {runs.why}." if runs.why else ""
    return tag("p", "Runs as ", tag("b", runs.node_name()), f" ({kind}){within}.{why}")


def _choice(name: str, rivals: tuple[Rival, ...]) -> Content:
    if not rivals:
        return None
    costs = any(rival.cost for rival in rivals)
    rows = [
        tag(
            "tr",
            tag("th", rival.name, tag("span", "chosen", class_="state new") if rival.chosen else None, scope="row"),
            tag("td", rival.cost or "\N{EN DASH}") if costs else None,
            tag("td", rival.note),
        )
        for rival in rivals
    ]
    titles = (name, *(["cost"] if costs else []), "what it is")
    head = tag("tr", [tag("th", title, scope="col") for title in titles])
    return _table(f"Compared: {name}", head, rows)


def _measured(operator: NumberedOperator, stages: PlanStages) -> Content:
    rows = []
    for figures in stages.measured:
        if not any(figures.node is part for part in operator.physical):
            continue
        name = "other work" if figures.node is None else figures.node.node_name()
        parts = [f"{part} {seconds_text(figures.parts[part])}" for part in PARTS if figures.parts[part]]
        told = ", ".join([*measured_facts(figures), *parts])
        rows.append(tag("tr", tag("th", name, scope="row"), tag("td", told)))
    return _table("Measured", None, rows) if rows else None


def _table(title: str, head: Content, rows: Content) -> Markup:
    table = tag("table", tag("caption", title), tag("thead", head) if head else None, tag("tbody", rows))
    return scrolling(title, table)
