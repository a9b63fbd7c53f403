"""One self-contained HTML page with a statement and its plan at every stage."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from sqlext_planner.optimizer.executor import PlanTrace
from sqlext_planner.plan_format.nodes import node_args
from sqlext_planner.plan_format.text import tree_text
from sqlext_planner.tree import TreeNode

#: Rules for what is inside the element of `html_fragment` only, so that a notebook around it stays as it is.
_STYLE = """
.sqlext-plan { color-scheme: light dark; --line: #8886; --soft: #8881; --accent: #2a6fdb; }
.sqlext-plan pre, .sqlext-plan .tree, .sqlext-plan table { font: 13px/1.5 ui-monospace, monospace; }
.sqlext-plan pre { background: var(--soft); padding: .8rem 1rem; overflow-x: auto; border-radius: 6px; }
.sqlext-plan .stages { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start; }
.sqlext-plan .stages section { flex: 1 1 32rem; min-width: 0; }
.sqlext-plan .tree ul { list-style: none; margin: 0; padding-left: 1.2rem; border-left: 1px solid var(--line); }
.sqlext-plan .tree > ul { padding-left: 0; border-left: 0; }
.sqlext-plan .tree b { color: var(--accent); }
.sqlext-plan .tree summary { overflow-wrap: anywhere; }
.sqlext-plan .tree table { margin: .2rem 0 .4rem 1.2rem; border-collapse: collapse; }
.sqlext-plan .tree td { vertical-align: top; padding: .1rem .8rem .1rem 0; overflow-wrap: anywhere; text-align: left; }
.sqlext-plan .tree td:first-child { opacity: .7; white-space: nowrap; }
"""
_PAGE_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 110rem; padding: 0 1.5rem; }
"""


def html_page(sql: str, stages: Mapping[str, TreeNode | str], trace: PlanTrace | None = None) -> str:
    """A whole page: its title, and `html_fragment`."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>sqlext plan</title>'
        f"<style>{_PAGE_STYLE}</style></head><body><h1>Plan</h1>{html_fragment(sql, stages, trace)}</body></html>\n"
    )


def html_fragment(sql: str, stages: Mapping[str, TreeNode | str], trace: PlanTrace | None = None) -> str:
    """The statement, the stages side by side (a tree, or text that is shown as it is), and what each rule did: one
    element that brings its style along, for a page or a notebook."""
    sections = "".join(
        f"<section><h2>{escape(name)}</h2>{_stage(content)}</section>" for name, content in stages.items()
    )
    return (
        f'<div class="sqlext-plan"><style>{_STYLE}</style><pre>{escape(sql)}</pre>'
        f'<div class="stages">{sections}</div>{_steps(trace)}</div>'
    )


def _stage(content: TreeNode | str) -> str:
    if isinstance(content, str):
        return f"<pre>{escape(content)}</pre>"
    return f'<div class="tree"><ul>{_node(content)}</ul></div>'


def _node(node: TreeNode) -> str:
    name, _, rest = node.label().partition(":")
    rows = "".join(f"<tr><td>{escape(key)}</td><td>{_cell(value)}</td></tr>" for key, value in node_args(node).items())
    title = f"<b>{escape(name)}</b>{escape(': ' + rest.strip() if rest else '')}"
    head = f"<details><summary>{title}</summary><table>{rows}</table></details>" if rows else f"<div>{title}</div>"
    below = "".join(_node(child) for child in node.children)
    return f"<li>{head}" + (f"<ul>{below}</ul>" if below else "") + "</li>"


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return "<br>".join(_cell(entry) for entry in value)
    if isinstance(value, dict):
        return "<br>".join(f"{escape(str(key))}: {_cell(entry)}" for key, entry in value.items())
    return escape(str(value))


def _steps(trace: PlanTrace | None) -> str:
    if trace is None or not trace.steps:
        return ""
    items = "".join(
        f"<li><details><summary>{escape(step.rule)} ({escape(step.batch)}, {step.seconds * 1000:.1f} ms)</summary>"
        f"<pre>{escape(tree_text(step.after))}</pre></details></li>"
        for step in trace.steps
    )
    return f"<h2>Rules that changed the plan</h2><ol>{items}</ol>"
