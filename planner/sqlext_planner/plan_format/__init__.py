"""Plans for people and programs: text, JSON, Mermaid, DOT, and the parts of HTML pages. Logical and physical plans
alike; no Spark needed."""

from sqlext_planner.plan_format.formats import dot, mermaid, node_args, side_by_side, trace_text, tree_json, tree_text

__all__ = ["dot", "mermaid", "node_args", "side_by_side", "trace_text", "tree_json", "tree_text"]
