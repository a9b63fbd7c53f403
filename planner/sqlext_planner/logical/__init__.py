"""Logical plans: what a statement computes, with every name resolved."""

from sqlext_planner.logical.base import Field, LogicalPlan
from sqlext_planner.logical.group_aggregate import GroupAggregate
from sqlext_planner.logical.hint import Hint
from sqlext_planner.logical.interval_join import IntervalJoin
from sqlext_planner.logical.last_join import LastJoin, LastMatch
from sqlext_planner.logical.relational import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Limit,
    Output,
    Project,
    Scan,
    SetOperation,
    Sort,
    SortKey,
    SparkRelation,
    SubqueryAlias,
    UMJoinHint,
    Values,
    Window,
)
from sqlext_planner.logical.umjoin import MemberKind, UMJoin
from sqlext_planner.logical.window_union import WindowCall, WindowGroup, WindowUnion

__all__ = [
    "Aggregate",
    "Distinct",
    "Field",
    "Filter",
    "GroupAggregate",
    "Hint",
    "IntervalJoin",
    "Join",
    "LastJoin",
    "LastMatch",
    "Limit",
    "LogicalPlan",
    "MemberKind",
    "Output",
    "Project",
    "Scan",
    "SetOperation",
    "Sort",
    "SortKey",
    "SparkRelation",
    "SubqueryAlias",
    "UMJoin",
    "UMJoinHint",
    "Values",
    "Window",
    "WindowCall",
    "WindowGroup",
    "WindowUnion",
]
