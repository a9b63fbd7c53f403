"""Is a table of rows a right answer to a query? NULL-safe, and aware of ORDER BY and of ties that LIMIT cuts.

It is compared with the *reference*: all rows of the query without its LIMIT, each with the values of the ORDER BY keys.
A table is a right answer if its rows can be paired with different rows of the reference such that

- paired rows are equal: NULL is equal to NULL only, floats to a relative 1e-9, everything else exactly;
- the keys of the paired rows are in the order of the ORDER BY; rows that tie in them may be in any order;
- the keys are the smallest N of the reference in that order, where N is the LIMIT or the number of all rows. So rows
  before the last key are there with all their duplicates, and of those that tie with the last key some are there.

Without ORDER BY all rows tie. Equal rows can differ in a key that is not a column: they take the smallest keys first,
which finds a pairing if there is one.

The text of the reference is that of the query without LIMIT, with the keys of its ORDER BY as columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlext_planner.errors import UnsupportedError
from sqlglot import exp, parse_one

from sqlext.syntax.dialect import SqlExt
from sqlext.syntax.spans import span_of

_not_checked = partial(UnsupportedError, condition="benchmark")

RELATIVE, ABSOLUTE = 1e-9, 1e-12

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OrderKey:
    """A key of ORDER BY: the position of its column in the reference, and how it sorts."""

    column: int
    descending: bool = False
    nulls_first: bool = True


def difference(answer: pa.Table, reference: pa.Table, keys: Sequence[OrderKey] = (), limit: int | None = None) -> str:
    """Why `answer` is not a right answer; empty if it is one.

    The first columns of `reference` are those of `answer`, with the same types; columns for keys may follow. Both are
    Arrow tables of atomic types (nested ones are compared exactly and cannot be keys).
    """
    asked = reference.num_rows if limit is None else min(limit, reference.num_rows)
    if answer.num_rows != asked:
        return f"{answer.num_rows} rows instead of {asked}"
    if not asked:
        return ""
    codes = [_codes(answer, reference, column) for column in range(reference.num_columns)]
    ranks = _ranks([_sort_codes(codes[key.column][1], key) for key in keys], reference.num_rows)
    rows = np.stack([np.concatenate(pair) for pair in codes[: answer.num_columns]], axis=1)
    names = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    own, theirs = names[:asked], names[asked:]
    paired = _pair(own, theirs, ranks)
    stranger = np.flatnonzero(paired < 0)
    if len(stranger):
        return _stranger(answer, int(stranger[0]), own, theirs)
    falls = np.flatnonzero(np.diff(paired) < 0)
    if len(falls):
        place = int(falls[0]) + 1
        return f"row {place + 1} comes too late in the order: {_row(answer, place)}"
    first = np.sort(ranks)[:asked]
    if not np.array_equal(paired, first):
        place = int(np.flatnonzero(paired != first)[0])
        return (
            f"rows that come before row {place + 1} in the order are missing; row {place + 1} is {_row(answer, place)}"
        )
    return ""


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables of the same types hold equal rows in the same order, floats within the tolerance."""
    if one.num_rows != other.num_rows:
        return False
    pairs = (_codes(one, other, column) for column in range(one.num_columns))
    return all(np.array_equal(left, right) for left, right in pairs)


def _codes(answer: pa.Table, reference: pa.Table, column: int) -> tuple[Codes, Codes]:
    """The values of a column of both tables as numbers that sort like the values; NULL is -1.

    A column that only the reference has gives no codes for the answer.
    """
    answered = answer.column(column) if column < answer.num_columns else None
    chunks = ([] if answered is None else answered.chunks) + reference.column(column).chunks
    kind = reference.schema.field(column).type
    values = pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind).combine_chunks()
    if isinstance(values, pa.ChunkedArray):  # what pyarrow returns for no chunks or for too large ones
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], kind)
    codes = _float_codes(values) if pa.types.is_floating(kind) else _exact_codes(values)
    codes[np.asarray(values.is_null())] = -1
    cut = 0 if answered is None else answer.num_rows
    return codes[:cut], codes[cut:]


def _exact_codes(values: Any) -> Codes:
    if pa.types.is_nested(values.type) or pa.types.is_null(values.type):
        texts = [repr(value) for value in values.to_pylist()]
        values = pa.array(texts, pa.string())
    encoded = values.dictionary_encode()
    rank = np.empty(len(encoded.dictionary), np.int64)
    rank[np.asarray(pc.sort_indices(encoded.dictionary))] = np.arange(len(rank))
    indices = np.asarray(encoded.indices.fill_null(0))
    return rank[indices] if len(rank) else np.zeros(len(values), np.int64)


def _float_codes(values: Any) -> Codes:
    """One number for values that the tolerance chains together; NaN is the largest value, as in Spark."""
    numbers = np.asarray(values.fill_null(0.0), np.float64)
    distinct, where = np.unique(numbers, return_inverse=True)  # sorted, one NaN at the end; -0.0 and 0.0 are one
    with np.errstate(invalid="ignore"):
        near = np.diff(distinct) <= np.maximum(ABSOLUTE, RELATIVE * np.abs(distinct[1:]))
    apart = ~(near & np.isfinite(distinct[1:]) & np.isfinite(distinct[:-1]))
    return np.concatenate([[0], np.cumsum(apart)]).astype(np.int64)[where.reshape(-1)]


def _sort_codes(codes: Codes, key: OrderKey) -> Codes:
    """The codes of a key's column, changed so that the smallest comes first."""
    ends = (-1 if key.nulls_first else 1) * (np.int64(codes.max(initial=0)) + 1)
    return np.where(codes < 0, ends, -codes if key.descending else codes)


def _ranks(keys: Sequence[Codes], rows: int) -> Codes:
    """The rank of each row's keys among all keys; the same for rows that tie."""
    if not keys or not rows:
        return np.zeros(rows, np.int64)
    return np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _pair(answers: Codes, theirs: Codes, ranks: Codes) -> Codes:
    """The rank of the reference row that each row is paired with; -1 for one without a partner left."""
    order = np.lexsort((ranks, theirs))
    sorted_names = theirs[order]
    begin = np.searchsorted(sorted_names, answers, "left")
    place = begin + _occurrence(answers)
    found = place < np.searchsorted(sorted_names, answers, "right")
    return np.where(found, ranks[order[np.minimum(place, len(order) - 1)]], -1)


def _occurrence(names: Codes) -> Codes:
    """0 for the first row of a name, 1 for the next one, and so on."""
    order = np.argsort(names, kind="stable")
    sorted_names = names[order]
    counts = np.empty(len(names), np.int64)
    counts[order] = np.arange(len(names)) - np.searchsorted(sorted_names, sorted_names, "left")
    return counts


def _stranger(answer: pa.Table, place: int, own: Codes, theirs: Codes) -> str:
    expected, got = int((theirs == own[place]).sum()), int((own == own[place]).sum())
    row = f"row {place + 1}: {_row(answer, place)}"
    return f"{row} comes {got} times, not {expected}" if expected else f"{row} is not among the expected rows"


def _row(table: pa.Table, place: int) -> str:
    values = (table.column(column)[place].as_py() for column in range(table.num_columns))
    return "(" + ", ".join("NULL" if value is None else str(value) for value in values) + ")"


#: Name of the columns that are added for keys that are not columns of the result.
KEY_NAME = "sqlext_key_{}"


@dataclass(frozen=True)
class Reference:
    """How to get all rows with their keys: a text for plain Spark, and which of its columns hold the keys.

    `is_query`: no key had to be added, so the answer of the query itself holds the keys too.
    """

    sql: str
    keys: tuple[OrderKey, ...]
    limit: int | None
    is_query: bool


def reference(sql: str, columns: Sequence[str]) -> Reference:
    """The reference of a query whose result has these columns.

    A key is a column of the result if ORDER BY gives its position, its name, or the expression that computes it. Any
    other key becomes a column: computed from the result if it reads nothing else, in the query's own SELECT otherwise.
    Raises UnsupportedError for a LIMIT that is not a number, an OFFSET, and keys of a set operation that are not its
    columns.
    """
    query = parse_one(sql, read=SqlExt)
    limit = _limit(query)
    order = query.args.get("order")
    body = sql.rstrip().rstrip(";") if limit is None else sql[: span_of(query.args["limit"]).start].rstrip()
    added: list[exp.Expr] = []
    keys = []
    for ordered in order.expressions if order is not None else ():
        column = _column(ordered.this, query, columns)
        if column is None:
            column = len(columns) + len(added)
            added.append(ordered.this)
        descending = bool(ordered.args.get("desc"))
        keys.append(OrderKey(column, descending, bool(ordered.args.get("nulls_first", not descending))))
    return Reference(_with_keys(body, query, columns, added), tuple(keys), limit, not added)


def _limit(query: exp.Expr) -> int | None:
    limit = query.args.get("limit")
    if query.args.get("offset") is not None:
        raise _not_checked("the answer of a query with OFFSET cannot be checked", help="check it without OFFSET")
    if limit is None:
        return None
    value = limit.expression
    if not isinstance(value, exp.Literal) or value.is_string:
        raise _not_checked("the LIMIT is not a number", help="write a number to check the answer")
    return int(value.name)


def _column(key: exp.Expr, query: exp.Expr, columns: Sequence[str]) -> int | None:
    """The position of the result's column that holds the key, None if none does."""
    if isinstance(key, exp.Literal) and not key.is_string:
        return int(key.name) - 1
    names = [name.lower() for name in columns]
    if isinstance(key, exp.Column) and not key.table and names.count(key.name.lower()) == 1:
        return names.index(key.name.lower())
    if isinstance(query, exp.Select) and not query.is_star:
        return next((place for place, item in enumerate(query.selects) if item.unalias() == key), None)
    return None


def _with_keys(body: str, query: exp.Expr, columns: Sequence[str], keys: Sequence[exp.Expr]) -> str:
    if not keys:
        return body
    items = [f"{key.sql(dialect='sqlext')} AS {KEY_NAME.format(number)}" for number, key in enumerate(keys)]
    names = [name.lower() for name in columns]
    reads = [column for key in keys for column in key.find_all(exp.Column)]
    from_result = all(not column.table and names.count(column.name.lower()) == 1 for column in reads)
    if from_result and not any(key.find(exp.AggFunc, exp.Window) for key in keys):
        return f"SELECT *, {', '.join(items)} FROM (\n{body}\n) AS sqlext_answer"
    if not isinstance(query, exp.Select) or query.args.get("distinct"):
        raise _not_checked("ORDER BY reads something that the result does not contain", help="add it to the SELECT")
    place = span_of(query.expressions[-1]).end
    return f"{body[:place]}, {', '.join(items)}\n{body[place:]}"
