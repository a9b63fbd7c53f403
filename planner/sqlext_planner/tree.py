"""Immutable trees: the one traversal that plans and expressions share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, Self, TypeVar

Node = TypeVar("Node", bound="TreeNode")


_FIELDS: dict[type, tuple[str, ...]] = {}


def field_names(kind: type[Any]) -> tuple[str, ...]:
    """The names of a dataclass's fields; `dataclasses.fields` makes them anew each time."""
    found = _FIELDS.get(kind)
    if found is None:
        found = _FIELDS[kind] = tuple(field.name for field in fields(kind))
    return found


class TreeNode:
    """Base of frozen dataclasses whose children are those fields that hold nodes of the same family.

    A field is a child field if its value is a node of `child_type`, or a tuple of such nodes.
    Nodes compare by value; "did anything change" is always asked with `is`.
    """

    @classmethod
    def child_type(cls) -> type[TreeNode]:
        """The family whose members count as children (plans do not count the expressions they hold)."""
        return TreeNode

    @cached_property
    def children(self) -> tuple[Self, ...]:
        """Child nodes in field order."""
        nodes: list[Any] = []
        kind = self.child_type()
        for name in field_names(type(self)):
            value = getattr(self, name)
            if isinstance(value, kind):
                nodes.append(value)
            elif isinstance(value, tuple):
                nodes.extend(item for item in value if isinstance(item, kind))
        return tuple(nodes)

    def map_children(self, function: Callable[[Any], Any]) -> Self:
        """A copy with each child replaced by `function(child)`; self if no child changed."""
        if not self.children:
            return self
        changes: dict[str, Any] = {}
        kind = self.child_type()
        for name in field_names(type(self)):
            value = getattr(self, name)
            if isinstance(value, kind):
                new = function(value)
                if new is not value:
                    changes[name] = new
            elif isinstance(value, tuple) and any(isinstance(item, kind) for item in value):
                items = tuple(function(item) if isinstance(item, kind) else item for item in value)
                if any(new is not old for new, old in zip(items, value, strict=True)):
                    changes[name] = items
        return replace(self, **changes) if changes else self  # type: ignore[type-var]

    def transform_up(self, function: Callable[[Any], Any]) -> Any:
        """Apply `function` to every node, children first. A node shared by two parents stays shared."""
        return _transform(self, function, {}, bottom_up=True)

    def transform_down(self, function: Callable[[Any], Any]) -> Any:
        """Apply `function` to every node, parents first. A node shared by two parents stays shared."""
        return _transform(self, function, {}, bottom_up=False)

    def walk(self) -> Iterator[Self]:
        """Every node once, parents before children, even if the tree is a DAG."""
        seen: set[int] = set()
        stack: list[Any] = [self]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            stack.extend(reversed(node.children))

    def collect(self, kind: type[Node]) -> list[Node]:
        """All nodes of a class, in walk order."""
        return [node for node in self.walk() if isinstance(node, kind)]

    def node_name(self) -> str:
        """What plans call the node."""
        return type(self).__name__

    def label(self) -> str:
        """What plans print for this node, without its children."""
        return self.node_name()


def _transform(node: Any, function: Callable[[Any], Any], memo: dict[int, tuple[Any, Any]], *, bottom_up: bool) -> Any:
    known = memo.get(id(node))
    if known is not None:
        return known[1]

    def recurse(child: Any) -> Any:
        return _transform(child, function, memo, bottom_up=bottom_up)

    result = function(node.map_children(recurse)) if bottom_up else function(node).map_children(recurse)
    memo[id(node)] = (node, result)  # the node is kept so that its id stays taken
    return result


class Clause:
    """A part of a node that is not an expression and is shown as its text (the frame of a window)."""
