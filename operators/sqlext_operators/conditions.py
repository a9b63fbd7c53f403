"""The names of the mistakes that tasks report to the user: docs/errors.md has an entry for each."""

from __future__ import annotations

from typing import Literal

TaskCondition = Literal[
    "changed-file",
    "checkpoint-mismatch",
    "disk-full",
    "division-by-zero",
    "empty-period",
    "file-access",
    "future-rows",
    "invalid-value",
    "late-rows",
    "open-period-rows",
    "out-of-memory",
    "overflow",
    "result-too-large",
    "stream-state-damaged",
    "stream-state-too-large",
    "temporary-folder",
    "time-zone",
    "too-many-open-files",
    "value-needs-spark",
]
