"""Which strategy computes a multi-way join, and why.

How the exchange of a join by a shared key spreads its rows: one inner input is split, the others are copied.

From multi-way joins, and aggregates over them, to physical plans.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sqlext_planner.catalog import Catalog
from sqlext_planner.config import Config
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.exchange.partitioning.choice import PAIR_COST, Demand, Partitioning, choose_partitioning, input_rows
from sqlext_planner.exchange.partitioning.loads import SampledInput
from sqlext_planner.relational.joins import PartitionerHint
from sqlext_planner.relational.logical_plan import LogicalPlan, relation_name
from sqlext_planner.relational.nodes import Aggregate, Project
from sqlext_planner.relational.physical_plan import Estimate, PhysicalPlan, Rival
from sqlext_planner.umjoin.estimate import input_facts, is_foreign_key_join, prefix_rows, uniform_rows
from sqlext_planner.umjoin.execute.cascade import FactorisedAggregateExec, UMJoinCascadeExec, cascade
from sqlext_planner.umjoin.execute.execution import Routing, UMJoinExec
from sqlext_planner.umjoin.execute.split import UMJoinSplit, ineligible, operator_plan
from sqlext_planner.umjoin.execute.stream_execution import endless
from sqlext_planner.umjoin.factorised.plan import counted, factorise
from sqlext_planner.umjoin.nodes import UMJoin, UMJoinGroup, class_type
from sqlext_planner.umjoin.streams import (
    StreamParts,
    kept_inputs,
    other_rows,
    refusal,
    stream_parts,
    stream_plan,
    stream_times,
)

if TYPE_CHECKING:
    from sqlext_planner.exchange.partitioning.stream_placing import StreamPlacing


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
    facts = [item if sample is None else item.counted(sample) for item, sample in zip(facts, samples, strict=True)]
    steps = prefix_rows(facts, known) if len(known) == len(facts) else uniform_rows(facts)
    if steps is None:
        return "nothing is known about the values of some keys"
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


#: `operator` counts rows in the operator where an aggregate above allows it.
UMJoinStrategy = Literal["cascade", "factorised", "operator"]
#: The strategies in words, for those who compare them.
_TOLD: dict[UMJoinStrategy, str] = {
    "cascade": "Spark's binary joins, one after the other",
    "factorised": "aggregates of the inputs before the joins",
    "operator": "one operator joins all inputs behind one exchange",
}


@dataclass(frozen=True)
class Obstacles:
    """Why a strategy is not open, in words; None for an open one."""

    factorised: str | None
    operator: str | None

    def of(self, strategy: str) -> str | None:
        """The obstacle of a strategy."""
        return None if strategy == "cascade" else self.factorised if strategy == "factorised" else self.operator


@dataclass(frozen=True)
class StrategyChoice:
    """A strategy and the reason for it, with its numbers; `sizes` if they were estimated, and what they say of each."""

    strategy: UMJoinStrategy
    why: str
    sizes: JoinSizes | None = None
    rivals: tuple[Rival, ...] = ()

    @property
    def facts(self) -> dict[str, Any]:
        """What a physical node keeps of the choice."""
        estimated = None if self.sizes is None else Estimate(self.sizes.result)
        return {"why": self.why, "rivals": self.rivals, "estimated": estimated}


def choose(node: UMJoin, obstacles: Obstacles, made: UMJoin, config: Config, catalog: Catalog | None) -> StrategyChoice:
    """The strategy for a node. `made` is what the operator would compute: the node, or its rows counted.

    Cost decides, and leaves Spark's own plan only for a gain that is worth it. A setting or a hint comes before cost.
    Raises UnsupportedError for a hint UMJOIN if no strategy but the cascade is open.
    """
    choice = _chosen(node, obstacles, made, config, catalog)
    return choice if choice.rivals else replace(choice, rivals=tuple(_rivals(choice.strategy, obstacles, {})))


def _chosen(
    node: UMJoin, obstacles: Obstacles, made: UMJoin, config: Config, catalog: Catalog | None
) -> StrategyChoice:
    open_strategies: list[UMJoinStrategy] = [
        strategy for strategy in ("factorised", "operator") if obstacles.of(strategy) is None
    ]
    if node.asked is not None and not open_strategies:
        raise UnsupportedError(
            f"the hint {node.asked} cannot be followed: {_closed(obstacles)}",
            condition="hint-not-followed",
            span=node.asked.span,
            help="leave the hint out: Spark's binary joins compute the same rows",
        ).about_hint()
    asked = config.umjoin_strategy
    if node.asked is None and asked != "auto":
        if asked in open_strategies:
            return StrategyChoice(
                "factorised" if asked == "factorised" else "operator", f"{asked}, as the setting says"
            )
        reason = "as the setting says" if asked == "cascade" else f"{asked} is not possible: {obstacles.of(asked)}"
        return StrategyChoice("cascade", reason)
    if node.asked is None and not open_strategies:
        return StrategyChoice("cascade", f"Catalyst's binary joins; {_closed(obstacles)}")
    sizes = "no data for an estimate" if catalog is None else join_sizes(node, catalog)
    if catalog is None or isinstance(sizes, str):
        if node.asked is not None:
            return StrategyChoice(open_strategies[0], f"as the hint says; {sizes}")
        return StrategyChoice("cascade", f"Catalyst's binary joins; {sizes}")
    returned, cores = _returned(made, sizes), catalog.cores()
    every: dict[UMJoinStrategy, float] = {
        "cascade": cascade_seconds(sizes, cores),
        "factorised": factorised_seconds(sizes, cores),
        "operator": operator_seconds(sizes, returned, cores),
    }
    seconds = {strategy: value for strategy, value in every.items() if obstacles.of(strategy) is None}
    best = min(open_strategies, key=seconds.__getitem__)
    why = f"{sizes}; estimated: {', '.join(f'{strategy} {value:.2g} s' for strategy, value in seconds.items())}"
    taken = best if node.asked is not None or pays(seconds[best], seconds["cascade"]) else "cascade"
    said = f"as the hint says; {why}" if node.asked is not None else why
    return StrategyChoice(taken, said, sizes, tuple(_rivals(taken, obstacles, seconds)))


def _rivals(taken: UMJoinStrategy, obstacles: Obstacles, seconds: Mapping[UMJoinStrategy, float]) -> Iterator[Rival]:
    """All strategies with their seconds, where they are estimated, and why not that which is a little cheaper."""
    for strategy, told in _TOLD.items():
        obstacle = obstacles.of(strategy)
        note = told if obstacle is None else f"not possible: {obstacle}"
        cost = f"{seconds[strategy]:.2g} s" if strategy in seconds else ""
        if cost and taken == "cascade" and seconds[strategy] < seconds["cascade"]:
            note += f"; not worth it: has to be {LEAST_GAIN:g} times and {LEAST_SECONDS:g} s faster than the cascade"
        yield Rival(strategy, cost, note, strategy == taken)


def _returned(made: UMJoin, sizes: JoinSizes) -> float:
    """Rows that the operator hands to Spark: if it counts, at most one for each combination of rows with payload."""
    if made.count is None:
        return sizes.result
    wanted = set(made.payload or ())
    pairs = zip(made.inputs, sizes.inputs, strict=True)
    return min(sizes.result, math.prod(rows for child, rows in pairs if wanted & set(child.output_columns)))


def _closed(obstacles: Obstacles) -> str:
    return f"not factorised: {obstacles.factorised}; not by one operator: {obstacles.operator}"


def umjoin_partitioning(node: UMJoin, catalog: Catalog | None, config: Config) -> tuple[Partitioning, int] | None:
    """The partitioning of the exchange of a node that is joined by shared keys, and the place of the operator's input
    whose rows are owned; None: by the hash of the keys.

    Raises UnsupportedError for a hint that a multi-way join does not allow.
    """
    inputs = _inputs(node)
    places = UMJoinSplit.of(node).places
    inner = [n for n, place in enumerate(places) if node.kinds[place] == "inner"]
    rows = input_rows(inputs, catalog) if catalog is not None else [None] * len(inputs)
    owner = max(inner, key=lambda n: rows[n] or 0.0)
    ordered = [inputs[owner], *(item for n, item in enumerate(inputs) if n != owner)]
    demand = Demand(
        pair_cost=0.0 if node.count is not None else PAIR_COST, unbounded="a multi-way join by a shared key has no time"
    )
    found = choose_partitioning(ordered, demand, catalog, config, node.partitioner, per_core=2)
    return None if found is None else (found, owner)


def _inputs(node: UMJoin) -> list[SampledInput]:
    """The operator's inputs with a column of each shared class, in the types in which they are compared."""
    split = UMJoinSplit.of(node)
    layout = split.layout
    known = {column: kind for child in node.inputs for column, kind in child.dtypes.items()}
    types = []
    for shared in layout.shared:
        edges = [(known.get(a), known.get(b)) for number, a, b in layout.edges if number == shared]
        typed = [(a, b) for a, b in edges if a is not None and b is not None]
        types.append(class_type(typed) if len(typed) == len(edges) else None)
    return [
        SampledInput(node.inputs[place], tuple(held[shared][0] for shared in layout.shared), None, tuple(types))
        for place, held in zip(split.places, layout.columns, strict=True)
    ]


def umjoin_placing(
    parts: StreamParts, catalog: Catalog | None, config: Config, hint: PartitionerHint | None
) -> StreamPlacing | None:
    """How the keys of a join over streams have places, as far as the plan knows its event times; None: each in one
    bucket, by its hash.

    Raises UnsupportedError for a hint that the join does not allow; a setting gives way.
    """
    from sqlext_planner.exchange.partitioning.stream_placing import stream_placing

    core = parts.core
    whole = None
    if not UMJoinSplit.of(core).layout.shared:
        whole = "its inputs share no key, so that each row goes to several buckets by several keys"
    names = [relation_name(child) for child in core.inputs]
    steady = endless(stream_times(core, parts.bounds), names)
    return stream_placing(Demand(whole=whole), catalog, config, hint, steady)


class JoinPlanner(Protocol):
    """What this module needs of the planner (strategies.py)."""

    config: Config
    catalog: Catalog | None
    #: The choice for a join together with the aggregate above it, by id.
    decided: dict[int, tuple[UMJoin, StrategyChoice]]
    #: The whole plan.
    root: LogicalPlan | None
    #: Why Spark refuses the whole statement.
    refused: str | None

    def later(self, node: LogicalPlan) -> PhysicalPlan:
        """The physical plan of a node."""

    def stream_obstacle(self) -> str | None:
        """Why Spark's version or settings do not suit the state of our operators over streams."""

    def marked(self, child: PhysicalPlan) -> PhysicalPlan:
        """`child` as an input of an exchange."""


def plan_umjoin(node: UMJoin, planner: JoinPlanner) -> PhysicalPlan:
    """The physical plan of a node. Raises UnsupportedError for a hint that cannot be followed."""
    _, choice = planner.decided.get(id(node), (node, None))
    if choice is None:
        obstacles = Obstacles("there is no aggregate above", ineligible(node))
        choice = choose(node, obstacles, node, planner.config, planner.catalog)
    inputs = [planner.later(child) for child in node.inputs]
    if choice.strategy != "operator":
        return UMJoinCascadeExec(UMJoinGroup.of(node), cascade(node, inputs), **choice.facts)
    routing: Routing = "shared key" if UMJoinSplit.of(node).layout.shared else "hypercube"
    found = umjoin_partitioning(node, planner.catalog, planner.config) if routing == "shared key" else None
    make = UMJoinExec if found is None else partial(UMJoinExec, partitioning=found[0], owner=found[1])
    return operator_plan(node, inputs, routing, facts=choice.facts, mark=planner.marked, make=make)


def plan_stream(node: UMJoin, planner: JoinPlanner) -> PhysicalPlan:
    """The physical plan of a node over streams: our operator where a hint or a setting asks for it, or where it keeps
    less than Spark's joins.

    Raises UnsupportedError for a hint that cannot be followed.
    """
    inputs = [planner.later(child) for child in node.inputs]
    parts, why = _stream_choice(node, planner)
    if not isinstance(parts, str):
        placing = umjoin_placing(parts, planner.catalog, planner.config, node.partitioner)
        return stream_plan(node, parts, inputs, why, placing)
    error = refusal(node)
    if error is not None:
        raise error
    return UMJoinCascadeExec(UMJoinGroup.of(node), cascade(node, inputs), why=f"Spark's joins of streams; {parts}")


def _stream_choice(node: UMJoin, planner: JoinPlanner) -> tuple[StreamParts | str, str]:
    """What our operator computes, or why it does not; and why it does."""
    config = planner.config
    if planner.refused is not None:
        return planner.refused, ""
    if node.asked is not None:
        return stream_parts(node), "as the hint says"
    if config.umjoin_strategy == "operator":
        return stream_parts(node), "operator, as the setting says"
    if config.umjoin_strategy == "cascade" or config.streams == "spark":
        return "as the setting says", ""
    parts = stream_parts(node)
    if isinstance(parts, str):
        return parts, ""
    obstacle = other_rows(node, parts, planner.root) or planner.stream_obstacle()
    if obstacle:
        return obstacle, ""
    keeps = kept_inputs(parts, 1 if planner.catalog is None else planner.catalog.cores())
    return (parts if config.streams == "ours" or keeps.pays else str(keeps)), f"operator: {keeps}"


def plan_aggregate(node: Aggregate, planner: JoinPlanner) -> PhysicalPlan | None:
    """The physical plan of an aggregate over a multi-way join, if it is more than the plans of the two in sequence.

    Raises UnsupportedError for a hint that cannot be followed.
    """
    join = _joined(node)
    if join is None:
        return None
    factorised = factorise(node)
    closed = factorised if isinstance(factorised, str) else None
    counting = counted(node)
    target = join if counting is None else _joined(counting) or join
    choice = choose(join, Obstacles(closed, ineligible(target)), target, planner.config, planner.catalog)
    if choice.strategy == "factorised":
        factorised = factorise(node, None if choice.sizes is None else choice.sizes.inputs)
        if not isinstance(factorised, str):
            return FactorisedAggregateExec(UMJoinGroup.of(join), planner.later(factorised), **choice.facts)
    if choice.strategy == "operator" and counting is not None:
        planner.decided[id(target)] = (target, choice)
        return planner.later(counting)
    planner.decided[id(join)] = (join, choice)
    return None


def _joined(node: Aggregate) -> UMJoin | None:
    """The multi-way join that an aggregate reads, through nodes that compute row by row."""
    below: LogicalPlan = node.child
    while isinstance(below, Project):
        below = below.child
    return below if isinstance(below, UMJoin) else None
