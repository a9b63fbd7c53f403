"""Which rules the optimizer runs, in which order, and why: `RuleExecutor(BATCHES)`."""

from __future__ import annotations

from sqlext_planner.interval_join.rules import count_interval_matches, expand_endpoint_equalities, plan_interval_joins
from sqlext_planner.last_join.rules import (
    compute_last_join_operands,
    lift_last_joins,
    merge_last_joins,
    pull_project_above_last_join,
    push_last_join_condition,
    separate_last_join_differences,
)
from sqlext_planner.optimizer.decorrelate import decorrelate_exists, decorrelate_in, decorrelate_scalar
from sqlext_planner.optimizer.executor import ONCE, Batch
from sqlext_planner.optimizer.rules import (
    merge_alias_into_project,
    merge_filters,
    merge_projects,
    normalize_conditions,
    prune_columns,
    push_filter,
    push_join_condition,
    remove_no_op_project,
    simplify_outer_join,
)
from sqlext_planner.umjoin.tsc import tsc
from sqlext_planner.window.rules import merge_window_unions

BATCHES = (
    # First of all: a common table expression that a query and its subqueries read is one node until a rule rewrites it
    # in the query, and the joins made from subqueries are then treated like those of FROM. IN and EXISTS come
    # first, since the operand of IN may be a scalar subquery. 30 rounds: one for each level of nested subqueries.
    Batch("Decorrelate", 30, (decorrelate_in, decorrelate_exists, decorrelate_scalar)),
    # Adjacent nodes of one kind become one node, so that the patterns of later rules match however the
    # text was nested.
    Batch("Normalize", 30, (merge_alias_into_project, merge_filters, merge_projects, remove_no_op_project)),
    # Before windows merge: a filter between two window unions has to get out of the way, and a filter that
    # reaches the sources makes the exchange smaller. 30 rounds: one for each level of nested subqueries. Conditions are
    # normalised before they move term by term, and again where a term has got the text of a column.
    Batch(
        "Pushdown",
        30,
        (
            normalize_conditions,
            push_filter,
            expand_endpoint_equalities,
            push_join_condition,
            push_last_join_condition,
            separate_last_join_differences,
            merge_filters,
        ),
    ),
    # Before operands are computed below a chain of joins (Cleanup): a difference that is separated has one.
    Batch("Differences", ONCE, (separate_last_join_differences,)),
    # After pushdown, which brings the terms that reject NULLs as close to the outer joins as they get; before joins are
    # grouped or planned, since inner joins leave more choice. A join that has become inner lets more terms down.
    Batch("Outer joins", ONCE, (simplify_outer_join,)),
    Batch("Pushdown again", 30, (push_filter, push_join_condition, merge_filters)),
    # Before pruning, which would make the union sources of adjacent nodes differ.
    Batch("WindowUnion merge", 10, (merge_window_unions,)),
    # After pushdown, which moves predicates of WHERE into ON and terms of one side to their inputs; before pruning,
    # which finds out which columns of the pairs anybody reads. Counting needs the join below the aggregate.
    Batch("Interval joins", ONCE, (plan_interval_joins, count_interval_matches)),
    # After interval joins have taken theirs, and after pushdown, which leaves the terms of one input to that input.
    # Before pruning, whose projections would separate the joins.
    Batch("TSC", ONCE, (tsc,)),
    # Last: pruning sees what the final nodes read; the projections it adds may merge with their neighbours. LAST JOINs
    # merge here (those inside right sides too) because pruning drops those that nobody reads, which may have separated
    # two of the same keys;
    # unlike union sources their right sides need not be alike, so pruning does not get in the way. In the end there is
    # only a plain selection of columns between two operators.
    Batch(
        "Cleanup",
        10,
        (
            prune_columns,
            pull_project_above_last_join,
            merge_last_joins,
            lift_last_joins,
            compute_last_join_operands,
            merge_alias_into_project,
            merge_projects,
            remove_no_op_project,
        ),
    ),
)
