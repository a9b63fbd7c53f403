"""What the strategies of a multi-way join cost, in seconds, and how many rows they go through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlext_planner.catalog import Catalog
from sqlext_planner.umjoin.estimate.known_inputs import InputFacts, input_facts
from sqlext_planner.umjoin.estimate.sizes import is_foreign_key_join, prefix_rows, uniform_rows
from sqlext_planner.umjoin.nodes import UMJoin

#: Seconds of one core (the time is shared by all cores).
_READ_ROW = 60e-9  # an input's row, scanned and hashed by Spark
_JOINED_ROW = 60e-9  # a row of a binary join that Spark makes (7 ns if it only counts it, 90 ns with columns to carry)
_AGGREGATED_ROW = 120e-9  # an input's row that Spark aggregates by its keys before joins
_SHIPPED_ROW = 900e-9  # an input's row that our exchange cuts, sends, codes and sorts
_READ_BY_ALL_ROW = 100e-9  # an input's row that every task of the operator reads, of small inputs
_RETURNED_ROW = 60e-9  # a row that our operator hands to Spark
_RESHUFFLED_ROW = 250e-9  # a row that Spark has to sort again for the next join, which is on another key
#: Seconds that one more stage costs, whatever its rows.
_STAGE = 0.12
_EXCHANGE = 0.45
_READING = 0.2
#: With at most this many rows in all, inputs count as small (umjoin/execute/exchanged.py goes by bytes).
_SMALL_ROWS = 4_000_000
#: Estimates are not good enough to leave Spark's own plan for a smaller gain than this.
LEAST_GAIN = 2.0
LEAST_SECONDS = 1.0


@dataclass(frozen=True)
class JoinSizes:
    """Rows of the inputs, and after each binary join of the cascade in Catalyst's order; `one_key`: all on one key."""

    inputs: tuple[float, ...]
    steps: tuple[float, ...]
    one_key: bool = True

    @property
    def result(self) -> float:
        """Rows of the whole join."""
        return self.steps[-1] if self.steps else self.inputs[0]

    def __str__(self) -> str:
        steps = " -> ".join(map(_short, self.steps))
        return f"about {steps} rows after each join, from {_short(sum(self.inputs))} rows read"


def join_sizes(node: UMJoin, catalog: Catalog) -> JoinSizes | str:
    """The sizes, or why they are not estimated, in words."""
    facts = input_facts(node, catalog)
    if isinstance(facts, str):
        return facts
    if is_foreign_key_join(facts):
        return "because of foreign keys, no join has more rows than one of the tables"
    samples = [item.sample(catalog) for item in facts]
    known = [sample for sample in samples if sample is not None]
    steps = prefix_rows(facts, known) if len(known) == len(facts) else uniform_rows(facts)
    return "nothing is known about the values of some keys" if steps is None else _sizes(facts, steps)


def _sizes(facts: Sequence[InputFacts], steps: Sequence[float]) -> JoinSizes:
    keys = {number for item in facts for number in item.keys}
    return JoinSizes(tuple(item.rows for item in facts), tuple(steps), len(keys) < 2)


def cascade_seconds(sizes: JoinSizes, cores: int) -> float:
    """Binary joins: every row of every step is made."""
    between = _JOINED_ROW if sizes.one_key else _RESHUFFLED_ROW
    made = between * sum(sizes.steps[:-1]) + _JOINED_ROW * sizes.result
    return (_READ_ROW * sum(sizes.inputs) + made) / cores


def factorised_seconds(sizes: JoinSizes, cores: int) -> float:
    """Aggregates before joins: what is joined has no more rows than the inputs."""
    return _AGGREGATED_ROW * sum(sizes.inputs) / cores + _STAGE * len(sizes.inputs)


def operator_seconds(sizes: JoinSizes, returned: float, cores: int) -> float:
    """Our operator: inputs are shipped, small ones read by every task; only what is `returned` is made."""
    rows = sum(sizes.inputs)
    moved = _READ_BY_ALL_ROW * rows + _READING if rows <= _SMALL_ROWS else _SHIPPED_ROW * rows / cores + _EXCHANGE
    return moved + _RETURNED_ROW * returned / cores


def pays(seconds: float, cascade: float) -> bool:
    """Whether a strategy of `seconds` is worth leaving Spark's plan of `cascade` seconds."""
    return cascade > LEAST_GAIN * seconds and cascade - seconds > LEAST_SECONDS


def _short(number: float) -> str:
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:.3g}"
