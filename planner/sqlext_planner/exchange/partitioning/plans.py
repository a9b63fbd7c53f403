"""The plan of a partitioner: where rows go, how many are moved, how much work each partition gets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

from sqlext_planner.exchange.partitioning.demand import Demand
from sqlext_planner.exchange.partitioning.loads import Loads
from sqlext_planner.exchange.partitioning.units import Units

if TYPE_CHECKING:
    from sqlext_operators.arrays import Float64s
    from sqlext_operators.exchange.placement import Placement


#: Which rows every member of a team gets: those of all inputs, or those of the inputs that own nothing.
Copies = Literal["all", "others"]
#: How the numbers of pieces are found: `published` is Algorithm 1 of PPOIJ, `minimal` splits no more than needed.
Splitter = Literal["published", "minimal"]


@dataclass(frozen=True)
class Options:
    """Settings of the partitioners; the defaults are those of the papers.

    `theta`: a plan is balanced if no partition has more than theta times the average work. `even`: time ranges, whose
    copies are few, are cut finer than that while it pays, until no partition has more than so many times the average.
    `max_splitting`: the most partitions of a key, None for all there are. `splitter`: for HybridPartitioner and
    TimeRangePartitioner. The others
    are of Scale-OIJ's schedule: hash `slots`, `decay` of counts after a round (lambda), the least improvement `delta`
    that makes a team larger, and the least work `least_gain` that it takes from each member (the minimum score).

    Raises ValueError for values out of range.
    """

    theta: float = 1.2
    even: float = 1.05
    max_splitting: int | None = None
    splitter: Splitter = "minimal"
    slots: int = 1024
    decay: float = 0.9
    delta: float = 0.01
    least_gain: float = 0.1

    def __post_init__(self) -> None:
        if not self.theta >= 1:
            raise ValueError(f"theta is at least 1, not {self.theta:g}")
        if not self.even >= 1:
            raise ValueError(f"even is at least 1, not {self.even:g}")
        if self.max_splitting is not None and self.max_splitting < 1:
            raise ValueError(f"a key has at least one partition, not {self.max_splitting}")
        if self.splitter not in ("published", "minimal"):
            raise ValueError(f"the splitter is 'published' or 'minimal', not '{self.splitter}'")
        if self.slots.bit_count() != 1:
            raise ValueError(f"the number of hash slots is a power of two, not {self.slots}")
        if not 0 < self.decay <= 1:
            raise ValueError(f"the decay of counts is above 0 and at most 1, not {self.decay:g}")
        if not (self.delta >= 0 and self.least_gain >= 0):
            raise ValueError("the least improvement and the least gain are not negative")


@dataclass(frozen=True, eq=False)
class Exchange:
    """What is planned: an exchange of `partitions` partitions. Several partitioners share what is derived from it.

    Raises ValueError for less than one partition, and for more pieces of a key than partitions.
    """

    loads: Loads
    demand: Demand
    partitions: int
    options: Options = Options()

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise ValueError(f"there is at least one partition, not {self.partitions}")
        if self.most_pieces > self.partitions:
            raise ValueError(f"a key cannot have {self.most_pieces} of {self.partitions} partitions")

    @property
    def most_pieces(self) -> int:
        """The most partitions of a key."""
        return self.options.max_splitting or self.partitions

    @property
    def copies(self) -> Copies:
        """The rows that every member of a team needs."""
        return "all" if self.demand.owned_copies else "others"

    @cached_property
    def units(self) -> Units:
        """The known keys and the hash slots of all others."""
        return Units.of(self.loads, self.demand)

    @cached_property
    def work(self) -> Float64s:
        """float64[units], the work of each unit if it is in one partition."""
        return self.units.work(self.demand)


@dataclass(frozen=True)
class Split:
    """A known key in several partitions: its text, its hash, how many partitions, and its work in one partition."""

    name: str
    key: int
    pieces: int
    work: float


@dataclass(frozen=True, eq=False)
class PartitionPlan:
    """Where rows go, and what that costs.

    `placement` is None for the plain hash of the keys. `copies` are the inputs whose rows go to every member of a team
    (to the time ranges that can need them, if there are cuts). `moved` are the rows that the exchange moves, copies
    too, out of `rows` input rows: exact if the samples are. `splits` are the known keys in several partitions, most
    work first. `work` is float64[partitions], expected. `notes` are sentences.
    """

    partitioner: str
    placement: Placement | None
    copies: Copies
    moved: float
    rows: float
    splits: tuple[Split, ...]
    work: Float64s
    notes: tuple[str, ...] = ()

    @property
    def balance(self) -> float:
        """The largest partition's work over the average; 1 if there is no work."""
        average = float(self.work.mean())
        return float(self.work.max()) / average if average else 1.0


@dataclass(frozen=True)
class Refused:
    """Why a partitioner makes no plan, in a sentence without its first capital and its full stop."""

    partitioner: str
    reason: str


class Partitioner(Protocol):
    """Decides which partitions the rows of each key may be in."""

    @property
    def name(self) -> str:
        """The name in hints, settings and EXPLAIN."""

    def plan(self, exchange: Exchange) -> PartitionPlan | Refused:
        """A plan, or why there is none."""
