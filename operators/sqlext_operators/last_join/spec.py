"""What a LAST JOIN operator has to compute: plain frozen data, picklable, with no SQL and no Spark in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Operator = Literal["=", "<=>", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class JoinComparison:
    """`left operator right` between a column of the left rows and one of the right rows, of types that compare.

    NULL on either side is not a match; ``<=>`` takes two NULLs as equal. Values compare as in Spark: NaN is equal to
    itself and above every number, -0.0 equals 0.0, strings and binary go by their bytes.
    """

    left: str
    operator: Operator
    right: str


@dataclass(frozen=True)
class RightSide:
    """Which rows of one right side match a left row, and which of them is the last.

    See docs/reference/last-join.md, sections 2 to 4. `keys` are paired with the left keys; where `null_safe[i]`, NULL
    keys match each other. A match satisfies all `comparisons` too, and the left row's boolean column `condition` is
    true. The winner is the match with the largest value of the first column of `order` (the smallest where it is
    `descending`), one with NULL only if there is no other; among equals the next column says, and then, as without any,
    the last one in input order wins. `payload` names the columns that are passed on.

    Comparisons of the first order column other than ``<=>`` and ``<>`` cost a binary search. The others are tested from
    the best candidate on, with blocks of rows skipped that cannot match: O(log² n) for one such comparison among a
    key's n rows; several of them can, at worst, be tested on all n.
    """

    keys: tuple[str, ...]
    null_safe: tuple[bool, ...]
    payload: tuple[str, ...]
    order: tuple[str, ...] = ()
    descending: tuple[bool, ...] = ()
    comparisons: tuple[JoinComparison, ...] = ()
    condition: str | None = None


@dataclass(frozen=True)
class LastJoinSpec:
    """One LAST JOIN of a left side with several right sides on the same left keys.

    `keys` names the left key columns, `payload` the left columns that are passed on. The output is the left payload,
    then that of each right side, NULL where a left row has no match.
    """

    keys: tuple[str, ...]
    payload: tuple[str, ...]
    rights: tuple[RightSide, ...]
