"""Error conditions: the stable names under which errors are looked up (docs/errors.md has an entry for each).

A condition has one cause and one remedy; the class of the error only says whose mistake it is. Spark and PostgreSQL
name their errors in the same way. Code may depend on `error.condition`, and not on a message's words.
"""

from __future__ import annotations

from typing import Literal, get_args

from sqlext_operators.conditions import TaskCondition

Condition = Literal[
    TaskCondition,
    # the text of a statement
    "syntax-error",
    "several-statements",
    "nested-too-deeply",
    "malformed-hint",
    # names
    "unknown-column",
    "unknown-table",
    "unknown-window",
    "unknown-function",
    "ambiguous-name",
    "duplicate-name",
    "recursive-definition",
    "parameter-value",
    # types and values
    "function-arguments",
    "wrong-type",
    "key-type",
    "order-type",
    "unknown-type",
    "unsupported-type",
    "number-out-of-range",
    "column-count",
    "row-value",
    # windows and groups
    "window-definition",
    "window-without-key",
    "window-order",
    "window-frame",
    "union-columns",
    "two-windows",
    "call-modifier",
    "misplaced-window",
    "misplaced-aggregate",
    "not-grouped",
    # joins and periods
    "last-join-condition",
    "last-join-order",
    "asof-match",
    "period-ends",
    "period-distance",
    "period-operation",
    # what cannot be combined
    "unsupported-clause",
    "unsupported-in-subquery",
    "spark-block",
    "hint-not-followed",
    "left-to-spark",
    "no-equivalent",
    "scalar-needs-spark",
    "setting-changes-meaning",
    # streams
    "stream-needs-watermark",
    "stream-unbounded",
    "stream-not-supported",
    "stream-settings",
    "open-period",
    "early-answer",
    "early-answer-options",
    # rows
    "spark-refused",
    # data
    "table-files",
    "needs-spark",
    "schema-file",
    "replay-files",
    # deployments and their server
    "not-servable",
    "deployment-folder",
    "answer-differs",
    "journal",
    "journal-damaged",
    "request-body",
    "unknown-address",
    "unknown-deployment",
    "missing-token",
    "body-too-large",
    "too-many-requests",
    "idempotency-key",
    "server-busy",
    "server-failure",
    # settings and calls
    "unknown-setting",
    "setting-value",
    "fixed-setting",
    "command-line",
    "python-call",
    # the environment
    "missing-java",
    "missing-package",
    "spark-start",
    "spark-stopped",
    "spark-version",
    "spark-connect",
    "worker-python",
    "worker-packages",
    "connector-jars",
    "kafka-away",
    "kafka-messages-gone",
    "kafka-repeated",
    "kafka-topic",
    "benchmark",
]

#: All of them, those of tasks first.
CONDITIONS: tuple[Condition, ...] = get_args(Condition)

#: Spark's names of errors that a statement of ours meets too, by the beginning of the name.
_SPARKS: tuple[tuple[str, Condition], ...] = (
    ("TABLE_OR_VIEW_NOT_FOUND", "unknown-table"),
    ("UNRESOLVED_COLUMN", "unknown-column"),
    ("UNRESOLVED_USING_COLUMN", "unknown-column"),
    ("UNRESOLVED_FIELD", "unknown-column"),
    ("UNRESOLVED_ROUTINE", "unknown-function"),
    ("AMBIGUOUS_", "ambiguous-name"),
    ("COLUMN_ALREADY_EXISTS", "duplicate-name"),
    ("DUPLICATE", "duplicate-name"),
    ("WRONG_NUM_ARGS", "function-arguments"),
    ("DATATYPE_MISMATCH", "wrong-type"),
    ("INCOMPATIBLE_COLUMN_TYPE", "wrong-type"),
    ("UNSUPPORTED_DATATYPE", "unknown-type"),
    ("NUM_COLUMNS_MISMATCH", "column-count"),
    ("MISSING_AGGREGATION", "not-grouped"),
    ("MISSING_GROUP_BY", "not-grouped"),
    ("GROUP_BY_AGGREGATE", "misplaced-aggregate"),
    ("INVALID_WHERE_CONDITION", "misplaced-aggregate"),
    ("NESTED_AGGREGATE_FUNCTION", "misplaced-aggregate"),
    ("UNSUPPORTED_EXPR_FOR_WINDOW", "misplaced-window"),
    ("UNBOUND_SQL_PARAMETER", "parameter-value"),
    ("PARSE_", "syntax-error"),
    ("ARITHMETIC_OVERFLOW", "overflow"),
    ("NUMERIC_VALUE_OUT_OF_RANGE", "overflow"),
    ("DATETIME_OVERFLOW", "overflow"),
    ("CAST_OVERFLOW", "overflow"),
    ("DIVIDE_BY_ZERO", "division-by-zero"),
    ("REMAINDER_BY_ZERO", "division-by-zero"),
    ("INTERVAL_DIVIDED_BY_ZERO", "division-by-zero"),
    ("CAST_INVALID_INPUT", "invalid-value"),
    ("CANNOT_PARSE", "invalid-value"),
    ("INVALID_ARRAY_INDEX", "invalid-value"),
    ("DATETIME_FIELD_OUT_OF_BOUNDS", "invalid-value"),
)


def condition_of(name: str | None) -> Condition:
    """The condition for an error that Spark calls `name`, such as UNRESOLVED_COLUMN.WITH_SUGGESTION."""
    known = name or ""
    return next((ours for start, ours in _SPARKS if known.startswith(start)), "spark-refused")


def look_up(condition: Condition) -> str:
    """The last line of an error's report: where its cause and remedy are, on paper and in the terminal."""
    return f"see: docs/errors.md#{condition}, or run: sqlext errors {condition}"
