"""What samples of the inputs of an exchange tell about the rows of each key.

A partitioner places the known keys, and the hash slots of all others, with their rows and their pairs. The samples are
keys and times of the inputs that are tables of plain files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlext_planner.catalog import Catalog
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.expressions.nodes import Column, Expression
from sqlext_planner.expressions.types import to_arrow
from sqlext_planner.relational.logical_plan import LogicalPlan
from sqlext_planner.relational.plan_patterns import BaseTable, base_table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from sqlext_operators.arrays import Float64s, Int64s, UInt64s

    from sqlext_planner.exchange.partitioning.choice import Demand


#: Hash slots for the keys that are not known alone.
SLOTS = 4096
#: A key is known alone if it has at least this share of an input's sampled rows: 39 of 40,000, known to about 16 %.
LEAST_SHARE = 1 / 1024


@dataclass(frozen=True, eq=False)
class Sample:
    """Sampled rows of one input that has `rows` rows in all.

    `hashes` are uint64[n], the hashes of the keys (`columns.keys.hash_keys`). `times` are int64[n], codes of the order
    column, or None. The sample is exact if it has all rows. Raises ValueError for times that are not as many as the
    hashes, and for fewer rows than were sampled.
    """

    hashes: UInt64s
    times: Int64s | None
    rows: float

    def __post_init__(self) -> None:
        if self.times is not None and len(self.times) != len(self.hashes):
            raise ValueError(f"a sample of {len(self.hashes)} keys has {len(self.times)} times")
        if self.rows < len(self.hashes):
            raise ValueError(f"an input of {self.rows:g} rows has {len(self.hashes)} sampled rows")


@dataclass(frozen=True, eq=False)
class Loads:
    """Estimated rows of keys and hash slots; input 0 owns.

    `keys` are uint64[k], ascending: the keys that are known alone. `key_rows` are float64[k, inputs]. `slot_rows` are
    float64[slots, inputs], the rows of all other keys by the highest bits of their hashes, and `slot_pairs` is the
    number of combinations of one row of each input with the same key among them. `weights` are the rows for which a
    sampled row of each input stands. `names` are texts for keys, for EXPLAIN.

    `key_times` are int64[n] for each input, the sampled times of the known keys, key by key and ascending; those of key
    i are from `key_starts[input][i]` to `key_starts[input][i + 1]`. `times` are the ascending times of all sampled
    rows. Both are empty without an order column.
    """

    keys: UInt64s
    key_rows: Float64s
    slot_rows: Float64s
    slot_pairs: float
    weights: tuple[float, ...]
    names: Mapping[int, str] = field(default_factory=dict)
    key_times: tuple[Int64s, ...] = ()
    key_starts: tuple[Int64s, ...] = ()
    times: tuple[Int64s, ...] = ()

    @classmethod
    def of(
        cls,
        samples: Sequence[Sample],
        names: Mapping[int, str] | None = None,
        least_share: float = LEAST_SHARE,
        slots: int = SLOTS,
    ) -> Loads:
        """Loads of samples, one for each input. 40,000 rows of as many keys take 10 ms.

        Keys with less than `least_share` of the sampled rows of every input are pooled in `slots` hash slots. An input
        of which nothing was sampled has its rows spread evenly over the slots. Raises ValueError without inputs, if
        some inputs have times and others have none, and unless `slots` is a power of two.
        """
        import numpy as np

        if not samples or len({sample.times is None for sample in samples}) > 1:
            raise ValueError("loads are of at least one input, and all inputs have times or none has")
        if slots.bit_count() != 1:
            raise ValueError(f"the number of hash slots is a power of two, not {slots}")
        every, codes = np.unique(np.concatenate([sample.hashes for sample in samples]), return_inverse=True)
        parts = np.split(codes, np.cumsum([len(sample.hashes) for sample in samples])[:-1])
        counts = np.stack([np.bincount(part, minlength=len(every)) for part in parts], axis=1).astype(np.float64)
        sampled = counts.sum(axis=0)
        known = (counts / np.maximum(sampled, 1) >= least_share).any(axis=1)
        weights = np.array([sample.rows for sample in samples]) / np.maximum(sampled, 1)
        pooled = slot_of(every[~known], slots)
        columns = [np.bincount(pooled, weights=counts[~known, i], minlength=slots) for i in range(len(samples))]
        slot_rows = np.stack(columns, axis=1) * weights
        for place in np.flatnonzero(sampled == 0).tolist():
            slot_rows[:, place] = samples[place].rows / slots
        loads = cls(
            keys=every[known],
            key_rows=counts[known] * weights,
            slot_rows=slot_rows,
            slot_pairs=float(np.prod(counts[~known] * weights, axis=1).sum()),
            weights=tuple(weights.tolist()),
            names=names or {},
        )
        return loads if samples[0].times is None else loads._with_times(samples, parts, known)

    def _with_times(self, samples: Sequence[Sample], parts: Sequence[Int64s], known: npt.NDArray[np.bool_]) -> Loads:
        import numpy as np

        number = np.cumsum(known) - 1
        key_times, key_starts, every = [], [], []
        for sample, codes in zip(samples, parts, strict=True):
            assert sample.times is not None
            rows = np.flatnonzero(known[codes])
            own = number[codes[rows]]
            times = sample.times[rows]
            key_times.append(times[np.lexsort((times, own))])
            key_starts.append(np.concatenate([[0], np.cumsum(np.bincount(own, minlength=len(self.keys)))]))
            every.append(np.sort(sample.times))
        return replace(self, key_times=tuple(key_times), key_starts=tuple(key_starts), times=tuple(every))

    @property
    def rows(self) -> float:
        """Rows of all inputs together."""
        return float(self.key_rows.sum() + self.slot_rows.sum())

    def times_of(self, key: int) -> tuple[Int64s, ...]:
        """The ascending sampled times of the known key number `key` in each input."""
        return tuple(
            times[starts[key] : starts[key + 1]] for times, starts in zip(self.key_times, self.key_starts, strict=True)
        )

    def name(self, key: int) -> str:
        """The text of a key by its hash; the hash itself in hexadecimal digits if the caller gave none."""
        return self.names.get(key, f"#{key:016x}")


def slot_of(hashes: UInt64s, slots: int) -> Int64s:
    """int64[n], the slot of each hash, as `Placement` has it: of a power of two its highest log2(slots) bits."""
    import numpy as np

    return ((hashes >> np.uint64(32)) * np.uint64(slots) >> np.uint64(32)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Units:
    """`keys`, uint64[k] ascending, then `slots` hash slots of all other keys.

    `owned` and `others` are float64[k + slots]: the rows of input 0 and of all other inputs; `pairs` likewise, 0
    everywhere if they cost nothing.
    """

    keys: UInt64s
    slots: int
    owned: Float64s
    others: Float64s
    pairs: Float64s

    @classmethod
    def of(cls, loads: Loads, demand: Demand) -> Units:
        """The units of the inputs. Pairs of known keys are counted in the samples; those of the slots are all pairs of
        their keys, times the share of the sampled rows of any key that are in reach of each other, spread over the
        slots like their rows."""
        import numpy as np

        rows = np.concatenate([loads.key_rows, loads.slot_rows])
        pairs = np.zeros(len(rows))
        if demand.pair_cost:
            pairs[: len(loads.keys)] = _key_pairs(loads, demand)
            pooled = loads.slot_rows.sum(axis=1)
            pairs[len(loads.keys) :] = pooled * (_pooled_pairs(loads, demand) / max(pooled.sum(), 1.0))
        return cls(loads.keys, len(loads.slot_rows), rows[:, 0], rows[:, 1:].sum(axis=1), pairs)

    @property
    def rows(self) -> Float64s:
        """float64[k + slots]."""
        return self.owned + self.others

    def work(self, demand: Demand) -> Float64s:
        """float64[k + slots], the work of each unit if it is in one partition."""
        return demand.row_cost * self.rows + demand.pair_cost * self.pairs

    def piece_work(self, demand: Demand, members: Int64s, copies: str) -> Float64s:
        """float64[k + slots], the work of each member of a team of members[i] partitions.

        `copies` are the rows that every member gets: "all", or "others" than the owned ones, of which each gets its
        part. A member makes its part of the pairs.
        """
        owned = self.owned if copies == "all" else self.owned / members
        return demand.row_cost * (owned + self.others) + demand.pair_cost * self.pairs / members

    def folded(self, slots: int, known: bool = True) -> Units:
        """The same rows in `slots` hash slots, at most as many as now; the known keys too unless they stay `known`."""
        import numpy as np

        count = len(self.keys)
        slot = np.arange(self.slots) // (self.slots // slots)
        if not known:
            slot = np.concatenate([slot_of(self.keys, slots), slot])

        def fold(values: Float64s) -> Float64s:
            kept = values[:count] if known else values[:0]
            return np.concatenate([kept, np.bincount(slot, weights=values[len(kept) :], minlength=slots)])

        keys = self.keys if known else self.keys[:0]
        return Units(keys, slots, fold(self.owned), fold(self.others), fold(self.pairs))


def pairs_of_owned(times: tuple[Int64s, ...], weights: tuple[float, ...], reach: tuple[int, int]) -> Float64s:
    """float64[n]: for each owned row of times[0], the combinations of one row of each other input in its reach."""
    import numpy as np

    back, ahead = reach
    found = np.ones(len(times[0]))
    for other, weight in zip(times[1:], weights[1:], strict=True):
        first = np.searchsorted(other, moved_times(times[0], -back), side="left")
        last = np.searchsorted(other, moved_times(times[0], ahead), side="right")
        found *= (last - first) * weight
    return found


def moved_times(times: Int64s, by: int) -> Int64s:
    """int64[n], times + by; what int64 cannot hold is its nearest end."""
    import numpy as np

    ends = np.iinfo(np.int64)
    return np.minimum(times, ends.max - by) + by if by > 0 else np.maximum(times, ends.min - by) + by


def _key_pairs(loads: Loads, demand: Demand) -> Float64s:
    import numpy as np

    if demand.reach is None or not loads.times:
        return np.asarray(np.prod(loads.key_rows, axis=1))
    found = [
        pairs_of_owned(loads.times_of(key), loads.weights, demand.reach).sum() * loads.weights[0]
        for key in range(len(loads.keys))
    ]
    return np.array(found, np.float64)


def _pooled_pairs(loads: Loads, demand: Demand) -> float:
    import numpy as np

    if demand.reach is None or not loads.times:
        return loads.slot_pairs
    every = float(np.prod([float(len(times)) for times in loads.times]))
    near = pairs_of_owned(loads.times, (1.0,) * len(loads.times), demand.reach).sum()
    return loads.slot_pairs * float(near) / max(every, 1.0)


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
