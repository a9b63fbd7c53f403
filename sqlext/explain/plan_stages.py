"""The stages of a plan side by side: what is new, changed or gone, and links from each node to the same node of the
next stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from sqlext_planner.exchange.figures import NodeFigures
from sqlext_planner.plan_format.html import Link, Shown, scrolling, tree_html
from sqlext_planner.plan_format.markup import Markup, bytes_text, rows_text, seconds_text, tag
from sqlext_planner.plan_format.matching import Matching, State, match_logical, match_physical
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.physical_plan import PhysicalPlan
from sqlext_planner.tree import TreeNode

_NEXT, _BACK = "\N{RIGHTWARDS ARROW}", "\N{LEFTWARDS ARROW}"
#: What a stage is, below its name.
_TOLD = {
    "parsed": "the text as a tree",
    "analyzed": "as written, every name resolved",
    "optimized": "after the rules",
    "physical": "what runs",
}


@dataclass(frozen=True)
class PlanStages:
    """The trees of a plan by stage, with ids that start with `prefix`; `operators` are the numbered nodes of ours in
    the optimized plan, of which those with a number `in_text` are marked in the statement; `measured` are the figures
    of nodes of the physical plan."""

    trees: Mapping[str, TreeNode]
    prefix: str
    operators: Sequence[LogicalPlan] = ()
    in_text: frozenset[int] = frozenset()
    measured: Sequence[NodeFigures] = field(default=())

    def html(self, level: int) -> Markup:
        """All stages, each under a heading of the level."""
        sections = [
            tag(
                "section",
                tag(f"h{level}", name, " ", tag("small", _TOLD[name])),
                scrolling(f"The {name} plan", tree_html(tree, partial(self._shown, name))),
            )
            for name, tree in self.trees.items()
        ]
        return tag("div", self._legend() if len(self.trees) > 1 else None, tag("div", sections, class_="stages"))

    def _legend(self) -> Markup:
        states = (
            ("gone", "is not in the next plan"),
            ("new", "was not in the one before"),
            ("moved", "is below another node"),
            ("changed", "differs"),
        )
        marks = [part for name, told in states for part in (tag("span", name, class_=f"state {name}"), f" {told} ")]
        ours = [tag("span", "sqlext", class_="state ours"), " an operator of sqlext. Arrows lead to the same node. "]
        return tag("p", marks, ours, "Rows flow upwards: a node reads those below it.", class_="muted")

    def ident(self, stage: str, node: TreeNode | None) -> str | None:
        """The id of a node of a stage; None for one that it does not have."""
        number = self._numbers.get(stage, {}).get(id(node))
        return None if number is None else f"{self.prefix}-{stage}-{number}"

    @cached_property
    def changes(self) -> str:
        """`2 Join became UMJoin, 2 Filter are new`, from the analyzed to the optimized plan; '' if one is not shown."""
        matching = self._rewritten
        if matching is None:
            return ""
        gone = [node for node in self.trees["analyzed"].walk() if matching.state_before(node) == "gone"]
        into = {id(node): matching.became.get(id(node)) for node in gone}
        pairs = [(node, into[id(node)]) for node in gone]
        became = Counter((node.node_name(), _into(node, other)) for node, other in pairs if other is not None)
        left = Counter(node.node_name() for node in gone if into[id(node)] is None)
        used = {id(other) for other in into.values()}
        new = Counter(
            node.node_name()
            for node in self.trees["optimized"].walk()
            if matching.state_after(node) == "new" and id(node) not in used
        )
        parts = [f"{count} {name} {into}" for (name, into), count in became.items()]
        parts += [f"{count} {name} gone" for name, count in left.items()]
        return ", ".join([*parts, *(f"{count} {name} new" for name, count in new.items())])

    @cached_property
    def computed(self) -> Matching | None:
        """The nodes of the optimized plan with those of the physical one."""
        optimized, physical = self.trees.get("optimized"), self.trees.get("physical")
        if isinstance(optimized, LogicalPlan) and isinstance(physical, PhysicalPlan):
            return match_physical(optimized, physical)
        return None

    def origins(self, node: LogicalPlan) -> list[LogicalPlan]:
        """The operators of the analyzed plan that have become one of the optimized plan, or part of it."""
        matching, analyzed = self._rewritten, self.trees.get("analyzed")
        if matching is None or not isinstance(analyzed, LogicalPlan):
            return []
        into = (matching.after, matching.became)
        operators = (item for item in analyzed.walk() if item.operator_name is not None)
        return [item for item in operators if any(known.get(id(item)) is node for known in into)]

    @cached_property
    def _rewritten(self) -> Matching | None:
        analyzed, optimized = self.trees.get("analyzed"), self.trees.get("optimized")
        if isinstance(analyzed, LogicalPlan) and isinstance(optimized, LogicalPlan):
            return match_logical(analyzed, optimized)
        return None

    @cached_property
    def _numbers(self) -> dict[str, dict[int, int]]:
        return {
            name: {id(node): number for number, node in enumerate(tree.walk(), 1)} for name, tree in self.trees.items()
        }

    @cached_property
    def _places(self) -> dict[int, int]:
        """The numbers of the operators by id, also of the nodes that they are in the other stages."""
        found = {id(node): number for number, node in enumerate(self.operators, 1)}
        for node in self.operators:
            before = None if self._rewritten is None else self._rewritten.before.get(id(node))
            after = None if self.computed is None else self.computed.after.get(id(node))
            found |= {id(other): found[id(node)] for other in (before, after) if other is not None}
        return found

    def _shown(self, stage: str, node: TreeNode) -> Shown:
        state, other = self._state(stage, node)
        links = [*self._links(stage, node)]
        number = self._places.get(id(node))
        if number is not None:
            links.insert(0, Link(str(number), f"operator {number}: {node.node_name()}", f"{self.prefix}-op-{number}"))
        is_ours = bool(getattr(node, "operator_name", None)) or bool(getattr(node, "is_extension", False))
        facts = tuple(self._facts(node)) if isinstance(node, PhysicalPlan) else ()
        return Shown(self.ident(stage, node), state, other, is_ours, tuple(links), facts)

    def _state(self, stage: str, node: TreeNode) -> tuple[State, str | None]:
        matching = self._rewritten
        if matching is None or stage not in ("analyzed", "optimized"):
            return "same", None
        other = (matching.after if stage == "analyzed" else matching.before).get(id(node))
        state = matching.state_before(node) if stage == "analyzed" else matching.state_after(node)
        return state, None if other is None else other.label()

    def _links(self, stage: str, node: TreeNode) -> list[Link]:
        pairs = {
            "analyzed": [(self._rewritten, "optimized", _NEXT)],
            "optimized": [(self._rewritten, "analyzed", _BACK), (self.computed, "physical", _NEXT)],
            "physical": [(self.computed, "optimized", _BACK)],
        }.get(stage, [])
        links = []
        for matching, target, arrow in pairs:
            if matching is None:
                continue
            same = (matching.after if arrow == _NEXT else matching.before).get(id(node))
            became = matching.became.get(id(node)) if arrow == _NEXT else None
            ident = self.ident(target, same or became)
            if ident is not None:
                shown = arrow if same is not None or became is None else f"{arrow} {became.node_name()}"
                told = f"{node.node_name()} in the {target} plan" if same is not None else f"in the {target} plan"
                links.append(Link(shown, told, ident))
        return links

    def _facts(self, node: PhysicalPlan) -> list[str]:
        expected = node.estimate()
        facts = []
        if expected is not None and expected.rows is not None:
            facts.append(f"about {rows_text(expected.rows)} expected")
        if expected is not None and expected.bytes is not None:
            facts.append(f"{bytes_text(expected.bytes)} expected")
        for figures in self.measured:
            if figures.node is node:
                facts += measured_facts(figures)
        return facts


def _into(node: TreeNode, other: TreeNode) -> str:
    same = node.node_name() == other.node_name()
    return "merged into another" if same else f"became {other.node_name()}"


def measured_facts(figures: NodeFigures) -> list[str]:
    """What was measured of a node: rows in and out, what was moved and spilled, seconds, and skew."""
    facts = []
    if figures.rows is not None:
        facts.append(f"{rows_text(figures.rows)} out")
    if figures.by_tasks and figures.rows_in:
        facts.append(f"{rows_text(sum(figures.all_rows_in))} in")
    if figures.all_moved_rows:
        size = f" ({bytes_text(figures.all_moved_bytes)})" if figures.all_moved_bytes else ""
        facts.append(f"{rows_text(figures.all_moved_rows)} moved{size}")
    if figures.all_spilled_bytes:
        facts.append(f"{bytes_text(figures.all_spilled_bytes)} to disk")
    if figures.seconds is not None:
        tasks = len(figures.scattering) + len(figures.running)
        facts.append(f"{seconds_text(figures.seconds)}" + (f" in {tasks} tasks" if tasks > 1 else ""))
    if figures.skew is not None:
        facts.append(f"busiest task {figures.skew:.1f}x the average")
    return facts
