"""LAST JOIN of a stream with tables: each row is joined when it comes, with the tables as they were at the start."""

from __future__ import annotations

from collections.abc import Sequence

from sqlext_planner.errors import SqlExtError, UnsupportedError
from sqlext_planner.expressions.nodes import Expression
from sqlext_planner.last_join.execution import LastJoinStrategy
from sqlext_planner.last_join.nodes import LastJoin
from sqlext_planner.last_join.rules import ResidualTerms
from sqlext_planner.relational.streams import shown, streams_of


def refusal(node: LastJoin) -> SqlExtError | None:
    """Why the join cannot be computed over its streams; None if it can."""
    stream = next((stream for right in node.rights for stream in streams_of(right)), None)
    if stream is not None:
        return UnsupportedError(
            f"the right side of a LAST JOIN is the stream{shown(stream)}: its last row is never known",
            condition="stream-unbounded",
            span=stream.span,
            help="write the stream to a table and join that, or use a window: WINDOW w AS (UNION ...), last_value(...)",
        )
    if not node.is_streaming:
        return UnsupportedError(
            f"{node.operator_name} cannot read a stream in a subquery of an expression",
            condition="stream-not-supported",
        )
    mixed = _mixed(node)
    if mixed:
        return UnsupportedError(
            f"only Spark can evaluate {mixed[0]}, and not in a LAST JOIN of a stream",
            condition="stream-not-supported",
            span=mixed[0].span or node.span,
            help="compare columns of the two sides with =, <, <=, > or >=, or compute what is compared in a subquery",
        )
    hint = node.partitioner
    if hint is not None and hint.name != "broadcast":
        return UnsupportedError(
            f"the hint {hint} cannot be followed by a LAST JOIN of a stream: its rows stay where they are, and all "
            "tasks have the tables, as with broadcast",
            condition="hint-not-followed",
            span=hint.span,
            help="leave the hint out, or put the LAST JOIN in a subquery without it",
        ).about_hint()
    return None


def _mixed(node: LastJoin) -> Sequence[Expression]:
    columns = node.left.output_columns
    pairs = zip(node.rights, node.matches, strict=True)
    return [term for right, match in pairs for term in ResidualTerms.of(match, columns, right.output_columns).mixed]


def stream_strategies(node: LastJoin) -> tuple[tuple[LastJoinStrategy, ...], str]:
    """A strategy for each right side, and the reason."""
    why = "each row of the stream is joined when it comes, with the tables as they were when the query started"
    strategies: list[LastJoinStrategy] = ["broadcast"] * len(node.rights)
    return tuple(strategies), why
