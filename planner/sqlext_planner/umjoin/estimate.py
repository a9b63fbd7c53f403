"""Estimates of a multi-way join's rows: what is known of its inputs, and how many rows its steps have.

The key values of samples are joined step by step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlext_planner.catalog import Catalog, sampled_rows
from sqlext_planner.expressions.nodes import Column
from sqlext_planner.relational.logical_plan import LogicalPlan, relation_name
from sqlext_planner.relational.plan_patterns import base_table
from sqlext_planner.umjoin.nodes import MemberKind, UMJoin

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from sqlext_operators.arrays import Float64s


#: Rows of a key sample, read and joined in a few milliseconds.
SAMPLE_ROWS = 32_768


@dataclass(frozen=True)
class InputFacts:
    """One input: about how many rows it has, and for each of its key classes (by number) its column, the most values
    that it can have (None if unknown), and a sample of the keys before filters, if there is one."""

    kind: MemberKind
    rows: float
    table_rows: int
    keys: Mapping[int, Column]
    distinct: Mapping[int, float | None]
    table: str | None = None
    names: Mapping[int, str] | None = None

    def sample(self, catalog: Catalog) -> pa.Table | None:
        """Sampled rows of the key columns, named by the classes' numbers; None where the table gives none."""
        if self.table is None or not self.names:
            return None
        found = catalog.key_sample(self.table, list(dict.fromkeys(self.names.values())), SAMPLE_ROWS)
        if found is None:
            return None
        numbered = found.select(list(self.names.values())).rename_columns([str(number) for number in self.names])
        return numbered.replace_schema_metadata(found.schema.metadata)

    def counted(self, sample: pa.Table) -> InputFacts:
        """The input with the rows of the files that its sample is from, whatever statistics say."""
        rows = sampled_rows(sample)
        return self if rows is None else replace(self, rows=max(1.0, self.rows * rows / max(1, self.table_rows)))


def input_facts(node: UMJoin, catalog: Catalog) -> list[InputFacts] | str:
    """The facts of every input in order, or why they are unknown, in words."""
    classes = {column: number for number, key_class in enumerate(node.key_classes) for column in key_class}
    facts = []
    for child, kind in zip(node.inputs, node.kinds, strict=True):
        keys: dict[int, Column] = {}
        for column in child.output_columns:
            if column in classes:
                keys.setdefault(classes[column], column)
        item = _facts(child, kind, keys, catalog)
        if isinstance(item, str):
            return item
        facts.append(item)
    return facts


def _facts(child: LogicalPlan, kind: MemberKind, keys: dict[int, Column], catalog: Catalog) -> InputFacts | str:
    base = base_table(child)
    if base is None:
        return f"nothing is known about the input '{relation_name(child)}'"
    names = {number: base.columns[column].name for number, column in keys.items() if column in base.columns}
    statistics = catalog.key_statistics(base.scan.table, list(names.values()))
    if statistics is None:
        return f"'{base.scan.table}' has no statistics"
    rows = max(1.0, statistics.rows * base.kept)
    known = dict(zip(names, statistics.distinct, strict=True))
    distinct: dict[int, float | None] = {number: known.get(number) for number in keys}
    if base.unique is not None:
        if base.unique == frozenset(keys.values()) and len(keys) == 1:
            values = distinct[next(iter(keys))]
            rows = min(rows, values) if values is not None else rows
        if base.unique <= frozenset(keys.values()):
            distinct = dict.fromkeys(keys, rows)
        names = {}
    elif len(names) < len(keys):
        names = {}
    table_rows = statistics.rows if base.unique is None else math.ceil(rows)
    return InputFacts(kind, rows, table_rows, keys, distinct, base.scan.table, names)


#: With more rows a key than this, it is not a foreign key: if a key has as many values as rows, some repeat.
_UNIQUE = 1.1
#: The most inputs for which all covers are tried: there are 3 to the power of their number.
_MOST_COVERED = 5
#: Numbers up to here fit into int64.
_LARGEST = 1 << 62


def is_foreign_key_join(facts: Sequence[InputFacts]) -> bool:
    """Whether, starting from one inner or left input, every other one has at most about one row for each row before
    it: then no step has more rows than that input.

    Decided by footers alone, so only for keys whose values are dense: between the least and the greatest there are
    as many as the table has rows.
    """
    inner = [item for item in facts if item.kind in ("inner", "left")]
    return any(_reaches_all(root, [item for item in inner if item is not root]) for root in inner)


def _reaches_all(root: InputFacts, others: list[InputFacts]) -> bool:
    bound = set(root.keys)
    rest = list(others)
    while rest:
        following = next((item for item in rest if any(_is_unique(item, number) for number in bound)), None)
        if following is None:
            return False
        bound |= set(following.keys)
        rest.remove(following)
    return True


def _is_unique(item: InputFacts, number: int) -> bool:
    values = item.distinct.get(number)
    return values is not None and item.table_rows <= _UNIQUE * values and values <= _UNIQUE * item.table_rows


def prefix_rows(facts: Sequence[InputFacts], samples: Sequence[pa.Table]) -> list[float]:
    """Estimated rows after each binary join of the inner and left inputs, in the order in which Catalyst joins them.

    For every bound class, the rows' weight by value is kept. A new input's sampled row gets the weight of its
    value in one of the classes; further shared classes keep the share of rows that have its value. Skew counts as far
    as the sample shows it. Classes that the new input lacks keep their distribution (independence).
    """
    order = _catalyst_order(facts)
    columns = _codes([samples[place] for place in order])
    scaled = [facts[place].rows / max(1, samples[place].num_rows) for place in order]
    first = facts[order[0]]
    weights = {number: _weights(values, None, scaled[0]) for number, values in columns[0].items()}
    total = first.rows
    sizes = []
    repeats: list[float] = []
    for step in range(1, len(order)):
        item, values, scale = facts[order[step]], columns[step], scaled[step]
        before = total
        rows, total = _joined(weights, values, item, before, scale)
        if item.kind == "left":
            total = max(total, before)
        elif len(weights.keys() & values.keys()) > 1:  # it closes a cycle
            repeats += [_repeats(held) for held in columns[len(repeats) : step + 1]]
            total = min(total, _most_rows([facts[place] for place in order[: step + 1]], repeats))
        sizes.append(total)
        weights = {number: held * (total / max(before, 1e-9)) for number, held in weights.items()}
        for number, found in values.items():
            weights[number] = _weights(found, rows, 1.0)
    return sizes


def uniform_rows(facts: Sequence[InputFacts]) -> list[float] | None:
    """Like `prefix_rows`, but from numbers of values alone: each value occurs as often as any other (System R). None if
    one of the shared classes has no number."""
    order = _catalyst_order(facts)
    total = facts[order[0]].rows
    values = dict(facts[order[0]].distinct)
    sizes = []
    for place in order[1:]:
        item = facts[place]
        before, total = total, total * item.rows
        for number in item.keys:
            own, other = item.distinct[number], values.get(number, 1.0)
            if own is None or other is None:
                return None
            total /= max(own, other, 1.0) if number in values else 1.0
            values[number] = min(own, other) if number in values else own
        total = max(total, before) if item.kind == "left" else total
        sizes.append(total)
    return sizes


def _most_rows(facts: Sequence[InputFacts], repeats: Sequence[float]) -> float:
    """The bound of Atserias, Grohe and Marx: the product of the inputs' numbers of keys to the power of the weights of
    the best fractional cover of the classes, times how often each input repeats a key. Weights 0, 1/2 and 1 suffice for
    inputs of two classes; no bound is computed for many inputs."""
    members = [(item, often) for item, often in zip(facts, repeats, strict=True) if item.kind == "inner"]
    if len(members) > _MOST_COVERED:
        return math.inf
    logs = [math.log(max(1.0, item.rows / often)) for item, often in members]
    classes = {number for item, _ in members for number in item.keys}
    best = math.inf
    for halves in itertools.product((0, 1, 2), repeat=len(members)):
        weights = list(zip(halves, (item for item, _ in members), strict=True))
        covered = all(sum(half for half, item in weights if number in item.keys) >= 2 for number in classes)
        if covered and all(half == 2 for half, item in weights if not item.keys):
            best = min(best, sum(half / 2 * log for half, log in zip(halves, logs, strict=True)))
    return math.exp(min(best + sum(math.log(often) for _, often in members), 700.0))


def _repeats(values: Mapping[int, npt.NDArray[np.int64]]) -> float:
    """How many sampled rows have the same key, on average."""
    import numpy as np

    codes = list(values.values())
    if not codes or not len(codes[0]):
        return 1.0
    keys, most = codes[0], int(codes[0].max()) + 1
    for column in codes[1:]:  # one number for the codes of a row: sorting it takes a quarter of sorting by all columns
        width = int(column.max()) + 1
        if most * width > _LARGEST:
            keys = np.unique(keys, return_inverse=True)[1]
            most = int(keys.max()) + 1
        keys, most = keys * width + column, most * width
    ordered = np.sort(keys)
    return len(keys) / (1 + int(np.count_nonzero(ordered[1:] != ordered[:-1])))


def _joined(
    weights: Mapping[int, Float64s],
    values: Mapping[int, npt.NDArray[np.int64]],
    item: InputFacts,
    before: float,
    scale: float,
) -> tuple[Float64s, float]:
    """(weight of each sampled row, rows) of the join with one more input."""
    import numpy as np

    shared = [number for number in values if number in weights]
    count = len(next(iter(values.values()))) if values else 0
    if not shared:
        return np.full(count, before * scale), before * item.rows
    matched = {number: _taken(weights[number], values[number]) for number in shared}
    best = min(shared, key=lambda number: float(matched[number].sum()))
    rows = matched[best] * scale
    for number in shared:
        if number != best:  # given the best class, another one holds for the share of its weight among all rows
            rows = rows * (matched[number] / max(before, 1e-9))
    return rows, float(rows.sum())


def _taken(weights: Float64s, values: npt.NDArray[np.int64]) -> Float64s:
    import numpy as np

    known = values < len(weights)
    taken = np.zeros(len(values))
    taken[known] = weights[values[known]]
    return taken


def _weights(values: npt.NDArray[np.int64], rows: Float64s | None, scale: float) -> Float64s:
    import numpy as np

    found: Float64s = np.bincount(values, weights=rows).astype(np.float64)
    return found * scale


def _codes(samples: Sequence[pa.Table]) -> list[dict[int, npt.NDArray[np.int64]]]:
    """The key columns of all samples with one code for each value of a class; rows with NULL keys are left out."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kept = [sample.drop_null() for sample in samples]
    by_class: list[dict[int, Any]] = [{} for _ in samples]
    for name in dict.fromkeys(name for sample in kept for name in sample.column_names):
        holders = [place for place, sample in enumerate(kept) if name in sample.column_names]
        parts = [kept[place].column(name).combine_chunks() for place in holders]
        kinds = {part.type for part in parts}
        if len(kinds) > 1:
            parts = [part.cast(pa.string()) for part in parts]
        coded = pc.dictionary_encode(pa.concat_arrays(parts)).indices.to_numpy().astype(np.int64)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        for place, codes in zip(holders, np.split(coded, ends), strict=True):
            by_class[place][int(name)] = codes
    return by_class


def _catalyst_order(facts: Sequence[InputFacts]) -> list[int]:
    """Inner inputs in the order of the text, but always the next one that shares a class; then left ones."""
    rest = [place for place, item in enumerate(facts) if item.kind == "inner"]
    order = [rest.pop(0)]
    bound = set(facts[order[0]].keys)
    while rest:
        place = next((place for place in rest if bound & set(facts[place].keys)), rest[0])
        rest.remove(place)
        order.append(place)
        bound |= set(facts[place].keys)
    return order + [place for place, item in enumerate(facts) if item.kind == "left"]
