"""Samples of the keys and times of an exchange's inputs, where these are tables of plain files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlext_planner.catalog import Catalog
from sqlext_planner.exchange.partitioning.loads import Loads, Sample
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.expressions.types import to_arrow
from sqlext_planner.relational.base_tables import BaseTable, base_table
from sqlext_planner.relational.logical_plan import LogicalPlan

if TYPE_CHECKING:
    import pyarrow as pa

#: Sampled rows of an input: the share of a key of 10 % is then known to 1.5 % of itself.
SAMPLE_ROWS = 40_000
#: Rows of an input that are read for that, 10 ms a million.
READ_ROWS = 20_000_000
#: Keys that EXPLAIN may name.
_NAMED_KEYS = 64


@dataclass(frozen=True)
class SampledInput:
    """One input: its plan, and what its rows are routed by: the key expressions, and the order or None.

    `dtypes` are the Spark types that the keys, the order and the `values` have when they are routed. `values` are in
    the sample too if all of them are known. With `null_safe`, rows match each other: those with a NULL in a key that
    is not null-safe match nothing, and are not counted.
    """

    plan: LogicalPlan
    keys: tuple[Expression, ...]
    order: Expression | None
    dtypes: tuple[str | None, ...]
    values: tuple[Expression, ...] = ()
    null_safe: tuple[bool, ...] | None = None


@dataclass(frozen=True)
class Sampled:
    """Loads of the inputs; `gaps` are sentences about inputs of which nothing is known. `tables` are the sampled rows:
    keys, order and values of the inputs; None for an input of which not all of these are known."""

    loads: Loads
    gaps: tuple[str, ...]
    tables: tuple[pa.Table | None, ...]


def sampled(inputs: Sequence[SampledInput], rows: Sequence[float], catalog: Catalog) -> Sampled:
    """Samples of all inputs, with as many `rows` as given. An input without one counts as spread evenly."""
    import numpy as np
    import pyarrow as pa
    from sqlext_operators.columns.codes import order_values
    from sqlext_operators.columns.keys import hash_keys

    samples, gaps = [], []
    tables: list[pa.Table | None] = []
    names: dict[int, str] = {} if inputs[0].keys else {0: "all rows"}
    for item, count in zip(inputs, rows, strict=True):
        sample = _sample(item, catalog)
        one_key = not item.keys and item.order is None
        if isinstance(sample, str):
            gaps += [] if one_key else [sample]
            none = np.empty(0, np.int64) if item.order is not None else None
            samples.append(Sample(np.zeros(int(one_key), np.uint64), none, max(count, int(one_key))))
            tables.append(None)
            continue
        keys = sample.column_names[: len(item.keys)]
        matching = sample if item.null_safe is None else with_keys(sample, keys, item.null_safe)
        columns = [matching.column(name).combine_chunks() for name in keys]
        hashes = hash_keys(columns) if columns else np.zeros(max(matching.num_rows, int(one_key)), np.uint64)
        if columns:
            names = {**_names(pa.table(columns, names=_shown_names(inputs[0])), hashes), **names}
        times = None if item.order is None else order_values(matching.column(len(item.keys)).combine_chunks())
        matched = count * matching.num_rows / max(1, sample.num_rows) if columns else count
        samples.append(Sample(hashes, times, max(matched, len(hashes))))
        tables.append(matching if matching.num_columns == len(item.dtypes) else None)
    return Sampled(Loads.of(samples, names), tuple(gaps), tuple(tables))


def with_keys(table: pa.Table, keys: Sequence[str], null_safe: Sequence[bool]) -> pa.Table:
    """The rows of a table without those that match nothing: with a NULL in a key that is not null-safe."""
    import pyarrow as pa
    from sqlext_operators.columns.keys import null_keys

    without = null_keys([table.column(name).combine_chunks() for name in keys], null_safe)
    return table if without is None else table.filter(pa.array(~without))


def _sample(item: SampledInput, catalog: Catalog) -> pa.Table | str:
    """The keys of some rows, then their times if there is an order, then their values if all of these are known; why
    there are none, in words."""
    import pyarrow as pa

    from sqlext_planner.errors import UnsupportedError

    base = base_table(item.plan)
    wanted = [*item.keys, *([] if item.order is None else [item.order])]
    names = None if base is None else _names_in(base, wanted)
    if base is None or names is None:
        return "the keys of an input are computed, so that its table does not tell them"
    values = _names_in(base, item.values)
    names += values or []
    order = None if item.order is None else names[len(item.keys)]
    rows = catalog.key_sample(base.scan.table, list(dict.fromkeys(names)), SAMPLE_ROWS, READ_ROWS, order)
    if rows is None:
        return f"'{base.scan.table}' is not a table of plain Parquet files"
    try:
        kinds = [to_arrow(dtype) for dtype in item.dtypes[: len(names)] if dtype is not None]
    except UnsupportedError:
        kinds = []
    if len(kinds) < len(names):
        return f"types of '{base.scan.table}' are not known"
    try:  # unsafe: times in nanoseconds are in microseconds when they are routed
        columns = [rows.column(name).cast(kind, safe=False) for name, kind in zip(names, kinds, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return f"the files of '{base.scan.table}' have other types"
    return pa.table(columns, names=[str(place) for place in range(len(columns))])


def _names_in(base: BaseTable, expressions: Sequence[Expression]) -> list[str] | None:
    """The columns of a table that expressions are; None if one is computed."""
    if base.unique is not None:
        return None
    found = [base.columns.get(item) for item in expressions if isinstance(item, Column)]
    known = [column.name for column in found if column is not None]
    return known if len(known) == len(expressions) else None


def _shown_names(item: SampledInput) -> list[str]:
    """The keys as the user knows them."""
    return [key.name if isinstance(key, Column) else str(key) for key in item.keys]


def _names(keys: pa.Table, hashes: object) -> Mapping[int, str]:
    """Texts of the most frequent keys by their hashes."""
    import numpy as np
    from sqlext_operators.columns.times import python_values

    found, first, counts = np.unique(hashes, return_index=True, return_counts=True)  # type: ignore[call-overload]
    top = np.argsort(-counts, kind="stable")[:_NAMED_KEYS]
    columns = [python_values(column) for column in keys.take(first[top]).columns]
    return {
        int(found[place]): ", ".join(
            f"{name} = {_shown(value)}" for name, value in zip(keys.schema.names, row, strict=True)
        )
        for place, row in zip(top.tolist(), zip(*columns, strict=True), strict=True)
    }


def _shown(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
