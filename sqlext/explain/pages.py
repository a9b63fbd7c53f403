"""A staged plan as text, JSON, Mermaid, DOT or HTML: what EXPLAIN and `sqlext plan` print. Its HTML is a page, or a
part of one for a notebook: complete without scripts, and in one piece. In the user's text the parts are marked that
became nodes of the extension, each a link to its node."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import Span, masked
from sqlext_planner.expressions.nodes import conjuncts
from sqlext_planner.plan_format import dot, mermaid, tree_json, tree_text
from sqlext_planner.plan_format.html import doc_html, scrolling, steps_html
from sqlext_planner.plan_format.markup import Content, Markup, rows_text, seconds_text, tag
from sqlext_planner.plan_format.pictures.plan_pictures import pictures_of
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.physical_plan import place_of
from sqlext_planner.tree import TreeNode
from sqlglot import exp

from sqlext.explain.analyze import measured_json
from sqlext.explain.plan_operators import NumberedOperator, operator_html, operators_of, tsc_text, umjoins_json
from sqlext.explain.plan_stages import PlanStages
from sqlext.explain.times import HEADS, measured_lines, node_cells, node_names, node_parts, stages_text
from sqlext.syntax.spans import has_place, span_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlext_planner.exchange.figures import NodeFigures

    from sqlext.run.pipeline import StagedPlan
    from sqlext.syntax.parser import Statement

#: Between two lines of a mark: line breaks and indentation, which are not underlined.
_INDENT = re.compile(r"(\s*\n\s*)")


def places_of(node: LogicalPlan) -> tuple[Span, ...]:
    """Where a node stands in the text: its own place, and those of its calls, terms and tables outside of it."""
    found = [node.span, *(place_of(term) for item in node.expressions() for term in conjuncts(item))]
    found += [_table_place(child) for child in node.children]
    return outermost(span for span in found if span is not None)


def outermost(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The places that are not inside another one, in order."""
    kept: list[Span] = []
    for span in sorted(set(spans), key=lambda span: (span.start, -span.end)):
        if not kept or span.end > kept[-1].end:
            kept.append(span)
    return tuple(kept)


def _table_place(plan: LogicalPlan) -> Span | None:
    """The place of the table that an input reads, None for an input that an operator or several tables make."""
    while len(plan.children) == 1 and plan.operator_name is None:
        plan = plan.children[0]
    return None if plan.children else plan.span


def marked_sql(sql: str, marks: Sequence[Sequence[Span]], prefix: str) -> Markup:
    """The text; the places of mark n link to `{prefix}-op-{n + 1}`, and the first of them is `{prefix}-sql-{n + 1}`.
    Of marks that overlap the shorter one is on top."""
    owner: list[int | None] = [None] * len(sql)
    spans = [(span, number) for number, found in enumerate(marks, 1) for span in found]
    for span, number in sorted(spans, key=lambda item: item[0].start - item[0].end):
        places = range(max(span.start, 0), min(span.end, len(sql)))
        owner[places.start : places.stop] = [number] * len(places)
    return tag("pre", list(_pieces(sql, owner, prefix)), class_="sql")


def _pieces(sql: str, owner: Sequence[int | None], prefix: str) -> Iterator[str]:
    place = 0
    seen: set[int] = set()
    for number, letters in groupby(owner):
        whole = sql[place : (place := place + len(list(letters)))]
        piece = whole.strip(" \t\r\n,")
        if number is None or not piece:
            yield whole
            continue
        before, after = whole.split(piece, 1)
        first = number not in seen
        seen.add(number)
        badge = tag("sup", str(number), class_="no") if first else None
        ident = f"{prefix}-sql-{number}" if first else None
        yield before
        colour = f"hit c{(number - 1) % 6}"
        lines = [tag("span", part, class_=colour) if part.strip() else part for part in _INDENT.split(piece)]
        yield tag("a", lines, badge, href=f"#{prefix}-op-{number}", id=ident, class_="mark")
        yield after


#: So many pictures stand at the top of a page.
_GLANCES = 2
_TITLE = "What happens to the query"


def page(plan: StagedPlan, trees: Mapping[str, TreeNode], note: str | None) -> str:
    """A whole page about a plan: its trees by stage, and what there is to `note` about where it runs."""
    parts = _Parts(plan, trees, note, "plan", 2)
    sections = parts.sections()
    links = [tag("li", tag("a", title, href=f"#plan-part-{number}")) for number, (title, _) in enumerate(sections)]
    body = [tag("section", tag("h2", t), content, id=f"plan-part-{n}") for n, (t, content) in enumerate(sections)]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", "sqlext plan"),
        tag("style", _css("page.css"), _css("plan.css")),
    )
    whole = [
        tag("header", tag("h1", _TITLE), tag("nav", tag("ul", links), aria_label="Parts of this page")),
        tag("main", body),
        tag("footer", tag("p", "Made by sqlext plan.")),
    ]
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', *whole, class_='sqlext-plan'), lang='en')}\n"


def fragment(plan: StagedPlan, trees: Mapping[str, TreeNode], note: str | None) -> str:
    """The same as one element for a notebook, in which what is long is folded. Its styles are about its own elements,
    and its ids are its own, however many plans the notebook shows."""
    parts = _Parts(plan, trees, note, f"plan-{secrets.token_hex(4)}", 4)
    first, *others = parts.sections()
    is_open = {"Statement", "Before and after", "Operators"}
    sections = [tag("h3", first[0]), first[1]]
    for title, content in others:
        sections.append(tag("details", tag("summary", title), content, open=title in is_open, class_="part"))
    return tag("div", tag("style", _css("plan.css")), *sections, class_="sqlext-plan compact")


def _css(name: str) -> Markup:
    return Markup(files("sqlext_planner.plan_format").joinpath(name).read_text(encoding="utf-8"))


class _Parts:
    """The parts of a page; headings below those of the parts have the level."""

    def __init__(
        self, plan: StagedPlan, trees: Mapping[str, TreeNode], note: str | None, prefix: str, level: int
    ) -> None:
        self.plan, self.note = plan, note
        self.is_compact = level > 2
        self.level = level if self.is_compact else level + 1
        self.operators: Sequence[NumberedOperator] = (
            [] if plan.optimized is None else operators_of(plan.optimized, plan.physical)
        )
        nodes = [item.node for item in self.operators]
        measured = () if plan.measured is None else plan.measured.nodes
        stages = PlanStages(trees, prefix, nodes, frozenset(), measured)
        self.marks = [
            outermost(span for origin in (node, *stages.origins(node)) for span in places_of(origin)) for node in nodes
        ]
        in_text = frozenset(number for number, found in enumerate(self.marks, 1) if found)
        self.stages = replace(stages, in_text=in_text)

    def sections(self) -> list[tuple[str, Content]]:
        """Titles and contents, in order."""
        prefix = self.stages.prefix
        parts: list[tuple[str, Content]] = [("In brief", self._brief())]
        parts.append(("Statement", [marked_sql(self.plan.sql, self.marks, prefix), self._legend()]))
        if self.stages.trees:
            parts.append(("Before and after", self.stages.html(self.level)))
        if self.operators:
            articles = [operator_html(item, self.stages, self.level) for item in self.operators]
            parts.append(("Operators", tag("div", articles, class_="ops")))
        if self.plan.trace is not None:
            parts.append(("Rules", steps_html(self.plan.trace)))
        if self.plan.measured is not None:
            parts.append(("Measured", self._measured()))
        return parts

    def _brief(self) -> Content:
        items = [tag("li", tag("b", "Found: "), self._introduced(item)) for item in self.operators]
        trace = self.plan.trace
        if trace is not None:
            seconds = sum(step.seconds for step in trace.steps)
            count = len(trace.rules)
            rules = f"{count} rule{'s' if count != 1 else ''} changed the plan in {seconds_text(seconds)}"
            changes = f" ({self.stages.changes})" if self.stages.changes else ""
            told = f"{rules if count else 'no rule changed the plan'}{changes}."
            items.append(tag("li", tag("b", "Rewritten: "), told))
        ours = ", ".join(self.plan.extensions)
        runs = self.note or f"{ours or 'DataFrames of Spark'}, and Spark for the rest."
        items.append(tag("li", tag("b", "Runs: "), runs))
        if self.plan.measured is not None:
            found = self.plan.measured
            items.append(tag("li", tag("b", "Measured: "), f"{rows_text(found.rows)} in {found.seconds:.2f} s."))
        return [tag("ul", items, class_="brief"), self._glances()]

    def _glances(self) -> Content:
        """The first pictures, each a link to its operator, where all words are."""
        if self.is_compact:
            return None
        firsts = [(item, next(iter(pictures_of(item.node)), None)) for item in self.operators]
        links = [
            tag(
                "a",
                picture.glance(),
                href=f"#{self.stages.prefix}-op-{item.number}",
                aria_label=f"Picture of operator {item.number}: {picture.title}",
            )
            for item, picture in firsts
            if picture is not None
        ]
        return tag("div", links[:_GLANCES], class_="glances") if links else None

    def _introduced(self, item: NumberedOperator) -> Content:
        name = tag("a", item.badge, " ", item.node.node_name(), href=f"#{self.stages.prefix}-op-{item.number}")
        return [name, ". ", doc_html(type(item.node).__doc__ or "")]

    def _legend(self) -> Content:
        if not any(self.marks):
            return None
        return tag("p", "What is marked is computed by the operator with that number.", class_="muted")

    def _measured(self) -> Content:
        run = self.plan.measured
        assert run is not None
        content: list[Content] = [tag("p", f"{run.summary}.")]
        if run.stages is None:
            content.append(tag("p", "Spark Connect has no accumulators: where the time went is not measured."))
        else:
            content += [self._node_table(run.nodes), tag("p", stages_text(run.stages))]
        if run.stream is not None:
            told = tag("pre", "\n".join(run.stream.lines()))
            content.append(scrolling("Operators of the stream", told))
        return [*content, *(tag("p", line) for line in run.periods)]

    def _node_table(self, nodes: Sequence[NodeFigures]) -> Content:
        first, *others = HEADS
        numbers = [tag("th", title, scope="col", class_="number") for title in others]
        head = tag("tr", tag("th", first, scope="col"), numbers)
        rows: list[Content] = []
        for figures, name in zip(nodes, node_names([figures.node for figures in nodes]), strict=True):
            ident = None if figures.node is None else self.stages.ident("physical", figures.node)
            title = tag("a", name, href=f"#{ident}") if ident is not None else name
            cells = [tag("td", cell, class_="number") for cell in node_cells(figures)]
            rows.append(tag("tr", tag("th", title, scope="row"), cells))
            parts = list(node_parts(figures))
            if parts:
                told = [tag("div", part) for part in parts]
                rows.append(tag("tr", tag("td", told, colspan=len(HEADS), class_="muted")))
        table = tag("table", tag("caption", "Nodes"), tag("thead", head), tag("tbody", rows))
        return scrolling("Measured nodes", table)


STAGES = ("parsed", "analyzed", "optimized", "physical")
#: What a plan shows of itself.
SHOWN = ("optimized", "physical")
#: What its page shows: the plan before the rules, after them, and the physical choice.
PAGE = ("analyzed", "optimized", "physical")


@dataclass(frozen=True)
class SyntaxNode(TreeNode):
    """A node of the parsed statement: sqlglot's class name, and the user's text if nothing interesting is below it."""

    name: str
    text: str
    nodes: tuple[SyntaxNode, ...] = ()

    def label(self) -> str:
        return f"{self.name}: {' '.join(self.text.split())}" if self.text else self.name


def render(plan: StagedPlan, stages: Sequence[str], format: str) -> str:
    """The stages in a format, with a newline at the end. Diagrams (mermaid, dot) show the last stage. Credentials in
    URIs are not shown."""
    return masked(_rendered(plan, stages, format))


def _rendered(plan: StagedPlan, stages: Sequence[str], format: str) -> str:
    trees = stage_trees(plan, stages)
    match format:
        case "json":
            return explain_json(plan, stages) + "\n"
        case "html":
            return page(plan, trees, _passthrough_note(plan) if plan.passthrough else None)
        case "mermaid" | "dot":
            last = list(trees.values())[-1] if trees else syntax_tree(plan.statement)
            return (mermaid if format == "mermaid" else dot)(last) + "\n"
    return explain_text(plan, stages) + "\n"


def plan_html(plan: StagedPlan, stages: Sequence[str]) -> str:
    """The stages as one HTML element, for a notebook."""
    return masked(fragment(plan, stage_trees(plan, stages), _passthrough_note(plan) if plan.passthrough else None))


def explain_text(plan: StagedPlan, stages: Sequence[str]) -> str:
    """The stages in order, the rules that changed the plan, and whether the text goes to Spark as it is."""
    parts: list[str] = []
    for name, tree in stage_trees(plan, stages).items():
        parts += [f"== {name} ==", tree_text(tree)]
        if name == "optimized" and plan.trace is not None:
            parts.append("rules: " + (", ".join(plan.trace.rules) or "none changed the plan"))
            found = tsc_text(plan)
            parts += ["", "== TSC ==", found] if found else []
        parts.append("")
    if plan.measured is not None:
        parts += ["== measured ==", *measured_lines(plan), ""]
    if plan.passthrough:
        parts.append(_passthrough_note(plan))
    return masked("\n".join(parts).rstrip())


def explain_json(plan: StagedPlan, stages: Sequence[str]) -> str:
    """``{"sql", "stages": {stage: tree}, "umjoins": [...], "extensions": [...]}``; a tree is
    ``{"node": NAME, "args": {...}, "children": [...]}``. Also `measured` if the statement was (`measured_json`)."""
    trees = {name: _json(tree) for name, tree in stage_trees(plan, stages).items()}
    page = {"sql": plan.sql, "stages": trees, "umjoins": umjoins_json(plan), "extensions": list(plan.extensions)}
    if plan.measured is not None and plan.physical is not None:
        page["measured"] = measured_json(plan.physical, plan.measured)
    return masked(json.dumps(page, indent=2, ensure_ascii=False))


def stage_trees(plan: StagedPlan, stages: Sequence[str]) -> dict[str, TreeNode]:
    """The trees of the requested stages, in the pipeline's order; a statement that is Spark's alone is only parsed."""
    trees: dict[str, TreeNode | None] = {
        "parsed": syntax_tree(plan.statement),
        "analyzed": plan.analyzed,
        "optimized": plan.optimized,
        "physical": plan.physical,
    }
    return {name: tree for name in STAGES if name in stages and (tree := trees[name]) is not None}


def syntax_tree(statement: Statement) -> SyntaxNode:
    """The parsed statement; a text that only Spark can parse is one node."""
    if statement.ast is None:
        return SyntaxNode("SparkStatement", statement.sql.strip())
    return _syntax(statement.ast, statement.sql)


def _syntax(node: exp.Expr, sql: str) -> SyntaxNode:
    name = type(node).__name__
    if not isinstance(node, exp.Query) and node.find(exp.Query, exp.Window) is None:
        return SyntaxNode(name, _text(node, sql))
    below = tuple(_syntax(child, sql) for child in node.iter_expressions())
    return SyntaxNode(name, "" if below else _text(node, sql), below)


def _text(node: exp.Expr, sql: str) -> str:
    """The user's text of a node; for one that the parser only derived, sqlglot's text for it."""
    if not has_place(node):
        return node.sql(dialect="sqlext")
    return sql[span_of(node).start : span_of(node).end]


def _json(tree: TreeNode) -> dict[str, Any]:
    if not isinstance(tree, SyntaxNode):
        return tree_json(tree)
    args = {"text": tree.text} if tree.text else {}
    return {"node": tree.name, "args": args, "children": [_json(child) for child in tree.nodes]}


def _passthrough_note(plan: StagedPlan) -> str:
    reason = "No node of the extension is left" if plan.physical is not None else "Nothing here needs the extension"
    return f"{reason}: the text goes to spark.sql as it is."
