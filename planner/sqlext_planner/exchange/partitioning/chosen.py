"""The partitioner of a statement's exchange: the cheapest, or the one that a hint or the setting names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlext_planner.catalog import Catalog
from sqlext_planner.config import Config
from sqlext_planner.errors import UnsupportedError
from sqlext_planner.exchange.partitioning.choice import Candidate, Choice, choose
from sqlext_planner.exchange.partitioning.demand import Demand
from sqlext_planner.exchange.partitioning.partitioners import PARTITIONERS
from sqlext_planner.exchange.partitioning.samples import Sampled, SampledInput, input_rows, sampled
from sqlext_planner.relational.physical_plan import Rival

if TYPE_CHECKING:
    from sqlext_operators.exchange.placement import Placement

    from sqlext_planner.exchange.partitioning.plans import Copies, Partitioner
    from sqlext_planner.relational.nodes import PartitionerHint

#: The partitioner without statistics.
HASH = "hash"
#: Fewer rows are not sampled: their exchange takes about a second, whatever the keys.
_LEAST_ROWS = 1_000_000


@dataclass(frozen=True)
class Partitioning:
    """How an exchange spreads its rows: as the partitioner `name` planned it, by a placement over `partitions`
    partitions, where `copies` go to all members of a team, or by the hash of the keys (None). Expected are so many rows
    `moved`, and that the work of the largest partition is `balance` times the average. `lines` are EXPLAIN's, by what
    they are about; `rivals` are the partitioners that were compared."""

    name: str
    partitions: int
    placement: Placement | None = field(repr=False)
    copies: Copies
    moved: float
    balance: float
    lines: dict[str, str] = field(compare=False, repr=False)
    rivals: tuple[Rival, ...] = field(default=(), compare=False, repr=False)

    @property
    def planned(self) -> int | None:
        """The number of partitions that the placement is for; None for the hash, which serves any number."""
        return None if self.placement is None else self.partitions


def choose_partitioning(
    inputs: Sequence[SampledInput],
    demand: Demand,
    catalog: Catalog | None,
    config: Config,
    hint: PartitionerHint | None,
    per_core: int = 0,
) -> Partitioning | None:
    """How an exchange of these inputs spreads its rows; the first input owns. None: by the hash of the keys, without
    statistics. Raises UnsupportedError for a hint that the statement does not allow, whatever the number of rows; a
    setting gives way."""
    wanted = WantedPartitioning.of(inputs, catalog, config, hint, per_core)
    return None if wanted is None else wanted.chosen(sampled(inputs, wanted.rows, wanted.catalog), demand)


@dataclass(frozen=True)
class WantedPartitioning:
    """An exchange that is worth a sample of its inputs, which have so many `rows`, and gets so many partitions; the
    partitioner that the hint or the setting asks for, if one does."""

    rows: tuple[float, ...]
    partitions: int
    asked: str | None
    hint: PartitionerHint | None
    catalog: Catalog

    @classmethod
    def of(
        cls,
        inputs: Sequence[SampledInput],
        catalog: Catalog | None,
        config: Config,
        hint: PartitionerHint | None,
        per_core: int = 0,
    ) -> WantedPartitioning | None:
        """None for one partition, and without a hint or setting for few rows, and where nothing is known about them.

        The inputs' bytes decide how many partitions there are, at least `per_core` a core, and at least two where a
        hint asks for a partitioner.
        """
        from sqlext_planner.exchange.driver import partitions_for
        from sqlext_planner.exchange.sizes import plan_row_bytes

        asked = hint.name if hint is not None else None if config.partitioner == "auto" else config.partitioner
        known = input_rows(inputs, catalog) if catalog is not None else [None] * len(inputs)
        rows = [0.0 if count is None else count for count in known]
        if catalog is None or (asked is None and (None in known or sum(rows) < _LEAST_ROWS)):
            return None
        cores = catalog.cores()
        size = sum(count * plan_row_bytes(item.plan) for count, item in zip(rows, inputs, strict=True))
        partitions = config.partitions or max(partitions_for(int(size), cores, config), per_core * cores)
        if hint is not None:
            partitions = max(partitions, 2)
        return None if partitions < 2 else cls(tuple(rows), partitions, asked, hint, catalog)

    def chosen(
        self,
        found: Sampled,
        demand: Demand,
        partitioners: Mapping[str, Partitioner] = PARTITIONERS,
        unknown: str = HASH,
    ) -> Partitioning:
        """The cheapest of the partitioners, or the one that is asked for; `unknown` if the samples have gaps.

        Raises UnsupportedError for a hint that the statement does not allow.
        """
        choice = choose(found.loads, demand, self.partitions, self.catalog.cores(), partitioners=partitioners)
        if self.asked is None and found.gaps:
            chosen = _as_asked(choice, unknown, self.hint)
            lines = {"partitioner": f"{unknown}: {found.gaps[0]}"}
        else:
            chosen = choice if self.asked is None else _as_asked(choice, self.asked, self.hint)
            lines = {f"partitioner {item.name}": _line(item, chosen, found.gaps) for item in choice.candidates}
        plan = chosen.plan
        rivals = tuple(item.rival(plan) for item in chosen.candidates)
        sized = (plan.moved, plan.balance)
        return Partitioning(plan.partitioner, self.partitions, plan.placement, plan.copies, *sized, lines, rivals)


def _as_asked(choice: Choice, asked: str, hint: PartitionerHint | None) -> Choice:
    item = next(item for item in choice.candidates if item.name == asked)
    if item.plan is not None:
        return Choice(item.plan, choice.candidates)
    if hint is None:
        return Choice(next(item.plan for item in choice.candidates if item.plan is not None), choice.candidates)
    raise UnsupportedError(
        f"the hint {hint} cannot be followed: {item.reason}",
        condition="hint-not-followed",
        span=hint.span,
        help="leave the hint out, or name another partitioner; EXPLAIN shows what each of them would cost",
    ).about_hint()


def _line(item: Candidate, choice: Choice, gaps: Sequence[str]) -> str:
    shown = item.line().removeprefix(f"{item.name}: ")
    chosen = " (chosen)" if item.plan is choice.plan else ""
    unknown = f"; not known: {'; '.join(gaps)}" if gaps and chosen else ""
    return f"{shown}{chosen}{unknown}"
