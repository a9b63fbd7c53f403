"""Plan nodes as plain data."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.relational.logical_plan import Field
from sqlext_planner.relational.physical_plan import NodeExec, PhysicalPlan
from sqlext_planner.tree import Clause, TreeNode


def tree_json(plan: TreeNode) -> dict[str, Any]:
    """``{"node": NAME, "args": {...}, "children": [...]}``; a node with two parents appears under both."""
    return {
        "node": plan.node_name(),
        "args": node_args(plan),
        "children": [tree_json(child) for child in plan.children],
    }


def node_args(node: TreeNode) -> dict[str, Any]:
    """The node's own fields as JSON values: expressions and frames as text, output fields as "column type" pairs.

    Fields that are None are left out; a physical node has those of its
    logical node, and adds its choices and details (why it was chosen, its numbers).
    """
    children = {id(child) for child in node.children}
    args = node_args(node.node) if isinstance(node, NodeExec) else {}
    shown_by_node = ("node", "inputs") if isinstance(node, NodeExec) else ()
    for item in fields(node):  # type: ignore[arg-type]
        value = getattr(node, item.name)
        if not item.compare or value is None or id(value) in children or item.name in shown_by_node:
            continue
        if isinstance(value, tuple) and any(id(entry) in children for entry in value):
            continue
        args[item.name] = json_value(value)
    if isinstance(node, PhysicalPlan):
        args.update({name: json_value(value) for name, value in node.details().items()})
    return args


def json_value(value: Any) -> Any:
    """A field's value as JSON."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Field):
        return f"{value.column} {value.dtype or '?'}"
    if isinstance(value, Expression | Clause):
        return str(value)
    if isinstance(value, TreeNode):
        return node_args(value)
    if isinstance(value, tuple | list):
        return [json_value(entry) for entry in value]
    if isinstance(value, dict):
        return {str(name): json_value(entry) for name, entry in value.items()}
    if is_dataclass(value):
        return {item.name: json_value(getattr(value, item.name)) for item in fields(value) if item.compare}
    return str(value)
