"""A staged plan as a page of text, JSON, Mermaid, DOT or HTML: what EXPLAIN and `sqlext plan` print."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlext_planner.errors import masked
from sqlext_planner.plan_format import dot, mermaid, tree_json, tree_text
from sqlext_planner.tree import TreeNode
from sqlglot import exp

from sqlext.explain.analyze import measured_json
from sqlext.explain.plan_page import fragment, page
from sqlext.explain.times import measured_lines
from sqlext.explain.umjoins import tsc_text, umjoins_json
from sqlext.syntax.spans import span_of

if TYPE_CHECKING:
    from sqlext.run.pipeline import StagedPlan
    from sqlext.syntax.parser import Statement

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
    try:
        span = span_of(node)
    except ValueError:
        return node.sql(dialect="sqlext")
    return sql[span.start : span.end]


def _json(tree: TreeNode) -> dict[str, Any]:
    if not isinstance(tree, SyntaxNode):
        return tree_json(tree)
    args = {"text": tree.text} if tree.text else {}
    return {"node": tree.name, "args": args, "children": [_json(child) for child in tree.nodes]}


def _passthrough_note(plan: StagedPlan) -> str:
    reason = "No node of the extension is left" if plan.physical is not None else "Nothing here needs the extension"
    return f"{reason}: the text goes to spark.sql as it is."
