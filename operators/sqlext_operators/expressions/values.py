"""Values of an expression with the rows in which it raises an error, and what kernels are made of.

A function of an expression (`nodes.TaskCall`) is a kernel: it takes arrays of one length and gives an array of the
call's type. A module of this folder holds the kernels of one family; `functions.py` is the table of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sqlext_operators.arrays import Bools
from sqlext_operators.columns.flat import fixed_width, to_array, valid_mask
from sqlext_operators.errors import RowError, RowOverflowError, TaskError
from sqlext_operators.expressions.nodes import TaskCall

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Failure:
    """bool[rows], where an error is raised, and the error."""

    rows: Bools
    error: TaskError


@dataclass(frozen=True)
class Values:
    """Values, and where there is an error instead."""

    array: pa.Array
    failures: tuple[Failure, ...] = ()

    def only(self, rows: Bools | None) -> Values:
        """The values with the errors of these rows alone; None for all."""
        if rows is None or not self.failures:
            return self
        return Values(self.array, tuple(replace(item, rows=item.rows & rows) for item in self.failures))

    def also(self, *others: Values) -> Values:
        """The values with the errors of other ones before their own."""
        before = tuple(failure for other in others for failure in other.failures)
        return Values(self.array, (*before, *self.failures)) if before else self

    def failing(self, rows: Bools | None, error: TaskError) -> Values:
        """The values with one more error; None for nowhere."""
        if rows is None or not rows.any():
            return self
        return Values(self.array, (*self.failures, Failure(rows, error)))


Kernel = Callable[[Sequence[pa.Array], TaskCall], Values]


def overflow(what: str = "a computed number") -> TaskError:
    """The error for a number that does not fit its type."""
    return RowOverflowError(
        f"{what} does not fit its type",
        "cast an operand to a wider type, such as bigint or decimal(38,0)",
        condition="overflow",
    )


def division_by_zero() -> TaskError:
    """The error for a divisor of 0."""
    return RowError("division by zero", "divide by nullif(x, 0), which gives NULL", condition="division-by-zero")


def malformed(text: str, target: str) -> TaskError:
    """The error for a text that is no value of a type."""
    shown = text if len(text) <= 40 else f"{text[:40]}..."
    return RowError(f"{shown!r} is no {target}", "use try_cast, which gives NULL", condition="invalid-value")


def inexact(what: str) -> TaskError:
    """The error for a value that only Spark computes, because no other result is certain to be the same."""
    return RowError(
        f"{what} is computed by Spark only",
        "leave such rows out, or compute the column with Spark before",
        condition="value-needs-spark",
    )


def by_row(arguments: Sequence[pa.Array], call: TaskCall, function: Callable[..., Any]) -> Values:
    """A value for each row in which no argument is NULL; a TaskError that `function` raises is the row's.

    Times come as whole numbers of their unit, results that are times as well.
    """
    results: list[Any] = []
    failures: list[Failure] = []
    for place, row in enumerate(zip(*map(plain_values, arguments), strict=True)):
        if None in row:
            results.append(None)
            continue
        try:
            results.append(function(*row))
        except TaskError as error:
            results.append(None)
            failures.append(Failure(_one(len(arguments[0]), place), error))
    return Values(from_plain(results, call.kind), tuple(failures))


def plain_values(array: pa.Array) -> list[Any]:
    """Python's values; whole numbers for dates, times and durations."""
    kind = array.type
    if pa.types.is_date(kind):
        array = array.view(pa.int32())
    elif pa.types.is_temporal(kind):
        array = array.view(pa.int64())
    values: list[Any] = array.to_pylist()
    return values


def from_plain(values: list[Any], kind: pa.DataType) -> pa.Array:
    """The inverse of `plain_values`."""
    if pa.types.is_date(kind):
        return pa.array(values, pa.int32()).view(kind)
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int64()).view(kind)
    return pa.array(values, kind)


def whole(array: pa.Array) -> Whole:
    """Whole numbers, dates or times as int64; anything at NULL places."""
    return fixed_width(array).astype(np.int64)


def like(source: pa.Array, values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Values of fixed width, NULL where `source` is."""
    return to_array(values, valid_mask(source), kind)


def both_valid(arguments: Sequence[pa.Array]) -> Bools | None:
    """bool[rows], where no argument is NULL; None for everywhere."""
    masks = [mask for mask in map(valid_mask, arguments) if mask is not None]
    return None if not masks else np.logical_and.reduce(masks)


def null_where(array: pa.Array, rows: Bools) -> pa.Array:
    """The array with NULL in these rows."""
    return pc.if_else(pa.array(rows), pa.scalar(None, array.type), array) if rows.any() else array


def _one(count: int, place: int) -> Bools:
    rows = np.zeros(count, np.bool_)
    rows[place] = True
    return rows


def failed_rows(failures: Sequence[Failure]) -> Iterator[TaskError]:
    """The errors that are raised in some row."""
    yield from (failure.error for failure in failures if failure.rows.any())
