"""Plans for people and programs: text, JSON, Mermaid, DOT, and the parts of HTML pages. Logical and physical plans
alike; no Spark needed."""

from sqlext_planner.plan_format.graph import dot, mermaid
from sqlext_planner.plan_format.nodes import node_args, tree_json
from sqlext_planner.plan_format.text import side_by_side, trace_text, tree_text

__all__ = [
    "dot",
    "mermaid",
    "node_args",
    "side_by_side",
    "trace_text",
    "tree_json",
    "tree_text",
]
